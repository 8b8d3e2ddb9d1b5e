"""Resolves references to secrets for a worker, and keeps the secrets out of what it tells."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.connect.config.providers import ConfigProviders, Hiding

_ROOT: Final = __name__.partition(".")[0]
_KEPT_MAX: Final = 1_000
"""Secrets that were given lately: what a trace may still hold."""


class Secrets:
    """A `Resolve` that remembers what it gave."""

    def __init__(self, providers: ConfigProviders) -> None:
        self._providers = providers
        self._lock = threading.Lock()
        self._given: dict[str, None] = {}
        self._hiding = Hiding(())
        self._plain: list[tuple[logging.Handler, logging.Formatter | None]] = []

    def __call__(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return settings with variables replaced. Raises ConfigError."""
        return self.lasting(settings)[0]

    def lasting(self, settings: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
        """As a call, and for how many milliseconds what it returns holds; None for always."""
        resolved = self._providers.resolve(settings)
        with self._lock:
            is_known = resolved.secrets <= self._given.keys()
            for secret in resolved.secrets:
                self._given.pop(secret, None)
                self._given[secret] = None
            while len(self._given) > _KEPT_MAX:
                del self._given[next(iter(self._given))]
            if not is_known:
                self._hiding = Hiding(self._given)
        return resolved.settings, min(resolved.ttls_ms.values(), default=None)

    def hidden(self, text: str) -> str:
        """Return a text without secrets that were given lately."""
        return self._hiding(text)

    def secrets_in(self, settings: Mapping[str, str]) -> frozenset[str]:
        """Return the secrets in settings."""
        with self._lock:
            given = list(self._given)
        values = list(settings.values())
        return frozenset(one for one in given if any(one in value for value in values))

    def guard_logs(self) -> None:
        """From now on lines of this process's log are without them, and so are their traces."""
        handlers = [*logging.getLogger(_ROOT).handlers, *logging.getLogger().handlers]
        for handler in (*handlers, logging.lastResort):
            if handler is not None:
                self._plain.append((handler, handler.formatter))
                handler.setFormatter(_HidingFormatter(handler.formatter, self.hidden))

    def leave_logs(self) -> None:
        """Undo that."""
        while self._plain:
            handler, formatter = self._plain.pop()
            handler.setFormatter(formatter)


class _HidingFormatter(logging.Formatter):
    """Formats as another one does, and hides secrets."""

    def __init__(self, plain: logging.Formatter | None, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._inner, self._hide = plain or logging.Formatter(), hide

    def format(self, record: logging.LogRecord) -> str:
        return self._hide(self._inner.format(record))
