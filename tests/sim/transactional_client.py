"""A transactional client: its requests to the coordinator and to partitions, under faults.

Everything that can be retried is, within limits; if the client cannot continue, it raises
LostError, and begins again with InitProducerId. That would also hide faults of the brokers
themselves: so an error that no injected fault excuses is a violation (refused-transaction).
"""

from collections import Counter
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.node.net.client import Peer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import FindCoordinatorRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from barnabas.protocol.records.records import Record, encode_batch
from sim.clients import Client

TIMEOUT_MS = 4_000
END_WITHIN_S = 60.0
TRANSACTION_KEY = 1
LOST = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}
"""The producer must begin again; all else may be tried again."""
EXCUSED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
"""Another client took the transactional id, or the transaction lasted too long. A client that sends
its requests in order never gets the other errors, despite faults of nodes and networks. Nothing
excuses these two for an empty transaction of the only client with its transactional id."""


class LostError(Exception):
    """The transaction cannot be gone on with."""


class TransactionalClient:
    """One transactional id's producer. With version 2 partitions are added by writing to them."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.has_version_2 = client.random.random() < 0.6
        self.producer = (-1, -1)
        """Id and epoch."""
        self.is_alone = False
        """True if no other client takes the transactional id."""
        self._is_empty = True
        """True if the transaction has no records yet."""
        self._sequences: Counter[TopicPartition] = Counter()
        self._added: set[TopicPartition | str] = set()
        """Partitions, and groups, that the coordinator knows to be part of the transaction."""
        self._coordinator: Peer | None = None

    @property
    def is_initialized(self) -> bool:
        return self.producer[0] >= 0

    def lost(self, error: ErrorCode, request: object) -> LostError:
        """Return the error to raise for an answer in LOST; record one that is not excused."""
        if error not in EXCUSED or (self.is_alone and self._is_empty):
            self.client.history.saw(
                "refused-transaction",
                f"{self.client.name} as {self.transactional_id} {self.producer}: "
                f"{type(request).__name__} was answered {error.name}",
            )
        return LostError(error.name)

    def abandon(self) -> None:
        """Go on with InitProducerId."""
        self.producer = (-1, -1)

    async def initialize(self) -> None:
        """Become the producer, and fence the previous one. Raises LostError."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        response = await self._ask_coordinator(request)
        self.producer = (response.producer_id, response.producer_epoch)
        self._sequences.clear()
        self._added.clear()
        self._is_empty = True

    async def write(self, partition: TopicPartition, values: list[str]) -> None:
        """Write a batch as part of the transaction. Raises LostError."""
        self._is_empty = False
        if not self.has_version_2 and partition not in self._added:
            await self._add(partition)
        now_ms = self.client.clock.now_ms()
        batch = encode_batch(
            [Record(timestamp=now_ms, value=value.encode()) for value in values],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=2_000,
            topic_data=[
                TopicProduceData(
                    name=partition.topic,
                    partition_data=[PartitionProduceData(index=partition.partition, records=batch)],
                )
            ],
        )
        await self._produce(partition, request)
        self._sequences[partition] += len(values)

    async def _produce(self, partition: TopicPartition, request: ProduceRequest) -> None:
        client = self.client
        deadline_s = client.loop.time() + END_WITHIN_S
        while client.loop.time() < deadline_s:
            await client.refresh([partition.topic])
            peer = client.leader(partition)
            if peer is not None:
                try:
                    version = 12 if self.has_version_2 else 11
                    response = await peer.send(request, version=version)
                except OSError:
                    pass
                else:
                    answer = response.responses[0].partition_responses[0]
                    error = ErrorCode.of(answer.error_code)
                    if error in LOST:
                        raise self.lost(error, request)
                    if not error:
                        return
            client.mistrust_metadata()
            await client.back_off()
        raise LostError("no answer")

    async def _add(self, partition: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])
            ],
        )
        await self._ask_coordinator(request, version=3)
        self._added.add(partition)

    async def add_group(self, group_id: str) -> None:
        """Let the coordinator know that a group's offsets are to come. Raises LostError."""
        if self.has_version_2 or group_id in self._added:
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            group_id=group_id,
        )
        await self._ask_coordinator(request, version=3)
        self._added.add(group_id)

    async def end(self, *, is_commit: bool) -> None:
        """Commit or abort. Raises LostError: then nobody knows, unless it was an abort."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=is_commit,
        )
        response = await self._ask_coordinator(request, version=5 if self.has_version_2 else 4)
        self._added.clear()
        self._is_empty = True
        if self.has_version_2:
            self.producer = (response.producer_id, response.producer_epoch)
            self._sequences.clear()

    async def _ask_coordinator(self, request: Any, version: int | None = None) -> Any:
        """The answer without an error. Raises LostError."""
        client = self.client
        deadline_s = client.loop.time() + END_WITHIN_S
        while client.loop.time() < deadline_s:
            try:
                if self._coordinator is None:
                    self._coordinator = await self._find()
                if self._coordinator is not None:
                    response = await self._coordinator.send(request, version=version)
                    error = _error_of(response)
                    if not error:
                        return response
                    if error in LOST:
                        raise self.lost(error, request)
                    if error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                        self._coordinator = None
            except OSError:
                self._coordinator = None
            await client.back_off()
        raise LostError("no coordinator")

    async def _find(self) -> Peer | None:
        found = await find_coordinator(self.client, TRANSACTION_KEY, self.transactional_id)
        return None if found is None else found[1]


async def find_coordinator(client: Client, key_type: int, key: str) -> tuple[int, Peer] | None:
    """The node that coordinates a transactional id or a group. Raises OSError."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    (found,) = (await client.ask_any(request)).coordinators
    if found.error_code:
        return None
    client.mistrust_metadata()
    await client.refresh(list(client.topic_ids) or ["none"])
    peer = client.broker(found.node_id)
    return None if peer is None else (found.node_id, peer)


def _error_of(response: Any) -> ErrorCode:
    if hasattr(response, "results_by_topic_v3_and_below"):
        (topic,) = response.results_by_topic_v3_and_below
        return ErrorCode.of(topic.results_by_partition[0].partition_error_code)
    return ErrorCode.of(response.error_code)
