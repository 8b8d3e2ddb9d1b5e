"""Answers that are kept, and asking while the console ends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

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


class Queue:
    """A lock that counts who came for it."""

    def __init__(self) -> None:
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self.came = 0

    def __enter__(self) -> None:
        with self._counting:
            self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_that_wait_for_an_answer_share_its_failure() -> None:
    asked, going = threading.Event(), threading.Event()
    calls = []

    def ask() -> int:
        calls.append(1)
        asked.set()
        assert going.wait(60)
        raise AwayError("no answer in time", "the worker")

    kept = Kept(ask, 2.0)
    lock = Queue()
    with mock.patch.object(kept, "_lock", lock), ThreadPoolExecutor(4) as pool:
        first = pool.submit(kept.get)
        assert asked.wait(60)
        others = [pool.submit(kept.get) for _ in range(3)]
        wait_until(lambda: lock.came == 4, "all threads to wait", 60)
        going.set()
        for one in (first, *others):
            with pytest.raises(AwayError, match="no answer in time") as caught:
                one.result(60)
            assert caught.value.service == "the worker"
    assert len(calls) == 1
    with pytest.raises(AwayError):
        kept.get()
    assert len(calls) == 2  # who asks afterwards asks again


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
