"""A task of a sink: its rows become records of one transaction, which it leaves open.

The transactional ids belong to the process: no other process uses them, so only the driver ends
prepared transactions. Only a later batch reuses an id, when the driver has ended all transactions
of the earlier one. Brokers keep a transactional id for a week, so new ids for each task of each
batch would fill their memory.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import Access, CoordinatorError
from barnabas.kafka.wire_producer import WireProducer, serves
from barnabas.spark.datasource.options import SinkOptions
from barnabas.spark.datasource.protocol import Prepared

if TYPE_CHECKING:  # those who write single records do not wait for Arrow
    from pyarrow import RecordBatch

    from barnabas.spark.record_columns import ColumnsChecksum, RecordColumns

CALL_TIMEOUT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_POLL_EVERY: Final = 500
_CHECKSUM_MASK: Final = (1 << 63) - 1
_MORE: Final = frozenset({"headers", "partition", "timestamp"})
"""Columns that make a record more than a key and a value."""
_BY_RECORD: Final = frozenset({"headers", "partition"})
"""Columns that `columns_of` does not take."""
_SIZE_BYTES_MAX: Final = (1 << 31) - 1
"""Of rows that it takes: Arrow's arrays of bytes have no more."""


class WriteError(Exception):
    """The rows cannot be written, now or ever; the transaction is aborted."""


@dataclass(slots=True, frozen=True)
class TaskPlace:
    """The task and batch of a writer. `prefix` begins the transactional ids of the sink."""

    prefix: str
    batch: int
    task: int


class IdPool:
    """The transactional ids of this process, and the batch that last used each."""

    def __init__(self) -> None:
        self._pid = -1
        self._used: dict[str, list[tuple[str, int]]] = {}
        self._name = ""

    def take(self, prefix: str, batch: int, decided: int | None = None) -> str:
        """Return an id that belongs to no transaction of this batch, or a later one.

        Nor of the batch `decided`, which may be committed once more: that does not succeed where
        its id has a new transaction.
        """
        if self._pid != os.getpid():  # a fork uses other ids
            self._pid, self._used, self._name = os.getpid(), {}, uuid.uuid4().hex
        ids = self._used.setdefault(prefix, [])
        for place, (name, last_batch) in enumerate(ids):
            if last_batch < batch and last_batch != decided:
                ids[place] = (name, batch)
                return name
        name = f"{prefix}{self._name}.{len(ids)}"
        ids.append((name, batch))
        return name


POOL: Final = IdPool()
_AnyProducer = TypeVar("_AnyProducer", Producer, WireProducer)
_CONTROLS: dict[tuple[int, Access], TransactionControl] = {}


def write_rows(
    options: SinkOptions, place: TaskPlace, batches: Iterator[RecordBatch], pool: IdPool = POOL
) -> tuple[Prepared, ...]:
    """Write rows in a transaction and leave it open: none where there are no rows.

    A second one holds what librdkafka cannot write, and all behind it. Raises WriteError.
    """
    writer: Transaction | None = None
    try:
        for rows in batches:
            if rows.num_rows:
                if writer is None:
                    writer = Transaction(options, lambda: pool.take(place.prefix, place.batch))
                writer.send(rows)
        if writer is None:
            return ()
        return writer.prepare(place.task)
    except KafkaException as error:
        if writer is not None:
            writer.abort()
        raise WriteError(f"cannot write to the brokers: {error.args[0].str()}") from error
    except BaseException:
        if writer is not None:
            writer.abort()
        raise


class Transaction:
    """The transaction that a task writes and leaves open. Raises KafkaException, WriteError.

    If it begins with columns, it is one transaction of our own producer. Otherwise it begins with
    librdkafka's: columns, or a record with the timestamp 0, which librdkafka cannot write, then
    begin a second transaction, of our own producer, for all further records. The driver commits
    both or none.
    """

    def __init__(
        self,
        options: SinkOptions,
        take_id: Callable[[], str],
        *,
        has_receipts: bool = False,
    ) -> None:
        """`take_id` returns a transactional id that is free."""
        self._options = options
        self._take_id = take_id
        self._has_receipts = has_receipts
        self._errors: list[str] = []
        self._prepared: list[Prepared] = []
        self._records = 0
        self._checksum = 0
        self._in_columns: ColumnsChecksum | None = None
        self._id = ""
        self._producer: Producer | WireProducer | None = None
        self._takes_columns: bool | None = None

    @property
    def takes_columns(self) -> bool:
        """True if `send_columns` can be called: no setting needs librdkafka."""
        if self._takes_columns is None:
            self._takes_columns = serves(self._settings())
        return self._takes_columns

    def _settings(self) -> dict[str, Any]:
        return {
            **JAVA_PARTITIONER,
            **self._options.producer,
            "transactional.id": self._id,
            "delivery.report.only.error": not self._has_receipts,
            "on_delivery": self._delivered,
            "log_level": 2,
        }

    def _begun(self, maker: Callable[[dict[str, Any]], _AnyProducer]) -> _AnyProducer:
        self._id = self._take_id()
        self._records = self._checksum = 0
        self._in_columns = None
        producer = maker(self._settings())
        producer.init_transactions(CALL_TIMEOUT_SECONDS)
        producer.begin_transaction()
        return producer

    def _any(self) -> Producer | WireProducer:
        """The producer of records that either can write."""
        if self._producer is None:
            self._producer = self._begun(Producer)
        return self._producer

    def _own(self) -> WireProducer:
        """Our own producer, which writes all from now on."""
        if not isinstance(self._producer, WireProducer):
            if self._producer is not None:
                self._prepared.append(self._prepare_one(self._producer))
            self._producer = self._begun(WireProducer)
        return self._producer

    def send(self, rows: RecordBatch) -> None:
        """Queue the records of rows, waiting where the queue is full.

        Their checksum does not depend on their order, nor on when they are written.
        """
        has_zero = has_zero_timestamp(rows)
        topic = self._options.topic
        if topic is not None and are_columns(rows) and self.takes_columns:
            self._own()  # a new transaction counts from here
            columns, checksum = columns_of(rows)
            self._checksum = (self._checksum + checksum) & _CHECKSUM_MASK
            self._write(topic, columns)
            return
        producer = self._own() if has_zero else self._any()
        produce, checksum = producer.produce, self._checksum
        is_plain = topic is not None and _MORE.isdisjoint(rows.schema.names)
        for record in records_of(rows, topic):
            to, value, key, partition, timestamp_ms, headers = record
            while True:
                try:
                    if is_plain:  # what names of arguments cost is spared
                        produce(to, value, key)
                    else:
                        stamp: dict[str, Any] = (
                            {} if timestamp_ms is None else {"timestamp": timestamp_ms}
                        )
                        produce(to, value, key, partition, headers=headers, **stamp)
                    break
                except BufferError:
                    producer.poll(_POLL_SECONDS)
            if is_plain and key and value:
                checksum += crc32(value, crc32(key, len(key)))
            else:
                checksum += crc32(repr(record).encode())
        self._checksum = checksum & _CHECKSUM_MASK
        self._records += rows.num_rows
        producer.poll(0)
        self._check()

    def send_columns(self, topic: str, columns: RecordColumns) -> None:
        """Write one or more records, in the order that every run of the task repeats.

        Only where `takes_columns` is true.
        """
        from barnabas.spark.record_columns import ColumnsChecksum

        self._own()  # as in `send`
        if self._in_columns is None:
            self._in_columns = ColumnsChecksum()
        self._in_columns.add(columns)
        self._write(topic, columns)

    def _write(self, topic: str, columns: RecordColumns) -> None:
        producer = self._own()
        self._records += len(columns)
        producer.produce_columns(topic, columns)
        producer.flush(CALL_TIMEOUT_SECONDS)  # what is left is sent with more, or at the end
        self._check()

    def send_record(
        self, record: Outgoing, on_written: Callable[[int], None] | None = None
    ) -> None:
        """Queue one record, waiting where the queue is full.

        `on_written`, for transactions with receipts, is called with the record's offset.
        """
        topic, value, key, partition, timestamp_ms, headers = record
        producer = self._own() if timestamp_ms == 0 else self._any()
        more: dict[str, Any] = {} if timestamp_ms is None else {"timestamp": timestamp_ms}
        if on_written is not None:
            more["on_delivery"] = partial(self._receipt, on_written)
        while True:
            try:
                producer.produce(topic, value, key, partition, headers=headers, **more)
                break
            except BufferError:
                producer.poll(_POLL_SECONDS)
        self._checksum = (self._checksum + crc32(repr(record).encode())) & _CHECKSUM_MASK
        self._records += 1
        if self._records % _POLL_EVERY == 0:
            producer.poll(0)
            self._check()

    def prepare(self, task: int) -> tuple[Prepared, ...]:
        """Wait until all records are acknowledged, and return what the driver needs to commit.

        There was at least one.
        """
        assert self._producer is not None
        earlier = [replace(one, task=task) for one in self._prepared]
        return (*earlier, self._prepare_one(self._producer, task))

    def _prepare_one(self, producer: Producer | WireProducer, task: int = 0) -> Prepared:
        left = -1
        while left and not self._errors:
            # Each record is delivered, or fails at delivery.timeout.ms.
            left = producer.flush(CALL_TIMEOUT_SECONDS)
        self._check()
        seen = _control(self._options).describe(self._id)
        if seen is None or not seen.is_open:
            state = "unknown" if seen is None else seen.state
            raise WriteError(f"the transaction {self._id} is {state} before it was committed")
        checksum = self._checksum
        if self._in_columns is not None:
            checksum = (checksum + self._in_columns.value) & _CHECKSUM_MASK
        return Prepared(
            task, self._id, seen.producer_id, seen.producer_epoch, self._records, checksum
        )

    def abort(self) -> None:
        """End what is open, if the brokers answer; if not, the driver does it later."""
        try:
            for one in self._prepared:
                _control(self._options).abort(one.transactional_id)
            if self._producer is not None:
                self._producer.purge()
                self._producer.abort_transaction(CALL_TIMEOUT_SECONDS)
        except (KafkaException, CoordinatorError):
            return

    def _receipt(
        self, on_written: Callable[[int], None], error: KafkaError | None, message: Message
    ) -> None:
        if error is None:
            on_written(message.offset() or 0)
        else:
            self._delivered(error, message)

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._errors.append(error.str())

    def _check(self) -> None:
        if self._errors:
            raise WriteError(f"a record was not acknowledged: {self._errors[0]}")


def _control(options: SinkOptions) -> TransactionControl:
    """Return this process's connections for transactions, which outlive a task."""
    key = os.getpid(), options.access
    if key not in _CONTROLS:
        _CONTROLS[key] = TransactionControl(options.access)
    return _CONTROLS[key]


def close_connections() -> None:
    """Close what this process keeps open between tasks."""
    for control in _CONTROLS.values():
        control.close()
    _CONTROLS.clear()


Outgoing = tuple[str, bytes | None, bytes | None, int, int | None, list[Any] | None]
"""Topic, value, key, partition, milliseconds and headers, as for `Producer.produce`.

Without a timestamp, which is None, a record gets the time of writing.
"""
_BY_KEY: Final = -1
"""The partition of a record whose key decides."""


def has_zero_timestamp(rows: RecordBatch) -> bool:
    """Whether librdkafka cannot write them: it takes a timestamp of 0 for none. Raises WriteError.

    As Kafka's clients do, this refuses negative timestamps.
    """
    import pyarrow.compute as pc

    column = _milliseconds(_column(rows, "timestamp"))
    if column is None:
        return False
    earliest = pc.min(column).as_py()
    if earliest is None or earliest > 0:
        return False
    if earliest < 0:
        raise WriteError(f"a row has the timestamp {earliest}: the least is 0 (1970-01-01)")
    return True


def are_columns(rows: RecordBatch) -> bool:
    """Return whether `columns_of` takes rows."""
    return _BY_RECORD.isdisjoint(rows.schema.names) and rows.nbytes < _SIZE_BYTES_MAX


def columns_of(rows: RecordBatch) -> tuple[RecordColumns, int]:
    """Return the records of rows as columns, and a checksum.

    That does not depend on their order, nor on when they are written.
    """
    import pyarrow
    import pyarrow.compute as pc

    from barnabas.spark.record_columns import RecordColumns

    nothing = pyarrow.nulls(rows.num_rows, pyarrow.binary())
    key, value = _column(rows, "key"), _column(rows, "value")
    keys = nothing if key is None else key.cast(pyarrow.binary())
    values = nothing if value is None else value.cast(pyarrow.binary())
    given = _milliseconds(_column(rows, "timestamp"))
    stamps = pyarrow.nulls(rows.num_rows, pyarrow.int64()) if given is None else given
    now_ms = time.time_ns() // 1_000_000
    columns = RecordColumns.of(keys, values, stamps.fill_null(now_ms))
    # Seeds add what the bytes lack: lengths (null differs from empty) and the timestamp.
    seeds = stamps.fill_null(-1).to_numpy()
    for data in (keys, values):
        seeds = seeds * 31 + pc.binary_length(data).fill_null(-1).to_numpy()
    bytes_of = (data.fill_null(b"").to_pylist() for data in (keys, values))
    sums = (seeds & 0xFFFFFFFF).tolist()
    for data in bytes_of:
        sums = map(crc32, data, sums)
    return columns, sum(sums)


def records_of(rows: RecordBatch, topic: str | None) -> Iterator[Outgoing]:
    """Return the records of rows. `topic`, where given, wins over the column. Raises WriteError."""
    topics: Iterable[Any] = repeat(topic)
    if topic is None:
        topics = _column(rows, "topic").to_pylist()
        if None in topics:
            raise WriteError("a row has no topic: set the option topic, or the column")
    return zip(
        topics,
        _bytes(_column(rows, "value")),
        _bytes(_column(rows, "key")),
        _integers(_column(rows, "partition"), _BY_KEY),
        _timestamps(_milliseconds(_column(rows, "timestamp"))),
        _headers(_column(rows, "headers")),
        strict=False,  # what repeats has no end
    )


def _column(rows: RecordBatch, name: str) -> Any:
    at = rows.schema.get_field_index(name)
    return rows.column(at) if at >= 0 else None


def _bytes(column: Any) -> Iterable[bytes | None]:
    import pyarrow

    if column is None:
        return repeat(None)
    kind = pyarrow.large_binary() if pyarrow.types.is_large_string(column.type) else None
    return list(column.cast(kind or pyarrow.binary()).to_pylist())


def _integers(column: Any, default: int) -> Iterable[int]:
    if column is None:
        return repeat(default)
    return list(column.fill_null(default).to_pylist())


def _timestamps(column: Any) -> Iterable[int | None]:
    return repeat(None) if column is None else list(column.to_pylist())


def _milliseconds(column: Any) -> Any:
    import pyarrow

    if column is not None and pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False)
        return column.cast(pyarrow.int64())
    return column


def _headers(column: Any) -> Iterable[list[Any] | None]:
    if column is None:
        return repeat(None)
    return [
        None if headers is None else [(one["key"], one["value"]) for one in headers]
        for headers in column.to_pylist()
    ]
