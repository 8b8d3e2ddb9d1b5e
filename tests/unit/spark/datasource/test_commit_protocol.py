"""The commit of a batch: tables of steps, and random crashes in a world of brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.datasource.protocol import (
    Abort,
    AbortsDone,
    BatchCommit,
    Check,
    Checked,
    CheckpointBehindError,
    Commit,
    CommitError,
    CommitsDone,
    Decision,
    DecisionRead,
    DecisionWritten,
    Effect,
    Event,
    Finish,
    LostTransactionError,
    NotPreparedError,
    Prepared,
    ReadDecision,
    State,
    WriteDecision,
    not_decided,
)


def one(task: int, run: int = 0, checksum: int | None = None) -> Prepared:
    """What a task has prepared; its records are the same in each run unless said otherwise."""
    return Prepared(
        task, f"{task}-{run}", 10 * task, run, 5, task if checksum is None else checksum
    )


OLD = (one(0), one(1))
NEW = (one(0, run=1), one(1, run=1))
OTHER = (one(0, run=1, checksum=77), one(1, run=1, checksum=78))
NONE: frozenset[str] = frozenset()

STEPS: dict[str, tuple[Sequence[Prepared], list[Event], list[Effect]]] = {
    "the first batch": (
        OLD,
        [DecisionRead(None), Checked(NONE), DecisionWritten(), CommitsDone(NONE)],
        [ReadDecision(), Check(OLD), WriteDecision(Decision(3, OLD)), Commit(OLD), Finish()],
    ),
    "the next batch": (
        NEW,
        [DecisionRead(Decision(2, OLD)), Checked(NONE), DecisionWritten(), CommitsDone(NONE)],
        [ReadDecision(), Check(NEW), WriteDecision(Decision(3, NEW)), Commit(NEW), Finish()],
    ),
    "nothing to write": (
        (),
        [DecisionRead(Decision(2, OLD)), Checked(NONE)],
        [ReadDecision(), Check(()), Finish()],
    ),
    "run again after the decision": (
        NEW,
        [DecisionRead(Decision(3, OLD)), CommitsDone(NONE), AbortsDone()],
        [ReadDecision(), Commit(OLD), Abort(NEW), Finish()],
    ),
    "the commit itself tried again": (
        OLD,
        [DecisionRead(Decision(3, OLD)), CommitsDone(NONE)],
        [ReadDecision(), Commit(OLD), Finish()],
    ),
    "one lost, run again with the same records": (
        NEW,
        [
            DecisionRead(Decision(3, OLD)),
            CommitsDone(frozenset({"1-0"})),
            DecisionWritten(),
            CommitsDone(NONE),
            AbortsDone(),
        ],
        [
            ReadDecision(),
            Commit(OLD),
            WriteDecision(Decision(3, (OLD[0], NEW[1]))),
            Commit((OLD[0], NEW[1])),
            Abort((NEW[0],)),
            Finish(),
        ],
    ),
    "all lost, run again with other records": (
        OTHER,
        [
            DecisionRead(Decision(3, OLD)),
            CommitsDone(frozenset({"0-0", "1-0"})),
            DecisionWritten(),
            CommitsDone(NONE),
        ],
        [
            ReadDecision(),
            Commit(OLD),
            WriteDecision(Decision(3, OTHER)),
            Commit(OTHER),
            Finish(),
        ],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str) -> None:
    prepared, events, effects = STEPS[name]
    machine = BatchCommit(3, prepared, skips_lost=False)
    assert [machine.start(), *(machine.step(event) for event in events)] == effects
    assert machine.state is State.DONE


FAILURES: dict[str, tuple[Sequence[Prepared], list[Event], type[CommitError], str]] = {
    "ended before the decision": (
        OLD,
        [DecisionRead(None), Checked(frozenset({"1-0"}))],
        NotPreparedError,
        "1 transaction of batch 3 ended .* nothing of it is written",
    ),
    "an older checkpoint": (
        NEW,
        [DecisionRead(Decision(4, OLD))],
        CheckpointBehindError,
        "batch 3 comes after batch 4",
    ),
    "lost in the same run": (
        OLD,
        [DecisionRead(None), Checked(NONE), DecisionWritten(), CommitsDone(frozenset({"1-0"}))],
        LostTransactionError,
        "5 records of tasks 1 are missing; start the query again",
    ),
    "one lost, run again with other records": (
        OTHER,
        [DecisionRead(Decision(3, OLD)), CommitsDone(frozenset({"1-0"}))],
        LostTransactionError,
        "run again with other records",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str) -> None:
    prepared, events, error, message = FAILURES[name]
    machine = BatchCommit(3, prepared, skips_lost=False)
    machine.start()
    for event in events[:-1]:
        machine.step(event)
    with pytest.raises(error, match=message):
        machine.step(events[-1])


def test_what_cannot_be_replaced_is_left_out_if_told() -> None:
    machine = BatchCommit(3, OTHER, skips_lost=True)
    machine.start()
    machine.step(DecisionRead(Decision(3, OLD)))
    assert machine.step(CommitsDone(frozenset({"1-0"}))) == Abort(OTHER)
    assert machine.skipped == (OLD[1],)


def test_an_event_out_of_turn_is_a_bug() -> None:
    machine = BatchCommit(3, OLD, skips_lost=False)
    machine.start()
    with pytest.raises(KeyError):
        machine.step(CommitsDone(NONE))


def test_what_is_decided_is_not_aborted() -> None:
    assert not_decided(Decision(3, OLD), 3, (*OLD, *NEW)) == NEW
    assert not_decided(Decision(2, OLD), 3, NEW) == NEW
    assert not_decided(None, 3, NEW) == NEW


class CrashError(Exception):
    """The driver dies."""


@dataclass
class World:
    """Brokers, journal and Spark's own log of committed batches."""

    open: dict[str, Counter[str]] = field(default_factory=dict)
    committed: dict[str, Counter[str]] = field(default_factory=dict)
    decision: Decision | None = None
    runs: int = 0

    def run_tasks(self, batch: int, tasks: int) -> tuple[Prepared, ...]:
        self.runs += 1
        prepared = []
        for task in range(tasks):
            name = f"{batch}-{task}-{self.runs}"
            self.open[name] = Counter({f"{batch}/{task}/{n}": 1 for n in range(task + 1)})
            prepared.append(Prepared(task, name, 1, self.runs, task + 1, hash((batch, task))))
        return tuple(prepared)

    def do(self, effect: Effect, crash_within: int | None) -> Event:
        match effect:
            case ReadDecision():
                return DecisionRead(self.decision)
            case Check(transactions):
                gone = [
                    t.transactional_id for t in transactions if t.transactional_id not in self.open
                ]
                return Checked(frozenset(gone))
            case WriteDecision(decision):
                self.decision = decision
                return DecisionWritten()
            case Commit(transactions):
                lost = set()
                for place, t in enumerate(transactions):
                    if crash_within == place:
                        raise CrashError
                    if t.transactional_id in self.open:
                        self.committed[t.transactional_id] = self.open.pop(t.transactional_id)
                    elif t.transactional_id not in self.committed:
                        lost.add(t.transactional_id)
                return CommitsDone(frozenset(lost))
            case Abort(transactions):
                for place, t in enumerate(transactions):
                    if crash_within == place:
                        raise CrashError
                    assert t.transactional_id not in self.committed
                    self.open.pop(t.transactional_id, None)
                return AbortsDone()
        raise AssertionError(effect)

    def abort(self, batch: int, prepared: Sequence[Prepared]) -> None:
        """What Spark asks for when a commit has failed and the driver lives."""
        for t in not_decided(self.decision, batch, prepared):
            self.open.pop(t.transactional_id, None)


TASKS = 3
BATCHES = 3


@given(st.data())
def test_each_record_is_there_once_whatever_crashes(data: st.DataObject) -> None:
    """Crashes before and within each step, and time-outs of prepared transactions."""
    world = World()
    crashes = 0
    batch = 0
    while batch < BATCHES:
        prepared = world.run_tasks(batch, TASKS)
        machine = BatchCommit(batch, prepared, skips_lost=False)
        effect = machine.start()
        try:
            while not isinstance(effect, Finish):
                trouble = "none"
                if crashes < 6:
                    trouble = data.draw(
                        st.sampled_from(["none", "none", "before", "within", "out"])
                    )
                within = None
                if trouble == "out":
                    # Between any two steps of the driver, brokers abort what is open for too long.
                    for name in data.draw(st.sets(st.sampled_from(sorted(world.open) or [""]))):
                        world.open.pop(name, None)
                    crashes += 1
                elif trouble != "none":
                    crashes += 1
                    if trouble == "before":
                        raise CrashError
                    within = data.draw(st.integers(0, TASKS - 1))
                event = world.do(effect, within)
                if trouble == "within":
                    raise CrashError  # done, but nobody knows
                effect = machine.step(event)
        except (NotPreparedError, LostTransactionError):
            world.abort(batch, prepared)
            continue  # the query is started again
        except CrashError:
            continue
        batch += 1
    records: Counter[str] = sum(world.committed.values(), Counter())
    want = {f"{b}/{t}/{n}": 1 for b in range(BATCHES) for t in range(TASKS) for n in range(t + 1)}
    assert records == Counter(want)
