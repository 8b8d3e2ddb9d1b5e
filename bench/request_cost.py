"""What one produce request costs the broker: `python -m bench.request_cost` takes seconds.

A bare client keeps five requests in flight and repeats the same bytes, so that nothing but the
broker is measured, in microseconds of its processor time. `--at-once 4` sends four by one write
and waits for their answers, to show what a request costs that is handled with others. `--acls 1000`
has the broker authorize, with so many ACLs. `--partitions 2` writes to two partitions with each
request, which is never taken for a repetition. `--codec zstd` compresses the records.
`--profile` runs Barnabas under cProfile and prints where they go (slower, but the shares hold).
"""

import argparse
import pstats
import sys
import time
from pathlib import Path

from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.apis import CREATE_ACLS
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch
from bench.barnabas_server import BarnabasServer
from bench.kafka_server import KafkaServer
from bench.measure import cpu_seconds
from bench.server import Server
from bench.settings import Settings
from bench.wire import PRODUCE_VERSION, WireClient, make_topic, produce_first

TOPIC, PARTITIONED = "cost", "partitioned"
TIMEOUT_SECONDS = 60.0
AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
IN_FLIGHT = 5
WARM_UP_REQUESTS = 2000
PROFILE_ROWS = 40


class ProfiledServer(BarnabasServer):
    """Barnabas under cProfile; the profile is written when it stops."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.profile = directory / "profile"

    def start_command(self) -> list[str]:
        return [sys.executable, "-m", "cProfile", "-o", str(self.profile), *super().start_command()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.request_cost")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka instead")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--at-once", type=int, metavar="N", help="send N together, then wait")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--acls", type=int, metavar="N", help="authorize, with N ACLs")
    parser.add_argument("--partitions", type=int, default=1, metavar="N")
    parser.add_argument("--codec", type=str.upper, choices=Codec.__members__, default="NONE")
    options = parser.parse_args()
    directory = Settings().directory / "request-cost"
    for records, size in ((1, 100), (150, 100), (16, 1000)):
        server: Server
        if options.kafka:
            server = KafkaServer(directory)
        else:
            server = ProfiledServer(directory) if options.profile else BarnabasServer(directory)
        with server:
            if options.acls:
                with server.properties.open("a") as properties:
                    properties.write(AUTHORIZER)
            rate, cost = _measure(server, records, size, options)
            print(
                f"{records:4} records of {size:4} bytes: {rate:9,.0f} requests/s, "
                f"{cost:7.1f} µs of CPU a request",
                flush=True,
            )
            server.stop()
            if isinstance(server, ProfiledServer):
                pstats.Stats(str(server.profile)).sort_stats("tottime").print_stats(PROFILE_ROWS)


def _measure(
    server: Server, records: int, size: int, options: argparse.Namespace
) -> tuple[float, float]:
    """(requests a second, microseconds of the broker's processor time a request)."""
    requests: int = options.requests
    at_once: int | None = options.at_once
    server.format()
    server.start()
    produce_first(server.port, TOPIC)
    make_topic(server.port, PARTITIONED, options.partitions, TIMEOUT_SECONDS)
    if options.acls:
        _add_acls(server.port, options.acls)
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch(
        [Record(timestamp=now_ms, value=bytes(size))] * records, codec=Codec[options.codec]
    )
    data = TopicProduceData(
        name=PARTITIONED if options.partitions > 1 else TOPIC,
        partition_data=[
            PartitionProduceData(index=index, records=batch) for index in range(options.partitions)
        ],
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    frame = encode_request(0, PRODUCE_VERSION, 1, "bench", request)
    frame = len(frame).to_bytes(4, "big") + frame
    with WireClient(server.port) as client:
        _pump(client, frame, WARM_UP_REQUESTS)
        before = cpu_seconds(server.pid)
        started = time.monotonic()
        if at_once:
            requests -= requests % at_once
            _pump_together(client, frame, requests, at_once)
        else:
            _pump(client, frame, requests)
        seconds = time.monotonic() - started
        return requests / seconds, (cpu_seconds(server.pid) - before) / requests * 1e6


def _add_acls(port: int, count: int) -> None:
    """One for each topic that is written to; the others are about other topics and users."""
    creations = [
        AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            resource_pattern_type=PatternType.PREFIXED if number % 2 else PatternType.LITERAL,
            principal=user,
            host=WILDCARD,
            operation=Operation.WRITE,
            permission_type=Permission.ALLOW,
        )
        for number, (name, user) in enumerate(
            [
                *((topic, str(ANONYMOUS)) for topic in (TOPIC, PARTITIONED)),
                *((f"topic-{number}", f"User:{number % 100}") for number in range(count - 2)),
            ]
        )
    ]
    with WireClient(port) as client:
        answer = client.request(CREATE_ACLS.key, 3, CreateAclsRequest(creations=creations))
    assert isinstance(answer, CreateAclsResponse)
    assert not any(result.error_code for result in answer.results), answer.results[0]


def _pump(client: WireClient, frame: bytes, requests: int) -> None:
    for number in range(requests + IN_FLIGHT):
        if number < requests:
            client.socket.sendall(frame)
        if number >= IN_FLIGHT:
            client.receive(int.from_bytes(client.receive(4), "big"))


def _pump_together(client: WireClient, frame: bytes, requests: int, at_once: int) -> None:
    together = frame * at_once
    for _ in range(requests // at_once):
        client.socket.sendall(together)
        for _ in range(at_once):
            client.receive(int.from_bytes(client.receive(4), "big"))


if __name__ == "__main__":
    main()
