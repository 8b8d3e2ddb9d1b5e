"""The supervision of streaming queries: when they are started again, and what their state says."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types

from barnabas.spark.supervision import QueryState, Restarts, SupervisedStream, Supervisor
from support.node_process import wait_until

RUNNING, PAUSED, ERROR = QueryState.RUNNING, QueryState.PAUSED, QueryState.ERROR
LOOKS: list[tuple[str, list[tuple[QueryState, int, bool]]]] = [
    ("sound", [(RUNNING, 0, False), (RUNNING, 1_000_000, False)]),
    ("first pause", [(ERROR, 0, False), (ERROR, 99, False), (ERROR, 100, True)]),
    (
        "pauses double up to the longest",
        [
            *[(ERROR, 0, False), (ERROR, 100, True)],
            *[(ERROR, 101, False), (ERROR, 300, False), (ERROR, 301, True)],
            *[(ERROR, 302, False), (ERROR, 551, False), (ERROR, 552, True)],
            *[(ERROR, 553, False), (ERROR, 803, True)],
        ],
    ),
    (
        "a query that runs for a moment is not yet sound",
        [
            *[(ERROR, 0, False), (ERROR, 100, True), (RUNNING, 101, False)],
            *[(RUNNING, 1100, False), (ERROR, 1101, False), (ERROR, 1300, False)],
            (ERROR, 1301, True),
        ],
    ),
    (
        "a query that has run for long is",
        [
            *[(ERROR, 0, False), (ERROR, 100, True), (RUNNING, 101, False)],
            *[(RUNNING, 1101, False), (ERROR, 1102, False), (ERROR, 1202, True)],
        ],
    ),
    ("a pause ends it", [(ERROR, 0, False), (PAUSED, 50, False), (PAUSED, 500, False)]),
]


@pytest.mark.parametrize(("name", "looks"), LOOKS, ids=[name for name, _ in LOOKS])
def test_when_a_query_is_started_again(
    name: str, looks: list[tuple[QueryState, int, bool]]
) -> None:
    restarting = Restarts(initial_ms=100, max_ms=250, sound_after_ms=1000)
    assert [restarting.is_due(state, now_ms) for state, now_ms, _ in looks] == [
        is_due for _, _, is_due in looks
    ]


class FakeStream:
    """A streaming query as Spark shows it."""

    def __init__(self) -> None:
        self._is_active = True
        self.why: Exception | None = None
        self.trouble: Exception | None = None

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        self._call()
        return self._is_active

    def end(self, why: Exception | None = None) -> None:
        self.why, self._is_active = why, False

    def exception(self) -> Exception | None:
        return self.why

    def stop(self) -> None:
        self._call()
        self._is_active = False

    def _call(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class World:
    """A supervised stream; `refusal`: why it cannot be started."""

    def __init__(self, *, may_end: bool = False) -> None:
        self.refusal: Exception | None = None
        self.begun: list[FakeStream] = []
        self.released = 0
        self.query = SupervisedStream("q", self._begin, self._release, may_end=may_end)

    def _begin(self) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.begun.append(FakeStream())
        return self.begun[-1]

    def _release(self) -> None:
        self.released += 1


def test_a_stream_that_fails_is_an_error_until_it_is_started_again() -> None:
    world = World()
    query = world.query
    assert not query.restart()  # it has not failed
    query.start()
    failure = ValueError("gone")
    world.begun[0].end(failure)
    assert (query.state, query.last_failure) == (ERROR, failure)
    world.refusal = OSError("full")
    assert query.restart()
    assert (query.state, query.last_failure) == (ERROR, world.refusal)
    world.refusal = None
    assert query.restart()
    assert (query.state, query.restarts, len(world.begun)) == (RUNNING, 2, 2)
    query.stop()
    assert (query.state, world.begun[1].isActive) == (PAUSED, False)
    assert not query.restart()


def test_an_end_without_a_failure_is_one_unless_the_stream_may_end() -> None:
    for may_end in (False, True):
        world = World(may_end=may_end)
        world.query.start()
        world.begun[0].end()
        assert world.query.has_ended == may_end
        assert world.query.state is (RUNNING if may_end else ERROR)


def test_what_a_stream_used_is_given_up_after_each_end() -> None:
    world = World()
    world.query.start()
    world.query.stop()
    world.refusal = OSError("full")
    with pytest.raises(OSError, match="full"):
        world.query.resume()
    assert world.released == 2


@pytest.mark.parametrize("loss", [Py4JError("while calling o1"), ConnectionRefusedError()])
def test_a_stream_fails_with_the_jvm_and_can_be_started_in_another(loss: Exception) -> None:
    world = World()
    query = world.query
    query.start()
    world.begun[0].trouble = loss
    assert (query.state, query.last_failure) == (ERROR, loss)
    assert query.restart()
    assert (query.state, len(world.begun), world.released) == (RUNNING, 2, 1)
    world.begun[1].trouble = loss
    query.stop(1.0)
    assert (query.state, world.released) == (PAUSED, 2)


def test_a_stream_may_fail_again_while_its_failures_are_listed() -> None:
    world = World()
    query = world.query
    query.start()
    world.begun[0].end(ValueError("first"))
    assert query.state is ERROR
    world.refusal = OSError("full")
    assert [query.restart() for _ in query.failures] == [True]
    assert len(query.failures) == 2


def test_a_stream_that_does_not_stop_does_not_count_as_running() -> None:
    world = World()
    query = world.query
    query.start()
    world.begun[0].trouble = ValueError("Spark says no")
    with pytest.raises(ValueError, match="Spark says no"):
        query.stop()
    assert (query.state, world.released) == (PAUSED, 1)
    query.resume()
    assert (query.state, len(world.begun)) == (RUNNING, 2)


def test_a_look_that_fails_does_not_keep_others_from_being_started() -> None:
    started: list[str] = []
    failed: list[str] = []

    def look(one: str, now_ms: int) -> bool:
        if one == "broken":
            raise ValueError(now_ms)
        return True

    supervisor = Supervisor(
        "test",
        lambda: ["broken", "sound"],
        look,
        started.append,
        look_s=1,
        failed=lambda one, error: failed.append(one),
    )
    supervisor.step(7)
    wait_until(lambda: started == ["sound"], "a start")
    assert failed == ["broken"]
    supervisor.close()
