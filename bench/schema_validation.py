"""What validating schemas costs the broker: `python -m bench.schema_validation`.

As `bench.request_cost`, with values that name a registered schema: once to the topic as it is, and
once with validation turned on. A registry that knows the one schema runs in this process.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch
from bench.barnabas_server import BarnabasServer
from bench.measure import cpu_seconds
from bench.request_cost import IN_FLIGHT, TOPIC, WARM_UP_REQUESTS
from bench.settings import Settings
from bench.wire import PRODUCE_VERSION, WireClient, produce_first

SCHEMA = b"\0\0\0\0\x01"
RECORDS_MEASURED = 1_000_000
REQUESTS_MAX = 20_000
TIMEOUT_S = 10


def main() -> None:
    directory = Settings().directory / "schema-validation"
    with _registry() as url:
        for records, size in ((1, 100), (150, 100), (16, 1000)):
            for codec in (Codec.NONE, Codec.LZ4):
                with BarnabasServer(directory) as server:
                    server.format()
                    server.start()
                    produce_first(server.port, TOPIC)
                    off = _measure(server, records, size, codec)
                    _turn_on(server.port, url)
                    on = _measure(server, records, size, codec)
                    print(
                        f"{records:4} records of {size:4} bytes, {codec.name.lower():4}: "
                        f"{off:7.1f} µs of CPU a request, {on:7.1f} with validation: "
                        f"{(on - off) / records:6.2f} µs a record",
                        flush=True,
                    )
                    server.stop()


@contextmanager
def _registry() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps([f"{TOPIC}-value"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _turn_on(port: int, url: str) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    node_id = next(iter(admin.list_topics(timeout=TIMEOUT_S).brokers))
    for kind, name, key, value in (
        (ResourceType.BROKER, str(node_id), "confluent.schema.registry.url", url),
        (ResourceType.TOPIC, TOPIC, "confluent.value.schema.validation", "true"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def _measure(server: BarnabasServer, records: int, size: int, codec: Codec) -> float:
    """Microseconds of the broker's processor time a request."""
    now_ms = time.time_ns() // 1_000_000
    value = SCHEMA + bytes(size - len(SCHEMA))
    batch = encode_batch([Record(timestamp=now_ms, value=value)] * records, codec=codec)
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    body = encode_request(0, PRODUCE_VERSION, 1, "bench", request)
    frame = len(body).to_bytes(4, "big") + body
    requests = min(REQUESTS_MAX, RECORDS_MEASURED // records)
    with WireClient(server.port) as client:
        size_bytes = _pump(client, frame, WARM_UP_REQUESTS)
        before = cpu_seconds(server.pid)
        assert _pump(client, frame, requests) == size_bytes, "an answer tells of an error"
        return (cpu_seconds(server.pid) - before) / requests * 1e6


def _pump(client: WireClient, frame: bytes, requests: int) -> int:
    """Send the frame so often; returns the size of the last answer."""
    size_bytes = 0
    for number in range(requests + IN_FLIGHT):
        if number < requests:
            client.socket.sendall(frame)
        if number >= IN_FLIGHT:
            size_bytes = int.from_bytes(client.receive(4), "big")
            client.receive(size_bytes)
    return size_bytes


if __name__ == "__main__":
    main()
