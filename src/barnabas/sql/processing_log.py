"""The processing log's entries, as ksqlDB documents them: what went wrong with a record, and where.

An entry says nothing of a record's content unless the setting `ROWS_INCLUDE` asks for it.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

PREFIX = "ksql.logging.processing."
ROWS_INCLUDE = f"{PREFIX}rows.include"
_CAUSES_MAX = 10
_TEXT_MAX = 100_000
"""Of a row and of a message, so that an entry fits into a Kafka record."""


class EntryType(IntEnum):
    """`message.type`, in the order of the members of a message."""

    DESERIALIZATION_ERROR = 0
    RECORD_PROCESSING_ERROR = 1
    PRODUCTION_ERROR = 2
    SERIALIZATION_ERROR = 3
    KAFKA_STREAMS_THREAD_ERROR = 4


_MEMBERS = (
    "deserializationError",
    "recordProcessingError",
    "productionError",
    "serializationError",
    "kafkaStreamsThreadError",
)
COLUMNS = (
    "logger VARCHAR, level VARCHAR, time BIGINT, message STRUCT<`TYPE` INTEGER, "
    "deserializationError STRUCT<target VARCHAR, errorMessage VARCHAR, recordB64 VARCHAR, "
    "cause ARRAY<VARCHAR>, `TOPIC` VARCHAR>, "
    "recordProcessingError STRUCT<errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>>, "
    "productionError STRUCT<errorMessage VARCHAR>, "
    "serializationError STRUCT<target VARCHAR, errorMessage VARCHAR, record VARCHAR, "
    "cause ARRAY<VARCHAR>, `TOPIC` VARCHAR>, "
    "kafkaStreamsThreadError STRUCT<errorMessage VARCHAR, threadName VARCHAR, "
    "cause ARRAY<VARCHAR>>>"
)
"""The columns of a stream over entries in JSON."""


class Entry(NamedTuple):
    """`step`: of the query, as in a logger's name; `message`: as in the JSON."""

    step: str
    message: dict[str, Any]

    @property
    def text(self) -> str:
        """The message, in one line."""
        member = self.message[_MEMBERS[self.message["type"]]]
        return str(member.get("errorMessage"))


class UnreadableError(Exception):
    """Wraps why a record cannot be read: `target` is key or value, `data` its bytes."""

    def __init__(self, target: str, topic: str, data: bytes | None, cause: Exception) -> None:
        super().__init__(str(cause))
        self.target, self.topic, self.data = target, topic, data
        self.__cause__ = cause.__cause__

    def forget_frames(self) -> None:
        """Let go of the functions that its causes passed through, and of all they refer to."""
        left: list[BaseException | None] = [self.__cause__]
        while left:
            error = left.pop()
            if error is not None and error.__traceback__ is not None:
                error.__traceback__ = None
                left += (error.__cause__, error.__context__)


class UnwritableError(Exception):
    """Wraps why a row cannot be written: `target` is key or value, `sink` the source it is for."""

    def __init__(self, target: str, topic: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.target, self.topic = target, topic
        self.__cause__ = cause.__cause__


def entry_of(
    message: str, row: Sequence[Any] | None, cause: BaseException | None, *, rows: bool
) -> Entry:
    """Return a stage's entry about a record. `rows`: whether it may show the record."""
    causes = [] if cause is None else _causes(cause)
    if isinstance(cause, UnreadableError):
        member: dict[str, Any] = {
            "target": cause.target,
            "errorMessage": str(cause)[:_TEXT_MAX],
            "recordB64": _base64(cause.data) if rows else None,
            "cause": causes[1:],
            "topic": cause.topic,
        }
        return Entry(
            "KsqlTopic.Source.deserializer", _message(EntryType.DESERIALIZATION_ERROR, member)
        )
    record = _row_text(row) if rows else None
    if isinstance(cause, UnwritableError):
        member = {
            "target": cause.target,
            "errorMessage": str(cause)[:_TEXT_MAX],
            "record": record,
            "cause": causes[1:],
            "topic": cause.topic,
        }
        return Entry("Sink.serializer", _message(EntryType.SERIALIZATION_ERROR, member))
    member = {"errorMessage": message[:_TEXT_MAX], "record": record, "cause": causes}
    return Entry("", _message(EntryType.RECORD_PROCESSING_ERROR, member))


def production_error(message: str) -> Entry:
    """Records could not be written to their topic."""
    return Entry("", _message(EntryType.PRODUCTION_ERROR, {"errorMessage": message[:_TEXT_MAX]}))


def query_error(message: str, thread: str) -> Entry:
    """The query stopped; ksqlDB names the thread that did."""
    lines = message[:_TEXT_MAX].splitlines() or [""]
    member = {"errorMessage": lines[0], "threadName": thread, "cause": lines[1:_CAUSES_MAX]}
    return Entry("", _message(EntryType.KAFKA_STREAMS_THREAD_ERROR, member))


def _message(kind: EntryType, member: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = dict.fromkeys(_MEMBERS)
    members[_MEMBERS[kind]] = member
    return {"type": int(kind), **members}


def _causes(error: BaseException) -> list[str]:
    texts: list[str] = []
    at: BaseException | None = error
    while at is not None and len(texts) < _CAUSES_MAX:
        texts.append((str(at) or type(at).__name__)[:_TEXT_MAX])
        at = at.__cause__ or at.__context__
    return texts


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data[:_TEXT_MAX]).decode()


def _row_text(row: Sequence[Any] | None) -> str | None:
    if row is None:
        return None
    return json.dumps(list(row), default=_json_value)[:_TEXT_MAX]


def _json_value(value: Any) -> Any:
    return _base64(value) if isinstance(value, bytes) else str(value)


def includes_rows(settings: Mapping[str, Any]) -> bool:
    """Return whether entries may show records."""
    return str(settings.get(ROWS_INCLUDE, "false")).lower() == "true"


def logger_name(query_id: str, step: str) -> str:
    """The name of the logger that wrote an entry."""
    return f"processing.{query_id}.{step}" if step else f"processing.{query_id}"


def encode_entry(query_id: str, entry: Entry, time_ms: int) -> bytes:
    """The entry as it lies in the topic."""
    body = {
        "level": "ERROR",
        "logger": logger_name(query_id, entry.step),
        "time": time_ms,
        "message": entry.message,
    }
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


_processing_log = logging.getLogger("barnabas.sql.processing")

NoteEntry = Callable[[str, Entry], None]
"""Takes a query's id and an entry. May be called in any thread; never blocks and never raises."""


def log_entry(query_id: str, entry: Entry) -> None:
    """Log the entry in one line, without the content of the record."""
    _processing_log.info("%s: %s", logger_name(query_id, entry.step), entry.text)
