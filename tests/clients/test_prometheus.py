"""A real Prometheus scrapes a cluster and evaluates the alert rules: drills with real faults."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.cluster_processes import EAGER, ClusterProcesses
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.prometheus import IS_THERE, MISSING, Prometheus, targets

pytestmark = pytest.mark.skipif(not IS_THERE, reason=MISSING)
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    overrides = EAGER | {"barnabas.metrics.listener": "http://127.0.0.1:0"}
    with ClusterProcesses(tmp_path_factory.mktemp("cluster"), overrides=overrides) as cluster:
        yield cluster


@pytest.fixture
def prometheus(cluster: ClusterProcesses, tmp_path: Path) -> Iterator[Prometheus]:
    shown = targets(cluster.nodes.values())
    with contextlib.closing(Prometheus(tmp_path / "prometheus", shown)) as prometheus:
        wait_until(lambda: prometheus.values("sum(up)") == [3], "three scrapes")
        yield prometheus


def test_faults_are_alerts(cluster: ClusterProcesses, prometheus: Prometheus) -> None:
    bootstrap: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
    cluster.create_topic("orders", partitions=2)
    cluster.create_topic("payments", partitions=1)
    wait_until(lambda: prometheus.alerts() == {}, "the end of what was pending at the start")
    prometheus.wait_for_values("max(kafka_controller_kafkacontroller_activebrokercount)", [3])
    prometheus.wait_for_values("sum(kafka_server_raft_metrics_number_of_voters)", [9])
    voters = 'barnabas_quorum_replica_lag{role="voter"}'
    wait_until(lambda: len(prometheus.values(voters)) == 2, "the lags of both followers")

    # A group lags: it has committed the first of records that are an hour old.
    producer = Producer(bootstrap)
    hour_ago_ms = int(time.time() * 1000) - HOUR_MS
    for number in range(10):
        producer.produce("orders", str(number), partition=0, timestamp=hour_ago_ms)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(bootstrap | {"group.id": "late", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    prometheus.wait_for("BarnabasGroupLags", "firing")
    prometheus.wait_for_values('kafka_consumergroup_lag{consumergroup="late"}', [9])
    (late_s,) = prometheus.values('max(kafka_consumergroup_lag_seconds{consumergroup="late"})')
    assert 3600 <= late_s <= time.time() - hour_ago_ms / 1000 + 1
    consumer.commit(offsets=[TopicPartition("orders", 0, 10)], asynchronous=False)
    wait_until(lambda: "BarnabasGroupLags" not in prometheus.alerts(), "the lag's end")
    consumer.close()

    # A transaction hangs: its producer wrote an hour ago, and does not end it.
    hanging = Producer(bootstrap | {"transactional.id": "hangs"})
    hanging.init_transactions(PATIENCE_S)
    hanging.begin_transaction()
    hanging.produce("payments", "never seen", partition=0, timestamp=hour_ago_ms)
    assert hanging.flush(PATIENCE_S) == 0
    prometheus.wait_for("BarnabasTransactionHangs", "firing")
    prometheus.wait_for_values('sum(barnabas_transactions{state="Ongoing"})', [1])
    held_back = 'kafka_cluster_partition_laststableoffsetlag{topic="payments"}'
    prometheus.wait_for_values(held_back, [1])
    hanging.abort_transaction(PATIENCE_S)
    wait_until(lambda: "BarnabasTransactionHangs" not in prometheus.alerts(), "its end")

    # A node dies.
    cluster.kill(3)
    prometheus.wait_for("BarnabasBrokerFenced", "firing")
    prometheus.wait_for("BarnabasNodeDown", "pending", "firing")
    prometheus.wait_for("BarnabasUnderReplicated", "pending", "firing")
    prometheus.wait_for_values("max(kafka_controller_kafkacontroller_activebrokercount)", [2])
    cluster.start(3)
    wait_until(lambda: "BarnabasBrokerFenced" not in prometheus.alerts(), "the node's return")
