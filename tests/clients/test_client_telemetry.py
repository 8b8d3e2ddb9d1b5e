"""Clients push their metrics, and the node shows them (KIP-714)."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from support.apache_kafka import LIBS, needs_apache_kafka
from support.node_process import NodeProcess, wait_until
from support.patience import PATIENCE_S
from support.ports import free_port
from support.raw_client import RawClient


class Shown:
    """A node that asks all clients for all their metrics, and what it shows."""

    def __init__(self, directory: Path) -> None:
        self._port = free_port()
        listener = f"http://127.0.0.1:{self._port}"
        self.node = NodeProcess(directory, {"barnabas.metrics.listener": listener})

    def subscribe(self) -> None:
        wanted = {"metrics": "*", "interval.ms": "500"}
        resource = AlterConfigsResource(
            resource_type=ConfigResourceType.CLIENT_METRICS,
            resource_name="all",
            configs=[
                AlterableConfig(name=name, config_operation=0, value=value)
                for name, value in wanted.items()
            ],
        )
        with RawClient(f"127.0.0.1:{self.node.port}") as client:
            request = IncrementalAlterConfigsRequest(resources=[resource])
            response = client.call(request, IncrementalAlterConfigsResponse, 1)
        assert [found.error_code for found in response.responses] == [0]

    def pushed(self) -> set[str]:
        """The samples that clients have pushed, without their values."""
        url = f"http://127.0.0.1:{self._port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0] for line in lines if line.startswith("kafka_client_")}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    found = Shown(tmp_path_factory.mktemp("node"))
    found.node.start()
    found.subscribe()
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
        return any('client_id="pushing"' in sample for sample in shown.pushed())

    wait_until(is_shown, "metrics of librdkafka", shown=shown.pushed)
    names = {sample.partition("{")[0] for sample in shown.pushed()}
    assert any(name.startswith("kafka_client_producer_") for name in names)
    assert any('client_software_name="' in sample for sample in shown.pushed())


@needs_apache_kafka
def test_the_java_client_pushes(shown: Shown) -> None:
    consumer = subprocess.Popen(
        [
            "java",
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
