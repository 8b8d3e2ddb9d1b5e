"""When a query that failed is started again: at first after a short pause, then after longer ones.

The pause doubles with each failure up to a maximum. Once the query has run for a while, it counts
as sound again. Source: ksqlDB's `ksql.query.retry.backoff.*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.sql.engine.queries import QueryState

INITIAL_MS = "ksql.query.retry.backoff.initial.ms"
MAX_MS = "ksql.query.retry.backoff.max.ms"
SOUND_AFTER_S = "ksql.query.status.running.threshold.seconds"
RESTART_DEFAULTS: Mapping[str, int] = {INITIAL_MS: 15_000, MAX_MS: 900_000, SOUND_AFTER_S: 300}


class Restarting:
    """Decides about one query from its states, as they are seen again and again."""

    def __init__(self, initial_ms: int, max_ms: int, sound_after_ms: int) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._sound_after_ms = sound_after_ms
        self._pause_ms = 0
        self._due_ms: int | None = None
        self._running_since_ms: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Restarting:
        """As the settings of server and statement say."""
        found = {
            name: _number(settings.get(name), RESTART_DEFAULTS[name]) for name in RESTART_DEFAULTS
        }
        return cls(found[INITIAL_MS], found[MAX_MS], found[SOUND_AFTER_S] * 1000)

    @property
    def due_ms(self) -> int | None:
        """When the query is started again, if it waits for that."""
        return self._due_ms

    def is_due(self, state: QueryState, now_ms: int) -> bool:
        """Whether the query, which is in that state now, is to be started again now."""
        if state is not QueryState.ERROR:
            self._due_ms = None
            self._note_sound(state, now_ms)
            return False
        self._running_since_ms = None
        if self._due_ms is None:
            self._pause_ms = min(self._pause_ms * 2 or self._initial_ms, self._max_ms)
            self._due_ms = now_ms + self._pause_ms
        if now_ms < self._due_ms:
            return False
        self._due_ms = None
        return True

    def _note_sound(self, state: QueryState, now_ms: int) -> None:
        if state is not QueryState.RUNNING:
            self._pause_ms, self._running_since_ms = 0, None
        elif self._running_since_ms is None:
            self._running_since_ms = now_ms
        elif now_ms - self._running_since_ms >= self._sound_after_ms:
            self._pause_ms = 0


def _number(value: Any, default: int) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError):
        return default
