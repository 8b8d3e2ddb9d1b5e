"""The books of a share-group source: scenes as tables, then random histories against a model."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.base.ids import Uuid
from barnabas.spark.datasource.share_ledger import (
    Acknowledgement,
    Ledger,
    Plan,
    Verdict,
)
from barnabas.spark.datasource.share_ranges import Delivery, Partition
from support.effort import examples

P = Partition(Uuid(bytes(15) + b"\x07"), 3)
ALL = 1_000


def got(first: int, last: int, attempt: int = 1) -> Delivery:
    return Delivery(P, first, last, attempt)


def ack(first: int, last: int, verdict: Verdict = Verdict.ACCEPT) -> Acknowledgement:
    return Acknowledgement(P, first, last, verdict)


def next_process(plan: Plan) -> Ledger:
    """A ledger that knows what Spark's checkpoint holds."""
    ledger = Ledger()
    ledger.resume(Plan.from_offset(json.loads(json.dumps(plan.as_offset()))))
    return ledger


def planned(ledger: Ledger) -> Plan:
    plan = ledger.plan_next(ALL)
    assert plan is not None
    return plan


def test_a_batch_is_acknowledged_by_who_holds_it_when_it_is_finished() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 4)])
    ledger.acquired("b", [got(5, 9)])
    assert planned(ledger).deliveries == (got(0, 4), got(5, 9))
    assert ledger.finished({}) == {"a": [ack(0, 4)], "b": [ack(5, 9)]}
    assert ledger.owed_count == 10
    ledger.confirmed("a", [ack(0, 4)])
    ledger.confirmed("b", [ack(5, 9)])
    assert ledger.owed_count == 0
    assert ledger.held_by("a") == {}


def test_nothing_is_planned_while_a_batch_runs_or_beyond_the_limit() -> None:
    ledger = Ledger()
    assert ledger.plan_next(ALL) is None
    ledger.acquired("a", [got(0, 9)])
    first = ledger.plan_next(4)
    assert first is not None
    assert first.deliveries == (got(0, 3),)
    assert ledger.plan_next(4) is None
    ledger.finished({})
    second = ledger.plan_next(100)
    assert second is not None
    assert second.deliveries == (got(4, 9),)
    assert second.owed[Verdict.ACCEPT] == {P: ((0, 3),)}


def test_a_plan_that_comes_back_from_spark_is_the_same() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 4)])
    planned(ledger)
    ledger.finished({})
    ledger.acquired("a", [got(5, 9), Delivery(Partition(P.topic_id, 0), 7, 7, 1)])
    plan = planned(ledger)
    assert Plan.from_offset(json.loads(json.dumps(plan.as_offset()))) == plan
    ledger.confirmed("a", [ack(0, 4)])
    ledger.resume(Plan.from_offset(plan.as_offset()))
    assert ledger.owed_count == 0


def test_verdicts_count_for_the_delivery_that_they_name() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9, attempt=2)])
    planned(ledger)
    verdicts = {
        Verdict.RELEASE: [got(2, 3, attempt=2), got(5, 5, attempt=1)],
        Verdict.REJECT: [got(9, 12, attempt=2)],
    }
    assert sorted(ledger.finished(verdicts)["a"]) == [
        ack(0, 1),
        ack(2, 3, Verdict.RELEASE),
        ack(4, 8),
        ack(9, 9, Verdict.REJECT),
    ]
    ledger.lost("a")
    # Released is released: it is planned again. The others are acknowledged when they come again.
    assert ledger.acquired("b", [got(0, 9, attempt=3)]) == [
        ack(0, 1),
        ack(4, 8),
        ack(9, 9, Verdict.REJECT),
    ]
    assert planned(ledger).deliveries == (got(2, 3, attempt=3),)


def test_a_record_of_the_running_batch_that_comes_again_is_not_planned_again() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9)])
    planned(ledger)
    ledger.lost("a")
    assert ledger.acquired("b", [got(0, 11, attempt=2)]) == []
    assert ledger.finished({}) == {"b": [ack(0, 9)]}
    assert planned(ledger).deliveries == (got(10, 11, attempt=2),)


def test_a_new_process_repeats_the_plan_and_plans_nothing_of_it_again() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9)])
    ledger = next_process(planned(ledger))
    ledger.acquired("b", [got(0, 9, attempt=2)])
    assert ledger.plan_next(ALL) is None
    assert ledger.finished({}) == {"b": [ack(0, 9)]}
    assert ledger.plan_next(ALL) is None


def test_a_new_process_acknowledges_late_what_was_committed() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9)])
    planned(ledger)
    ledger.finished({})  # in Spark's commit log; its acknowledgement was not sent
    ledger.acquired("a", [got(10, 19)])
    ledger = next_process(planned(ledger))
    ledger.finished({})
    assert ledger.acquired("b", [got(0, 29, attempt=2)]) == [ack(0, 19)]
    assert planned(ledger).deliveries == (got(20, 29, attempt=2),)


def test_what_is_owed_for_long_is_forgotten() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9)])
    planned(ledger)
    ledger.finished({})
    ledger.forget_old()
    assert ledger.owed_count == 10
    ledger.forget_old()
    assert ledger.owed_count == 0


def test_a_lock_that_went_to_another_member_is_no_longer_ours() -> None:
    ledger = Ledger()
    ledger.acquired("a", [got(0, 9)])
    ledger.acquired("b", [got(0, 4, attempt=2)])
    assert planned(ledger).deliveries == (got(0, 4, attempt=2), got(5, 9))
    assert ledger.held_by("a") == {P: ((5, 9),)}


def test_a_partition_whose_locks_are_gone_is_not_planned() -> None:
    ledger = Ledger()
    other = Partition(P.topic_id, 4)
    ledger.acquired("a", [got(0, 9), Delivery(other, 0, 0, 1)])
    ledger.refused("a", P)
    assert planned(ledger).deliveries == (Delivery(other, 0, 0, 1),)


HOLDERS = st.sampled_from(["a", "b", "c"])


@settings(
    max_examples=examples(15), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
class Histories(RuleBasedStateMachine):
    """One query against a share group that delivers records as brokers do.

    Despite crashes, each record is in exactly one committed batch, unless it was released.
    """

    RECORDS = 30

    @initialize()
    def begin(self) -> None:
        self.ledger = Ledger()
        self.locks: dict[int, str] = {}
        self.acknowledged: set[int] = set()
        self.committed: list[int] = []
        self.due: dict[object, list[Acknowledgement]] = {}
        self.saved = Plan()
        self.is_saved_committed = True

    @rule(holder=HOLDERS, start=st.integers(0, 29), length=st.integers(1, 8))
    def give_out(self, holder: str, start: int, length: int) -> None:
        for offset in range(start, min(start + length, self.RECORDS)):
            if offset not in self.locks and offset not in self.acknowledged:
                self.locks[offset] = holder
                due = self.ledger.acquired(holder, [got(offset, offset)])
                self.due.setdefault(holder, []).extend(due)

    @rule(limit=st.integers(1, 12))
    def plan(self, limit: int) -> None:
        self._finish()
        plan = self.ledger.plan_next(limit)
        if plan is not None:
            self.saved, self.is_saved_committed = plan, False

    @rule()
    def commit(self) -> None:
        """The batch that runs ends; nobody has told the source yet."""
        if not self.is_saved_committed:
            self.is_saved_committed = True
            for delivery in self.saved.deliveries:
                self.committed += range(delivery.first, delivery.last + 1)

    @rule(holder=HOLDERS)
    def send(self, holder: str) -> None:
        for entry in self.due.pop(holder, []):
            for offset in range(entry.first, entry.last + 1):
                assert self.locks.pop(offset) == holder
                assert offset in self.committed
                self.acknowledged.add(offset)
            self.ledger.confirmed(holder, [entry])

    @rule(holder=HOLDERS)
    def lose(self, holder: str) -> None:
        self.due.pop(holder, None)
        self.ledger.lost(holder)
        self.locks = {offset: owner for offset, owner in self.locks.items() if owner != holder}

    @rule()
    def restart(self) -> None:
        self.locks, self.due = {}, {}
        self.ledger = next_process(self.saved)

    def _finish(self) -> None:
        if self.is_saved_committed:
            for holder, due in self.ledger.finished({}).items():
                self.due.setdefault(holder, []).extend(due)

    @invariant()
    def nothing_is_committed_twice(self) -> None:
        if hasattr(self, "committed"):
            assert len(self.committed) == len(set(self.committed))

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for _ in range(3):  # all unfinished work is done now: nothing is missing
            self.commit()
            for holder in ("a", "b", "c"):
                self.send(holder)
            self.give_out("a", 0, self.RECORDS)
            self.plan(self.RECORDS)
        self.commit()
        assert sorted(self.committed) == list(range(self.RECORDS))


TestHistories = Histories.TestCase
