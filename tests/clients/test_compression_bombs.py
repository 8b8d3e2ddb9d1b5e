"""Batches that decompress to 120 MB each do not hold up another client."""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from pathlib import Path

import cramjam
import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.records.batch import (
    HEADER,
    HEADER_SIZE_BYTES,
    Codec,
    iterate_headers,
    set_crc,
)
from barnabas.protocol.records.compression import SNAPPY_JAVA_HEAD, compress
from barnabas.protocol.records.records import Record, encode_batch
from support.cluster_processes import ClusterProcesses
from support.node_process import NodeProcess, wait_until
from support.raw_client import RawClient

MEBIBYTE = 2**20
BOMBS = 40
DECOMPRESSED_BYTES = 120 * MEBIBYTE
SNAPPY_DECOMPRESSED_BYTES = 18 * MEBIBYTE
"""Snappy decompresses 22 to 1, and a batch has a megabyte."""
ASKED = 400
SCHEDULING_S = 0.02
"""Of a busy machine: what a client may wait for a processor, with an attack or without one."""
WINDOWS_BYTES = 2 * 16 * MEBIBYTE
"""For two batches, decompressed at the same time: a block of lz4 or snappy, or a window of zstd."""

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]


def bomb(codec: Codec) -> bytes:
    size = SNAPPY_DECOMPRESSED_BYTES if codec is Codec.SNAPPY else DECOMPRESSED_BYTES
    plain = encode_batch([Record(timestamp=time.time_ns() // 10**6, value=bytes(size))])
    records = memoryview(plain)[HEADER_SIZE_BYTES:]
    if codec is Codec.GZIP:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        body = packer.compress(records) + packer.flush()
    elif codec is Codec.SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(records))
        body = SNAPPY_JAVA_HEAD + len(block).to_bytes(4, "big") + block
    else:
        body = compress(codec, records)
    batch = bytearray(plain[:HEADER_SIZE_BYTES]) + body
    fields = list(HEADER.unpack_from(batch))
    fields[1], fields[5] = len(batch) - 12, int(codec)
    HEADER.pack_into(batch, 0, *fields)
    set_crc(batch, 0)
    return bytes(batch)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def asked_s(client: RawClient) -> float:
    start = time.perf_counter()
    client.call(MetadataRequest(topics=[]), MetadataResponse)
    return time.perf_counter() - start


def p99(times_s: list[float]) -> float:
    return sorted(times_s)[int(len(times_s) * 0.99)]


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_another_client_is_served(codec: Codec, tmp_path: Path) -> None:
    data = [PartitionProduceData(index=index, records=bomb(codec)) for index in range(BOMBS)]
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )
    sent_bytes = BOMBS * len(data[0].records or b"")
    errors: list[int] = []

    node = NodeProcess(tmp_path)
    node.start()
    try:
        with (
            RawClient(node.bootstrap_servers, 200) as attacker,
            RawClient(node.bootstrap_servers) as other,
        ):
            topic = CreatableTopic(name="t", num_partitions=BOMBS, replication_factor=1)
            create = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            attacker.call(create, CreateTopicsResponse)
            wait_until(lambda: other.topic_id("t") is not None, "the topic")
            quiet = [asked_s(other) for _ in range(ASKED)]
            assert node.process is not None
            pid = node.process.pid
            peak_bytes = before_bytes = resident_bytes(pid)

            def attack() -> None:
                answer = attacker.call(request, ProduceResponse, 9)
                errors.extend(part.error_code for part in answer.responses[0].partition_responses)

            thread = threading.Thread(target=attack)
            thread.start()
            busy: list[float] = []
            while thread.is_alive() or len(busy) < ASKED:
                busy.append(asked_s(other))
                peak_bytes = max(peak_bytes, resident_bytes(pid))
            thread.join()
    finally:
        node.stop()
    assert len(errors) == BOMBS
    assert set(errors) <= {ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE}
    assert ErrorCode.NONE in errors
    assert p99(busy) <= 2 * p99(quiet) + SCHEDULING_S
    assert peak_bytes - before_bytes <= 1.5 * sent_bytes + WINDOWS_BYTES


PARTITIONS = 6
LINES = 20_000
ANSWERS_MIN = 20
"""To the other client, of each node, while the batches are checked there."""


def honest(codec: Codec) -> bytes:
    """A batch that decompresses to 2 MB of text, with a record for each line."""
    now_ms = time.time_ns() // 10**6
    lines = [b'{"order": %d, "customer": "number %d"}' % (at, at * at % 997) for at in range(LINES)]
    return bytes(
        encode_batch([Record(timestamp=now_ms, value=line * 2) for line in lines], codec=codec)
    )


def logs_of(cluster: ClusterProcesses, topic: str, index: int) -> set[bytes]:
    """The distinct contents that the partition's log has on the nodes."""
    logs = set()
    for node in cluster.nodes.values():
        paths = sorted((node.data / f"{topic}-{index}").glob("*.log"))
        logs.add(b"".join(path.read_bytes() for path in paths))
    return logs


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_followers_have_what_the_leaders_have(codec: Codec, three_nodes: ClusterProcesses) -> None:
    topic = f"bombs-{codec.name.lower()}"
    three_nodes.create_topic(topic, PARTITIONS)
    leaders = {index: three_nodes.leader_of(topic, index) for index in range(PARTITIONS)}
    bad, good = bomb(codec), honest(codec)
    errors: dict[int, list[int]] = {index: [] for index in leaders}
    answers = dict.fromkeys(three_nodes.nodes, 0)

    def attack(node_id: int) -> None:
        """Each partition gets a bomb, an honest batch, and a bomb again."""
        with RawClient(three_nodes.nodes[node_id].bootstrap_servers, 200) as client:
            for index in (index for index, leader in leaders.items() if leader == node_id):
                for batch in bad, good, bad:
                    data = TopicProduceData(
                        name=topic,
                        partition_data=[PartitionProduceData(index=index, records=batch)],
                    )
                    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data])
                    answer = client.call(request, ProduceResponse, 9)
                    errors[index].append(answer.responses[0].partition_responses[0].error_code)

    threads = [
        threading.Thread(target=attack, args=(node_id,)) for node_id in set(leaders.values())
    ]
    with contextlib.ExitStack() as stack:
        others = {
            node_id: stack.enter_context(RawClient(node.bootstrap_servers))
            for node_id, node in three_nodes.nodes.items()
        }
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for node_id, other in others.items():
                asked_s(other)
                answers[node_id] += 1
        for thread in threads:
            thread.join()
    assert errors == {index: [ErrorCode.NONE] * 3 for index in leaders}
    assert min(answers.values()) >= ANSWERS_MIN
    for index in leaders:
        assert three_nodes.in_sync(topic, index) == set(three_nodes.nodes)
        (log,) = logs_of(three_nodes, topic, index)
        headers = [header for _, header in iterate_headers(log)]
        assert [header.record_count for header in headers] == [1, LINES, 1]
        assert {header.codec for header in headers} == {codec}
