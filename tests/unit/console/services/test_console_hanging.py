"""The background search for hanging transactions: what it asks for, how often, and for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.console.services import transactions
from barnabas.console.services.asking import AwayError
from barnabas.console.services.cluster import Ends, Finding
from barnabas.console.services.messages import TooManyError
from barnabas.console.services.transactions import HangingRow, HangingWatch
from barnabas.console.services.watching import WATCHED_S, WhileWatched
from support.node_process import wait_until

ENDS = {("orders", 0): 10, ("orders", 1): 7, ("returns", 0): 5}
STABLE = {("orders", 0): 4, ("orders", 1): 7}
ROW = HangingRow("orders", 0, 777, 1, 4, 3_600_000)


class Clock:
    """A clock that goes on by hand, and by a second for each time that a search looks at it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.took_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.took_s
        return self.now_s


class World:
    """A cluster with one partition that a transaction holds back."""

    def __init__(self) -> None:
        self.cluster, self.transactions = mock.Mock(), mock.Mock()
        self.stable = dict(STABLE)
        self.cluster.view.return_value.topics = {"orders": 1, "returns": 1}
        self.cluster.ends.return_value = Ends(0.0, ENDS)
        self.cluster.offsets.side_effect = self.offsets
        self.transactions.hanging.return_value = [ROW]
        self.clock = Clock()
        self.watch = HangingWatch(self.cluster, self.transactions, self.clock)

    def offsets(self, _: Any, *, is_committed: bool) -> dict[tuple[str, int], int]:
        assert is_committed
        return self.stable

    def step(self, *, is_first: bool = False) -> float:
        return self.watch._search(is_first)

    def findings(self) -> list[Finding]:
        with mock.patch.object(WhileWatched, "watch"):
            return self.watch.findings()


@pytest.fixture
def world() -> World:
    return World()


def test_only_partitions_that_a_transaction_holds_back_are_asked_about(world: World) -> None:
    world.step()
    # One whose stable offset is not known is left out: its leader did not answer.
    world.transactions.hanging.assert_called_once_with(among={TopicPartition("orders", 0)})
    (finding,) = world.findings()
    assert (finding.severity, finding.title) == ("bad", "1 transaction hangs")
    assert "orders-0 from offset 4 (producer 777, not written to for 60 min)" in finding.detail
    assert finding.advice == "Abort it; what it has written is lost, and consumers read on."


def test_nobody_is_asked_if_nothing_is_held_back(world: World) -> None:
    world.stable = dict(ENDS)
    world.step()
    world.transactions.hanging.assert_not_called()
    assert world.findings() == []


def test_many_are_counted(world: World) -> None:
    rows = [HangingRow("orders", number, 7, 0, 0, 0) for number in range(1_200)]
    world.transactions.hanging.return_value = rows
    world.step()
    (finding,) = world.findings()
    assert finding.title == "1,200 transactions hang"
    assert finding.detail.endswith(" and 1,195 more.")
    assert finding.detail.count("producer") == transactions.SHOWN_MAX


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, 10.0), (0.1, 10.0), (2.0, 38.0)])
def test_slow_searches_are_rare(world: World, took_s: float, pause_s: float) -> None:
    world.clock.took_s = took_s
    assert world.step() == pytest.approx(pause_s)


def test_a_failure_says_why_until_the_next_search(world: World) -> None:
    world.transactions.hanging.side_effect = AwayError("node 2 does not answer")
    world.step()
    (finding,) = world.findings()
    assert (finding.severity, finding.detail) == ("warning", "node 2 does not answer")
    world.transactions.hanging.side_effect = None
    world.step()
    assert [one.severity for one in world.findings()] == ["bad"]
    world.transactions.hanging.side_effect = TooManyError("others search")
    world.step()
    assert [one.severity for one in world.findings()] == ["bad"]
    world.step(is_first=True)  # nobody looked for long: what was found then is no longer shown
    assert world.findings() == []


def test_what_was_ended_is_not_named_again(world: World) -> None:
    def found(among: Any) -> list[HangingRow]:
        world.watch.forget("orders", 0, 777)
        return [ROW]

    world.step()
    world.watch.forget("orders", 0, 777)
    assert world.findings() == []
    world.transactions.hanging.side_effect = found  # ended while a search is under way
    world.step()
    assert world.findings() == []
    world.transactions.hanging.side_effect = None
    world.step()
    assert len(world.findings()) == 1


def test_the_first_work_waits_for_the_page_that_began_it() -> None:
    begun: list[bool] = []

    def work(is_first: bool) -> float:
        begun.append(is_first)
        return 60.0

    waits = WhileWatched(work, "test", first_s=60.0)
    with mock.patch.object(waits._closing, "wait", wraps=waits._closing.wait) as wait:
        waits.watch()
        wait_until(lambda: wait.called, "the thread")
        wait.assert_called_once_with(60.0)
        assert not begun
        waits.close()  # at once
    assert not begun


def test_work_goes_on_while_somebody_watches() -> None:
    calls: list[bool] = []
    clock = Clock()

    def work(is_first: bool) -> float:
        calls.append(is_first)
        if len(calls) == 3:
            clock.now_s += WATCHED_S + 1
        return 0.0

    watched = WhileWatched(work, "test", clock)
    watched.watch()

    def until(is_met: Callable[[], bool]) -> None:
        wait_until(is_met, "the thread")

    until(lambda: watched._thread is None)
    assert calls == [True, False, False]
    watched.watch()
    until(lambda: len(calls) >= 4)
    assert calls[3]
    watched.close()
    count = len(calls)
    watched.watch()  # after the end nothing begins
    assert len(calls) == count
