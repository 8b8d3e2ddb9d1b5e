"""Questions for other nodes: what goes together, what waits, and that each has its answer."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.node.net.question_queue import QuestionQueue
from barnabas.protocol.errors import EncodeError
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from barnabas.protocol.schema import Message


class World:
    """A queue of (key, number) and the requests that left, each with the answer it awaits."""

    def __init__(self, *, batch_max: int = 3, waiting_max: int = 100) -> None:
        self.requests: list[tuple[str, list[Any]]] = []
        self.answers: list[asyncio.Future[Any]] = []
        self.done: list[Any] = []
        self.is_wanted = True
        self.fault_at: str | None = None
        self.stop_at: str | None = None
        self.queue: QuestionQueue[str, tuple[str, int]] = QuestionQueue(
            self.ask,
            self.request,
            self.answered,
            lambda _lane, batch, error: self.done.extend((*one, type(error)) for one in batch),
            key=lambda question: question[0],
            batch_max=batch_max,
            waiting_max=waiting_max,
        )

    def request(self, lane: str, batch: list[Any]) -> Message | None:
        if not self.is_wanted:
            return None
        self.requests.append((lane, batch))
        return DescribeClusterRequest()

    def answered(self, _lane: str, batch: Iterator[tuple[str, int]], answer: Any) -> None:
        for key, number in batch:
            if key == self.stop_at:
                return
            if key == self.fault_at:
                raise ZeroDivisionError
            self.done.append((key, number, answer))

    def ask(self, _lane: str, _request: Message) -> asyncio.Future[Any]:
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]

    def put(self, *questions: tuple[str, int], lane: str = "a") -> list[bool]:
        return [self.queue.put(lane, question) for question in questions]

    async def answer(self, value: Any) -> None:
        answer = self.answers.pop(0)
        if isinstance(value, Exception):
            answer.set_exception(value)
        else:
            answer.set_result(value)
        await turn()


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_comes_before_a_request_leaves_goes_along() -> None:
    world = World()
    world.put(("x", 1), ("y", 2))
    await turn()
    world.put(("z", 3))
    await turn()
    assert world.requests == [("a", [("x", 1), ("y", 2)])], "one request under way"
    await world.answer("first")
    assert world.requests[1:] == [("a", [("z", 3)])]
    await world.answer("second")
    assert world.done == [("x", 1, "first"), ("y", 2, "first"), ("z", 3, "second")]
    await world.queue.close()


async def test_lanes_do_not_wait_for_each_other() -> None:
    world = World()
    world.put(("x", 1))
    world.put(("x", 2), lane="b")
    await turn()
    assert world.requests == [("a", [("x", 1)]), ("b", [("x", 2)])]
    await world.answer("a")
    await world.answer("b")


async def test_a_request_has_each_key_once_and_so_many_at_most() -> None:
    world = World(batch_max=2)
    world.put(("x", 1), ("x", 2), ("y", 3), ("z", 4), ("x", 5))
    await turn()
    for _ in range(3):
        await world.answer(None)
    assert [batch for _, batch in world.requests] == [
        [("x", 1), ("y", 3)],
        [("x", 2), ("z", 4)],
        [("x", 5)],
    ]


async def test_a_full_queue_refuses() -> None:
    world = World(batch_max=2, waiting_max=3)
    assert world.put(("a", 1), ("b", 2), ("c", 3), ("d", 4)) == [True, True, True, False]
    await turn()
    assert world.put(("e", 5), ("f", 6), ("g", 7)) == [True, True, False], "two are on their way"
    assert world.put(("h", 8), lane="b") == [False], "all lanes have one limit"
    for _ in range(3):
        await world.answer(None)
    assert [number for _, number, _ in world.done] == [1, 2, 3, 5, 6]
    assert world.put(("h", 8)) == [True]
    await turn()
    await world.answer(None)


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), EncodeError("?")])
async def test_a_failure_is_told_and_the_next_request_leaves(error: Exception) -> None:
    world = World(batch_max=1)
    world.put(("x", 1), ("y", 2))
    await turn()
    await world.answer(error)
    await world.answer("there again")
    assert world.done == [("x", 1, type(error)), ("y", 2, "there again")]


async def test_a_fault_of_ours_is_logged_and_leaves_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.put(("x", 1))
    await turn()
    with caplog.at_level(logging.ERROR):
        await world.answer(ZeroDivisionError())
    assert world.done == [("x", 1, ZeroDivisionError)]
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_what_is_not_wanted_any_more_is_not_asked() -> None:
    world = World()
    world.put(("x", 1))
    world.is_wanted = False
    await turn()
    assert (world.requests, world.answers, world.done) == ([], [], [])
    await world.queue.close()


async def test_closing_waits_for_every_answer() -> None:
    world = World(batch_max=1)
    world.put(("x", 1), ("y", 2))
    await turn()
    closing = asyncio.ensure_future(world.queue.close())
    await turn()
    assert world.put(("z", 3)) == [False]
    await world.answer(ConnectionAbortedError())
    assert not closing.done()
    await world.answer(ConnectionAbortedError())
    await closing
    assert [number for _, number, _ in world.done] == [1, 2]


async def test_a_fault_in_the_midst_of_an_answer_fails_those_without_one() -> None:
    world = World()
    world.fault_at = "y"
    world.put(("x", 1), ("y", 2), ("z", 3))
    await turn()
    await world.answer("there")
    assert world.done == [
        ("x", 1, "there"),
        ("y", 2, ZeroDivisionError),
        ("z", 3, ZeroDivisionError),
    ]
    await world.queue.close()


async def test_an_answer_that_stops_early_fails_those_without_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.stop_at = "y"
    world.put(("x", 1), ("y", 2), ("z", 3))
    await turn()
    with caplog.at_level(logging.ERROR):
        await world.answer("there")
    assert world.done == [
        ("x", 1, "there"),
        ("y", 2, AssertionError),
        ("z", 3, AssertionError),
    ]
    assert [record.exc_info is not None for record in caplog.records] == [True]
    world.stop_at = None
    world.put(("x", 4))
    await turn()
    await world.answer("again")
    assert world.done[3:] == [("x", 4, "again")]
    await world.queue.close()


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_cancelled_request_fails_what_waits_and_is_the_last(has_begun: bool) -> None:
    world = World(batch_max=1)
    world.put(("x", 1), ("y", 2))
    if has_begun:
        await turn()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await turn()
    assert [
        (number, issubclass(error, ConnectionAbortedError)) for _, number, error in world.done
    ] == [
        (1, True),
        (2, True),
    ]
    assert len(world.requests) == has_begun
    assert world.put(("z", 3)) == [False]
    await world.queue.close()
