"""Answers that are kept, and asking while the console ends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.console.services.asking import AwayError, ClusterAccess, Kept, RefusedError
from support.node_process import wait_until


def test_an_answer_is_used_again_for_a_while() -> None:
    now, asked = [0.0], []

    def ask() -> int:
        asked.append(now[0])
        return len(asked)

    kept = Kept(ask, 2.0, lambda: now[0])
    assert [kept.get(), kept.get()] == [1, 1]
    now[0] = 1.0
    kept.forget(older_s=1.5)
    assert kept.get() == 1
    kept.forget(older_s=0.5)
    assert kept.get() == 2
    now[0] = 4.0
    assert kept.get() == 3


class World:
    """An answer that a test holds back: each call waits until it may go on."""

    def __init__(self, stale_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.calls = 0
        self.failure: Exception | None = None
        self.asked, self.going = threading.Semaphore(0), threading.Semaphore(0)
        self.kept = Kept(self.ask, 2.0, lambda: self.now_s, stale_s=stale_s)

    def ask(self) -> int:
        self.calls += 1
        number = self.calls
        self.asked.release()
        assert self.going.acquire(timeout=60)
        if self.failure is not None:
            raise self.failure
        return number

    def until_waiting(self, count: int) -> None:
        """Wait until so many threads wait for the answer of another."""
        waiters = self.kept._changed._waiters  # type: ignore[attr-defined]
        wait_until(lambda: len(waiters) == count, "all threads to wait", 60)


def test_threads_that_wait_for_an_answer_share_it() -> None:
    world = World()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(world.kept.get)
        assert world.asked.acquire(timeout=60)
        others = [pool.submit(world.kept.get) for _ in range(3)]
        world.until_waiting(3)
        world.going.release()
        assert [one.result(60) for one in (first, *others)] == [1, 1, 1, 1]
    assert world.calls == 1


def test_threads_that_wait_for_an_answer_share_its_failure() -> None:
    world = World()
    world.failure = AwayError("no answer in time", "the worker")
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(world.kept.get)
        assert world.asked.acquire(timeout=60)
        others = [pool.submit(world.kept.get) for _ in range(3)]
        world.until_waiting(3)
        world.going.release()
        for one in (first, *others):
            with pytest.raises(AwayError, match="no answer in time") as caught:
                one.result(60)
            assert caught.value.service == "the worker"
    assert world.calls == 1
    world.going.release()
    with pytest.raises(AwayError):
        world.kept.get()
    assert world.calls == 2  # who asks afterwards asks again


def test_the_last_answer_serves_others_while_one_thread_asks_again() -> None:
    world = World(stale_s=3.0)
    world.going.release()
    assert world.kept.get() == 1
    with ThreadPoolExecutor(2) as pool:
        world.now_s = 4.9
        first = pool.submit(world.kept.get)
        for _ in range(2):
            assert world.asked.acquire(timeout=60)
        assert world.kept.get() == 1
        world.now_s = 5.1  # too old for anybody
        second = pool.submit(world.kept.get)
        world.until_waiting(1)
        world.going.release()
        assert [first.result(60), second.result(60), world.kept.get()] == [2, 2, 2]


def test_an_answer_that_was_asked_for_before_a_change_is_not_kept() -> None:
    world = World(stale_s=60.0)
    world.going.release()
    assert world.kept.get() == 1
    world.now_s = 3.0
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(world.kept.get)
        for _ in range(2):
            assert world.asked.acquire(timeout=60)
        world.kept.forget()
        second = pool.submit(world.kept.get)
        world.until_waiting(1)
        world.going.release()
        assert first.result(60) == 2
        assert world.asked.acquire(timeout=60)
        world.going.release()
        assert second.result(60) == 3
    assert world.kept.get() == 3


def test_a_failure_that_is_no_answer_lets_the_next_one_ask() -> None:
    world = World()
    world.failure = RefusedError("not allowed")
    for _ in range(2):
        world.going.release()
        with pytest.raises(RefusedError):
            world.kept.get()
    assert world.calls == 2


def test_failures_are_answers_of_their_own() -> None:
    access = ClusterAccess("127.0.0.1:1", {})

    def ask(number: int) -> int:
        if number == 2:
            raise RefusedError("not two")
        return number

    found = access.each(ask, [1, 2, 3])
    assert (found[1], found[3]) == (1, 3)
    assert isinstance(found[2], RefusedError)
    access.close()
    with pytest.raises(AwayError, match="the console ends"):
        access.each(ask, [1])
