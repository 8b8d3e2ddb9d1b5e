"""Apache Kafka 4.3.1 starts from our directories, and we from those of its storage tool."""

from pathlib import Path

import pytest
from kafka_process import CLUSTER_ID, Kafka, format_with_kafka, node_properties
from node_harness import NodeHarness

from support.apache_kafka import needs_apache_kafka

pytestmark = [needs_apache_kafka, pytest.mark.timeout(240)]


async def test_kafka_starts_from_a_directory_that_we_formatted(tmp_path: Path) -> None:
    harness = NodeHarness(str(tmp_path / "data"))
    harness.format()
    harness.disk.close()
    with Kafka(node_properties(tmp_path / "data"), tmp_path) as metadata:
        assert metadata.cluster_id == CLUSTER_ID
        assert list(metadata.brokers) == [1]


async def test_kafka_goes_on_where_we_stopped_and_we_where_it_did(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    topics = {f"topic-{number}" for number in range(8)}
    async with NodeHarness(data, metadata_log_max_record_bytes_between_snapshots="2500") as harness:
        await harness.join()
        for name in sorted(topics):
            assert (await harness.create(name, 2)).error_code == 0
        assert harness.node.raft.snapshot_id is not None
        await harness.node.controlled_shutdown()
    with Kafka(node_properties(tmp_path / "data"), tmp_path) as metadata:
        assert metadata.cluster_id == CLUSTER_ID
        assert topics <= set(metadata.topics)
        for topic in metadata.topics.values():
            assert {partition.leader for partition in topic.partitions.values()} == {1}
    async with NodeHarness(data) as harness:
        assert harness.node.raft.epoch > 2
        assert topics <= set(harness.node.image.topics.by_name)
        await harness.join()
        assert (await harness.create("and-back")).error_code == 0


@pytest.mark.parametrize("standalone", [True, False])
async def test_we_start_from_a_directory_that_kafka_formatted(
    tmp_path: Path, standalone: bool
) -> None:
    properties = node_properties(tmp_path / "data")
    if not standalone:
        del properties["controller.quorum.bootstrap.servers"]
        properties["controller.quorum.voters"] = "1@localhost:9293"
    format_with_kafka(properties, tmp_path, *(["--standalone"] if standalone else []))
    async with NodeHarness(str(tmp_path / "data"), standalone=standalone) as harness:
        assert harness.node.cluster_id == CLUSTER_ID
        assert harness.node.image.features["metadata.version"] == 30
        assert harness.node.image.features["transaction.version"] == 2
        await harness.join()
        assert (await harness.create("first")).error_code == 0
