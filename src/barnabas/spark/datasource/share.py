"""`format("barnabas-share")`: Spark reads topics as members of a share group (KIP-932).

The reader lives in a process of the driver, from the start of a query to its end, and so do the
members (`share_members.py`): acknowledgements must come over the connection that acquired. Tasks
read the planned offsets from the log (`share_records.py`). docs/decisions/0024 says why.

A batch is acknowledged when it is in Spark's commit log. Spark asks for the latest offset only
then, so that call says it too: `commit` comes only with the next batch that has data.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.kafka.wire import Access
from barnabas.spark.datasource.options import OptionError, read_security, sorted_options
from barnabas.spark.datasource.share_ledger import Plan
from barnabas.spark.datasource.share_members import Members
from barnabas.spark.datasource.share_ranges import Delivery, split
from barnabas.spark.datasource.share_records import Rows, reader_of
from barnabas.spark.datasource.share_session import Books, Session, SessionOptions
from barnabas.spark.datasource.share_verdicts import read_verdicts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from barnabas.base.ids import Uuid

FORMAT: Final = "barnabas-share"
SERVERS: Final = "bootstrap.servers"
GROUP: Final = "group.id"
"""Both follow `kafka.`, as do the settings of TLS and SASL."""
_KNOWN: Final = ("subscribe", "readers", "maxRecordsPerBatch", "verdicts", "failOnDataLoss")
_SPARKS: Final = frozenset({"path", "checkpointLocation", "queryName"})
SCHEMA: Final = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
    .add("headers", ArrayType(StructType().add("key", StringType()).add("value", BinaryType())))
    .add("deliveryCount", IntegerType())
)
JOIN_S: Final = 30.0
"""Time that the first question for the latest offset waits for a member's first request."""
POLL_S: Final = 0.2
"""Time that a question for the latest offset waits for records."""
FORGET_S: Final = 300.0
"""How long an acknowledgement that no broker confirms is remembered at least: a lock lasts half a
minute by default, and a record that comes again later was not acknowledged."""
_telemetry = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class ShareOptions:
    """The options of a query that reads from a share group."""

    access: Access
    group: str
    topics: tuple[str, ...]
    readers: int = 4
    """Members of the group, and at most as many tasks in a batch."""
    records_max: int = 10_000
    """In one batch."""
    verdicts: str | None = None
    """The directory that `acknowledge` writes to."""
    fails_on_loss: bool = True


def register_share_source(spark: SparkSession) -> None:
    """Make `format("barnabas-share")` known to a session."""
    spark.dataSource.register(ShareSource)


class ShareSource(DataSource):
    """The data source. Its options are in docs/share-source.md."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns: those of Spark's Kafka source, and the delivery count."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Return a reader, which does nothing until Spark asks it."""
        return ShareReader(read_options(self.options))


class SharePartition(InputPartition):
    """The part of a share group's records that one task reads."""

    def __init__(self, deliveries: Sequence[tuple[str, Delivery]]) -> None:
        super().__init__(None)
        self.deliveries = deliveries


class ShareReader(DataSourceStreamReader):
    """The source of one query. All but `read` happens in one process and thread of the driver."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._running: _Running | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset of a query that has read nothing."""
        return Plan().as_offset()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Finish the last batch, and plan the next of what has been acquired since."""
        return self._source().next_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SharePartition]:
        """Cut a plan into tasks. A restarted query first asks with its last offset twice."""
        plan = Plan.from_offset(end)
        source = self._source()
        source.run(Plan.from_offset(start), plan)
        if start == end:
            return []
        names = {topic_id: name for name, topic_id in source.topic_ids.items()}
        for delivery in plan.deliveries:
            if delivery.partition.topic_id not in names:
                raise ValueError(
                    "the checkpoint is of other topics, or a topic was deleted and created again"
                )
        return [
            SharePartition([(names[d.partition.topic_id], d) for d in part])
            for part in split(plan.deliveries, self._options.readers)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has committed a batch, and begins the next."""
        # The next one is planned already, which finished this one.

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part of a plan, in a task."""
        assert isinstance(partition, SharePartition)
        parts: dict[tuple[str, Any], list[Delivery]] = {}
        for topic, delivery in partition.deliveries:
            parts.setdefault((topic, delivery.partition), []).append(delivery)
        reader = reader_of(self._options.access)
        for (topic, _), deliveries in parts.items():
            for rows in reader.read(topic, deliveries, fails_on_loss=self._options.fails_on_loss):
                yield _arrow(topic, rows)

    def stop(self) -> None:
        """Release what is held, and leave the group."""
        if self._running is not None:
            self._running.stop()

    def _source(self) -> _Running:
        if self._running is None:
            self._running = _Running(self._options)
        return self._running


class _Running:
    """A source whose members have joined."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._books = Books()
        session = SessionOptions(options.access, options.group, options.records_max)
        self._members = Members(session, options.topics, options.readers, self._books)
        self.topic_ids: Mapping[str, Uuid] = self._members.topic_ids()
        self._applied: list[str] = []
        self._knows_position = False
        self._blind: Plan | None = None
        """A plan that was made before Spark said which one is the last."""
        self._forgot_s = time.monotonic()
        self._members.start()

    def next_offset(self) -> dict[str, Any]:
        """Finish the batch that ran, and return the plan of the next one, or the same again."""
        books = self._books
        if time.monotonic() > self._forgot_s + FORGET_S:
            self._forgot_s = time.monotonic()
            with books.changed:
                books.ledger.forget_old()
        self._finish()
        with books.changed:
            books.changed.wait_for(self._has_joined, JOIN_S)
            books.changed.wait_for(lambda: books.ledger.ready_count or books.failure, POLL_S)
            if books.failure is not None:
                raise books.failure
            plan = books.ledger.plan_next(self._options.records_max)
            if not self._knows_position:
                self._blind = plan
            return books.ledger.plan.as_offset()

    def run(self, start: Plan, plan: Plan) -> None:
        """A plan runs, after another one that is committed."""
        self._knows_position = True
        if plan == self._blind and start.deliveries:
            # Trigger.AvailableNow asks for a plan before it says where the query is.
            with self._books.changed:
                self._books.ledger.resume(start)
            self._finish()
        with self._books.changed:
            self._books.ledger.resume(plan)
        for path in self._applied:  # a later plan is in the checkpoint, with what these left
            if os.path.exists(path):
                os.unlink(path)
        self._applied = []

    def _has_joined(self) -> bool:
        return self._books.has_asked or self._books.failure is not None

    def stop(self) -> None:
        """End all members."""
        self._members.leave()

    def _finish(self) -> None:
        books = self._books
        with books.changed:
            if not books.ledger.is_running:
                return
            directory = self._options.verdicts
            verdicts, paths = read_verdicts(directory, self.topic_ids) if directory else ({}, [])
            for holder, due in books.ledger.finished(verdicts).items():
                assert isinstance(holder, Session)
                books.due.setdefault(holder, []).extend(due)
            self._applied = paths
            books.changed.notify_all()


def _arrow(topic: str, rows: Rows) -> pa.RecordBatch:
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("timestampType", pa.int32()),
            ("headers", pa.list_(header)),
            ("deliveryCount", pa.int32()),
        ]
    )
    records = rows.records
    columns = [
        [record.key for record in records],
        [record.value for record in records],
        [topic] * len(records),
        [rows.partition] * len(records),
        [record.offset for record in records],
        [record.timestamp * 1000 for record in records],
        rows.timestamp_types,
        [
            [{"key": name, "value": value} for name, value in record.headers]
            if record.headers
            else None
            for record in records
        ],
        rows.counts,
    ]
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_options(options: Mapping[str, str]) -> ShareOptions:
    """Check the options of a `DataStreamReader`. Raises OptionError."""
    given, kafka = sorted_options(options, _KNOWN, _SPARKS, ", ".join(_KNOWN))
    servers, group = (_needed(kafka.pop(name, ""), f"kafka.{name}") for name in (SERVERS, GROUP))
    _, access = read_security(servers, kafka)
    if kafka:
        raise OptionError(f"kafka.{next(iter(kafka))} is not supported by this source")
    subscribed = _needed(given.get("subscribe", "").replace(",", " "), "subscribe")
    loss = given.get("failOnDataLoss", "true").lower()
    if loss not in ("true", "false"):
        raise OptionError(f"failOnDataLoss is true or false, not {loss}")
    return ShareOptions(
        access=access,
        group=group,
        topics=tuple(sorted(set(subscribed.split()))),
        readers=_number(given, "readers", 4, 1, 200),
        records_max=_number(given, "maxRecordsPerBatch", 10_000, 1, 1_000_000),
        verdicts=given.get("verdicts"),
        fails_on_loss=loss == "true",
    )


def _needed(value: str, name: str) -> str:
    if not value.strip():
        raise OptionError(f"option {name} is missing")
    return value.strip()


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, str(default))
    value = int(text) if text.strip().isdecimal() else None
    if value is None or not least <= value <= most:
        raise OptionError(f"{name} is a number from {least} to {most}, not {text}")
    return value
