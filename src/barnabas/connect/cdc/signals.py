"""Signals: their requests (pure). A signal that cannot be understood is logged and ignored.

Source: Debezium's documentation, "Sending signals to a Debezium connector".
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.cdc.steps import (
    Asked,
    PauseAsked,
    ResumeAsked,
    StopAsked,
    Wanted,
)
from barnabas.java.regex import JavaPattern, compile_java
from barnabas.java.regex_characters import PatternError

_log = logging.getLogger(__name__)
OPEN: Final = "snapshot-window-open"
CLOSE: Final = "snapshot-window-close"


@dataclass(slots=True, frozen=True)
class Signal:
    """A signal as a channel has it; `data` is a JSON object as text."""

    id: str
    kind: str
    data: str | None


@dataclass(slots=True, frozen=True)
class BlockingAsked:
    """A signal asks for tables to be read while the log waits."""

    id: str
    tables: tuple[Wanted, ...]


Request = Asked | StopAsked | PauseAsked | ResumeAsked | BlockingAsked


class _BadSignalError(Exception):
    """The signal cannot be understood."""


def request_of(signal: Signal, captured: Iterable[str]) -> Request | None:
    """Return what a signal asks for; None for nothing. `captured` are the tables there are."""
    try:
        data = _data(signal)
        match signal.kind:
            case "execute-snapshot":
                return _execute(signal, data, list(captured))
            case "stop-snapshot":
                if _type(data) == "blocking":
                    raise _BadSignalError("a blocking snapshot cannot be stopped")
                names = _texts(data, "data-collections") if "data-collections" in data else ()
                return StopAsked(tuple(names))
            case "pause-snapshot":
                return PauseAsked()
            case "resume-snapshot":
                return ResumeAsked()
            case "log":
                message = data.get("message")
                if not message:
                    raise _BadSignalError("it has no message")
                _log.info("%s", message)
            case _:
                raise _BadSignalError(f"its type {signal.kind!r} is unknown")
    except _BadSignalError as error:
        _log.warning("The signal %s is ignored: %s", signal.id, error)
    return None


def _data(signal: Signal) -> Mapping[str, Any]:
    if not signal.data or not signal.data.strip():
        return {}
    try:
        data = json.loads(signal.data)
    except (ValueError, RecursionError) as error:
        raise _BadSignalError(f"its data is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise _BadSignalError("its data is not a JSON object")
    return data


def _execute(signal: Signal, data: Mapping[str, Any], captured: Sequence[str]) -> Request:
    patterns = _texts(data, "data-collections")
    if not patterns:
        raise _BadSignalError("it names no data-collections")
    kind = _type(data)
    conditions = _conditions(data)
    surrogate = data.get("surrogate-key") or ""
    if not isinstance(surrogate, str):
        raise _BadSignalError("its surrogate-key is not a text")
    names = dict.fromkeys(name for pattern in patterns for name in _named(pattern, captured))

    def wanted(name: str) -> Wanted:
        condition = next((text for pattern, text in conditions if pattern.matches(name)), "")
        if condition and kind == "incremental":
            condition = f"({condition})"  # it is one among others there
        return Wanted(name, condition, surrogate.strip())

    tables = tuple(map(wanted, names))
    return BlockingAsked(signal.id, tables) if kind == "blocking" else Asked(signal.id, tables)


def _type(data: Mapping[str, Any]) -> str:
    kind = str(data.get("type") or "incremental").lower()
    if kind not in ("incremental", "blocking"):
        raise _BadSignalError(f"its snapshot's type {kind!r} is unknown")
    return kind


def _texts(data: Mapping[str, Any], name: str) -> list[str]:
    listed = data.get(name) or []
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise _BadSignalError(f"its {name} is not a list of texts")
    return [text.strip() for text in listed]


def _conditions(data: Mapping[str, Any]) -> list[tuple[JavaPattern, str]]:
    listed = data.get("additional-conditions") or []
    try:
        return [
            (compile_java(f"(?i){one['data-collection'].strip()}"), str(one["filter"]))
            for one in listed
            if one["filter"]
        ]
    except (TypeError, KeyError, AttributeError, PatternError) as error:
        raise _BadSignalError(
            f"its additional-conditions need data-collection and filter each: {error}"
        ) from None


def _named(pattern: str, captured: Sequence[str]) -> Sequence[str]:
    """The captured tables that match a name or a pattern; without any, the name itself."""
    if pattern in captured:
        return [pattern]
    try:
        expression = compile_java(pattern)
    except PatternError as error:
        raise _BadSignalError(f"{pattern!r} is not a regular expression: {error}") from None
    return [name for name in captured if expression.matches(name)] or [pattern]


def signal_of(text: str) -> Signal | None:
    """Read a signal from JSON; None for one that cannot be read, which is logged."""
    if not text.strip():
        return None
    try:
        said: Any = json.loads(text)
        data = said.get("data")
        return Signal(
            str(said["id"]),
            str(said["type"]),
            data if data is None or isinstance(data, str) else json.dumps(data),
        )
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("A signal that cannot be read is ignored: %s", error)
        return None
