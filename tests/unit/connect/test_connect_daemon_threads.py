"""Threads that connectors may hang in: how many there are, and a process that ends without them."""

from __future__ import annotations

import subprocess
import sys
from threading import Event

import pytest

from barnabas.connect.daemon_threads import DaemonThreads

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


def test_answers_come_of_what_is_done_side_by_side() -> None:
    threads = DaemonThreads(2, "two")
    begun, free = Event(), Event()

    def wait() -> int:
        begun.set()
        assert free.wait(60)
        return 7

    waiting = threads.submit(wait)
    assert begun.wait(60)
    refused = threads.submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        refused.result(60)
    assert [threads.submit(int, str(one)).result(60) for one in range(5)] == [0, 1, 2, 3, 4]
    free.set()
    assert waiting.result(60) == 7


def test_more_than_there_are_threads_for_waits() -> None:
    threads = DaemonThreads(1, "one")
    begun, free = Event(), Event()

    def wait() -> None:
        begun.set()
        assert free.wait(60)

    first = threads.submit(wait)
    assert begun.wait(60)
    second = threads.submit(int, "2")
    assert not second.done()
    free.set()
    first.result(60)
    assert second.result(60) == 2


def test_what_waits_can_be_dropped() -> None:
    threads = DaemonThreads(1, "one")
    begun, free = Event(), Event()

    def wait() -> None:
        begun.set()
        assert free.wait(60)

    first = threads.submit(wait)
    assert begun.wait(60)
    cancelled, dropped = threads.submit(int, "2"), threads.submit(int, "3")
    assert cancelled.cancel()
    threads.drop()
    assert dropped.cancelled()
    free.set()
    first.result(60)
    assert threads.submit(int, "4").result(60) == 4
