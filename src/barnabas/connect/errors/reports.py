"""Who hears of failed records, and what: the log, and the dead-letter topic.

A plugin that sees a record before its fields are masked may quote the fields in an error's text.
Status and log have such an error without its text, but with its kind, its place in the code and the
record's place. Dead letters keep the text: they hold the record itself, as it was.

Source: LogReporter, DeadLetterQueueReporter (Kafka 4.3).
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.connect.errors.tolerance import (
    ErrorCounts,
    ErrorPolicy,
    Failure,
)
from barnabas.connect.record import RawRecord, SourceRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, kind_of
from barnabas.schemas.errors import RegistryError

# Errors in status and dead letters, in the form of Java's stack traces.

_CAUSES_MAX: Final = 5
_FRAMES_MAX = 50


def java_name(error: BaseException) -> str:
    """Return the name of Kafka's class for an error; Python's own names stay."""
    if isinstance(error, ConnectError):
        return error.java_name
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def trace_of(error: BaseException) -> str:
    """Return class, text, frames (the newest first) and causes."""
    lines: list[str] = []
    cause: BaseException | None = error
    for depth in range(_CAUSES_MAX):
        if cause is None:
            break
        text = f"{java_name(cause)}: {cause}" if str(cause) else java_name(cause)
        lines.append(f"Caused by: {text}" if depth else text)
        frames = traceback.extract_tb(cause.__traceback__)[-_FRAMES_MAX:]
        lines += [
            f"\tat {frame.name}({frame.filename.rpartition('/')[2]}:{frame.lineno})"
            for frame in reversed(frames)
        ]
        cause = cause.__cause__
    return "\n".join(lines) + "\n"


_log = logging.getLogger(__name__)
Hide = Callable[[str], str]
HEADER_PREFIX: Final = "__connect.errors."


class LogReporter:
    """Logs each failure; what the record says only where `errors.log.include.messages`.

    `hide` takes secrets out of a text: on executors nobody else does.
    """

    def __init__(
        self,
        task: str,
        policy: ErrorPolicy,
        counts: ErrorCounts,
        hide: Hide = str,
        *,
        masks: bool = False,
    ) -> None:
        """`masks`: the transforms mask fields, so that no record is quoted as it was read."""
        self._masks = masks
        self._hide = hide
        self._task = task
        self._policy = policy
        self._counts = counts

    def __call__(self, failure: Failure) -> None:
        """Log it."""
        self._counts.last_error_ms = time.time_ns() // 1_000_000
        if not self._policy.logs:
            return
        if _log.isEnabledFor(logging.ERROR):
            text = self._hide(self.message(failure))
            line = _log.makeRecord(_log.name, logging.ERROR, __file__, 0, "%s", (text,), None)
            line.exc_text = self._hide(_trace(failure.shown or failure.error))
            _log.handle(line)
        self._counts.logged += 1

    def message(self, failure: Failure) -> str:
        """Return the line."""
        what = ""
        if self._policy.logs_messages:
            what = f", where {_described(failure.original, shows_values=not self._masks)}"
        return (
            f"Error encountered in task {self._task}. Executing stage '{failure.stage}' "
            f"with class '{failure.class_name}'{what}."
        )


class DeadLetters:
    """Sends each failed record of a sink, as it was in its topic, to another topic."""

    def __init__(
        self,
        connector: str,
        task: int,
        policy: ErrorPolicy,
        counts: ErrorCounts,
        send: Callable[[RawRecord], None],
        hide: Hide = str,
    ) -> None:
        self._hide = hide
        self._connector = connector
        self._task = task
        self._policy = policy
        self._counts = counts
        self._send = send

    def __call__(self, failure: Failure) -> None:
        """Send it."""
        if isinstance(failure.original, RawRecord):
            self._counts.dead_letters += 1
            self._send(self.letter(failure, failure.original))

    def letter(self, failure: Failure, original: RawRecord) -> RawRecord:
        """Return what is sent."""
        headers = list(original.headers)
        if self._policy.dead_letter_has_context:
            headers += self._context(failure, original)
        return RawRecord(
            topic=self._policy.dead_letter_topic,
            partition=None,
            key=original.key,
            value=original.value,
            timestamp_ms=original.timestamp_ms,
            headers=headers,
        )

    def _context(self, failure: Failure, original: RawRecord) -> list[tuple[str, bytes | None]]:
        error = failure.error
        context = {
            "topic": original.topic,
            "partition": str(original.partition),
            "offset": str(original.offset),
            "connector.name": self._connector,
            "task.id": str(self._task),
            "stage": str(failure.stage),
            "class.name": failure.class_name,
            "exception.class.name": java_name(error),
            "exception.message": self._hide(str(error)),
            "exception.stacktrace": self._hide(_trace(error)),
        }
        return [
            (HEADER_PREFIX + name, text.encode(errors="replace")) for name, text in context.items()
        ]


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _described(original: object, *, shows_values: bool) -> str:
    if isinstance(original, RawRecord):
        when = ""
        if original.timestamp_type != "NoTimestampType":
            when = f", timestamp={original.timestamp_ms}, timestampType={original.timestamp_type}"
        return (
            f"consumed record is {{topic='{original.topic}', partition={original.partition}, "
            f"offset={original.offset}{when}}}"
        )
    if isinstance(original, SourceRecord):
        values = f", key={original.key!r}, value={original.value!r}" if shows_values else ""
        return (
            f"source record is = {{sourcePartition={dict(original.source_partition)}, "
            f"sourceOffset={dict(original.source_offset)}, topic='{original.topic}', "
            f"kafkaPartition={original.partition}{values}, timestamp={original.timestamp_ms}}}"
        )
    return f"record is {original!r}" if shows_values else "the record has masked fields"


class Unmasked:
    """The part of a chain that sees what `masks`, transforms by their aliases, will mask."""

    def __init__(self, masks: Sequence[str] = (), plugins: Sequence[Any] = ()) -> None:
        self._masks = ", ".join(f"transforms.{alias}" for alias in masks)
        self._plugins = plugins

    def __bool__(self) -> bool:
        return bool(self._masks)

    def shown(self, plugin: Any, error: BaseException, original: Any = None) -> BaseException:
        """Return an error of a plugin as status and log may have it."""
        if not any(plugin is one for one in self._plugins):
            return error
        return self.without_text(error, original)

    def without_text(self, error: BaseException, original: Any = None) -> BaseException:
        """Return an error as status and log may have it: itself, if nothing is masked."""
        if not self:
            return error
        where = ""
        if isinstance(original, RawRecord):
            where = f"; the record is {original.topic}-{original.partition}@{original.offset}"
        return self._without_text(error, where, _CAUSES_MAX)

    def _without_text(self, error: BaseException, where: str, causes: int) -> BaseException:
        if isinstance(error, ConfigError | RegistryError):
            return error  # of settings and of schemas: they quote no record
        kind = kind_of(error)
        text = f"[the text may quote fields that are masked by {self._masks}{where}]"
        if isinstance(error.__cause__, RegistryError):
            text = str(error)
        elif kind is None:
            text = f"{java_name(error)}: {text}"
        made: BaseException = (kind or ConnectError)(text).with_traceback(error.__traceback__)
        if error.__cause__ is not None and causes > 1:
            made.__cause__ = self._without_text(error.__cause__, "", causes - 1)
        made.__suppress_context__ = True
        return made
