"""A node's figures, scraped from its process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from barnabas.app.metrics.catalog import FAMILIES
from barnabas.protocol.records.records import Record, encode_batch
from support.certificates import Authority
from support.node_process import NodeProcess
from support.patience import PATIENCE_S
from support.ports import free_port
from support.raw_client import RawClient
from support.share_client import ShareMember, begin_group


def test_connections_and_the_end_of_a_certificate(tmp_path: Path) -> None:
    metrics_port, tls_port = free_port(), free_port()
    node = NodeProcess(tmp_path)
    with node.properties.open("a") as properties:
        properties.write(
            f"listeners=PLAINTEXT://127.0.0.1:{node.port},SSL://127.0.0.1:{tls_port},"
            f"CONTROLLER://127.0.0.1:{node.controller_port}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={Authority(tmp_path).issue('node')}\n"
            f"barnabas.metrics.listener=http://127.0.0.1:{metrics_port}\n"
        )
    node.start()
    try:
        url = f"http://127.0.0.1:{metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            samples = dict(
                line.rsplit(" ", 1)
                for line in answer.read().decode().splitlines()
                if not line.startswith("#")
            )
        left_s = float(samples['kafka_server_ssl_certificate_expiry_seconds{listener="SSL"}'])
        assert 0 < left_s <= 86_400
        count = 'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}'
        assert float(samples[count]) >= 0
    finally:
        assert node.stop() == 0


def scraped(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """The samples of a node's metrics: by name, then by labels."""
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found = samples.setdefault(sample.name, {})
            assert labels not in found, f"{sample.name}{labels} is there twice"
            found[labels] = sample.value
    return samples


NOT_ON_ONE_NODE = {
    "barnabas_quorum_replica_lag",
    "barnabas_quorum_replica_fetch_age_seconds",
    "kafka_server_fetcherlagmetrics_consumerlag",
}
"""Families about other nodes."""
NOT_WITHOUT_CAUSE = {
    "barnabas_share_partitions",
    "barnabas_share_records_in_flight",
    "barnabas_partition_open_transaction_seconds",
    "kafka_network_requestmetrics_errors_total",
}


def share_fetched(bootstrap_servers: str, topic: str) -> int:
    """Let a member of a share group fetch a batch of a new topic; returns its bytes."""
    batch = bytes(encode_batch([Record(number, number, None, b"v" * 50) for number in range(10)]))
    with RawClient(bootstrap_servers) as raw:
        raw.create_topic(topic)
        topic_id = raw.topic_id(topic)
        begin_group(raw, "s", topic_id)
        assert raw.produce(topic, batch).error_code == 0
        member = ShareMember(bootstrap_servers, "s", topic_id)
        with contextlib.closing(member):
            assert member.fetch().batches == [(0, 9)]
            return len(batch)


def test_what_a_node_does_is_in_its_figures(tmp_path: Path) -> None:
    metrics_port = free_port()
    node = NodeProcess(tmp_path)
    with node.properties.open("a") as properties:
        properties.write(f"barnabas.metrics.listener=http://127.0.0.1:{metrics_port}\n")
    node.start()
    try:
        bootstrap: dict[str, str | int | float | bool] = {
            "bootstrap.servers": f"127.0.0.1:{node.port}"
        }
        admin = AdminClient(bootstrap)
        admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result(PATIENCE_S)
        producer = Producer(bootstrap)
        for number in range(100):
            producer.produce("orders", b"v" * 50, str(number).encode())
        assert producer.flush(PATIENCE_S) == 0
        consumer = Consumer(bootstrap | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read, deadline = 0, time.monotonic() + PATIENCE_S
        while read < 100 and time.monotonic() < deadline:
            read += sum(message.error() is None for message in consumer.consume(100, 1.0))
        consumer.commit(asynchronous=False)
        shared_bytes = share_fetched(str(bootstrap["bootstrap.servers"]), "shared")
        samples = scraped(metrics_port)
        consumer.close()
    finally:
        assert node.stop() == 0
    traffic, orders = "kafka_server_brokertopicmetrics_", (("topic", "orders"),)
    assert samples[f"{traffic}messagesin_total"][orders] == 100
    assert samples[f"{traffic}messagesin_total"][()] >= 100
    assert samples[f"{traffic}bytesin_total"][orders] > 100 * 50
    assert samples[f"{traffic}bytesout_total"][orders] > 100 * 50
    shared = (("topic", "shared"),)
    assert samples[f"{traffic}bytesout_total"][shared] == shared_bytes
    assert samples[f"{traffic}totalfetchrequests_total"][shared] > 0
    ends = samples["kafka_log_log_logendoffset"]
    of_orders = [value for labels, value in ends.items() if ("topic", "orders") in labels]
    assert (len(of_orders), sum(of_orders)) == (3, 100)
    requests = samples["kafka_network_requestmetrics_requests_total"]
    of_group = (("consumergroup", "g"), ("topic", "orders"))
    assert samples["kafka_consumergroup_lag_sum"][of_group] == 0
    assert sum(samples["kafka_consumergroup_current_offset"].values()) == 100
    assert set(samples["kafka_consumergroup_lag_seconds"].values()) == {0}
    assert samples["kafka_consumergroup_members"][("consumergroup", "g"),] == 1
    for name in ("Produce", "Fetch", "FetchConsumer", "JoinGroup", "OffsetCommit", "CreateTopics"):
        assert requests[("request", name),] > 0
    times = samples["kafka_network_requestmetrics_totaltimems"]
    assert times[("quantile", "0.99"), ("request", "Produce")] > 0
    assert samples["kafka_controller_kafkacontroller_activecontrollercount"][()] == 1
    assert samples["kafka_server_replicamanager_underreplicatedpartitions"][()] == 0
    partitions = samples["kafka_server_replicamanager_partitioncount"][()]
    assert samples["kafka_server_replicamanager_leadercount"][()] == partitions > 3
    assert samples["kafka_server_kafkaserver_brokerstate"][()] == 3
    shown = {name.removesuffix("_count") for name in samples} | set(samples)
    missing = set(FAMILIES) - shown - NOT_ON_ONE_NODE - NOT_WITHOUT_CAUSE
    assert not missing


def test_an_address_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    node.start()
    try:
        other = NodeProcess(tmp_path / "other")
        taken = f"barnabas.metrics.listener=http://127.0.0.1:{node.port}"
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "start", str(other.properties), "--override", taken],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        node.stop()
    assert done.returncode == 1
    assert "cannot show metrics at" in done.stderr
    assert "Traceback" not in done.stderr
