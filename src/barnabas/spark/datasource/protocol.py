"""The commit of one batch, as a pure state machine: events go in, the next step comes out.

Tasks leave their transactions open (*prepared*). The driver stores durably which of them make up
the batch, the *decision*, and only then commits them. Once decided, the batch is written even
after a crash: a rerun of the same batch commits the decided transactions and aborts its own.

    reading ─▶ checking ─▶ deciding ─▶ committing ─▶ aborting ─▶ done
       │                       ▲           │  ▲          ▲
       │   a lost transaction  └───────────┘  │          │
       └── decided by an earlier run ─────────┴──────────┘

A prepared transaction that the brokers end before the driver does (it has timed out) is *lost*. It
is replaced if that cannot write a record twice: by the transaction of a new run of the same task
with the same records, or, if all are lost, the whole batch by the new run. Otherwise the commit
fails with an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final


@dataclass(slots=True, frozen=True)
class Prepared:
    """An open transaction that holds all records of one task.

    `checksum` does not depend on the order of records. Two tasks with equal `task`, `records` and
    `checksum` have written the same.
    """

    task: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    records: int
    checksum: int

    def has_same_records(self, other: Prepared) -> bool:
        """Return whether both stand for the same output."""
        mine = self.task, self.records, self.checksum
        return mine == (other.task, other.records, other.checksum)


Transactions = tuple[Prepared, ...]
Ids = frozenset[str]
"""Transactional ids."""


@dataclass(slots=True, frozen=True)
class Decision:
    """The transactions that make up a batch."""

    batch: int
    transactions: Transactions

    @property
    def ids(self) -> Ids:
        """Return their transactional ids."""
        return frozenset(one.transactional_id for one in self.transactions)


@dataclass(slots=True, frozen=True)
class DecisionRead:
    """The last decision of this sink, or None; earlier writers are fenced."""

    decision: Decision | None


@dataclass(slots=True, frozen=True)
class Checked:
    """The transactions were checked; `lost` are no longer open."""

    lost: Ids


@dataclass(slots=True, frozen=True)
class DecisionWritten:
    """The decision is durable."""


@dataclass(slots=True, frozen=True)
class CommitsDone:
    """Each transaction is committed, or is aborted for good: `lost`."""

    lost: Ids


@dataclass(slots=True, frozen=True)
class AbortsDone:
    """The transactions are aborted, or will be by themselves."""


Event = DecisionRead | Checked | DecisionWritten | CommitsDone | AbortsDone


@dataclass(slots=True, frozen=True)
class ReadDecision:
    """Fence earlier writers of decisions and read the last one."""


@dataclass(slots=True, frozen=True)
class Check:
    """Ask which of the transactions are still open."""

    transactions: Transactions


@dataclass(slots=True, frozen=True)
class WriteDecision:
    """Make a decision durable."""

    decision: Decision


@dataclass(slots=True, frozen=True)
class Commit:
    """Commit each transaction."""

    transactions: Transactions


@dataclass(slots=True, frozen=True)
class Abort:
    """Abort each transaction."""

    transactions: Transactions


@dataclass(slots=True, frozen=True)
class Finish:
    """The batch is written."""


Effect = ReadDecision | Check | WriteDecision | Commit | Abort | Finish


class CommitError(Exception):
    """The batch is not committed; the message says what to do."""


class NotPreparedError(CommitError):
    """Transactions ended before anything was decided: nothing of the batch is written."""


class CheckpointBehindError(CommitError):
    """A later batch was already decided: the checkpoint was replaced by an older one."""


class LostTransactionError(CommitError):
    """Part of a decided batch was aborted by the brokers and cannot be replaced.

    If `is_whole`, all of it was: no record of the batch is written.
    """

    def __init__(self, message: str, *, is_whole: bool) -> None:
        super().__init__(message)
        self.is_whole = is_whole


class State(Enum):
    """The progress of a commit."""

    NEW = auto()
    READING = auto()
    CHECKING = auto()
    DECIDING = auto()
    COMMITTING = auto()
    ABORTING = auto()
    DONE = auto()


TRANSITIONS: Final = {
    (State.READING, DecisionRead): "_on_read",
    (State.CHECKING, Checked): "_on_checked",
    (State.DECIDING, DecisionWritten): "_on_written",
    (State.COMMITTING, CommitsDone): "_on_committed",
    (State.ABORTING, AbortsDone): "_on_aborted",
}


class BatchCommit:
    """Commits one batch; `prepared` are the transactions of this run.

    With `skips_lost` a batch is finished without the transactions that cannot be replaced.
    """

    def __init__(self, batch: int, prepared: Sequence[Prepared], *, skips_lost: bool) -> None:
        self.batch = batch
        self.state = State.NEW
        self.skipped: Transactions = ()
        self._prepared = tuple(prepared)
        self._skips_lost = skips_lost
        self._decision: Decision | None = None

    def start(self) -> Effect:
        """Return the first thing to do."""
        assert self.state is State.NEW
        self.state = State.READING
        return ReadDecision()

    def step(self, event: Event) -> Effect:
        """Return what to do next. Raises CommitError where the batch cannot be committed."""
        handler = TRANSITIONS[(self.state, type(event))]
        effect: Effect = getattr(self, handler)(event)
        return effect

    def _on_read(self, event: DecisionRead) -> Effect:
        decision = event.decision
        if decision is None or decision.batch < self.batch:
            return self._to(State.CHECKING, Check(self._prepared))
        if decision.batch > self.batch:
            raise CheckpointBehindError(
                f"batch {self.batch} comes after batch {decision.batch}, which is written: "
                "this checkpoint is an older copy. Start with a new checkpoint"
            )
        self._decision = decision
        return self._to(State.COMMITTING, Commit(decision.transactions))

    def _on_checked(self, event: Checked) -> Effect:
        if event.lost:
            raise NotPreparedError(
                f"{_count(event.lost)} of batch {self.batch} ended before the batch was complete "
                f"({', '.join(sorted(event.lost))}): nothing of it is written. If batches take "
                "longer than kafka.transaction.timeout.ms, raise that"
            )
        if not self._prepared:
            return self._to(State.DONE, Finish())
        return self._decide(Decision(self.batch, self._prepared))

    def _decide(self, decision: Decision) -> Effect:
        self._decision = decision
        return self._to(State.DECIDING, WriteDecision(decision))

    def _on_written(self, event: DecisionWritten) -> Effect:
        assert self._decision is not None
        return self._to(State.COMMITTING, Commit(self._decision.transactions))

    def _on_committed(self, event: CommitsDone) -> Effect:
        assert self._decision is not None
        if event.lost:
            replaced = self._replaced(self._decision, event.lost)
            if replaced is not None:
                return self._decide(replaced)
            if not self._skips_lost:
                raise self._lost_error(event.lost)
            self.skipped = tuple(
                one for one in self._decision.transactions if one.transactional_id in event.lost
            )
        rest = not_decided(self._decision, self.batch, self._prepared)
        if not rest:
            return self._to(State.DONE, Finish())
        return self._to(State.ABORTING, Abort(rest))

    def _on_aborted(self, event: AbortsDone) -> Effect:
        return self._to(State.DONE, Finish())

    def _replaced(self, decision: Decision, lost: Ids) -> Decision | None:
        """Return the decision with this run's transactions for what is lost, None if it cannot."""
        spares = not_decided(decision, self.batch, self._prepared)
        if spares and lost == decision.ids:
            return replace(decision, transactions=spares)
        transactions = []
        for one in decision.transactions:
            if one.transactional_id in lost:
                spare = next((s for s in spares if s.has_same_records(one)), None)
                if spare is None:
                    return None
                transactions.append(spare)
            else:
                transactions.append(one)
        return replace(decision, transactions=tuple(transactions))

    def _lost_error(self, lost: Ids) -> LostTransactionError:
        assert self._decision is not None
        gone = [one for one in self._decision.transactions if one.transactional_id in lost]
        records = sum(one.records for one in gone)
        tasks = ", ".join(str(one.task) for one in gone)
        has_run_again = bool(not_decided(self._decision, self.batch, self._prepared))
        advice = (
            "the batch was run again with other records, so that they cannot be replaced. "
            "To go on without them, set onLostTransaction to skip"
            if has_run_again
            else "start the query again: it replaces them if the batch is the same"
        )
        return LostTransactionError(
            f"{_count(lost)} of batch {self.batch} timed out after the batch was decided and "
            f"before they were committed: {records} records of tasks {tasks} are missing; {advice}",
            is_whole=lost == self._decision.ids,
        )

    def _to(self, state: State, effect: Effect) -> Effect:
        self.state = state
        return effect


def not_decided(
    decision: Decision | None, batch: int, prepared: Sequence[Prepared]
) -> Transactions:
    """Return those that may be aborted: the ones that the decision on their batch leaves out."""
    decided = decision.ids if decision is not None and decision.batch == batch else frozenset()
    return tuple(one for one in prepared if one.transactional_id not in decided)


def _count(lost: Ids) -> str:
    return f"{len(lost)} transaction{'s' if len(lost) != 1 else ''}"
