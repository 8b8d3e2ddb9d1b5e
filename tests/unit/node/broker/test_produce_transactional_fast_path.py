"""Repeated transactional produce requests come to what the general way comes to."""

import asyncio
import random
from collections.abc import Awaitable, Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.handlers import ROUTES
from barnabas.node.broker.produce.decompression import Decompression
from barnabas.node.coordinator.transaction.verifier import NOT_NEEDED, Begin, Verdict, Verifications
from barnabas.node.log.validator import AppendOrigin
from barnabas.node.metadata.image import MetadataImage, PartitionImage
from barnabas.node.net.connection import Connection
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.control import encode_end_txn
from support.logs import NOW_MS, TOPIC_ID, TOPIC_PARTITION, LogBench, make_batch

PRODUCER_ID = 7
TURNS_MAX = 100
"""Of the event loop, by which every request is answered."""


class Bench:
    """A partition without other replicas, a producer's connection, and a willing coordinator."""

    def __init__(self, *, remembers: bool) -> None:
        self.log = LogBench()
        self.log.clock.time_ms = NOW_MS
        self.partition = Partition(
            TOPIC_PARTITION, TOPIC_ID, self.log.log, ReplicaContext(1, self.log.clock)
        )
        self.partition.become_leader(
            PartitionImage((1,), (1,), 1, leader_epoch=0, partition_epoch=0)
        )
        self.asked = 0
        self.refuses = False
        services = SimpleNamespace(
            authorizer=ALLOW_ALL,
            clock=self.log.clock,
            replicas=SimpleNamespace(find=lambda topic, index: self.partition),
            served_apis=set(),
            image=MetadataImage(),
            verifies_transactions=True,
            schemas=SimpleNamespace(is_needed=False),
            decompression=Decompression(),
            start=asyncio.ensure_future,
            verifier=self,
        )
        self.sent: list[bytes] = []
        transport: Any = SimpleNamespace(
            times=None,
            peer_host="client",
            send=self._send,
            unsent_bytes=lambda: 0,
            pause_reading=lambda: None,
            resume_reading=lambda: None,
            close=lambda: None,
        )
        self.connection = Connection(
            transport,
            Dispatcher(services, ROUTES),
            ListenerOptions("PLAINTEXT"),
            lambda connection: None,
        )
        self._remembers = remembers

    def _send(self, parts: Sequence[Part]) -> None:
        self.sent.append(b"".join(map(bytes, cast("Any", parts))))

    def ask(
        self, transactional_id: str, producer: Any, begin: Begin, **_: Any
    ) -> Verdict | Awaitable[Verdict]:
        """In the place of `TransactionVerifier`."""
        return self._ask(begin()) if begin() else NOT_NEEDED

    async def _ask(self, verifications: Verifications) -> Verdict:
        self.asked += 1
        await asyncio.sleep(0)
        error = ErrorCode.INVALID_TXN_STATE
        return Verdict(dict.fromkeys(verifications, error) if self.refuses else {}, verifications)

    async def receive(self, frames: list[bytes]) -> bytes:
        """Return the answers to requests that arrive in one read."""
        self.sent.clear()
        if not self._remembers:
            client_state(self.connection).repeated = None
        data = b"".join(frames)
        self.connection.get_buffer()[: len(data)] = data
        self.connection.received(len(data))
        for _ in range(TURNS_MAX):
            if not (self.connection.is_waiting or self.connection.frames):
                break
            await asyncio.sleep(0)
        return b"".join(self.sent)

    def end(self, epoch: int) -> None:
        """Write the marker of the transaction."""
        batch = encode_end_txn(
            is_commit=True,
            coordinator_epoch=0,
            producer_id=PRODUCER_ID,
            producer_epoch=epoch,
            timestamp_ms=NOW_MS,
        )
        self.partition.append(batch, NOW_MS, AppendOrigin.COORDINATOR)

    @property
    def batches(self) -> bytes:
        return self.log.disk.read(self.log.log.active.files.log_path)


def frame_of(
    correlation_id: int, batch: bytes | bytearray, version: int, transactional_id: str | None
) -> bytes:
    data = TopicProduceData(
        name=TOPIC_PARTITION.topic, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=1500, topic_data=[data]
    )
    frame = encode_request(0, version, correlation_id, "client", request)
    return pack(">i", len(frame)) + frame


@pytest.mark.parametrize("version", [9, 12])
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_come_to_the_same(version: int, seed: int) -> None:
    chance = random.Random(seed)

    async def run() -> None:
        again, general = Bench(remembers=True), Bench(remembers=False)
        epoch = sequence = number = 0
        for _ in range(150):
            frames = []
            for _ in range(chance.choice((1, 1, 2, 4))):
                number += 1
                wrong = chance.random()
                batch = make_batch(
                    "x" * chance.choice((5, 5, 60)),
                    producer=(
                        PRODUCER_ID if wrong > 0.02 else -1,
                        epoch - (wrong > 0.98),
                        sequence - (0.9 < wrong < 0.92),
                    ),
                    transactional=not 0.92 < wrong < 0.94,
                )
                frames.append(
                    frame_of(number, batch, version, None if 0.94 < wrong < 0.95 else "t")
                )
                sequence += 0.03 < wrong < 0.9
            again.refuses = general.refuses = chance.random() < 0.1
            assert await again.receive(frames) == await general.receive(frames)
            if chance.random() < 0.1:
                for bench in (again, general):
                    bench.end(epoch + (version >= 12))
                if version >= 12:
                    epoch += 1
                    sequence = 0
            assert again.batches == general.batches
            assert again.asked == general.asked
            entry = again.log.log.producers.producers.get(PRODUCER_ID)
            if entry is not None and entry.batches:
                sequence = entry.last_sequence + 1 if entry.epoch == epoch else 0
        assert again.log.log.log_end_offset > 100

    asyncio.run(run())


def test_within_a_transaction_nothing_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        bench = Bench(remembers=True)
        batches = [
            make_batch("x", producer=(PRODUCER_ID, 0, sequence), transactional=True)
            for sequence in range(5)
        ]
        frames = [frame_of(number, batch, 12, "t") for number, batch in enumerate(batches)]
        await bench.receive(frames[:1])
        monkeypatch.setattr("barnabas.node.broker.produce.handler.parse_produce", None)
        await bench.receive(frames[1:2])
        await bench.receive(frames[2:])
        assert bench.log.log.log_end_offset == 5
        assert bench.asked == 1

    asyncio.run(run())
