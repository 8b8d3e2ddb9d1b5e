"""A producer: batches in order to each of its partitions, sent again until they are answered.

As real clients do, it keeps a bounded number of batches of a partition in flight, begins again
with the oldest that failed, and gives up after a time; an idempotent one then asks for a new
producer id, since its sequence would have a gap.
"""

import asyncio
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from barnabas.protocol.records.batch import Codec, add_to_sequence
from barnabas.protocol.records.records import Record, encode_batch
from sim.clients import REQUEST_TIMEOUT_MS, Client
from sim.sim_history import Outcome, Send

NOTHING_HAPPENED = {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}
"""Answers that say for certain that this attempt appended nothing."""
SEQUENCE_IS_BROKEN = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}
RETRIABLE = {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
}


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """The behaviour of a producer."""

    acks: int = -1
    is_idempotent: bool = True
    in_flight_max: int = 5
    delivery_timeout_s: float = 60.0
    pause_s: tuple[float, float] = (0.0, 0.2)
    batch_records_max: int = 4
    value_padding_max: int = 200
    is_durable: bool = True
    """True if its acknowledged records must survive the faults of this run."""


@dataclass(slots=True)
class Batch:
    """A batch under way."""

    send: Send
    records: list[Record]
    sequence: int
    producer_id: int
    producer_epoch: int
    codec: Codec


class Producer:
    """One producer; a lane for each partition, each in order."""

    def __init__(
        self, client: Client, partitions: list[TopicPartition], options: ProducerOptions
    ) -> None:
        self._client = client
        self._options = options
        self._lanes = [Lane(client, partition, options) for partition in partitions]

    async def run(self) -> None:
        """Produce until the client is stopping and all that was sent has an outcome."""
        await asyncio.gather(*(lane.run() for lane in self._lanes))


class Lane:
    """Sends the batches of one producer to one partition."""

    def __init__(
        self, client: Client, topic_partition: TopicPartition, options: ProducerOptions
    ) -> None:
        self._client = client
        self._topic_partition = topic_partition
        self._options = options
        self._number = 0
        self._record_number = 0
        self._sequence = 0
        self._producer_id = -1
        self._producer_epoch = -1
        self._waiting: list[Batch] = []

    async def run(self) -> None:
        client = self._client
        while not client.is_stopping:
            await client.pause(*self._options.pause_s)
            if not await self._have_producer_id():
                continue
            for _ in range(client.random.randint(1, self._options.in_flight_max)):
                self._waiting.append(self._make_batch())
            while self._waiting:
                await self._send_waiting()

    async def _have_producer_id(self) -> bool:
        """Return whether batches may be sent; an idempotent producer needs an id first."""
        if not self._options.is_idempotent or self._producer_id >= 0:
            return True
        try:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = await self._client.ask_any(request)
        except OSError:
            await self._client.back_off()
            return False
        if response.error_code:
            await self._client.back_off()
            return False
        self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
        self._sequence = 0
        return True

    def _make_batch(self) -> Batch:
        client, options = self._client, self._options
        now_ms = client.clock.now_ms()
        values = []
        records = []
        for _ in range(client.random.randint(1, options.batch_records_max)):
            self._record_number += 1
            value = f"{client.name}/{self._topic_partition.partition}/{self._record_number}"
            padding = "." * client.random.randint(0, options.value_padding_max)
            values.append(value)
            records.append(Record(timestamp=now_ms, value=f"{value} {padding}".encode()))
        self._number += 1
        send = Send(
            producer=client.name,
            topic_partition=self._topic_partition,
            values=values,
            number=self._number,
            acks=options.acks,
            is_idempotent=options.is_idempotent,
            is_durable=options.is_durable,
            invoked_s=client.loop.time(),
        )
        client.history.sends.append(send)
        codec = client.random.choice((Codec.NONE, Codec.NONE, Codec.LZ4))
        batch = Batch(send, records, self._sequence, self._producer_id, self._producer_epoch, codec)
        self._sequence = add_to_sequence(self._sequence, len(records))
        return batch

    async def _send_waiting(self) -> None:
        """Send every batch that waits, in order, and keep those that must be sent again."""
        client = self._client
        await client.refresh([self._topic_partition.topic])
        peer = client.leader(self._topic_partition)
        topic_id = client.topic_ids.get(self._topic_partition.topic)
        if peer is None or topic_id is None:
            client.mistrust_metadata()
            self._give_up_old()
            await client.back_off()
            return
        attempts = []
        for batch in self._waiting:
            batch.send.attempts += 1
            attempts.append(asyncio.ensure_future(peer.send(self._request(batch))))
            # Each is sent before the next, in any state of the connection.
            await asyncio.sleep(0)
        results = await asyncio.gather(*attempts, return_exceptions=True)
        again: list[Batch] = []
        is_broken = False
        for batch, result in zip(self._waiting, results, strict=True):
            error = self._outcome(batch, result)
            if error is ErrorCode.NONE:
                continue
            if error in SEQUENCE_IS_BROKEN and not again:
                is_broken = True
                self._finish(batch)
            elif error is None or error in RETRIABLE or again:
                again.append(batch)
            else:
                self._unexpected(batch, error)
                is_broken = True
        self._waiting = again
        if is_broken:
            self._begin_anew()
        if self._waiting:
            client.mistrust_metadata()
            self._give_up_old()
            await client.back_off()

    def _request(self, batch: Batch) -> ProduceRequest:
        topic = self._topic_partition.topic
        records = encode_batch(
            batch.records,
            codec=batch.codec,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.sequence if batch.producer_id >= 0 else -1,
        )
        return ProduceRequest(
            acks=self._options.acks,
            timeout_ms=REQUEST_TIMEOUT_MS // 2,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    topic_id=self._client.topic_ids[topic],
                    partition_data=[
                        PartitionProduceData(index=self._topic_partition.partition, records=records)
                    ],
                )
            ],
        )

    def _outcome(self, batch: Batch, result: object) -> ErrorCode | None:
        """What an attempt came to; None for a connection that failed."""
        send = batch.send
        if isinstance(result, ConnectionRefusedError):
            return None
        if isinstance(result, OSError):
            send.may_have_happened = True
            return None
        if isinstance(result, BaseException):
            raise result
        answer = result.responses[0].partition_responses[0]  # type: ignore[attr-defined]
        error = ErrorCode.of(answer.error_code)
        if error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            error = ErrorCode.NONE  # it is there, and nobody knows any more at which offset
        if error is ErrorCode.NONE:
            send.outcome = Outcome.OK
            send.base_offset = answer.base_offset
            send.completed_s = self._client.loop.time()
        elif error not in NOTHING_HAPPENED:
            send.may_have_happened = True
        return error

    def _unexpected(self, batch: Batch, error: ErrorCode) -> None:
        self._client.history.saw(
            "unexpected-error",
            f"{self._topic_partition}: {self._client.name} was answered {error.name}",
        )
        self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        """Give a batch up."""
        send = batch.send
        send.outcome = Outcome.UNKNOWN if send.may_have_happened else Outcome.FAILED
        send.completed_s = self._client.loop.time()

    def _give_up_old(self) -> None:
        """Give up what took longer than the delivery may, and what came behind it."""
        oldest_s = self._client.loop.time() - self._options.delivery_timeout_s
        if any(batch.send.invoked_s < oldest_s for batch in self._waiting):
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Give up all that waits; an idempotent producer takes a new id."""
        for batch in self._waiting:
            self._finish(batch)
        self._waiting = []
        self._producer_id = -1
