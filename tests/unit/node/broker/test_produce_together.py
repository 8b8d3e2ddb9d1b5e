"""Produce requests that arrive together are appended together, and answered one by one."""

from collections.abc import Callable, Sequence
from struct import pack, unpack_from
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.handlers import ROUTES
from barnabas.node.broker.produce.decompression import Decompression
from barnabas.node.log.config import LogConfig
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
from support.logs import NOW_MS, TOPIC_ID, TOPIC_PARTITION, LogBench, make_batch, read_records

VERSION = 12


class FakeTransport:
    """Keeps what is sent."""

    peer_host, peer_port = "client", 1
    tls = None

    def __init__(self) -> None:
        self.sends: list[bytes] = []
        self.is_closed = False

    def send(self, parts: Sequence[Part]) -> None:
        self.sends.append(b"".join(map(bytes, cast("Any", parts))))

    def unsent_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""

    def close(self) -> None:
        self.is_closed = True

    close_when_sent = close


class Bench:
    """A partition without other replicas, and a producer's connection to it."""

    def __init__(self, config: LogConfig | None = None) -> None:
        self.log = LogBench(config=config or LogConfig())
        self.log.clock.time_ms = NOW_MS
        self.partition = Partition(
            TOPIC_PARTITION, TOPIC_ID, self.log.log, ReplicaContext(1, self.log.clock)
        )
        self.partition.become_leader(
            PartitionImage((1,), (1,), 1, leader_epoch=0, partition_epoch=0)
        )
        replicas = SimpleNamespace(find=lambda topic, index: self.partition)
        services = SimpleNamespace(
            authorizer=ALLOW_ALL,
            clock=self.log.clock,
            replicas=replicas,
            served_apis=set(),
            image=MetadataImage(),
            schemas=SimpleNamespace(is_needed=False),
            decompression=Decompression(),
        )
        dispatcher = Dispatcher(services, ROUTES)
        self.transport = FakeTransport()
        self.connection = Connection(
            self.transport, dispatcher, ListenerOptions("PLAINTEXT"), lambda connection: None
        )
        self._correlation_id = 0

    def receive(self, *batches: bytearray) -> list[tuple[int, int, int]]:
        """Requests that land by one receive; (correlation id, error, offset) of each answer."""
        sent = len(self.transport.sends)
        data = b"".join(map(self._frame, batches))
        self.connection.get_buffer()[: len(data)] = data
        self.connection.received(len(data))
        assert len(self.transport.sends) <= sent + 1
        answers, at = [], 0
        stream = b"".join(self.transport.sends[sent:])
        while at < len(stream):
            size, correlation_id = unpack_from(">ii", stream, at)
            # No tags, one topic, its name, one partition, its index; then error and offset.
            error, offset = unpack_from(">hq", stream, at + 10 + 1 + len(TOPIC_PARTITION.topic) + 5)
            answers.append((correlation_id, error, offset))
            at += 4 + size
        return answers

    def _frame(self, batch: bytearray) -> bytes:
        self._correlation_id += 1
        data = TopicProduceData(
            name=TOPIC_PARTITION.topic,
            partition_data=[PartitionProduceData(index=0, records=batch)],
        )
        request = ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[data])
        frame = encode_request(0, VERSION, self._correlation_id, "client", request)
        return pack(">i", len(frame)) + frame


def producing(*sequences: int) -> list[bytearray]:
    return [make_batch(f"v{sequence}", producer=(7, 0, sequence)) for sequence in sequences]


def test_what_arrives_together_is_written_together_and_answered_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    assert bench.receive(*producing(0)) == [(1, 0, 0)]
    written: list[int] = []
    file_type = type(bench.log.log.active.file())
    append: Callable[..., int] = file_type.append

    def noted(file: object, buffers: Sequence[bytes]) -> int:
        written.append(len(buffers))
        return append(file, buffers)

    monkeypatch.setattr(file_type, "append", noted)
    assert bench.receive(*producing(1, 2, 3, 4)) == [(2, 0, 1), (3, 0, 2), (4, 0, 3), (5, 0, 4)]
    assert written == [4]
    assert bench.partition.high_watermark == 5
    assert not bench.connection.frames
    values = [record.value for record in read_records(bench.log.log)]
    assert values == [b"v0", b"v1", b"v2", b"v3", b"v4"]


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ((1, 2, 2, 3), [(0, 1), (0, 2), (0, 2), (0, 3)]),  # one came twice
        ((1, 2, 9, 3), [(0, 1), (0, 2), (45, -1), (0, 3)]),  # one is out of order
        ((9, 1, 2), [(45, -1), (0, 1), (0, 2)]),
    ],
)
def test_what_is_out_of_the_ordinary_is_answered_by_itself(
    sequences: tuple[int, ...], expected: list[tuple[int, int]]
) -> None:
    bench = Bench()
    bench.receive(*producing(0))
    answers = bench.receive(*producing(*sequences))
    assert [(error, offset) for _, error, offset in answers] == expected
    assert [number for number, _, _ in answers] == list(range(2, 2 + len(sequences)))


def test_a_damaged_batch_among_good_ones_is_refused_alone() -> None:
    bench = Bench()
    bench.receive(*producing(0))
    good, bad, last = producing(1, 2, 2)
    bad[-3] ^= 1
    answers = bench.receive(good, bad, last)
    assert [(error, offset) for _, error, offset in answers] == [
        (0, 1),
        (ErrorCode.CORRUPT_MESSAGE, -1),
        (0, 2),
    ]


def test_a_full_segment_in_the_middle_is_rolled() -> None:
    bench = Bench(LogConfig(segment_bytes=500))
    bench.receive(*producing(0))
    answers = bench.receive(*producing(*range(1, 20)))
    assert [offset for _, _, offset in answers] == list(range(1, 20))
    assert len(bench.log.log.segments) > 2
    assert len(read_records(bench.log.log)) == 20


def test_a_failing_disk_answers_each(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.receive(*producing(0))

    def fail(*_: object) -> int:
        raise OSError(5, "the disk fails")

    monkeypatch.setattr(type(bench.log.log.active.file()), "append", fail)
    answers = bench.receive(*producing(1, 2, 3))
    assert [error for _, error, _ in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert not bench.transport.is_closed
