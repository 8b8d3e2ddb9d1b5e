"""Levels of loggers, and their changes while a worker runs (KIP-495, KIP-976).

Names are those of Python's loggers; Java's `org.apache.kafka.connect` means the connectors' own.
Levels are Java's: TRACE logs what DEBUG does, OFF logs nothing.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Final

from barnabas.base.clock import now_ms

ROOT: Final = "root"
LEVELS: Final = {
    "OFF": 100,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
    "ALL": 1,
}
_JAVA: Final = {
    "org.apache.kafka.connect": ("barnabas.connect",),
    "io.debezium": ("barnabas.connect.connectors.postgres", "barnabas.connect.cdc"),
}
_LOGGERS_MAX: Final = 10_000


class Loggers:
    """The levels that were set, by the names under which they were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: dict[str, tuple[str, int]] = {}

    def level(self, name: str) -> dict[str, Any] | None:
        """Return a logger's level; None if nobody knows the logger."""
        with self._lock:
            if name.lower() == ROOT:
                name = ROOT
            if name in self._set:
                level, changed_ms = self._set[name]
                return {"level": level, "last_modified": changed_ms}
            if name == ROOT or _own(name)[0] in logging.root.manager.loggerDict:
                return {
                    "level": _java_level(_logger(name).getEffectiveLevel()),
                    "last_modified": None,
                }
            return None

    def levels(self) -> dict[str, dict[str, Any]]:
        """Return all loggers whose level was set, with that of all others under `root`."""
        with self._lock:
            names = {
                name
                for name, logger in logging.root.manager.loggerDict.items()
                if isinstance(logger, logging.Logger) and logger.level
            }
            names |= {ROOT, *self._set}
        levels = {name: self.level(name) for name in sorted(names)}
        return {name: level for name, level in levels.items() if level is not None}

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Set the level of a logger and those below; returns the names of all of them."""
        level = level.upper()
        if level not in LEVELS:
            return []
        is_root = namespace.lower() == ROOT
        own = ("",) if is_root else _own(namespace)
        with self._lock:
            changed = [
                name
                for name, logger in logging.root.manager.loggerDict.items()
                if isinstance(logger, logging.Logger) and name.startswith(own)
            ][:_LOGGERS_MAX]
            for name in changed:
                if is_root:
                    logging.getLogger(name).setLevel(logging.NOTSET)
                else:
                    logging.getLogger(name).setLevel(LEVELS[level])
            for one in own:
                logging.getLogger(one or None).setLevel(LEVELS[level])
            name = ROOT if is_root else namespace
            if self._set.get(name, ("", 0))[0] != level:
                self._set[name] = (level, now_ms())
            return sorted({*changed, *([name] if is_root else [])})


def is_level(text: str) -> bool:
    """Return whether a text is a level."""
    return text.upper() in LEVELS


def _own(name: str) -> tuple[str, ...]:
    """Our loggers of a name, which may be Java's."""
    for java, python in _JAVA.items():
        if name == java or name.startswith(java + "."):
            return python
    return (name,)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(_own(name)[0])


def _java_level(number: int) -> str:
    for name, level in LEVELS.items():
        if name not in ("ALL", "FATAL") and number >= level:
            return name
    return "ALL"
