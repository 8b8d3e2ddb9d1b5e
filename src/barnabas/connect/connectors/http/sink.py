"""The HTTP sink: each record, or a few together, as the body of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.config.definition import Definition
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkRange,
    SinkWriter,
    TaskContext,
)
from barnabas.connect.connectors.http.exchange import Exchange, GaveUpError, RefusedError, Sleep
from barnabas.connect.connectors.http.settings import (
    BATCH_PREFIX,
    BATCH_SEPARATOR,
    BATCH_SUFFIX,
    SINK,
    HttpConnector,
)
from barnabas.connect.converters.json import plain_json
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConnectError, DataError, RetriableError


class HttpSink(HttpConnector, SinkConnector):
    """Sends records to a web service."""

    definition: ClassVar[Definition] = SINK

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return what sends."""
        values = self.definition.parse(context.settings)
        return HttpWriter(values, context.settings, context.wait)


class HttpWriter(SinkWriter):
    """At least once: a request whose answer is lost is sent again."""

    def __init__(self, values: Mapping[str, Any], given: Settings, wait: Sleep) -> None:
        """`given` are the settings as they were written, `values` what they were parsed to.

        `wait` is TaskContext's.
        """
        self._values = values
        self._wait = wait
        self._prefix = given.get(BATCH_PREFIX, "").encode()
        self._separator = given.get(BATCH_SEPARATOR, "\n").encode()
        self._suffix = given.get(BATCH_SUFFIX, "\n").encode()

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Send the records of a range, in order."""
        values = self._values
        size = int(values["batch.max.size"]) if values["batching.enabled"] else 1
        bodies = Bodies(str(values["decimal.format"]))
        exchange = Exchange(values, self._wait)
        waiting: list[tuple[SinkRecord, bytes]] = []
        try:
            for record in records:
                try:
                    waiting.append((record, bodies.of(record)))
                except DataError as error:
                    self._refused([record], error)
                    continue
                if len(waiting) >= size:
                    self._send(exchange, waiting)
                    waiting = []
            if waiting:
                self._send(exchange, waiting)
        finally:
            exchange.close()
            bodies.close()
        return None

    def _send(self, exchange: Exchange, records: Sequence[tuple[SinkRecord, bytes]]) -> None:
        values = self._values
        body = records[0][1]
        if values["batching.enabled"]:
            body = self._prefix + self._separator.join(one for _, one in records) + self._suffix
        kind = values["http.headers.content.type"]
        headers = {"Content-Type": str(kind)} if kind else {}
        try:
            exchange.send(str(values["http.method"]).upper(), content=body, headers=headers)
        except RefusedError as error:
            self._refused([record for record, _ in records], error)
        except GaveUpError as error:
            if values["kafka.retry.backoff.ms"] is None:
                raise
            raise RetriableError(str(error)) from error

    def _refused(self, records: Sequence[SinkRecord], error: ConnectError) -> None:
        """Each goes where `errors.tolerance` says; or this raises."""
        if self.report is None:
            raise error
        for record in records:
            self.report(record, error)


class Bodies:
    """Texts and bytes as they are, all else as JSON without schemas."""

    def __init__(self, decimal_format: str) -> None:
        self._json = plain_json(decimal_format)

    def of(self, record: SinkRecord) -> bytes:
        """Return the body of a record. Raises DataError."""
        value = record.value
        if value is None:
            raise DataError("Record value must not be null")
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        return self._json.from_connect(record.topic, record.value_schema, value) or b""

    def close(self) -> None:
        self._json.close()
