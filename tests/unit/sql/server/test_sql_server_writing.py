"""Records that the cluster refuses: who wrote them hears of it, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.app.testing import Kafka
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.kafka_cluster import KafkaCluster


@pytest.fixture
def cluster(kafka: Kafka) -> Iterator[KafkaCluster]:
    found = KafkaCluster({"bootstrap.servers": kafka.bootstrap_servers})
    yield found
    found.close()


def test_a_refused_record_is_told_to_who_wrote_it(kafka: Kafka, cluster: KafkaCluster) -> None:
    narrow = kafka.topic("narrow", config={"max.message.bytes": "1000"})
    wide = kafka.topic("wide")
    record = TopicRecord(b"k", bytes(5000), 0)
    with ThreadPoolExecutor(1) as other:
        other.submit(cluster.write, narrow, record).result()
        cluster.write(wide, record)
        cluster.flush()
        with pytest.raises(ClusterError, match="too large"):
            other.submit(cluster.flush).result()
        other.submit(cluster.flush).result()
