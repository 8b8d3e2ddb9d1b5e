"""A node in a hostile network: attackers on every listener, and one client that must be served.

Despite the attackers the node keeps serving and loses nothing, reveals and changes nothing that
they have no right to, and logs no internal error.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from hostile import Attackers, Target, connect, log_in
from suffering import TELEMETRY

from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from barnabas.protocol.well_known import INTERNAL_TOPICS
from support.certificates import Authority
from support.node_process import NodeProcess
from support.patience import PATIENCE_S
from support.ports import free_port
from support.secured_settings import NODES, Security, password

TOPIC, GROUP = "charges", "readers"
GOOD, BAD = "good", "bad"
SLOW, HALF = "slow", "half"
"""Attackers too: one with small quotas, one with rights only to its own resources."""
SCRATCH = "scratch"
TOKEN_KEY = "the-key-of-tokens-5e7a"
RECORDS_EACH = 200
LIMITS = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
OF_HALF = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ROUNDS_WITHOUT_TIME = 4
GROWTH_MAX_BYTES = 200 << 20
SHOWN_LINES = 40
OWN_FAULTS = ("Traceback", "could not be handled", "CRITICAL")


class SecuredNode:
    """A node whose clients log in over TLS, with a listener of TLS alone and one without."""

    def __init__(self, directory: Path) -> None:
        self._security = Security(Authority(directory), (GOOD, BAD, SLOW, HALF))
        self._node = NodeProcess(directory / "node")
        port, controller_port = self._node.port, self._node.controller_port
        self.tls_port, self.inside_port = free_port(), free_port()
        settings = self._security.settings() | self._security.node(
            1, "127.0.0.1", port, controller_port
        )
        plain = settings["listener.name.clients.plain.sasl.jaas.config"]
        settings["listener.name.inside.plain.sasl.jaas.config"] = plain
        settings["listener.name.controller.plain.sasl.jaas.config"] = plain
        settings["listener.name.inside.sasl.enabled.mechanisms"] = "PLAIN"
        settings["listeners"] += (
            f",TLS://127.0.0.1:{self.tls_port},INSIDE://127.0.0.1:{self.inside_port}"
        )
        settings["listener.security.protocol.map"] += ",TLS:SSL,INSIDE:SASL_PLAINTEXT"
        settings["inter.broker.listener.name"] = "INSIDE"
        settings["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
        settings["connection.failed.authentication.delay.ms"] = "10"
        settings["connections.max.reauth.ms"] = "3600000"
        settings["delegation.token.secret.key"] = TOKEN_KEY
        with self._node.properties.open("a") as properties:
            properties.writelines(f"{key}={value}\n" for key, value in settings.items())

    def start(self) -> None:
        self._node.start()

    def stop(self) -> None:
        self._node.stop()

    def client(self, user: str, **settings: Any) -> dict[str, Any]:
        """librdkafka's configuration for a user."""
        return self._security.client(self._node.bootstrap_servers, user, **settings)

    def target(self) -> Target:
        tls = ssl.create_default_context(cafile=self._security.authority.file)
        with connect(self._node.port, tls) as client:
            log_in(client, NODES)
            ids = [client.topic_id(topic) for topic in (TOPIC, SCRATCH)]
        return Target(
            ids=ids,
            powerful=NODES,
            tls_controller=self._node.controller_port,
            plain=(self.inside_port,),
            tls=(self._node.port, self.tls_port, self._node.controller_port),
            tls_login=self._node.port,
            ca=self._security.authority.file,
            users=(BAD, SLOW, HALF),
            names=[
                *(TOPIC, GROUP, SCRATCH, SCRATCH, SCRATCH, f"User:{GOOD}", GOOD, BAD, "1", "User"),
                *("__consumer_offsets", "__cluster_metadata", "__transaction_state"),
            ],
        )

    def limit(self, user: str) -> None:
        """Give a user quotas that are soon used up."""
        tls = ssl.create_default_context(cafile=self._security.authority.file)
        asked = AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[EntityData(entity_type="user", entity_name=user)],
                    ops=[OpData(key=key, value=1.0) for key in LIMITS],
                )
            ]
        )
        with connect(self._node.port, tls) as client:
            log_in(client, NODES)
            (answer,) = client.call(asked, AlterClientQuotasResponse).entries
            assert not answer.error_code, answer.error_message

    def resident_bytes(self) -> int:
        assert self._node.process is not None
        size: int = psutil.Process(self._node.process.pid).memory_info().rss
        return size

    def lines(self) -> list[str]:
        return self._node.output.read_text().splitlines()


@contextmanager
def secured_node(directory: Path) -> Iterator[tuple[SecuredNode, AdminClient]]:
    """A node with a topic, and a user who may write and read it."""
    node = SecuredNode(directory)
    node.start()
    try:
        admin = AdminClient(node.client(NODES))
        for topic in (TOPIC, SCRATCH):
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
        rights = [
            (GOOD, ResourceType.TOPIC, TOPIC, AclOperation.WRITE),
            (GOOD, ResourceType.TOPIC, TOPIC, AclOperation.READ),
            (GOOD, ResourceType.GROUP, GROUP, AclOperation.READ),
            *((HALF, ResourceType.TOPIC, SCRATCH, operation) for operation in OF_HALF),
            *(
                (HALF, kind, SCRATCH, AclOperation.ALL)
                for kind in (ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
            ),
        ]
        bindings = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for user, kind, name, operation in rights
        ]
        for future in admin.create_acls(bindings).values():
            future.result(PATIENCE_S)
        node.limit(SLOW)
        yield node, admin
    finally:
        node.stop()


class GoodClient:
    """Writes records and reads them back, in a group."""

    def __init__(self, node: SecuredNode) -> None:
        self.values: list[bytes] = []
        self._producer = Producer(node.client(GOOD, acks="all"))
        reading = {"group.id": GROUP, "auto.offset.reset": "earliest"}
        self._consumer = Consumer(node.client(GOOD, **reading))
        self._consumer.subscribe([TOPIC])
        self._read = 0

    def round(self) -> None:
        """Write some records; all of them, and nothing else, come back in their order."""
        failures: list[str] = []
        fresh = [f"{len(self.values) + n}".encode() for n in range(RECORDS_EACH)]
        for value in fresh:
            self._producer.produce(
                TOPIC, value, on_delivery=lambda e, _: failures.append(str(e)) if e else None
            )
        assert self._producer.flush(PATIENCE_S) == 0
        assert not failures
        self.values += fresh
        deadline = time.monotonic() + PATIENCE_S
        while self._read < len(self.values):
            assert time.monotonic() < deadline, f"read {self._read} of {len(self.values)}"
            for message in self._consumer.consume(RECORDS_EACH, 1):
                assert not message.error(), message.error()
                assert message.value() == self.values[self._read]
                self._read += 1

    def close(self) -> None:
        self._consumer.close()


def everything(admin: AdminClient) -> tuple[object, ...]:
    """What the attackers have no right to change: topics, ACLs and users.

    Topics of coordinators are made when anybody first has need of one.
    """
    anything: Any = None  # the type has no room for what matches every name
    any_acl = AclBindingFilter(
        *(ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    topics = admin.list_topics(timeout=PATIENCE_S).topics
    return (
        {
            name: len(topic.partitions)
            for name, topic in topics.items()
            if name not in INTERNAL_TOPICS
        },
        sorted(map(str, admin.describe_acls(any_acl).result(PATIENCE_S))),
        sorted(admin.describe_user_scram_credentials().result(PATIENCE_S)),
    )


def suffer(directory: Path, seed: int, seconds: float) -> None:
    """Attack a node for a time, but at least some rounds of its client."""
    with secured_node(directory) as (node, admin):
        client = GoodClient(node)
        try:
            client.round()
            before, size_before_bytes = everything(admin), node.resident_bytes()
            with Attackers(node.target(), seed) as attackers:
                deadline = time.monotonic() + seconds
                rounds = 0
                while rounds < ROUNDS_WITHOUT_TIME or time.monotonic() < deadline:
                    client.round()
                    rounds += 1
            client.round()
            after = everything(admin)
            assert after == before, after
            grown_bytes = node.resident_bytes() - size_before_bytes
            assert grown_bytes < GROWTH_MAX_BYTES
        finally:
            client.close()
        lines = node.lines()
        TELEMETRY.info("seed %d: %d rounds, %s", seed, rounds, dict(attackers.attacks))
        TELEMETRY.info("%d lines, %d bytes more", len(lines), grown_bytes)
    faults = [n for n, line in enumerate(lines) if any(fault in line for fault in OWN_FAULTS)]
    assert not faults, "\n".join(lines[max(0, faults[0] - 1) :][:SHOWN_LINES])
    secrets = [TOKEN_KEY, *map(password, (NODES, GOOD, BAD, SLOW, HALF))]
    told = [line for line in lines if any(secret in line for secret in secrets)]
    assert not told, told[:5]


@pytest.mark.timeout(180)
def test_a_client_is_served_while_others_attack(tmp_path: Path) -> None:
    suffer(tmp_path, seed=1, seconds=2)


@pytest.mark.soak(weight=2)
@pytest.mark.timeout(0)
def test_attacks_for_minutes(tmp_path: Path, soak_minutes: float) -> None:
    suffer(tmp_path, Random().randrange(2**32), soak_minutes * 60)
