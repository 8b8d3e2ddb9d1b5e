"""The ledger of a shared stream against a model: offsets, Spark's state and results go together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.sql.spark.shared_ledger import Ledger

QUERIES = ("a", "b", "c")
PARTITIONS = 2


@dataclass
class Spark:
    """What Spark has: by number, the offsets up to which each query's records are in the state."""

    committed: int = 0
    finished: int = 0
    """The last whose tasks are done: Spark writes down its commit a little later."""
    planned: int = 0
    state: dict[int, dict[int, dict[int, int]]] = field(default_factory=lambda: {0: {}})
    """By micro-batch and share."""


@dataclass
class Results:
    """The results that the cluster has of each query, all of which are written exactly once.

    `until`: by share and partition, the offset up to which they are written. `decided`: the last
    micro-batch whose results were decided, and `ranges` what they were, by share and partition.
    """

    until: dict[int, dict[int, int]] = field(default_factory=dict)
    decided: int = 0
    ranges: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


class LedgerAgainstSpark(RuleBasedStateMachine):
    """Micro-batches are planned, fail in part, are committed or lost; members come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="barnabas-ledger-")
        self.spark = Spark()
        self.ledger = Ledger.open(self.directory, 0, 0, 2)
        self.running: dict[int, Mapping[str, dict[tuple[str, int], int]]] | None = None
        self.begun: dict[str, int] = {}
        """By query the number of its share."""
        self.results = Results()
        self.to_write: dict[tuple[int, int], tuple[int, int]] = {}
        """By share and partition, what the micro-batch that runs writes."""

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def _state(self) -> dict[int, dict[int, int]]:
        return self.spark.state[self.spark.finished]

    @precondition(lambda self: self.running is None)
    @rule(query=st.sampled_from(QUERIES), start=st.integers(0, 5))
    def join(self, query: str, start: int) -> None:
        known = query in self.begun
        offsets = {"t": dict.fromkeys(range(PARTITIONS), start)}
        share = self.ledger.join(
            query, f"state of {query}", PARTITIONS, offsets, is_exactly_once=True
        )
        if known:
            assert share.number == self.begun[query]
        else:
            assert share.offsets == offsets
            assert share.number not in self.begun.values()
            # Its labels have no state: that of another one with this number is deleted.
            assert share.number not in self._state()
            self.begun[query] = share.number
            for number in self.spark.state.values():
                number.setdefault(share.number, dict(offsets["t"]))
            self.results.until[share.number] = dict(offsets["t"])

    @precondition(lambda self: self.running is None)
    @rule(query=st.sampled_from(QUERIES))
    def leave(self, query: str) -> None:
        self.ledger.leave(query)
        self.begun.pop(query, None)

    @precondition(lambda self: self.running is None)
    @rule(steps=st.dictionaries(st.sampled_from(QUERIES), st.integers(1, 9)))
    def plan(self, steps: dict[str, int]) -> None:
        reached: dict[str, dict[tuple[str, int], int]] = {}
        self.to_write = {}
        for query in steps.keys() & self.begun.keys():
            share = self.ledger.shares[query]
            reached[query] = {}
            for partition, offset in share.offsets["t"].items():
                again = share.repeats(partition).get(("t", partition))
                assert (partition in share.repeating) == (again is not None)
                until = offset + steps[query] if again is None else again[1]
                reached[query]["t", partition] = until
                if again is None:
                    self.to_write[share.number, partition] = offset, until
        self.spark.committed = self.spark.finished
        left = {share.number for share in self.ledger.left}
        number = self.ledger.plan(reached)
        state = {
            share: dict(offsets) for share, offsets in self._state().items() if share not in left
        }
        for query, read in reached.items():
            for (_, partition), offset in read.items():
                state[self.begun[query]][partition] = offset
        assert number == self.spark.planned + 1
        self.spark.planned = number
        self.spark.state[number] = state
        self.running = {number: reached}

    @precondition(lambda self: self.running)
    @rule(query=st.sampled_from(QUERIES), partition=st.integers(0, PARTITIONS - 1))
    def fail_a_part(self, query: str, partition: int) -> None:
        (number, reached), *_ = (self.running or {}).items()
        if query not in reached:
            return
        before = self._state()[self.begun[query]][partition]
        if self.results.decided == number:
            return
        self.ledger.correct({query: {("t", partition): before}})
        self.spark.state[number][self.begun[query]][partition] = before
        self.to_write.pop((self.begun[query], partition), None)

    @precondition(lambda self: self.running and self.to_write)
    @rule()
    def decide(self) -> None:
        """Decide the results: from now on, they are written even after a crash."""
        self.results.decided = self.spark.planned
        self.results.ranges, self.to_write = self.to_write, {}
        for (share, partition), (first, until) in self.results.ranges.items():
            assert self.results.until[share][partition] == first, "written twice, or left out"
            self.results.until[share][partition] = until

    @precondition(lambda self: self.running)
    @rule()
    def finish(self) -> None:
        if self.to_write:
            self.decide()
        self.spark.finished = self.spark.planned
        self.running = None

    @rule(
        is_planned=st.booleans(),
        is_committed=st.booleans(),
        loses=st.booleans(),
        is_told_again=st.none() | st.booleans(),
    )
    def crash(
        self, is_planned: bool, is_committed: bool, loses: bool, is_told_again: bool | None
    ) -> None:
        """Spark may have written down that the micro-batch is planned, or committed, or not.

        Brokers may have aborted transactions that were not committed in time.
        """
        if self.running and not is_planned and self.results.decided != self.spark.planned:
            self.spark.planned -= 1
        if is_committed or self.running:
            self.spark.committed = self.spark.finished
        self.spark.finished = self.spark.committed
        self.running = None
        self.spark.state = {
            number: state
            for number, state in self.spark.state.items()
            if number <= self.spark.committed
        }
        self.open(loses=loses, is_told_again=is_told_again)
        if self.spark.planned > self.spark.committed:
            # Spark runs it again, without rows.
            self.spark.state[self.spark.planned] = self._state()
            self.spark.committed = self.spark.finished = self.spark.planned

    def open(self, *, loses: bool, is_told_again: bool | None) -> None:
        """Open the ledger, and again where the start fails then: `is_told_again` is whether what
        was lost is still known, None where the start does not fail."""
        decided, lost = self.results.decided, set[tuple[int, int]]()
        if loses and decided > self.spark.committed:
            lost = {place for place in self.results.ranges if place[1] == 0}
            for share, partition in lost:
                self.results.until[share][partition] = self.results.ranges[share, partition][0]
        numbers = self.spark.committed, self.spark.planned
        self.ledger = Ledger.open(self.directory, *numbers, 7, decided=decided, lost=lost)
        if is_told_again is not None:
            lost = lost if is_told_again else set()
            self.ledger = Ledger.open(self.directory, *numbers, 7, decided=decided, lost=lost)

    @invariant()
    def the_ledger_is_where_the_state_is(self) -> None:
        assert self.ledger.tasks == 2
        if self.running:
            return
        state = self._state()
        for query, number in self.begun.items():
            share = self.ledger.shares[query]
            assert not share.is_left
            assert share.number == number
            assert share.offsets["t"] == state[number]
            redo = share.unreached.get("t", {})
            assert self.results.until[number] == {**share.offsets["t"], **redo}
        # All other state is going to be deleted.
        known = {share.number for share in self.ledger.shares.values()}
        assert set(state) <= known


TestLedger = LedgerAgainstSpark.TestCase
