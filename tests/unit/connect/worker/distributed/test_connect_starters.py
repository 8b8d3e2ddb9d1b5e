"""Threads that start connectors: how many there are, and a process that ends without them."""

from __future__ import annotations

import subprocess
import sys
from threading import Event

import pytest

from barnabas.connect.worker.distributed.starters import Starters

HANGS = """
from threading import Event
from barnabas.connect.worker.distributed.starters import Starters

begun = Event()

def hang():
    begun.set()
    Event().wait()

Starters().submit(hang)
begun.wait()
"""


def test_a_start_that_hangs_does_not_keep_a_process_from_its_end() -> None:
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=60).returncode == 0


def test_answers_come_of_what_is_done_side_by_side() -> None:
    starters = Starters(2)
    begun, free = Event(), Event()

    def wait() -> int:
        begun.set()
        assert free.wait(60)
        return 7

    waiting = starters.submit(wait)
    assert begun.wait(60)
    refused = starters.submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        refused.result(60)
    assert [starters.submit(int, str(one)).result(60) for one in range(5)] == [0, 1, 2, 3, 4]
    free.set()
    assert waiting.result(60) == 7


def test_more_than_there_are_threads_for_waits() -> None:
    starters = Starters(1)
    begun, free = Event(), Event()

    def wait() -> None:
        begun.set()
        assert free.wait(60)

    first = starters.submit(wait)
    assert begun.wait(60)
    second = starters.submit(int, "2")
    assert not second.done()
    free.set()
    first.result(60)
    assert second.result(60) == 2
