"""Threads that connectors may hang in: how many there are, and a process that ends without them."""

from __future__ import annotations

import subprocess
import sys
from threading import Event, current_thread, get_ident

import pytest

from barnabas.connect.daemon_threads import DaemonThreads
from support.patience import PATIENCE_S

HANGS = """
from threading import Event
from barnabas.connect.daemon_threads import DaemonThreads

begun = Event()

def hang():
    begun.set()
    Event().wait()

DaemonThreads(1, "hangs").submit(hang)
begun.wait()
"""


def test_a_start_that_hangs_does_not_keep_a_process_from_its_end() -> None:
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=60).returncode == 0


class Held:
    """Work that waits until it is freed."""

    def __init__(self, threads: DaemonThreads) -> None:
        begun = Event()
        self._free = Event()

        def wait() -> int:
            begun.set()
            assert self._free.wait(PATIENCE_S)
            return 7

        self._answer = threads.submit(wait)
        assert begun.wait(PATIENCE_S)

    def end(self) -> int:
        self._free.set()
        return self._answer.result(PATIENCE_S)


def test_answers_come_of_what_is_done_side_by_side() -> None:
    threads = DaemonThreads(2, "two")
    held = Held(threads)
    refused = threads.submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        refused.result(PATIENCE_S)
    answers = [threads.submit(int, str(one)).result(PATIENCE_S) for one in range(5)]
    assert answers == [0, 1, 2, 3, 4]
    assert held.end() == 7


def test_more_than_there_are_threads_for_waits() -> None:
    threads = DaemonThreads(1, "one")
    held = Held(threads)
    second = threads.submit(int, "2")
    assert not second.done()
    held.end()
    assert second.result(PATIENCE_S) == 2


def test_what_waits_can_be_dropped() -> None:
    threads = DaemonThreads(1, "one")
    held = Held(threads)
    cancelled, dropped = threads.submit(int, "2"), threads.submit(int, "3")
    assert cancelled.cancel()
    threads.drop()
    assert dropped.cancelled()
    held.end()
    assert threads.submit(int, "4").result(PATIENCE_S) == 4


def test_threads_that_last_are_the_same_until_they_are_closed() -> None:
    threads = DaemonThreads(1, "one", lasting=True)
    found = {threads.submit(get_ident).result(PATIENCE_S) for _ in range(5)}
    assert len(found) == 1
    thread = threads.submit(current_thread).result(PATIENCE_S)
    assert thread.ident in found
    threads.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
