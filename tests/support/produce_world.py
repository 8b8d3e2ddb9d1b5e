"""One producer's connection, a topic that validates schemas and one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

from barnabas.base.ids import TopicPartition
from barnabas.base.network import ListenerOptions, Part
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.handlers import ROUTES
from barnabas.node.broker.produce.decompression import Decompression
from barnabas.node.coordinator.transaction.verifier import NOT_NEEDED, Begin, Verdict, Verifications
from barnabas.node.log.config import LogConfig
from barnabas.node.metadata.image import MetadataImage, PartitionImage
from barnabas.node.net.connection import Connection
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.connections import ResponseHeader
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.logs import NOW_MS, TOPIC_ID, LogBench, read_records
from support.schema_world import SchemaWorld

CHECKED, PLAIN = "checked", "plain"
VALIDATES = LogConfig(confluent_value_schema_validation=True)
TIMEOUT_MS = 2000


class ProduceWorld:
    """Requests in, answers out; the registry is a `SchemaWorld`'s."""

    def __init__(self) -> None:
        self.schemas = SchemaWorld()
        self.schemas.clock.time_ms = NOW_MS
        self.logs = {CHECKED: LogBench(config=VALIDATES), PLAIN: LogBench()}
        self.partitions: dict[str, Partition] = {}
        for topic, bench in self.logs.items():
            bench.clock = self.schemas.clock
            partition = Partition(
                TopicPartition(topic, 0), TOPIC_ID, bench.log, ReplicaContext(1, bench.clock)
            )
            partition.become_leader(
                PartitionImage((1,), (1,), 1, leader_epoch=0, partition_epoch=0)
            )
            self.partitions[topic] = partition
        services: Any = SimpleNamespace(
            authorizer=ALLOW_ALL,
            clock=self.schemas.clock,
            replicas=SimpleNamespace(find=lambda topic, index: self.partitions[topic]),
            served_apis=set(),
            image=MetadataImage(),
            verifies_transactions=True,
            start=asyncio.ensure_future,
            verifier=self,
            schemas=self.schemas.known,
            decompression=Decompression(),
        )
        self.coordinator_asked = 0
        self.sent = bytearray()
        self.is_closed = False
        transport: Any = SimpleNamespace(
            times=None,
            peer_host="client",
            send=self._send,
            unsent_bytes=lambda: 0,
            pause_reading=lambda: None,
            resume_reading=lambda: None,
            close=self._close,
        )
        self.connection = Connection(
            transport,
            Dispatcher(services, ROUTES),
            ListenerOptions("PLAINTEXT"),
            lambda connection: None,
        )
        self._versions: dict[int, int] = {}

    def _send(self, parts: Sequence[Part]) -> None:
        self.sent += b"".join(map(bytes, cast("Any", parts)))

    def _close(self) -> None:
        self.is_closed = True
        self.connection.closed(None)

    def ask(
        self, transactional_id: str, producer: Any, begin: Begin, **_: Any
    ) -> Verdict | Awaitable[Verdict]:
        """In the place of `TransactionVerifier`: it agrees, after a while."""
        verifications = begin()
        return self._agree(verifications) if verifications else NOT_NEEDED

    async def _agree(self, verifications: Verifications) -> Verdict:
        self.coordinator_asked += 1
        await asyncio.sleep(0)
        return Verdict({}, verifications)

    def send(
        self,
        *batches: tuple[str, bytes | bytearray],
        version: int = 12,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> int:
        """Have one request arrive; returns its number."""
        number = len(self._versions)
        self._versions[number] = version
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]
                )
                for topic, batch in batches
            ],
        )
        frame = encode_request(ApiKey.PRODUCE, version, number, "client", request)
        self.receive(pack(">i", len(frame)) + frame)
        return number

    def receive(self, data: bytes) -> None:
        """Have the client's bytes arrive."""
        while data:
            room = self.connection.get_buffer()
            size = min(len(room), len(data))
            room[:size] = data[:size]
            self.connection.received(size)
            data = data[size:]

    def answers(self) -> list[tuple[int, list[PartitionProduceResponse]]]:
        """(number of the request, its topics' only partitions), in the order of the answers."""
        found = []
        at = 0
        while at < len(self.sent):
            size = int.from_bytes(self.sent[at : at + 4], "big")
            frame = bytes(self.sent[at + 4 : at + 4 + size])
            number = int.from_bytes(frame[:4], "big")
            version = self._versions[number]
            _, position = decode_at(ResponseHeader, 1 if version >= 9 else 0, frame, 0)
            response, _ = decode_at(ProduceResponse, version, frame, position)
            found.append((number, [topic.partition_responses[0] for topic in response.responses]))
            at += 4 + size
        return found

    def errors(self) -> list[tuple[int, list[ErrorCode]]]:
        """As `answers`, with their error codes alone."""
        return [
            (number, [ErrorCode(part.error_code) for part in parts])
            for number, parts in self.answers()
        ]

    def values(self, topic: str) -> list[bytes | None]:
        """Return what the topic holds."""
        return [record.value for record in read_records(self.logs[topic].log)]
