"""The ledger of a shared stream against a model: offsets and Spark's state belong together."""

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

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def _state(self) -> dict[int, dict[int, int]]:
        return self.spark.state[self.spark.finished]

    @precondition(lambda self: self.running is None)
    @rule(query=st.sampled_from(QUERIES), start=st.integers(0, 5))
    def join(self, query: str, start: int) -> None:
        known = query in self.begun
        offsets = {"t": dict.fromkeys(range(PARTITIONS), start)}
        share = self.ledger.join(query, f"state of {query}", PARTITIONS, offsets)
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

    @precondition(lambda self: self.running is None)
    @rule(query=st.sampled_from(QUERIES))
    def leave(self, query: str) -> None:
        self.ledger.leave(query)
        self.begun.pop(query, None)

    @precondition(lambda self: self.running is None)
    @rule(steps=st.dictionaries(st.sampled_from(QUERIES), st.integers(1, 9)))
    def plan(self, steps: dict[str, int]) -> None:
        reached = {
            query: {
                ("t", partition): offset + steps[query]
                for partition, offset in self.ledger.shares[query].offsets["t"].items()
            }
            for query in steps
            if query in self.begun
        }
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
        self.ledger.take_back({query: {("t", partition): before}})
        self.spark.state[number][self.begun[query]][partition] = before

    @precondition(lambda self: self.running)
    @rule()
    def finish(self) -> None:
        self.spark.finished = self.spark.planned
        self.running = None

    @rule(is_planned=st.booleans(), is_committed=st.booleans())
    def crash(self, is_planned: bool, is_committed: bool) -> None:
        """Spark may have written down that the micro-batch is planned, or committed, or not."""
        if self.running and not is_planned:
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
        self.ledger = Ledger.open(self.directory, self.spark.committed, self.spark.planned, 7)
        if self.spark.planned > self.spark.committed:
            # Spark runs it again, without rows.
            self.spark.state[self.spark.planned] = self._state()
            self.spark.committed = self.spark.finished = self.spark.planned

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
        # All other state is going to be deleted.
        known = {share.number for share in self.ledger.shares.values()}
        assert set(state) <= known


TestLedger = LedgerAgainstSpark.TestCase
