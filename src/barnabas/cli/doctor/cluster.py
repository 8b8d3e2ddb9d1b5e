"""Checks of `barnabas doctor` that any client of the cluster could make."""

import socket
import struct
import time
import uuid
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from barnabas.base.addresses import is_loopback
from barnabas.base.config.values import parse_host_port
from barnabas.cli.connection import Connection
from barnabas.cli.doctor.findings import Finding, fault, note, ok
from barnabas.cli.doctor.nodes import check_nodes, down_brokers, some
from barnabas.cli.errors import CliError
from barnabas.cli.output import counted
from barnabas.kafka.bootstrap import API_VERSIONS_REQUEST

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

CONNECT_TIMEOUT_S = 3.0
CLOCK_DIFFERENCE_MAX_MS = 5000
RESPONSE_MAX_BYTES = 1 << 16


def check_cluster(connection: Connection, *, round_trip: bool) -> Iterator[Finding]:
    """Everything a client can see; ends early where no broker answers."""
    secured = connection.config.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT"
    answering = 0
    for address in connection.bootstrap_servers.split(","):
        finding = check_bootstrap(address.strip(), secured=secured)
        answering += finding.level == "ok"
        yield finding
    if not answering:
        return
    try:
        metadata = connection.metadata()
    except CliError as error:
        advice = "" if error.hint else "check --client-config if the cluster asks for it"
        yield fault("metadata", error.line(), advice)
        return
    yield ok(
        "cluster",
        f"id {metadata.cluster_id}, {counted(len(metadata.brokers), 'broker')}, "
        f"{counted(len(metadata.topics), 'topic')}",
    )
    yield from check_advertised(connection, metadata, down_brokers(connection))
    yield from check_partitions(metadata)
    yield from check_nodes(connection)
    if round_trip:
        yield from check_round_trip(connection)


def check_bootstrap(address: str, *, secured: bool) -> Finding:
    """Return whether a bootstrap address speaks Kafka's protocol."""
    host_port = parse_host_port(address)
    if host_port is None:
        return fault("bootstrap", f"{address} is not host:port")
    reason = connect_reason(*host_port)
    if reason is not None:
        return fault("bootstrap", f"{address}: {reason}", "is the broker running, on that port?")
    if secured:
        return ok("bootstrap", f"{address} accepts connections")
    apis = api_count(*host_port)
    if apis is None:
        return fault(
            "bootstrap",
            f"{address} accepts connections, but does not speak Kafka's protocol in plain text",
            "a TLS listener needs security.protocol in --client-config; or it is not a broker",
        )
    return ok("bootstrap", f"{address} answers, with {apis} APIs")


def connect_reason(host: str, port: int) -> str | None:
    """Why a connection fails, or None."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return None
    except socket.gaierror:
        return "unknown host name"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return (error.strerror or str(error)).lower()


def api_count(host: str, port: int) -> int | None:
    """Return how many APIs a broker serves, asked in plain text; None where it gives no answer."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S) as stream:
            stream.sendall(API_VERSIONS_REQUEST)
            reply = b""
            while len(reply) < 14 and (part := stream.recv(RESPONSE_MAX_BYTES)):
                reply += part
    except OSError:
        return None
    if len(reply) < 14:
        return None
    size_bytes, correlation_id, _, count = struct.unpack_from(">iihi", reply)
    if correlation_id != 1 or not 0 < count <= size_bytes // 6:
        return None
    return int(count)


def check_advertised(
    connection: Connection, metadata: "ClusterMetadata", down: Collection[int]
) -> Iterator[Finding]:
    """Check that brokers' advertised addresses can be reached from here.

    Brokers that are down are left to `check_nodes`: their addresses are not at fault.
    """
    hosts = [parse_host_port(part.strip()) for part in connection.bootstrap_servers.split(",")]
    remote = any(pair is not None and not is_loopback(pair[0]) for pair in hosts)
    for broker in sorted(metadata.brokers.values(), key=lambda broker: broker.id):
        if broker.id in down:
            continue
        host, port = str(broker.host), int(broker.port)
        where = f"broker {broker.id} tells clients {host}:{port}"
        advice = "set advertised.listeners on the broker to an address that its clients can reach"
        reason = connect_reason(host, port)
        if reason is not None:
            yield fault(
                "advertised", f"{where}, which cannot be reached from here: {reason}", advice
            )
        elif remote and is_loopback(host):
            yield fault("advertised", f"{where}, which is every client's own machine", advice)
        elif is_loopback(host):
            yield note("advertised", f"{where}: clients on other machines cannot connect")
        else:
            yield ok("advertised", where)


def check_partitions(metadata: "ClusterMetadata") -> Iterator[Finding]:
    """Leaders and replicas of all partitions."""
    leaderless, lagging, total = [], [], 0
    for name, topic in sorted(metadata.topics.items()):
        for number, partition in sorted(topic.partitions.items()):
            total += 1
            if partition.leader < 0:
                leaderless.append(f"{name}-{number}")
            elif len(partition.isrs) < len(partition.replicas):
                lagging.append(f"{name}-{number}")
    if leaderless:
        yield fault("partitions", f"without a leader: {some(leaderless)}", "start their brokers")
    if lagging:
        yield note("partitions", f"with replicas that lag or are gone: {some(lagging)}")
    if not leaderless and not lagging:
        yield ok("partitions", f"{total}, all with a leader and all replicas in sync")


def check_round_trip(connection: Connection) -> Iterator[Finding]:
    """A record through a temporary topic, which also shows the broker's clock."""
    from confluent_kafka.cimpl import NewTopic

    name = f"barnabas-doctor-{uuid.uuid4().hex[:8]}"
    config = {"message.timestamp.type": "LogAppendTime"}
    try:
        created = connection.admin.create_topics([NewTopic(name, 1, config=config)])
        connection.wait(created[name], "round trip")
        try:
            yield from _send_and_receive(connection, name)
        finally:
            connection.wait(connection.admin.delete_topics([name])[name], "round trip")
    except CliError as error:
        yield fault("round trip", error.line())


def _send_and_receive(connection: Connection, topic: str) -> Iterator[Finding]:
    from barnabas.cli.records.reading import read_partitions
    from barnabas.cli.records.records import NewRecord
    from barnabas.cli.records.sender import Sender

    sender = Sender(connection, topic, "all", "none", is_short=True)
    sender.send(NewRecord(b"warm-up: connections are made with it"))
    sender.finish()
    begun_ms = time.time() * 1000
    begun = time.monotonic()
    sender.send(NewRecord(b"doctor"))
    sender.finish()
    took_ms = (time.monotonic() - begun) * 1000
    messages = read_partitions(connection, {(topic, 0): 1}, {(topic, 0): 2}, "read_committed", 1)
    for message in messages:
        yield ok("round trip", f"a record was acknowledged in {took_ms:.0f} ms and read back")
        difference_ms = message.timestamp()[1] - (begun_ms + took_ms / 2)
        text = f"the broker's differs from ours by {abs(difference_ms):.0f} ms"
        if abs(difference_ms) > CLOCK_DIFFERENCE_MAX_MS + took_ms:
            yield fault("clock", text, "run an NTP client on both machines")
        else:
            yield ok("clock", text)
        return
    yield fault("round trip", "an acknowledged record could not be read back")
