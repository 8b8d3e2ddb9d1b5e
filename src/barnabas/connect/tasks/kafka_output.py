"""Records into Kafka's topics: at least once, and each micro-batch as one transaction."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.connect.record import RawRecord, offset_key, offset_value
from barnabas.connect.tasks.topics import TopicCreation
from barnabas.connect.tasks.transport import BatchAbortedError, Offsets
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.kafka.wire_producer import WireProducer
from barnabas.schemas.data.errors import ConnectError, RetriableError
from barnabas.spark.datasource.committer import sink_name

CALL_TIMEOUT_SECONDS: Final = 60.0
STOP_GRACE_SECONDS: Final = 5.0
"""How long a task that was stopped still waits for acknowledgements (Kafka's
task.shutdown.graceful.timeout.ms)."""
_POLL_SECONDS: Final = 0.1
_POLL_EVERY: Final = 500
_WITH_ZEROS_MAX: Final = 1_000
_WITH_ZEROS: Final[OrderedDict[str, None]] = OrderedDict()
"""Transactional ids of this process whose records have had the timestamp 0; the newest last."""


class _Told:
    """The callback of a producer.

    It has its own object: a producer that what holds it is called by would last, with its threads
    and connections, until the garbage collector comes by.
    """

    def __init__(self) -> None:
        self.failed: list[tuple[RawRecord, Exception]] = []
        self.fatal: KafkaError | None = None

    def on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.fatal = error

    def on_receipt(
        self, on_written: Callable[[int], None], error: KafkaError | None, message: Message
    ) -> None:
        if error is None:
            on_written(message.offset() or 0)
        else:
            self.on_delivery(error, message)

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None or error.code() == KafkaError._PURGE_QUEUE:
            return
        record = RawRecord(
            topic=message.topic() or "",
            partition=message.partition(),
            key=message.key(),
            value=message.value(),
        )
        self.failed.append((record, KafkaException(error)))


class KafkaOutput:
    """A producer, with the topics it needs."""

    def __init__(
        self, settings: Mapping[str, Any], topics: TopicCreation, *, has_receipts: bool = False
    ) -> None:
        self._topics = topics
        self._told = _Told()
        self._since_poll = 0
        self._stopping = Event()
        self._settings = {
            **settings,
            "delivery.report.only.error": not has_receipts,
            "on_delivery": self._told.on_delivery,
            "error_cb": self._told.on_error,
        }
        self.producer = self._made()

    def _made(self) -> Any:
        """Return a producer with confluent-kafka's methods."""
        return OrderedProducer(self._settings)

    def heed(self, stopping: Event) -> None:
        """Do not wait for room for long once the task is stopped."""
        self._stopping = stopping

    def send(self, record: RawRecord, on_written: Callable[[int], None] | None = None) -> None:
        """Queue a record."""
        self._topics.ensure(record.topic)
        self._since_poll += 1
        if self._since_poll >= _POLL_EVERY:
            self._since_poll = 0
            self.producer.poll(0)
        more: dict[str, Any] = {}
        if record.partition is not None:
            more["partition"] = record.partition
        if record.headers:
            more["headers"] = list(record.headers)
        if on_written is not None:
            more["on_delivery"] = partial(self._told.on_receipt, on_written)
        if record.timestamp_ms is not None:
            more["timestamp"] = record.timestamp_ms
        deadline = None
        while True:
            try:
                self.producer.produce(record.topic, record.value, record.key, **more)
                return
            except BufferError:
                self.producer.poll(_POLL_SECONDS)
                self._check()
                deadline = self._grace(deadline, self._stopping, "there was room for a record")
            except KafkaException as error:
                if error.args[0].fatal():
                    raise _error("cannot write", error) from error
                self._told.failed.append((record, error))
                return

    def send_values(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int | None
    ) -> None:
        """Queue records that have nothing else: faster than one by one."""
        self._topics.ensure(topic)
        self.producer.poll(0)
        produce = self._fast_produce(timestamp_ms)
        for value in values:
            try:
                produce(topic, value)
            except (BufferError, KafkaException):  # `send` waits, or notes what is wrong
                self.send(RawRecord(topic=topic, value=value, timestamp_ms=timestamp_ms))

    def _fast_produce(self, timestamp_ms: int | None) -> Callable[[str, bytes | None], None]:
        """Return what queues a record."""
        producer = self.producer
        if timestamp_ms != 0 and isinstance(producer, OrderedProducer):
            producer = producer.unordered() or producer
        produce: Callable[..., None] = producer.produce
        return produce if timestamp_ms is None else partial(produce, timestamp=timestamp_ms)

    def flush(self, stopping: Event) -> Sequence[tuple[RawRecord, Exception]]:
        """Wait until all are written; returns those that cannot be."""
        deadline = None
        while self.producer.flush(_POLL_SECONDS * 5):
            self._check()
            deadline = self._grace(deadline, stopping, "all records were acknowledged")
        self._check()
        failed, self._told.failed = self._told.failed, []
        return failed

    @staticmethod
    def _grace(deadline: float | None, stopping: Event, what: str) -> float | None:
        """Return until when a stopped task waits. Raises ConnectError once that is over."""
        if deadline is None:
            return time.monotonic() + STOP_GRACE_SECONDS if stopping.is_set() else None
        if time.monotonic() > deadline:
            raise ConnectError(f"stopped before {what}")
        return deadline

    def close(self) -> None:
        """Give up what is not written."""
        self.producer.purge()
        self.producer.flush(0)

    def _check(self) -> None:
        if self._told.fatal is not None:
            raise ConnectError(f"the producer failed: {self._told.fatal.str()}")


class KafkaTransactions(KafkaOutput):
    """A transactional producer under the id that Kafka's own worker would use (KIP-618)."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: TopicCreation,
        offsets_topic: str,
        *,
        has_receipts: bool = False,
    ) -> None:
        self._id = str(settings["transactional.id"])
        super().__init__(settings, topics, has_receipts=has_receipts)
        self._offsets_topic = offsets_topic
        self._is_open = False
        self._has_records = False
        self._take_id()

    def _made(self) -> Any:
        return (WireProducer if self._id in _WITH_ZEROS else Producer)(self._settings)

    def _take_id(self) -> None:
        try:
            self.producer.init_transactions(CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _error("cannot take the transactional id", error) from error

    def _keep_zeros(self) -> None:
        """From now on write with a producer that keeps the timestamp 0, which librdkafka does not.

        Raises BatchAbortedError where a part of the transaction is written already.
        """
        _WITH_ZEROS[self._id] = None
        if len(_WITH_ZEROS) > _WITH_ZEROS_MAX:
            _WITH_ZEROS.popitem(last=False)
        had_records = self._has_records
        self.abort()
        self.producer.purge()
        self.producer = self._made()
        self._take_id()
        if had_records:
            raise BatchAbortedError(
                "a transaction was aborted: a record with the timestamp 0 needs another producer, "
                "which writes the micro-batch again"
            )

    def send(self, record: RawRecord, on_written: Callable[[int], None] | None = None) -> None:
        """Queue a record. Raises BatchAbortedError, ConnectError."""
        if record.timestamp_ms == 0 and not isinstance(self.producer, WireProducer):
            self._keep_zeros()
        self._begin()
        self._has_records = True
        super().send(record, on_written)

    def send_values(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int | None
    ) -> None:
        """Queue records that have nothing else. Raises BatchAbortedError, ConnectError."""
        if timestamp_ms == 0 and not isinstance(self.producer, WireProducer):
            self._keep_zeros()
        self._begin()
        self._has_records = True
        super().send_values(topic, values, timestamp_ms)

    def commit(self, connector: str, offsets: Offsets) -> None:
        """Make what was sent visible, with offsets."""
        self._begin()
        for partition, offset in offsets:
            self._produce_offset(offset_value(offset), offset_key(connector, partition))
        deadline = None
        while True:
            try:
                self.producer.commit_transaction(CALL_TIMEOUT_SECONDS)
                self._is_open = self._has_records = False
                self._told.failed.clear()
                return
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    text = error.args[0].str()
                    self.abort()
                    raise BatchAbortedError(f"a transaction was aborted: {text}") from error
                if not error.args[0].retriable() or error.args[0].fatal():
                    raise _error("cannot commit a transaction", error) from error
                deadline = self._grace(deadline, self._stopping, "a transaction was committed")

    def _produce_offset(self, value: bytes | None, key: bytes) -> None:
        while True:
            try:
                self.producer.produce(self._offsets_topic, value, key)
                return
            except BufferError:
                self.producer.poll(_POLL_SECONDS)

    def abort(self) -> None:
        """Take back what was sent."""
        if not self._is_open:
            return
        self._is_open = self._has_records = False
        self._told.failed.clear()
        try:
            self.producer.abort_transaction(CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _error("cannot abort a transaction", error) from error
        self._told.failed.clear()

    def _begin(self) -> None:
        if not self._is_open:
            try:
                self.producer.begin_transaction()
            except KafkaException as error:
                raise _error("cannot begin a transaction", error) from error
            self._is_open = True


def _error(what: str, error: KafkaException) -> ConnectError:
    reason = error.args[0]
    if reason.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
        return ConnectError(f"{what}: another run of this task has taken over ({reason.str()})")
    text = f"{what}: {reason.str()}"
    return RetriableError(text) if reason.retriable() and not reason.fatal() else ConnectError(text)


# The transactional ids under which an exactly-once source's task writes and decides.
#
# A worker that takes them over fences the task: it fails at its next micro-batch.


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """Return the id of the local engine's transactions, as Kafka's worker names it."""
    return f"{group_id}-{connector}-{task}"


def decisions_name(task_id: str) -> str:
    """Return the name under which the engine on Spark decides for a task, by its id."""
    return f"connect.{task_id}"


def fenced_ids(group_id: str, connector: str, task: int) -> tuple[str, str]:
    """Return all ids to take over, of both engines."""
    own = transactional_id(group_id, connector, task)
    return own, f"{sink_name(decisions_name(own))}.decisions"
