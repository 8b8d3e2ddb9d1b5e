"""The driver's part of a sink: carries out what the commit of a batch asks for.

Spark may call it in a new process for each batch, or in one of several: state kept between calls
only saves time. If another process has taken over, this one is fenced at its next decision, takes
over again, and restarts the batch's commit with the decision that it then reads.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from barnabas.kafka.transactions import Seen, TransactionControl
from barnabas.kafka.wire import CoordinatorError
from barnabas.spark.datasource.journal import Journal
from barnabas.spark.datasource.options import SinkOptions
from barnabas.spark.datasource.protocol import (
    Abort,
    AbortsDone,
    BatchCommit,
    Check,
    Checked,
    Commit,
    CommitError,
    CommitsDone,
    Decision,
    DecisionRead,
    DecisionWritten,
    Effect,
    Event,
    Finish,
    Ids,
    Prepared,
    ReadDecision,
    Transactions,
    WriteDecision,
    not_decided,
)

TRIES_MAX: Final = 3
SWEEP_SECONDS: Final = 10.0
"""The interval at which left-over transactions of tasks are looked for, at least."""
_TAKEN_OVER: Final = (
    "another run has taken over, or it is not known whether the last decision was written: "
    "start again, which finishes what is decided"
)
_log = logging.getLogger(__name__)


def sink_name(sink_id: str) -> str:
    """Return the key of a sink's decisions, with which its transactional ids begin."""
    return f"barnabas-sink-{sink_id}"


def task_prefix(sink_id: str) -> str:
    """Return what the transactional ids of a sink's tasks begin with, and no others do."""
    return f"{sink_name(sink_id)}.task."


class Committer:
    """Commits and aborts the batches of one sink.

    With `retakes` False a fenced process does not take over again: CommitError.
    `checkpoint`: the one that numbers the batches, if `sink_id` does not name it.
    """

    def __init__(
        self,
        options: SinkOptions,
        sink_id: str,
        *,
        retakes: bool = True,
        checkpoint: str | None = None,
    ) -> None:
        self._retakes = retakes
        self._skips_lost = options.skips_lost
        self._prefix = task_prefix(sink_id)
        name = sink_name(sink_id)
        key = name if checkpoint is None else f"{name}/{checkpoint}"
        self._journal = Journal(options.connection, options.decision_topic, name, key)
        self._control = TransactionControl(options.access)
        self._next_sweep = 0.0
        self._owner: Seen | None = None
        """The journal's transactional id, as it was when this process took it."""

    @property
    def decided(self) -> int | None:
        """The batch whose transactions a take-over commits, maybe once more; None for none."""
        last = self._journal.last
        return last.batch if last is not None and last.transactions else None

    @property
    def decided_batch(self) -> int:
        """The last batch that was decided about, -1 before the first."""
        last = self._journal.last
        return -1 if last is None else last.batch

    def take_over(self) -> Decision | None:
        """Fence earlier committers, and return the last decision.

        Raises KafkaException, CoordinatorError.
        """
        self._take_over()
        return self._journal.last

    def settle(self) -> tuple[Prepared, ...]:
        """Commit what was decided last, and abort all else that tasks have left open.

        Returns the decided transactions that brokers had aborted before: what those wrote is lost.
        Only after `take_over`. Raises CoordinatorError.
        """
        last = self._journal.last
        decided = () if last is None else last.transactions
        gone = self._commit(decided)
        self.sweep()
        return tuple(one for one in decided if one.transactional_id in gone)

    def drop(self, prepared: Sequence[Prepared]) -> None:
        """Abort what tasks have prepared and nobody will decide about. Raises CoordinatorError."""
        self._abort(tuple(prepared))

    def finish(self) -> None:
        """Write that all decided is committed, so that the next start asks for nothing.

        Brokers forget transactions after a week. Raises KafkaException.
        """
        last = self._journal.last
        if self._journal.is_taken and last is not None and last.transactions:
            self._journal.write(Decision(last.batch, ()))

    def forget(self) -> None:
        """Keep no decision, where the checkpoint is deleted. Raises KafkaException."""
        if self._journal.is_taken:
            self._journal.forget()

    def sweep(self) -> None:
        """Abort all that tasks have left open before now."""
        self._sweep(time.time_ns() // 1_000_000)

    def commit(self, batch: int, prepared: Sequence[Prepared], *, was_retried: bool) -> None:
        """Commit a batch; `was_retried` if one of its tasks has run more than once.

        Raises CommitError where the batch cannot be committed; KafkaException or CoordinatorError
        where brokers failed: to run the batch again, here or elsewhere, is right.
        """
        now_ms = time.time_ns() // 1_000_000
        for attempt in range(1, TRIES_MAX + 1):
            was_taken = self._journal.is_taken
            try:
                self._run(BatchCommit(batch, prepared, skips_lost=self._skips_lost))
                break
            except KafkaException as error:
                self._journal.close()
                if attempt == TRIES_MAX or not self._retakes:
                    raise
                _log.warning("batch %d: %s; trying again", batch, error.args[0].str())
            except CommitError:
                # The remembered decision may be older than that of another process.
                self._journal.close()
                if attempt == TRIES_MAX or not (was_taken and self._retakes):
                    raise
        if was_retried or time.monotonic() >= self._next_sweep:
            self._sweep(now_ms)

    def abort(self, batch: int, prepared: Sequence[Prepared]) -> None:
        """Abort what tasks have prepared, but for what is decided. Raises as `commit` does."""
        now_ms = time.time_ns() // 1_000_000
        # Spark asks for this also where a commit has failed, whose decision may be written.
        if self._retakes:
            self._take_over()
        elif not self._journal.is_taken:
            return  # the next run finds out, and does it
        last = self._journal.last
        self._abort(not_decided(last, batch, prepared))
        if last is None or last.batch < batch:
            self._sweep(now_ms)
        elif last.batch == batch:
            self._sweep(now_ms, kept=last.ids)

    def close(self) -> None:
        """Close the connections."""
        self._journal.close()
        self._control.close()

    def _run(self, machine: BatchCommit) -> None:
        effect = machine.start()
        while not isinstance(effect, Finish):
            effect = machine.step(self._do(effect))
        if machine.skipped:
            records = sum(one.records for one in machine.skipped)
            _log.error(
                "batch %d continues without %d records, as configured", machine.batch, records
            )

    def _do(self, effect: Effect) -> Event:
        match effect:
            case ReadDecision():
                if not self._journal.is_taken:
                    if not self._retakes:
                        raise CommitError(_TAKEN_OVER)
                    self._take_over()
                return DecisionRead(self._journal.last)
            case Check(transactions):
                return Checked(self._control.lost(transactions))
            case WriteDecision(decision):
                self._journal.write(decision)
                return DecisionWritten()
            case Commit(transactions):
                return CommitsDone(self._commit(transactions))
            case Abort(transactions):
                self._abort(transactions)
                return AbortsDone()
            case Finish():
                raise AssertionError("there is nothing to do")

    def _commit(self, transactions: Transactions) -> Ids:
        gone = [one for one in transactions if not self._control.commit(one)]
        return frozenset(one.transactional_id for one in gone)

    def _abort(self, transactions: Transactions) -> None:
        for one in transactions:
            self._control.abort(one.transactional_id)

    def _take_over(self) -> None:
        self._journal.take_over()
        self._owner = self._control.describe(self._journal.transactional_id)

    def _sweep(self, before_ms: int, kept: Ids = frozenset()) -> None:
        """Abort what killed and superseded tasks have left open: it holds up those who read.

        All that is decided is committed, or `kept`. A driver that another has succeeded leaves the
        other's transactions alone: they began later, and the journal is no longer its own.
        """
        try:
            for one in self._control.open_ids(self._prefix):
                seen = self._control.describe(one)
                is_old = seen is not None and seen.started_ms < before_ms
                if is_old and one not in kept and self._is_owner():
                    self._control.abort(one)
        except CoordinatorError as error:
            _log.warning("transactions of lost tasks may stay open for a while: %s", error)
        self._next_sweep = time.monotonic() + SWEEP_SECONDS

    def _is_owner(self) -> bool:
        mine, now = self._owner, self._control.describe(self._journal.transactional_id)
        if mine is None or now is None:
            return False
        return now.is_by(mine.producer_id, mine.producer_epoch)
