"""Resolves references to secrets for a worker, and keeps the secrets out of what it tells."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from barnabas.connect.config.providers import ConfigProviders, Resolved

_KEPT_MAX: Final = 1_000
"""Secrets that were given lately: what a trace may still hold."""


class Secrets:
    """A `Resolve` that remembers what it gave."""

    def __init__(self, providers: ConfigProviders) -> None:
        self._providers = providers
        self._lock = threading.Lock()
        self._given: dict[str, None] = {}

    def __call__(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return settings with variables replaced. Raises ConfigError."""
        return self.lasting(settings)[0]

    def lasting(self, settings: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
        """As a call, and for how many milliseconds what it returns holds; None for always."""
        resolved = self._providers.resolve(settings)
        with self._lock:
            for secret in resolved.secrets:
                self._given.pop(secret, None)
                self._given[secret] = None
            while len(self._given) > _KEPT_MAX:
                del self._given[next(iter(self._given))]
        return resolved.settings, min(resolved.ttls_ms.values(), default=None)

    def hidden(self, text: str) -> str:
        """Return a text without secrets that were given lately."""
        with self._lock:
            given = frozenset(self._given)
        return Resolved({}, given).hidden(text) if given else text
