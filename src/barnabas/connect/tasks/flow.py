"""The flow of each record: a source's to its topic, a topic's to its sink.

    source   record ─▶ transforms ─▶ header, key, value converter ─▶ bytes
    sink     bytes ─▶ key, value, header converter ─▶ transforms ─▶ record

The same in the process of the local engine and on Spark's executors. Source:
AbstractWorkerSourceTask.convertTransformedRecord, WorkerSinkTask.convertAndTransformRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

from barnabas.connect.config.providers import Hiding
from barnabas.connect.errors.reports import DeadLetters, LogReporter
from barnabas.connect.errors.tolerance import (
    Dropped,
    ErrorCounts,
    ErrorPolicy,
    Failure,
    Reporter,
    Stage,
    Tolerance,
    java_class,
)
from barnabas.connect.record import (
    ConnectRecord,
    Header,
    RawColumn,
    RawRecord,
    SinkColumn,
    SinkRecord,
    SourceColumn,
    SourceRecord,
)
from barnabas.connect.tasks.chain import Chain, Settings, make_chain

Send = Callable[[RawRecord], None]
_PLAIN: Final[list[tuple[str, bytes | None]]] = []


@dataclass(slots=True, frozen=True)
class FlowSpec:
    """The specification of a flow; picklable, and equal for equal tasks."""

    connector: str
    task: int
    settings: Settings = field(repr=False)
    worker: Settings = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def policy(self) -> ErrorPolicy:
        """Return the policy on errors. Raises ConfigError."""
        return ErrorPolicy.read(self.settings)


class _Flow:
    """What both directions have: the chain, and what happens to records that fail in it."""

    def __init__(self, spec: FlowSpec, stopping: Event | None, dead_letters: Send | None) -> None:
        """`dead_letters` writes the dead letters of a sink; None for a source."""
        policy = spec.policy
        self.counts = ErrorCounts()
        self._chain = make_chain(spec.settings, spec.worker)
        hide = Hiding(spec.secrets)
        self.unmasked = self._chain.unmasked(is_sink=dead_letters is not None)
        """What sees fields before they are masked; readers do as well."""
        task, masks = f"{spec.connector}-{spec.task}", bool(self.unmasked)
        reporters: list[Reporter] = [LogReporter(task, policy, self.counts, hide, masks=masks)]
        if dead_letters is not None and policy.dead_letter_topic:
            place = spec.connector, spec.task
            reporters.insert(0, DeadLetters(*place, policy, self.counts, dead_letters, hide))
        self.tolerance = Tolerance(
            policy, reporters, self.counts, stopping or Event(), show=self.unmasked.shown
        )
        self.takes_columns = self._chain.takes_columns
        """True if many records may be converted at once."""

    def close(self) -> None:
        """Close what it holds open."""
        self._chain.close()


class SourceFlow(_Flow):
    """Turns a source's records into a topic's."""

    def __init__(self, spec: FlowSpec, stopping: Event | None = None) -> None:
        super().__init__(spec, stopping, None)
        self.is_plain = self._chain.is_plain
        """True if bytes pass it unchanged."""

    def convert_column(self, column: SourceColumn) -> list[bytes | None] | None:
        """Return the values to write, without keys; None if records must go one by one.

        So it is if one of them fails, for `convert` to treat it as the settings of errors say.
        """
        chain, topic = self._chain, column.topic
        try:
            if chain.key.from_connect(topic, None, None) is not None:
                return None
            return chain.value.from_column(topic, column.schema, column.values)
        except Exception:  # noqa: BLE001  # all that converters raise
            return None

    def convert(self, record: SourceRecord) -> RawRecord | None:
        """Return the record to write, or None. Raises ConnectError."""
        run, chain = self.tolerance.run, self._chain
        try:
            changed = _transform(self.tolerance, chain, record, record)
            topic = changed.topic
            headers = _PLAIN
            if changed.headers:
                headers = run(Stage.HEADER_CONVERTER, chain.header, record, self._headers, changed)
            key = run(
                Stage.KEY_CONVERTER,
                chain.key,
                record,
                chain.key.from_connect,
                topic,
                changed.key_schema,
                changed.key,
            )
            value = run(
                Stage.VALUE_CONVERTER,
                chain.value,
                record,
                chain.value.from_connect,
                topic,
                changed.value_schema,
                changed.value,
            )
        except Dropped:
            return None
        return RawRecord(
            topic=topic,
            partition=changed.partition,
            key=key,
            value=value,
            timestamp_ms=changed.timestamp_ms,
            headers=headers,
        )

    def _headers(self, record: ConnectRecord) -> list[tuple[str, bytes | None]]:
        convert = self._chain.header.from_connect
        return [
            (one.key, convert(record.topic, one.key, one.schema, one.value))
            for one in record.headers
        ]


class SinkFlow(_Flow):
    """Turns a topic's records into those that a sink takes. `send` writes dead letters."""

    def __init__(self, spec: FlowSpec, send: Send, stopping: Event | None = None) -> None:
        super().__init__(spec, stopping, send)

    def convert_column(self, topic: str, column: RawColumn) -> SinkColumn | None:
        """Return the values for the sink; None if records must go one by one.

        So it is if they have headers, or if one of them fails, for `convert` to treat it as the
        settings of errors say.
        """
        if column.has_headers:
            return None
        chain = self._chain
        try:
            chain.key.to_column(topic, column.keys)
            return chain.value.to_column(topic, column.values)
        except Exception:  # noqa: BLE001  # all that converters raise
            return None

    def convert(self, records: Iterable[RawRecord]) -> Iterator[SinkRecord]:
        """Yield the records that go on. Raises ConnectError."""
        for record in records:
            try:
                yield self.convert_one(record)
            except Dropped:
                continue

    def convert_one(self, raw: RawRecord) -> SinkRecord:
        """Return the record that goes on. Raises ConnectError, and Dropped if none does."""
        run, chain, topic = self.tolerance.run, self._chain, raw.topic
        key_schema, key = run(
            Stage.KEY_CONVERTER,
            chain.key,
            raw,
            chain.key.to_connect,
            topic,
            raw.key,
            raw.headers,
        )
        value_schema, value = run(
            Stage.VALUE_CONVERTER,
            chain.value,
            raw,
            chain.value.to_connect,
            topic,
            raw.value,
            raw.headers,
        )
        headers: list[Header] = []
        if raw.headers:
            headers = run(Stage.HEADER_CONVERTER, chain.header, raw, self._headers, raw)
        assert raw.partition is not None
        record = SinkRecord(
            topic=topic,
            partition=raw.partition,
            key_schema=key_schema,
            key=key,
            value_schema=value_schema,
            value=value,
            timestamp_ms=raw.timestamp_ms,
            headers=headers,
            offset=raw.offset,
            timestamp_type=raw.timestamp_type,
            original_topic=topic,
            original_partition=raw.partition,
            original_offset=raw.offset,
            raw=raw,
        )
        changed: SinkRecord = _transform(self.tolerance, chain, record, raw)
        return changed

    def report(self, sink: Any, record: SinkRecord, error: BaseException) -> None:
        """A sink cannot take a record: treat it as `errors.tolerance` says (KIP-610)."""
        self.counts.failures += 1
        try:
            self.tolerance.fail(Failure(Stage.TASK_PUT, java_class(sink), error, record.raw))
        except Dropped:
            return

    def _headers(self, raw: RawRecord) -> list[Header]:
        convert = self._chain.header.to_connect
        return [Header(name, *convert(raw.topic, name, data)) for name, data in raw.headers]


def _transform(tolerance: Tolerance, chain: Chain, record: Any, original: Any) -> Any:
    for stage in chain.stages:
        record = tolerance.run(Stage.TRANSFORMATION, stage.transform, original, stage.apply, record)
        if record is None:
            raise Dropped
    return record
