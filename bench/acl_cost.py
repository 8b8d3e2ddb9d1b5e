"""What authorization costs: `python -m bench.acl_cost` takes about a minute.

First a check alone, with 10 to 100,000 ACLs: one that is answered from memory, and one whose
answer must be found. Then requests over the wire to a node without an authorizer, and to one with
an authorizer and 1,000 ACLs: Produce, whose bytes repeat, and ListOffsets, which is decoded and
checked each time. Both nodes run at once and are asked in turns, so that what else the machine does
meets both.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import cast

from barnabas.base.clock import SystemClock
from barnabas.base.ids import Uuid
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.security.audit import AuditLog
from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.node.security.standard_authorizer import AuthorizerSettings, StandardAuthorizer
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.features import METADATA_VERSION
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord, FeatureLevelRecord
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.records import Record, encode_batch
from bench.barnabas_server import BarnabasServer
from bench.measure import cpu_seconds
from bench.settings import Settings
from bench.wire import PRODUCE_VERSION, WireClient, produce_first, pump

TOPIC = "cost"
CHECKS = 100_000
ACLS = 1_000
WARM_UP_REQUESTS = 2_000
LIST_OFFSETS_VERSION = 7
CREATE_ACLS_VERSION = 3
AUTHORIZED = """\
authorizer.class.name=StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
"""So that a client that does not log in may make the ACLs, and everything else."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.acl_cost")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--requests", type=int, default=20_000, help="in each round, of each node")
    options = parser.parse_args()
    for count in (10, 1_000, 100_000):
        known, new = check_nanoseconds(count)
        print(f"{count:7,} ACLs: a check {known:6,.0f} ns, {new:6,.0f} ns the first time")
    compare(options.rounds, options.requests)


def check_nanoseconds(count: int) -> tuple[float, float]:
    """(of a check that is known, of one that is new), with so many ACLs for others."""
    authorizer = StandardAuthorizer(AuthorizerSettings(), AuditLog(SystemClock()))
    delta = ImageDelta(MetadataImage())
    delta.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=25))
    for creation in acls(count):
        delta.replay(
            AccessControlEntryRecord(
                id=Uuid(len(delta.acls).to_bytes(16, "big")),
                resource_type=creation.resource_type,
                resource_name=creation.resource_name,
                pattern_type=creation.resource_pattern_type,
                principal=creation.principal,
                host=creation.host,
                operation=creation.operation,
                permission_type=creation.permission_type,
            )
        )
    authorizer.image_changed(delta, delta.image(count + 1, 1, 0))
    caller = Caller(Principal("User", "ANONYMOUS"), "127.0.0.1")
    started = time.perf_counter_ns()
    for _ in range(CHECKS):
        authorizer.allows(caller, Operation.WRITE, ResourceType.TOPIC, TOPIC)
    known = (time.perf_counter_ns() - started) / CHECKS
    names = [f"orders-{number}" for number in range(CHECKS)]
    started = time.perf_counter_ns()
    for name in names:
        authorizer.allows(caller, Operation.WRITE, ResourceType.TOPIC, name, logs_denial=False)
    return known, (time.perf_counter_ns() - started) / CHECKS


def acls(count: int) -> Iterator[AclCreation]:
    """ACLs of which one is for the client: literal names and prefixes, of many users."""
    for number in range(count - 1):
        is_prefix = number % 4 == 0
        yield acl(
            f"user-{number % 500}",
            f"team-{number}-" if is_prefix else f"orders-{number}",
            PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        )
    yield acl("ANONYMOUS", TOPIC, PatternType.LITERAL)


def acl(user: str, name: str, pattern: PatternType) -> AclCreation:
    return AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=Operation.ALL,
        permission_type=Permission.ALLOW,
    )


def compare(rounds: int, requests: int) -> None:
    directory = Settings().directory / "acl-cost"
    with ExitStack() as stack:
        plain = stack.enter_context(BarnabasServer(directory / "plain"))
        checked = stack.enter_context(BarnabasServer(directory / "checked"))
        with checked.properties.open("a") as file:
            file.write(AUTHORIZED)
        for server in (plain, checked):
            server.format()
            server.start()
            produce_first(server.port, TOPIC)
        with WireClient(checked.port) as client:
            request = CreateAclsRequest(creations=list(acls(ACLS)))
            made = cast("CreateAclsResponse", client.request(30, CREATE_ACLS_VERSION, request))
            assert not any(result.error_code for result in made.results), made
        for name, frame in frames().items():
            ratios: list[float] = []
            costs: dict[str, list[float]] = {"without": [], "with": []}
            for server in (plain, checked):
                pump(server.port, frame, WARM_UP_REQUESTS)
            for number in range(rounds):
                pair = {"without": plain, "with": checked}
                order = list(pair) if number % 2 else list(reversed(pair))
                for which in order:
                    before = cpu_seconds(pair[which].pid)
                    pump(pair[which].port, frame, requests)
                    cost = (cpu_seconds(pair[which].pid) - before) / requests * 1e6
                    costs[which].append(cost)
                ratios.append(costs["with"][-1] / costs["without"][-1])
            without, with_acls = map(statistics.median, costs.values())
            print(
                f"{name:12}: {without:6.1f} µs of CPU a request without an authorizer, "
                f"{with_acls:6.1f} with {ACLS:,} ACLs: "
                f"{statistics.median(ratios):5.3f} times (median of {rounds})",
                flush=True,
            )
        for server in (plain, checked):
            server.stop()


def frames() -> dict[str, bytes]:
    """The requests, with their sizes before them."""
    batch = encode_batch([Record(timestamp=time.time_ns() // 1_000_000, value=bytes(100))])
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    produce = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    offsets = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    found = {
        "Produce": encode_request(0, PRODUCE_VERSION, 1, "bench", produce),
        "ListOffsets": encode_request(2, LIST_OFFSETS_VERSION, 1, "bench", offsets),
    }
    return {name: len(frame).to_bytes(4, "big") + frame for name, frame in found.items()}


if __name__ == "__main__":
    main()
