"""The herder's one thread: how long it has been busy, and its end."""

from __future__ import annotations

from threading import Event

import pytest

from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.schemas.data.errors import ConnectError
from support.node_process import wait_until


def test_what_hangs_is_seen_and_does_not_keep_the_worker_from_its_end() -> None:
    ticks, begun, free = Ticks(lambda: None), Event(), Event()

    def hang() -> None:
        begun.set()
        free.wait()

    ticks.start()
    assert ticks.call(lambda: 7) == 7
    wait_until(lambda: ticks.busy_s() == 0, "rest")
    try:
        ticks.post(hang)
        assert begun.wait(30)
        wait_until(lambda: ticks.busy_s() > 0, "work")
        ticks.close(timeout_s=0.01)
        with pytest.raises(ConnectError, match="Worker is shutting down"):
            ticks.call(lambda: None)
    finally:
        free.set()
    wait_until(lambda: ticks.busy_s() == 0, "the end")
