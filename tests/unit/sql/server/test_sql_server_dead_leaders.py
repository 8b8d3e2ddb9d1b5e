"""The server does not trust the end offsets of topics whose leader is dead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_INVALID

from barnabas.app.testing import Kafka
from barnabas.kafka.admin import OffsetLister
from barnabas.sql.engine.cluster import ClusterError, Start
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.kafka_cluster import KafkaCluster
from support.stale_admin import StaleAdmin


@pytest.fixture
def cluster(kafka: Kafka) -> Iterator[KafkaCluster]:
    made = KafkaCluster({"bootstrap.servers": kafka.bootstrap_servers})
    made._admin._lister = OffsetLister(StaleAdmin)  # type: ignore[arg-type]  # as one
    yield made
    made.close()


def test_a_topic_is_not_read_to_an_end_that_nobody_told(
    kafka: Kafka, cluster: KafkaCluster
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"0", b"1", b"2"])
    StaleAdmin.begin(OFFSET_INVALID, 3, OFFSET_INVALID)
    read: list[bytes | None] = []

    def take(_topic: str, record: TopicRecord, _is_done: bool) -> None:
        read.append(record.value)

    follower = cluster.follow([topic], take, Start.EARLIEST)
    try:
        assert follower.wait_until_caught_up(60)
        assert read == [b"0", b"1", b"2"]
        assert StaleAdmin.answers == [OFFSET_INVALID]
        cluster._admin._lister._client = None
        with pytest.raises(ClusterError, match="leader did not answer"):
            follower.wait_until_caught_up(-1)
    finally:
        follower.close()


def test_bounds_that_nobody_told_are_asked_for_anew(cluster: KafkaCluster) -> None:
    StaleAdmin.begin(OFFSET_INVALID, 7)
    with pytest.raises(ClusterError, match="leader did not answer"):
        cluster.bounds([("t", 0)])
    assert cluster.bounds([("t", 0)]) == {("t", 0): (7, 7)}
