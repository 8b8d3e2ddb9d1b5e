"""PRINT: the records of a topic as text, of any format."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore
from barnabas.schemas.wire_format import PREFIX_BYTES, schema_id_of
from barnabas.sql.engine.cluster import Cluster, Follower, Start
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.push import End
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.errors import BAD_REQUEST, ApiError
from barnabas.sql.syntax.tree import PrintTopic

_AVRO_ERRORS = (ValueError, LookupError, TypeError, EOFError, OSError, StopIteration)


class TopicPrinter:
    """Sends a line for each record, until it is stopped or has sent as many as were asked for."""

    def __init__(self, statement: PrintTopic, schemas: SchemaStore | None) -> None:
        self._statement = statement
        self._schemas = schemas
        self._every = max(1, statement.interval or 1)
        self._seen = 0
        self._sent = 0
        self._is_ended = False
        self._told = ("", "")
        self._follower: Follower | None = None
        self._lock = threading.Lock()
        self._send: Callable[[str | End], None] = lambda item: None

    def start(self, cluster: Cluster, send: Callable[[str | End], None]) -> None:
        self._send = send
        start = Start.EARLIEST if self._statement.from_beginning else Start.LATEST
        follower = cluster.follow(
            [self._statement.topic],
            self._take,
            start,
            on_error=lambda error: self._end(End("", error)),
        )
        with self._lock:
            self._follower = follower
        if self._is_ended:
            follower.close()

    def _take(self, topic: str, record: TopicRecord, is_done: bool) -> None:
        if self._is_ended:
            return
        self._seen += 1
        if (self._seen - 1) % self._every:
            return
        key, value = self._text(record.key), self._text(record.value)
        for label, (kind, _), told in zip(("Key", "Value"), (key, value), self._told, strict=True):
            if kind and not told:
                self._send(f"{label} format: {kind}")
        self._told = (self._told[0] or key[0], self._told[1] or value[0])
        moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
        shown = f"{moment:%Y/%m/%d %H:%M:%S}.{record.timestamp_ms % 1000:03} Z"
        self._send(
            f"rowtime: {shown}, key: {key[1]}, value: {value[1]}, partition: {record.partition}"
        )
        self._sent += 1
        if self._statement.limit is not None and self._sent >= self._statement.limit:
            self._end(End(""))

    def stop(self) -> None:
        self._end(End(""))

    def _end(self, end: End) -> None:
        with self._lock:
            if self._is_ended:
                return
            self._is_ended = True
            follower = self._follower
        self._send(end)
        if follower is not None:
            follower.close()

    def _text(self, data: bytes | None) -> tuple[str, str]:
        """The format that the bytes seem to have, and the text."""
        if data is None:
            return "", "<null>"
        return self._with_schema(data) or plain_text(data)

    def _with_schema(self, data: bytes) -> tuple[str, str] | None:
        schema_id = schema_id_of(data)
        if self._schemas is None or schema_id is None or len(data) == PREFIX_BYTES:
            return None
        try:
            stored = self._schemas.by_id(schema_id)
        except FormatError:
            return None
        body = data[PREFIX_BYTES:]
        if stored.type == "JSON":
            return "JSON_SR", body.decode("utf-8", "replace")
        if stored.type == "AVRO":
            return _avro(stored.text, body)
        return "PROTOBUF", repr(body)


def printer_of(engine: KsqlEngine, statement: PrintTopic) -> TopicPrinter:
    """Return the printer of a topic. Raises ApiError if the topic does not exist."""
    topics = engine.cluster.topics()
    if statement.topic not in topics:
        same = [name for name in topics if name.lower() == statement.topic.lower()]
        hint = f"\nDid you mean:\n\tprint {same[0]};" if same else ""
        raise ApiError(
            BAD_REQUEST,
            "Could not find topic '"
            f"{statement.topic}', or the KSQL user does not have permissions to list the "
            f"topic. Topic names are case-sensitive.{hint}",
        )
    return TopicPrinter(statement, engine.schemas)


def _avro(schema: str, body: bytes) -> tuple[str, str] | None:
    import fastavro

    try:
        parsed = fastavro.parse_schema(json.loads(schema))
        value: Any = fastavro.schemaless_reader(io.BytesIO(body), parsed, None)
    except _AVRO_ERRORS:
        return None
    return "AVRO", json.dumps(value, default=str)


def plain_text(data: bytes) -> tuple[str, str]:
    """The text of bytes without a schema: JSON, a number in Kafka's format, or text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text[:1] in ("{", "["):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return "JSON or KAFKA_STRING", text
    if text and text.isprintable():
        return "KAFKA_STRING", text
    if len(data) == 4:
        return "KAFKA_INT", str(int.from_bytes(data, "big", signed=True))
    if len(data) == 8:
        number = int.from_bytes(data, "big", signed=True)
        return "KAFKA_BIGINT or KAFKA_DOUBLE", str(number)
    if text:
        return "KAFKA_STRING", text
    return "UNRECOGNISED_BYTES", repr(data)[2:-1]
