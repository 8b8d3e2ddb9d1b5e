"""Metadata that Apache Kafka 4.3.1 wrote: read, replayed, written again byte for byte."""

import random
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.bootstrap import FILE_NAME, read_bootstrap, write_bootstrap
from barnabas.node.metadata.image import NO_LEADER, ConfigResourceType, Endpoint, MetadataImage
from barnabas.node.metadata.loader import ImageLoader, RecordBatch
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.records import decode_record, encode_record
from barnabas.node.metadata.snapshot import image_records
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.raft.quorum_state import ElectionState, read_quorum_state
from barnabas.node.raft.snapshot_files import BOOTSTRAP_SNAPSHOT, read_snapshot
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.records import decode_records

ARCHIVE = Path(__file__).resolve().parents[5] / "shared" / "kafka-data" / "data.tar.gz"
TOPICS = {
    "codec-none": 3,
    "codec-gzip": 2,
    "codec-snappy": 2,
    "codec-lz4": 2,
    "codec-zstd": 2,
    "txn": 1,
    "compacted": 1,
    "headers-and-nulls": 1,
    "appendtime": 1,
    "__transaction_state": 4,
    "__consumer_offsets": 4,
}

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="no Kafka-written data beside us")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


@pytest.fixture
def disk() -> Iterator[LocalDisk]:
    local = LocalDisk()
    yield local
    local.close()


def log_batches(data: Path) -> list[RecordBatch]:
    log = (data / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    return [
        RecordBatch(
            header.base_offset,
            header.partition_leader_epoch,
            header.max_timestamp,
            [decode_record(record.value or b"") for record in decode_records(log, position)],
        )
        for position, header in iterate_headers(log)
        if not header.is_control
    ]


def test_every_record_is_written_as_kafka_wrote_it(data: Path) -> None:
    log = (data / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    count = 0
    for position, header in iterate_headers(log):
        if header.is_control:
            continue
        for record in decode_records(log, position):
            assert record.value is not None
            assert encode_record(decode_record(record.value)) == record.value
            count += 1
    assert count == 211


def test_replay_gives_the_cluster(data: Path) -> None:
    loader = ImageLoader(MetadataImage())
    [_, last] = loader.feed(log_batches(data))
    image = last.image
    assert image.offset == 213
    assert image.features["metadata.version"] == 30
    assert {t.name: len(t.partitions) for t in image.topics.by_name.values()} == TOPICS
    assert image.next_producer_id == 1000
    broker = image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown) == (13, True, True)
    assert broker.listeners == {"PLAINTEXT": Endpoint("localhost", 9292, 0)}
    assert set(image.controllers) == {1}
    compacted = image.configs.for_resource(ConfigResourceType.TOPIC, "compacted")
    assert compacted["cleanup.policy"] == "compact"
    partition = image.topics.by_name["txn"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (1,))
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 1)


def test_a_snapshot_of_it_gives_it_back(data: Path) -> None:
    loader = ImageLoader(MetadataImage())
    image = loader.feed(log_batches(data))[-1].image
    records = [decode_record(encode_record(record)) for record in image_records(image)]
    again = ImageLoader(MetadataImage()).feed([RecordBatch(0, 1, 0, records)])[-1].image
    assert replace(again, offset=image.offset, timestamp_ms=image.timestamp_ms) == image


def test_files_beside_the_log(data: Path, disk: LocalDisk) -> None:
    properties = read_meta_properties(disk, str(data))
    assert properties is not None
    assert (properties.version, properties.node_id) == (1, 1)
    metadata_log = str(data / "__cluster_metadata-0")
    assert read_quorum_state(disk, metadata_log) == ElectionState(1, 1)
    snapshot = read_snapshot(disk, metadata_log, BOOTSTRAP_SNAPSHOT)
    assert snapshot.voters is not None
    assert snapshot.voters.by_id[1].key.directory_id == properties.directory_id
    assert (snapshot.kraft_version, snapshot.values) == (1, [])


def test_bootstrap_records_are_written_as_kafka_wrote_them(
    data: Path, disk: LocalDisk, tmp_path: Path
) -> None:
    """All but the times and the CRCs over them."""
    records = read_bootstrap(disk, str(data))
    write_bootstrap(disk, str(tmp_path), records, now_ms=0)
    theirs, ours = (data / FILE_NAME).read_bytes(), (tmp_path / FILE_NAME).read_bytes()
    assert len(theirs) == len(ours)
    for (position, header), (_, same) in zip(
        iterate_headers(theirs), iterate_headers(ours), strict=True
    ):
        unlike = {"crc": 0, "base_timestamp": 0, "max_timestamp": 0}
        assert header._replace(**unlike) == same._replace(**unlike)
        end = position + header.size_bytes
        assert theirs[position + 57 : end] == ours[position + 57 : end]


async def test_a_node_takes_over(data: Path) -> None:
    disk = LocalDisk()
    properties = read_meta_properties(disk, str(data))
    assert properties is not None
    node = MetadataNode.open(
        config=NodeConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "localhost:9293",
                "log.dirs": str(data),
            }
        ),
        disk=disk,
        clock=SystemClock(),
        random=random.SystemRandom(),
        network=TcpNetwork(),
        on_failure=lambda error: pytest.fail(str(error)),
    )
    await node.start()
    assert node.cluster_id == properties.cluster_id
    assert node.raft.epoch == 2
    assert set(node.image.topics.by_name) == set(TOPICS)
    await node.register_broker(
        {"PLAINTEXT": Endpoint("localhost", 9292, 0)}, previous_broker_epoch=13
    )
    await node.unfence_broker()
    for topic in node.image.topics.by_name.values():
        for partition in topic.partitions.values():
            assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())
            assert (partition.leader_epoch, partition.leader_recovery_state) == (2, 0)
    assert [await node.allocate_producer_id() for _ in range(2)] == [1000, 1001]
    await node.stop()
    disk.close()
