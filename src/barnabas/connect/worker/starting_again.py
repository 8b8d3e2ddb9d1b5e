"""A standalone worker starts again what has failed, later each time: `restarts` with a clock.

Calls come while the herder holds its lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from barnabas.connect.worker.restarts import Name, RestartPolicy, Restarts, read_policy
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import FAILED
from barnabas.schemas.data.errors import ConfigError

_log = logging.getLogger(__name__)


class StartingAgain:
    """What is to start again. When that is due, `wake` is called from a thread of its own."""

    def __init__(self, worker: Worker, wake: Callable[[], None]) -> None:
        self._worker = worker
        self._wake = wake
        self._restarts = Restarts(self._policy)
        self._timer: threading.Timer | None = None

    def failed(self, name: Name, error: BaseException) -> None:
        """A connector or task failed: its status tells when it starts again."""
        attempt = self._restarts.failed(name, error, _now_ms())
        if attempt is not None:
            _log.warning("%s", attempt.note)
            self._worker.put_status(name, FAILED, error, safely=True, note=attempt.note)
        self._wait()

    def started(self, name: Name) -> None:
        """It was started, for whatever reason."""
        self._restarts.started(name, _now_ms())

    def forget(self, connector: str) -> None:
        """A connector is gone, or is to have no tasks."""
        self._restarts.forget(connector)

    def renew(self, connector: str) -> None:
        """A connector is configured anew."""
        self._restarts.renew(connector)

    def take_due(self) -> list[Name]:
        """Return what is to start now."""
        due = self._restarts.take_due(_now_ms())
        for attempt in due:
            _log.info("%s starts again, attempt %d", attempt.name, attempt.number)
        self._wait()
        return [attempt.name for attempt in due]

    def close(self) -> None:
        """Wake nobody any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        self.close()
        due_ms = self._restarts.next_due_ms()
        if due_ms is not None:
            self._timer = threading.Timer(max(0, due_ms - _now_ms()) / 1000, self._wake)
            self._timer.daemon = True
            self._timer.start()

    def _policy(self, connector: str) -> RestartPolicy:
        config = self._worker.store.snapshot().connectors.get(connector)
        if config is None:
            raise ConfigError(f"there is no connector {connector}")
        return read_policy(self._worker.settings, config)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
