"""Traces of nodes by OpenTelemetry's protocol, taken by a collector of the test's own."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from barnabas.base.errors import ConfigError
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import free_port

pytest.importorskip("opentelemetry.exporter.otlp", reason="the extra otel is not installed")

ENDPOINT, RATIO = "barnabas.tracing.endpoint", "barnabas.tracing.sample.ratio"
HEADERS = "barnabas.tracing.headers"


class Collector:
    """Takes POST /v1/traces, and keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.headers.append(dict(self.headers))
                outer.bodies.append(body)
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def spans(self) -> list[tuple[str, Any]]:
        """The nodes' ids, each with a span."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        found = []
        for body in list(self.bodies):
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            for resource in request.resource_spans:
                facts = {one.key: one.value.string_value for one in resource.resource.attributes}
                assert facts["service.name"] == "barnabas"
                assert facts["service.version"] == barnabas.__version__
                node = facts["service.instance.id"]
                found += [(node, s) for scope in resource.scope_spans for s in scope.spans]
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def produce(cluster: barnabas.Cluster, nodes: int) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient(settings)
    made = admin.create_topics([NewTopic("orders", nodes, nodes)])
    made["orders"].result(PATIENCE_S)
    producer = Producer({**settings, "acks": "all"})
    for partition in range(nodes):
        producer.produce("orders", "value", partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_collector_gets_the_spans_of_each_node(collector: Collector, nodes: int) -> None:
    config = {ENDPOINT: collector.url, RATIO: "1", HEADERS: "authorization=Bearer secret"}
    before_ns = time.time_ns()
    with barnabas.Cluster(nodes, config) as cluster:
        produce(cluster, nodes)

        def written() -> set[str]:
            return {node for node, span in collector.spans() if span.name == "log append"}

        wait_until(lambda: len(written()) == nodes, "the spans of all nodes")
    assert {headers["authorization"] for headers in collector.headers} == {"Bearer secret"}
    spans = collector.spans()
    by_id = {span.span_id: (node, span) for node, span in spans}
    for node, span in spans:
        assert before_ns <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= time.time_ns()
        if span.name == "log append":
            of_node, request = by_id[span.parent_span_id]
            assert (of_node, request.name, request.parent_span_id) == (node, "PRODUCE", b"")
            assert request.trace_id == span.trace_id
            parts = {one.name for _, one in spans if one.parent_span_id == request.span_id}
            assert {"log append", "response"} <= parts
            assert ("wait for replicas" in parts) == (nodes > 1)


def test_a_share_of_nothing_traces_nothing(collector: Collector) -> None:
    with barnabas.Cluster(config={ENDPOINT: collector.url, RATIO: "0"}) as cluster:
        produce(cluster, 1)
    assert collector.spans() == []


def test_nobody_waits_for_a_collector_that_is_away() -> None:
    config = {ENDPOINT: f"http://127.0.0.1:{free_port()}/v1/traces", RATIO: "1"}
    with barnabas.Cluster(config=config) as cluster:
        produce(cluster, 1)
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (ENDPOINT, "localhost:4318"),
        (ENDPOINT, "http://localhost:4318"),
        (ENDPOINT, "http://name:password@localhost:4318/v1/traces"),
        (RATIO, "2"),
        (HEADERS, "secret"),
    ],
)
def test_a_wrong_setting_is_named_without_its_secret(key: str, value: str) -> None:
    config = {ENDPOINT: "http://127.0.0.1:1/v1/traces", key: value}
    with pytest.raises(ConfigError) as found, barnabas.Cluster(config=config):
        pass
    assert found.value.key == key
    assert "secret" not in str(found.value)
    assert "password" not in str(found.value)
