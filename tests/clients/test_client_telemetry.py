"""Clients push their metrics, and the node shows them (KIP-714)."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from support.apache_kafka import LIBS, QUICK_JVM, needs_apache_kafka
from support.cluster_processes import ClusterProcesses
from support.node_process import NodeProcess, wait_until
from support.otlp import double, gauge, metrics_data
from support.patience import PATIENCE_S
from support.ports import free_port
from support.raw_client import RawClient


class Shown:
    """A node, and the metrics of clients that it shows."""

    def __init__(self, directory: Path) -> None:
        self._port = free_port()
        listener = f"http://127.0.0.1:{self._port}"
        self.node = NodeProcess(directory, {"barnabas.metrics.listener": listener})

    def pushed(self) -> set[str]:
        return pushed(self._port)


def subscribe(server: str, interval_ms: int = 500) -> None:
    """Ask all clients of a cluster for all their metrics."""
    wanted = {"metrics": "*", "interval.ms": str(interval_ms)}
    resource = AlterConfigsResource(
        resource_type=ConfigResourceType.CLIENT_METRICS,
        resource_name="all",
        configs=[
            AlterableConfig(name=name, config_operation=0, value=value)
            for name, value in wanted.items()
        ],
    )
    with RawClient(server) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = client.call(request, IncrementalAlterConfigsResponse, 1)
    assert [found.error_code for found in response.responses] == [0]


def pushed(port: int) -> set[str]:
    """The samples that clients pushed to the node with this metrics port, without their values."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0] for line in lines if line.startswith("kafka_client_")}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    found = Shown(tmp_path_factory.mktemp("node"))
    found.node.start()
    subscribe(f"127.0.0.1:{found.node.port}")
    yield found
    assert found.node.stop() == 0


def test_librdkafka_pushes(shown: Shown) -> None:
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{shown.node.port}",
            "client.id": "pushing",
            "enable.metrics.push": True,
        }
    )
    producer.produce("topic", b"value")
    assert producer.flush(PATIENCE_S) == 0

    def is_shown() -> bool:
        producer.poll(0.1)
        mine = [sample for sample in shown.pushed() if 'client_id="pushing"' in sample]
        return any(sample.startswith("kafka_client_producer_") for sample in mine) and any(
            'client_software_name="' in sample for sample in mine
        )

    wait_until(is_shown, "metrics of librdkafka", shown=shown.pushed)


def test_a_client_may_ask_one_node_and_push_to_another(tmp_path: Path) -> None:
    cluster = ClusterProcesses(tmp_path)
    ports = {node_id: free_port() for node_id in cluster.nodes}
    for node_id, node in cluster.nodes.items():
        with node.properties.open("a") as properties:
            properties.write(f"barnabas.metrics.listener=http://127.0.0.1:{ports[node_id]}\n")
    with cluster:
        servers = [node.bootstrap_servers for node in cluster.nodes.values()]
        subscribe(servers[0], interval_ms=60_000)

        def asked(server: str, instance: Uuid) -> GetTelemetrySubscriptionsResponse:
            with RawClient(server) as client:
                request = GetTelemetrySubscriptionsRequest(client_instance_id=instance)
                return client.call(request, GetTelemetrySubscriptionsResponse, 0)

        def are_known() -> bool:
            return all(asked(server, ZERO_UUID).requested_metrics == ["*"] for server in servers)

        wait_until(are_known, "subscriptions on all nodes")
        found = asked(servers[0], ZERO_UUID)
        assert found.error_code == ErrorCode.NONE
        again = asked(servers[0], found.client_instance_id)
        assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert asked(servers[2], found.client_instance_id).subscription_id == found.subscription_id

        def push(server: str, subscription_id: int) -> int:
            with RawClient(server) as client:
                request = PushTelemetryRequest(
                    client_instance_id=found.client_instance_id,
                    subscription_id=subscription_id,
                    terminating=False,
                    compression_type=0,
                    metrics=metrics_data(gauge("shared.figure", double(4))),
                )
                return client.call(request, PushTelemetryResponse, 0).error_code

        assert push(servers[1], found.subscription_id) == ErrorCode.NONE
        assert push(servers[1], found.subscription_id) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert push(servers[2], found.subscription_id + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        shown = {node_id: pushed(port) for node_id, port in ports.items()}
        assert [len(samples) for samples in shown.values()] == [0, 1, 0]
        assert "kafka_client_shared_figure{" in shown[2].pop()
        cluster.stop()


@needs_apache_kafka
def test_the_java_client_pushes(shown: Shown) -> None:
    consumer = subprocess.Popen(
        [
            "java",
            *QUICK_JVM,
            "-cp",
            f"{LIBS[0]}/*",
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", f"127.0.0.1:{shown.node.port}", "--topic", "topic"),
            *("--group", "javas", "--consumer-property", "client.id=java-pushing"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(
            lambda: any('client_id="java-pushing"' in sample for sample in shown.pushed()),
            "metrics of the Java client",
            timeout_s=2 * PATIENCE_S,
            shown=shown.pushed,
        )
    finally:
        consumer.kill()
        consumer.wait()
    names = {sample.partition("{")[0] for sample in shown.pushed()}
    assert any(name.startswith("kafka_client_consumer_") for name in names)
