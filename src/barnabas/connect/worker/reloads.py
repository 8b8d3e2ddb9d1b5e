"""Connectors and tasks whose settings hold values for a time only start again when that is over.

A config provider may say for how long what it gives holds. With `config.action.reload=restart`, the
default, the connector is then started again with what the provider gives by then, and so are those
of its tasks whose values are others now. Kafka starts the connector alone, so that its tasks go on
with what has expired.

Source: org.apache.kafka.connect.runtime.WorkerConfigTransformer (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.restarts import Name
from barnabas.schemas.data.errors import ConnectError

ACTION: Final = "config.action.reload"
_log = logging.getLogger(__name__)
_TTL_MS_MIN: Final = 1_000
_RETRY_MS: Final = 30_000
"""After this a provider that fails is asked again; running connectors continue."""
Lasting = Callable[[Mapping[str, str]], tuple[dict[str, str], int | None]]
"""Resolves settings; the number is for how long they hold, None for always."""


@dataclass(slots=True, frozen=True)
class _Resolved:
    """Settings of a connector or task: as they are stored, and what they come to until then."""

    given: Sequence[Mapping[str, str]] = field(repr=False)
    values: Sequence[Mapping[str, str]] = field(repr=False)
    due_s: float = 0.0


class Reloads:
    """Connectors whose secrets expire. `wake` is called, from a separate thread, when `run_due` has
    something to do; that calls `restart`.
    """

    def __init__(self, resolve: Lasting) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.restart: Callable[[Name], None] = lambda _name: None
        self._resolve = resolve
        self._resolved: dict[Name, _Resolved] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def resolve(self, name: Name, *given: Mapping[str, str]) -> list[dict[str, str]]:
        """Resolve a connector's settings, and its task's, for a start. Raises ConfigError."""
        values, ttl_ms = self._resolve_all(given)
        action = values[0].get(ACTION, "restart").lower()
        self.forget(name)
        if ttl_ms is not None and action == "restart":
            self._wait(name, _Resolved(given, values), ttl_ms)
        return values

    def forget(self, name: Name) -> None:
        """It was stopped."""
        with self._lock:
            self._resolved.pop(name, None)

    def run_due(self) -> None:
        """Start again what is due."""
        now = time.monotonic()
        with self._lock:
            due = {name: one for name, one in self._resolved.items() if one.due_s <= now}
            for name in due:
                del self._resolved[name]
        for name, one in due.items():
            try:
                values, ttl_ms = self._resolve_all(one.given)
            except ConnectError as error:
                _log.error("%s continues with expired values: %s", name, error)
                self._wait(name, one, _RETRY_MS)
                continue
            if isinstance(name, TaskId) and values == one.values:
                if ttl_ms is not None:
                    self._wait(name, one, ttl_ms)
                continue
            _log.info("restarting %s: values of its settings have expired", name)
            self.restart(name)
        with self._lock:
            self._set_timer()

    def close(self) -> None:
        """Wake nobody any more."""
        with self._lock:
            self._resolved.clear()
            self._set_timer()

    def _resolve_all(
        self, given: Sequence[Mapping[str, str]]
    ) -> tuple[list[dict[str, str]], int | None]:
        resolved = [self._resolve(one) for one in given]
        ttls = [ttl_ms for _, ttl_ms in resolved if ttl_ms is not None]
        return [values for values, _ in resolved], min(ttls, default=None)

    def _wait(self, name: Name, one: _Resolved, ttl_ms: int) -> None:
        due_s = time.monotonic() + max(ttl_ms, _TTL_MS_MIN) / 1000
        with self._lock:
            self._resolved[name] = replace(one, due_s=due_s)
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._resolved:
            due_s = min(one.due_s for one in self._resolved.values())
            pause_s = min(max(0.0, due_s - time.monotonic()), threading.TIMEOUT_MAX)
            self._timer = threading.Timer(pause_s, self.wake)
            self._timer.daemon = True
            self._timer.start()
