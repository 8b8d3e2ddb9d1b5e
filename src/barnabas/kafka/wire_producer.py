"""A producer over our own connections, for records that librdkafka's cannot write.

librdkafka treats the timestamp 0 as none, and writes the time of sending instead. This producer
keeps it. It has the methods of confluent-kafka's Producer that our writers call, and the same
settings: idempotence, transactions, compression, partitioner, TLS and logins. It also takes
columns of many records, which cost it a fraction of what single ones cost librdkafka's.

A call sends queued records and waits, one batch of a partition at a time: slower than librdkafka,
but always in order. Transactions follow the protocol before KIP-890, in which the epoch stays
when one ends. Source: Kafka's Sender, TransactionManager.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.errors import ConfigError
from barnabas.kafka.bearer_login import client_access
from barnabas.kafka.partitioners import JAVA_PARTITIONER, Partitioner
from barnabas.kafka.setting_names import SECURITY_PREFIXES, is_true
from barnabas.kafka.transactions import (
    ProducerIdentity,
    TransactionCalls,
    kafka_error,
)
from barnabas.kafka.wire import (
    AccessError,
    BrokenOffError,
    Brokers,
    Connection,
    Leaders,
    TryAgainError,
    WireError,
)
from barnabas.kafka.wire_batches import (
    Batch,
    ColumnBatch,
    Columns,
    OnDelivery,
    Queued,
    QueuedColumns,
    items_of,
    why_broken_off,
)
from barnabas.protocol.apis import PRODUCE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record

QUEUE_RECORDS_MAX: Final = 1_000
QUEUE_SIZE_BYTES_MAX: Final = 1_000_000
"""The size of the queue; at this size `produce` raises BufferError, and `poll` makes room."""
METADATA_AGE_SECONDS_MAX: Final = 300.0
"""So long a topic's partitions are taken for those that it has; librdkafka's own time, too."""
REQUEST_SIZE_BYTES_MAX: Final = 16_000_000
"""Batches of further partitions go into a next request: a node refuses one of 100 MB, Kafka's
default of `socket.request.max.bytes`. Larger batches are split; a single record may be larger."""
LARGE_SIZE_BYTES: Final = 1_000_000
BREAKS_MIN: Final = 5
BREAKS_SECONDS_MIN: Final = 10.0
"""A larger request at which the leader closes the connection so often, and so long, is given up:
nodes do so if it exceeds `socket.request.max.bytes`. Java's producer refuses such records itself,
by `max.request.size`."""
_PRODUCE_VERSION_MAX: Final = 11
"""From 12 on a produce request also adds its partitions to the transaction (KIP-890)."""
_REQUEST_TIMEOUT_MS: Final = 25_000
_DELIVERY_TIMEOUT_MS: Final = 300_000
_BACKOFF_FIRST_MS: Final = 20
_BACKOFF_MAX_MS: Final = 1_000
_SERVED: Final = frozenset(
    {
        *("bootstrap.servers", "client.id", "enable.idempotence", "acks", "partitioner"),
        *("compression.type", "compression.level", "delivery.timeout.ms", "linger.ms"),
        *("transactional.id", "transaction.timeout.ms"),
        *("log_level", "on_delivery", "delivery.report.only.error"),
        # These limit or delay things that this producer does not do.
        *("enable.sparse.connections", "queue.buffering.max.messages"),
    }
)
"""Any other setting, except those of TLS and logins, needs librdkafka's producer."""
_STORED: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_CREATE_TIME: Final = 1

Place = tuple[str, int]


def serves(settings: Mapping[str, Any]) -> bool:
    """Return whether a WireProducer does all that librdkafka's settings ask for."""
    codec = str(settings.get("compression.type", "none")).upper()
    if (
        settings.get("partitioner") != JAVA_PARTITIONER["partitioner"]
        or codec not in Codec.__members__
    ):
        return False
    if not all(name in _SERVED or name.startswith(SECURITY_PREFIXES) for name in settings):
        return False
    try:
        client_access(settings)
    except ConfigError:  # a login that it does not have
        return False
    return True


class WireProducer:
    """Writes records with their own timestamps, even 0. Belongs to one thread."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings` are librdkafka's. Raises KafkaException for a login that is not supported."""
        try:
            self._access = client_access(settings)
        except ConfigError as error:
            reason = f"records with the timestamp 0 cannot be written: {error}"
            raise KafkaException(KafkaError(KafkaError._AUTHENTICATION, reason)) from error
        self._brokers = Brokers(self._access)
        self._leaders = Leaders(self._brokers)
        self._leaders_expire = 0.0
        self._partitioner = Partitioner(str(settings.get("partitioner", "consistent_random")))
        name = settings.get("transactional.id")
        self._transactional_id: str | None = None if name is None else str(name)
        is_idempotent = is_true(settings.get("enable.idempotence", False)) or name is not None
        self._calls = TransactionCalls(
            self._access,
            self._transactional_id,
            int(settings.get("transaction.timeout.ms", 60_000)),
        )
        acks = settings.get("acks", settings.get("request.required.acks", "all"))
        self._acks = -1 if is_idempotent or str(acks) in ("all", "-1") else 1
        self._codec = Codec[str(settings.get("compression.type", "none")).upper()]
        level = int(settings.get("compression.level", -1))
        self._level = None if level == -1 else level
        delivery = settings.get("delivery.timeout.ms", settings.get("message.timeout.ms"))
        delivery_ms = _DELIVERY_TIMEOUT_MS if delivery is None else int(delivery)
        self._delivery_seconds = delivery_ms / 1000 if delivery_ms else float("inf")
        self._on_delivery: OnDelivery | None = settings.get("on_delivery")
        self._only_errors = is_true(settings.get("delivery.report.only.error", False))
        self._is_idempotent = is_idempotent
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[Place, int] = {}
        self._pending: deque[Queued | QueuedColumns] = deque()
        self._batches: dict[Place, deque[Batch | ColumnBatch]] = {}
        self._size_bytes = 0
        self._count = 0
        self._failure: KafkaError | None = None
        """Why the open transaction cannot be committed."""
        self._backoff = ExponentialBackoff(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS, random.Random())

    def __del__(self) -> None:
        # As librdkafka's, one that nobody holds any more lets go of its connections.
        if hasattr(self, "_calls"):
            self._brokers.close()
            self._calls.close()

    def __len__(self) -> int:
        return self._count

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        on_delivery: OnDelivery | None = None,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, str | bytes | None]] | None = None,
    ) -> None:
        """Queue a record; without a timestamp it gets the time. Raises BufferError when full."""
        if self._count >= QUEUE_RECORDS_MAX or self._size_bytes >= QUEUE_SIZE_BYTES_MAX:
            raise BufferError("the queue is full")
        record = Record(
            timestamp=time.time_ns() // 1_000_000 if timestamp is None else timestamp,
            key=_bytes(key),
            value=_bytes(value),
            headers=[(name, _bytes(content)) for name, content in headers or ()],
        )
        expires = time.monotonic() + self._delivery_seconds
        queued = Queued(topic, partition, record, on_delivery, expires)
        self._pending.append(queued)
        self._count += 1
        self._size_bytes += queued.size_bytes

    def produce_columns(self, topic: str, columns: Columns) -> None:
        """Queue records, however many. Reports name their topic and partition alone."""
        expires = time.monotonic() + self._delivery_seconds
        self._pending.append(QueuedColumns(topic, columns, expires))
        self._count += len(columns)

    def poll(self, seconds: float = 0.0) -> int:
        """Send what is queued; what fails is tried again for so long. Returns how many are left."""
        return self.flush(seconds)

    def flush(self, seconds: float = -1) -> int:
        """Send what is queued, trying for so long (-1: for ever). Returns how many are left."""
        until = time.monotonic() + seconds if seconds >= 0 else float("inf")
        failures = 0
        while self._count:
            try:
                self._round()
                failures = 0
                continue
            except AccessError as error:
                self._fail_all(KafkaError(KafkaError._AUTHENTICATION, str(error)))
            except KafkaException as error:  # no identity
                self._fail_all(error.args[0])
            except (WireError, TryAgainError):
                self._brokers.close()
                self._leaders.forget()
            self._expire()
            pause = self._backoff.after(failures) / 1000
            failures += 1
            if not self._count or time.monotonic() + pause > until:
                break
            time.sleep(pause)
        return self._count

    def purge(self) -> None:
        """Give up what is queued, and the connections. An open transaction stays open."""
        self._pending.clear()
        self._batches.clear()
        self._count = self._size_bytes = 0
        self._brokers.close()
        self._calls.close()

    def init_transactions(self, seconds: float) -> None:
        """Take the transactional id; ends what is open under it. Raises KafkaException."""
        self._identity = self._calls.identify(seconds)
        self._sequences.clear()
        self._failure = None

    def begin_transaction(self) -> None:
        """Begin: what is produced from now on belongs to a transaction."""
        assert self._identity is not None

    def send_offsets_to_transaction(
        self, places: Sequence[TopicPartition], group: str, seconds: float
    ) -> None:
        """Have the transaction commit offsets of a group. Raises KafkaException."""
        assert self._identity is not None
        self._calls.add_offsets(self._identity, places, group, seconds)

    def commit_transaction(self, seconds: float) -> None:
        """Send what is queued, and commit. Raises KafkaException."""
        assert self._identity is not None
        if self.flush(seconds):
            reason = "not all records of the transaction are acknowledged yet"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason, retriable=True))
        if self._failure is not None:
            code, reason = self._failure.code(), self._failure.str()
            raise KafkaException(KafkaError(code, reason, txn_requires_abort=True))
        self._calls.commit(self._identity, seconds)

    def abort_transaction(self, seconds: float) -> None:
        """Take back what the transaction holds. Raises KafkaException."""
        self._pending.clear()
        self._batches.clear()
        self._count = self._size_bytes = 0
        # To take the id again ends what is open, and what is still on its way is fenced.
        self.init_transactions(seconds)

    def _round(self) -> None:
        """Send the first batch of each partition.

        Raises WireError, TryAgainError, AccessError, KafkaException.
        """
        if self._is_idempotent and self._identity is None:
            self._identity = self._calls.identify(_REQUEST_TIMEOUT_MS / 1000)
            self._sequences.clear()
        self._place()
        if self._transactional_id is not None and self._batches:
            assert self._identity is not None
            self._calls.add_partitions(self._identity, self._batches)
        by_leader: dict[int, list[Place]] = {}
        for place in self._batches:
            by_leader.setdefault(self._leaders.of(place), []).append(place)
        problems = 0
        # Batches at which the leader closes the connection come last: others are sent before.
        for leader, places in sorted(by_leader.items(), key=lambda item: self._breaks(item[1])):
            for batches in self._requests(sorted(places, key=lambda place: self._breaks([place]))):
                connection = self._leaders.connection(leader)
                try:
                    problems += self._send(connection, batches)
                except BrokenOffError:
                    self._broken_off(batches)
                    raise
        if problems:
            raise TryAgainError

    def _breaks(self, places: Iterable[Place]) -> int:
        return max(self._batches[place][0].breaks.count for place in places)

    def _requests(self, places: Sequence[Place]) -> Iterator[dict[Place, bytearray]]:
        """The first batches of partitions, as many as may be in a request at a time."""
        batches: dict[Place, bytearray] = {}
        size_bytes = 0
        for place in places:
            queue = self._batches[place]
            records = self._encoded(place, queue[0])
            while len(records) > REQUEST_SIZE_BYTES_MAX and len(queue[0]) > 1:
                if queue[0].was_sent:  # the numbers of its records may be known to the leader
                    break
                self._halve(queue)
                records = self._encoded(place, queue[0])
            is_alone = queue[0].breaks.count > 0
            if batches and (is_alone or size_bytes + len(records) > REQUEST_SIZE_BYTES_MAX):
                yield batches
                batches, size_bytes = {}, 0
            queue[0].was_sent = True
            batches[place] = records
            size_bytes += len(records)
        yield batches

    @staticmethod
    def _halve(queue: deque[Batch | ColumnBatch]) -> None:
        first, second = queue[0].halves()
        queue[0] = first
        queue.insert(1, second)

    def _broken_off(self, batches: Mapping[Place, bytearray]) -> None:
        """The leader closed the connection at a request: give up a large one that it never reads.

        With several batches any of them may be the cause: from now on each goes alone.
        """
        now = time.monotonic()
        for place, records in batches.items():
            batch = self._batches[place][0]
            breaks = batch.breaks
            if breaks.count == 0:
                breaks.since = now
            breaks.count, breaks.size_bytes = breaks.count + 1, len(records)
            is_lasting = breaks.count >= BREAKS_MIN and now - breaks.since >= BREAKS_SECONDS_MIN
            if len(batches) == 1 and is_lasting and len(records) > LARGE_SIZE_BYTES:
                error = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, why_broken_off(batch))
                self._give_up(place, error)

    def _give_up(self, place: Place, error: KafkaError) -> None:
        """Fail the first batch of a partition."""
        queue = self._batches[place]
        batch = queue.popleft()
        if batch.was_sent and self._transactional_id is None:
            # It may be stored all the same: what follows it takes numbers of a new id.
            self._identity = None
        self._fail(items_of(batch), error, place[1])
        if not queue:
            del self._batches[place]

    def _send(self, connection: Connection, batches: Mapping[Place, bytearray]) -> int:
        """Send to one leader. Returns how many batches have to be sent again."""
        topics: dict[str, TopicProduceData] = {}
        for (topic, partition), records in batches.items():
            data = topics.setdefault(topic, TopicProduceData(name=topic, partition_data=[]))
            data.partition_data.append(PartitionProduceData(index=partition, records=records))
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=_REQUEST_TIMEOUT_MS,
            topic_data=list(topics.values()),
        )
        answer = connection.call(PRODUCE, request, _PRODUCE_VERSION_MAX)
        for place in batches:
            self._batches[place][0].breaks.count = 0
        again, unanswered = 0, set(batches)
        for topic_answer in answer.responses:
            for one in topic_answer.partition_responses:
                place = topic_answer.name, one.index
                if place not in unanswered:
                    raise WireError(f"a broker answers for {place[0]}-{place[1]} unasked")
                unanswered.remove(place)
                again += self._answered(place, ErrorCode.of(one.error_code), one.base_offset)
        return again + len(unanswered)

    def _encoded(self, place: Place, batch: Batch | ColumnBatch) -> bytearray:
        identity = self._identity
        more: dict[str, Any] = {}
        if identity is not None:
            more = {
                "producer_id": identity.producer_id,
                "producer_epoch": identity.producer_epoch,
                "base_sequence": self._sequences.get(place, 0),
            }
        is_transactional = self._transactional_id is not None
        return batch.encoded(self._codec, self._level, is_transactional=is_transactional, **more)

    def _answered(self, place: Place, error: ErrorCode, base_offset: int) -> bool:
        """Take what a broker says of a batch. Returns whether it has to be sent again."""
        queue = self._batches[place]
        batch = queue[0]
        if error in _STORED:
            queue.popleft()
            sequence = self._sequences.get(place, 0) + len(batch)
            self._sequences[place] = sequence & 0x7FFFFFFF
            if isinstance(batch, ColumnBatch):
                self._report_columns(batch.item, place[1], None, base_offset)
            else:
                for number, item in enumerate(batch.items):
                    offset = base_offset + number if base_offset >= 0 else -1
                    self._report(item, place[1], None, offset)
        elif error.retriable:
            return True
        elif error == ErrorCode.MESSAGE_TOO_LARGE and len(batch) > 1:
            self._halve(queue)
        else:
            queue.popleft()
            self._fail(items_of(batch), kafka_error(error), place[1])
        if not queue:
            del self._batches[place]
        return False

    def _place(self) -> None:
        """Give each record its partition. Raises WireError, TryAgainError, AccessError."""
        needed = {item.topic for item in self._pending} | {topic for topic, _ in self._batches}
        if not self._batches and time.monotonic() > self._leaders_expire:
            self._leaders.forget()  # topics may have more partitions now
            self._leaders_expire = time.monotonic() + METADATA_AGE_SECONDS_MAX
        for topic, error in self._leaders.learn(needed).items():
            refused = [item for item in self._pending if item.topic == topic]
            self._pending = deque(item for item in self._pending if item.topic != topic)
            self._fail(refused, kafka_error(error), -1)
        while self._pending:
            item = self._pending[0]
            count = self._leaders.partitions(item.topic)
            if isinstance(item, QueuedColumns):
                self._pending.popleft()
                for partition, columns in item.columns.spread(count):
                    queue = self._batches.setdefault((item.topic, partition), deque())
                    queue.append(ColumnBatch(replace(item, columns=columns)))
                continue
            partition = item.partition
            if partition < 0:
                partition = self._partitioner.of(item.record.key, count)
            self._pending.popleft()
            if partition >= count:
                reason = f"{item.topic} has {count} partitions, and none is {partition}"
                unknown = KafkaError(KafkaError._UNKNOWN_PARTITION, reason)
                self._fail([item], unknown, partition)
                continue
            queue = self._batches.setdefault((item.topic, partition), deque())
            last = queue[-1] if queue else None
            if isinstance(last, Batch) and not last.was_sent:
                last.items.append(item)
            else:
                queue.append(Batch([item]))

    def _expire(self) -> None:
        """Give up records whose time is over."""
        now = time.monotonic()
        late = KafkaError(KafkaError._MSG_TIMED_OUT, "no acknowledgement in time")
        while self._pending and self._pending[0].expires < now:
            self._fail([self._pending.popleft()], late, -1)
        for place, queue in list(self._batches.items()):
            while queue and queue[0].expires < now:
                why = late
                if queue[0].breaks.count:
                    reason = f"{late.str()}: {why_broken_off(queue[0])}"
                    why = KafkaError(KafkaError._MSG_TIMED_OUT, reason)
                self._give_up(place, why)

    def _fail_all(self, error: KafkaError) -> None:
        items = list(self._pending)
        self._pending.clear()
        self._fail(items, error, -1)
        for (_, partition), queue in self._batches.items():
            for batch in queue:
                self._fail(items_of(batch), error, partition)
        self._batches.clear()
        if self._transactional_id is None:
            self._identity = None

    def _fail(
        self, items: Sequence[Queued | QueuedColumns], error: KafkaError, partition: int
    ) -> None:
        if self._transactional_id is not None and self._failure is None:
            self._failure = error
        for item in items:
            if isinstance(item, QueuedColumns):
                self._report_columns(item, partition, error, -1)
            else:
                self._report(item, partition, error, -1)

    def _report_columns(
        self, item: QueuedColumns, partition: int, error: KafkaError | None, offset: int
    ) -> None:
        self._count -= len(item.columns)
        told = self._on_delivery
        if told is not None and not (error is None and self._only_errors):
            told(error, Message(topic=item.topic, partition=partition, offset=offset, error=error))

    def _report(self, item: Queued, partition: int, error: KafkaError | None, offset: int) -> None:
        self._count -= 1
        self._size_bytes -= item.size_bytes
        told = item.on_delivery or self._on_delivery
        if told is None or (error is None and self._only_errors):
            return
        record = item.record
        message = Message(
            topic=item.topic,
            partition=partition,
            offset=offset,
            key=record.key,
            value=record.value,
            headers=[*record.headers] or None,
            error=error,
            timestamp=(_CREATE_TIME, record.timestamp),
        )
        told(error, message)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
