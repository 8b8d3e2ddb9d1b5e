"""Errors of producers, transactions and groups on the wire, case by case.

Each case drives a fresh `Wire` into a situation and returns the error code that it meets. What
Apache Kafka 4.3.1 answers stands beside it in `test_refusals.py`.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, TypeVar

from barnabas.base.ids import Uuid
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import consumer_groups, groups, offsets, transactions
from barnabas.protocol.messages import produce as produce_messages
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.schema import Message
from support.node_process import wait_until
from support.raw_client import RawClient

M = TypeVar("M", bound=Message)
WAITABLE = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
}
UNVERIFIABLE = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS}
"""A leader that cannot ask the coordinator yet."""
METADATA_BYTES_MAX = 4096
"""The default of `offset.metadata.max.bytes`."""
SEQUENCE_MAX = 2**31 - 1


GROUP, TRANSACTION = 0, 1
"""Kinds of keys that FindCoordinator takes."""


class RoutedClient(RawClient):
    """Sends each request to its coordinator, and all others to the first node."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._others: dict[int, RawClient] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._first = -1  # not known yet
        self._first = self.node_id()

    def close(self) -> None:
        for client in (self, *self._others.values()):
            client.socket.close()

    def call(self, request: Message, response_class: type[M], version: int | None = None) -> M:
        kind, key = _coordinated(request)
        node = self._first if key is None else self._coordinator(kind, key)
        if node == self._first:
            return super().call(request, response_class, version)
        return self._others[node].call(request, response_class, version)

    def create_topic(self, topic: str, configs: dict[str, str] | None = None) -> None:
        """Create a topic that the first node leads, and that every node knows."""
        super().create_topic(topic, configs)
        for broker in self.call(MetadataRequest(topics=[]), MetadataResponse).brokers:
            with RawClient(f"{broker.host}:{broker.port}") as node:
                node.wait_for_topic(topic, ErrorCode.NONE)

    def _coordinator(self, kind: int, key: str) -> int:
        """The node that coordinates, once one does."""
        if (kind, key) not in self._coordinators:
            request = groups.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])

            def is_found() -> bool:
                (found,) = self.call(request, groups.FindCoordinatorResponse).coordinators
                if found.error_code != ErrorCode.NONE:
                    return False
                self._coordinators[kind, key] = found.node_id
                if found.node_id not in (self._first, *self._others):
                    self._others[found.node_id] = RawClient(f"{found.host}:{found.port}")
                return True

            wait_until(is_found, f"a coordinator of {key}")
        return self._coordinators[kind, key]


def _coordinated(request: Message) -> tuple[int, str | None]:
    """The kind and name of what a request is about, if a coordinator has it.

    None has an empty transactional id.
    """
    match request:
        case (
            transactions.TxnOffsetCommitRequest(group_id=key)
            | offsets.OffsetCommitRequest(group_id=key)
            | groups.JoinGroupRequest(group_id=key)
            | groups.SyncGroupRequest(group_id=key)
            | groups.HeartbeatRequest(group_id=key)
            | consumer_groups.ConsumerGroupHeartbeatRequest(group_id=key)
        ):
            return GROUP, key
        case (
            transactions.InitProducerIdRequest(transactional_id=key)
            | transactions.AddPartitionsToTxnRequest(v3_and_below_transactional_id=key)
            | transactions.AddOffsetsToTxnRequest(transactional_id=key)
            | transactions.EndTxnRequest(transactional_id=key)
            | transactions.DescribeTransactionsRequest(transactional_ids=[key])
        ):
            return TRANSACTION, key or None
    return GROUP, None


class Wire:
    """A topic that the first node leads, and names that nobody else has."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.raw = RoutedClient(bootstrap_servers)
        self.name = f"refused-{uuid.uuid4().hex[:10]}"
        self.topic = f"{self.name}-topic"
        self.group = f"{self.name}-group"
        self.raw.create_topic(self.topic)
        self.producer_id = -1
        self.epoch = -1

    def close(self) -> None:
        self.raw.close()

    # Producers

    def init(
        self,
        name: str | None = "",
        timeout_ms: int = 60_000,
        producer_id: int = -1,
        epoch: int = -1,
        version: int = 5,
    ) -> transactions.InitProducerIdResponse:
        """InitProducerId, again while the coordinator says to wait; "" stands for our own name."""
        request = transactions.InitProducerIdRequest(
            transactional_id=self.name if name == "" else name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        while True:
            answer = self.raw.call(request, transactions.InitProducerIdResponse, version)
            if answer.error_code not in WAITABLE:
                return answer

    def take(self, timeout_ms: int = 60_000) -> None:
        """Become the producer of our transactional id."""
        answer = self.init(timeout_ms=timeout_ms)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def take_idempotent(self) -> None:
        answer = self.init(None)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def produce(
        self,
        sequence: int,
        *,
        count: int = 1,
        epoch: int | None = None,
        producer_id: int | None = None,
        transactional: bool = False,
        version: int = 12,
        name: str | None = None,
        topic: str | None = None,
    ) -> int:
        records = [Record(timestamp=time.time_ns() // 1_000_000, value=b"v") for _ in range(count)]
        batch = encode_batch(
            records,
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        request = produce_messages.ProduceRequest(
            transactional_id=(name or self.name) if transactional else None,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                produce_messages.TopicProduceData(
                    name=topic or self.topic,
                    topic_id=self.raw.topic_id(topic or self.topic),
                    partition_data=[
                        produce_messages.PartitionProduceData(index=0, records=bytes(batch))
                    ],
                )
            ],
        )
        while True:
            response = self.raw.call(request, produce_messages.ProduceResponse, version)
            code = response.responses[0].partition_responses[0].error_code
            if code not in WAITABLE | UNVERIFIABLE:
                return code

    def _identity(self, **changes: Any) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        } | changes

    def add_partitions(self, topics: list[str] | None = None, **changes: Any) -> list[int]:
        """AddPartitionsToTxn as clients send it (version 3): the codes, topic by topic."""
        named = [
            transactions.AddPartitionsToTxnTopic(name=topic, partitions=[0])
            for topic in topics or [self.topic]
        ]
        request = transactions.AddPartitionsToTxnRequest(
            v3_and_below_topics=named,
            **{f"v3_and_below_{k}": v for k, v in self._identity(**changes).items()},
        )
        while True:
            answer = self.raw.call(request, transactions.AddPartitionsToTxnResponse, 3)
            found = {
                topic.name: topic.results_by_partition[0].partition_error_code
                for topic in answer.results_by_topic_v3_and_below
            }
            codes = [found[topic.name] for topic in named]
            if not WAITABLE.intersection(codes):
                return codes

    def add_offsets(self, group: str | None = None, version: int = 3, **changes: Any) -> int:
        request = transactions.AddOffsetsToTxnRequest(
            group_id=self.group if group is None else group, **self._identity(**changes)
        )
        while True:
            answer = self.raw.call(request, transactions.AddOffsetsToTxnResponse, version)
            if answer.error_code not in WAITABLE:
                return answer.error_code

    def end(self, *, committed: bool = True, version: int = 4, **changes: Any) -> int:
        request = transactions.EndTxnRequest(committed=committed, **self._identity(**changes))
        while True:
            answer = self.raw.call(request, transactions.EndTxnResponse, version)
            if answer.error_code not in WAITABLE:
                return answer.error_code

    def state(self) -> str:
        """Of our transactional id."""
        request = transactions.DescribeTransactionsRequest(transactional_ids=[self.name])
        answer = self.raw.call(request, transactions.DescribeTransactionsResponse)
        return answer.transaction_states[0].transaction_state

    def await_state(self, state: str) -> None:
        wait_until(lambda: self.state() == state, state)

    def time_out(self, version: int = 3) -> None:
        """Have a transaction under way until the coordinator ends it."""

        def is_begun() -> bool:
            """A slow machine may take longer than the time it has: then it begins again."""
            self.take(timeout_ms=100)
            if version == 3 and self.add_partitions() != [ErrorCode.NONE]:
                return False
            found = self.produce(0, transactional=True, version=11 if version == 3 else 12)
            return found == ErrorCode.NONE

        wait_until(is_begun, "a transaction with a record")
        # The coordinator looks every few seconds.
        wait_until(lambda: self.state() == "CompleteAbort", "the end of its time")

    # Groups

    def commit(
        self,
        member_id: str = "",
        generation: int = -1,
        *,
        group: str | None = None,
        topic: str | None = None,
        partition: int = 0,
        metadata: str | None = "",
        instance_id: str | None = None,
        version: int = 9,
    ) -> int:
        request = offsets.OffsetCommitRequest(
            group_id=self.group if group is None else group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                offsets.OffsetCommitRequestTopic(
                    name=topic or self.topic,
                    topic_id=self.raw.topic_id(self.topic)
                    if topic is None
                    else Uuid(bytes(15) + b"\x07"),
                    partitions=[
                        offsets.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=1,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        answer = self.raw.call(request, offsets.OffsetCommitResponse, version)
        return answer.topics[0].partitions[0].error_code

    def txn_commit(
        self,
        member_id: str = "",
        generation: int = -1,
        *,
        group: str | None = None,
        topic: str | None = None,
        partition: int = 0,
        metadata: str | None = "",
        instance_id: str | None = None,
        version: int = 5,
        **changes: Any,
    ) -> int:
        request = transactions.TxnOffsetCommitRequest(
            group_id=self.group if group is None else group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                transactions.TxnOffsetCommitRequestTopic(
                    name=topic or self.topic,
                    partitions=[
                        transactions.TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=1,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
            **self._identity(**changes),
        )
        while True:
            answer = self.raw.call(request, transactions.TxnOffsetCommitResponse, version)
            code = answer.topics[0].partitions[0].error_code
            if code not in WAITABLE:
                return code

    def join_classic(self) -> tuple[str, int]:
        """Become the one member of a stable classic group: member id and generation."""
        protocols = [groups.JoinGroupRequestProtocol(name="range", metadata=b"")]
        member_id = ""
        while True:
            request = groups.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=protocols,
            )
            joined = self.raw.call(request, groups.JoinGroupResponse)
            member_id = joined.member_id
            if joined.error_code == ErrorCode.NONE:
                break
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        sync = groups.SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[groups.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")],
        )
        assert self.raw.call(sync, groups.SyncGroupResponse).error_code == ErrorCode.NONE
        return member_id, joined.generation_id

    def heartbeat_classic(self, member_id: str, generation: int, group: str | None = None) -> int:
        request = groups.HeartbeatRequest(
            group_id=self.group if group is None else group,
            generation_id=generation,
            member_id=member_id,
        )
        return self.raw.call(request, groups.HeartbeatResponse).error_code

    def heartbeat(
        self, member_id: str = "member", epoch: int = 0, **fields: Any
    ) -> consumer_groups.ConsumerGroupHeartbeatResponse:
        """ConsumerGroupHeartbeat; a joining one is complete unless `fields` says otherwise."""
        if epoch == 0:
            fields = {
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": [self.topic],
                "topic_partitions": [],
            } | fields
        given: dict[str, Any] = {
            "group_id": self.group,
            "member_id": member_id,
            "member_epoch": epoch,
        } | fields
        request = consumer_groups.ConsumerGroupHeartbeatRequest(**given)
        return self.raw.call(request, consumer_groups.ConsumerGroupHeartbeatResponse)

    def join(self, member_id: str = "member", **fields: Any) -> int:
        """Join a group of the consumer protocol; the member epoch."""
        answer = self.heartbeat(member_id, 0, **fields)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        return answer.member_epoch
