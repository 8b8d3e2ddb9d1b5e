"""Clients of Go and JavaScript see on a secured node what they see on Apache Kafka's.

franz-go, sarama and kafkajs administer ACLs, users, quotas and tokens, and carry records over TLS
with every login they know. Their programs print what they saw; the tests compare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas
from support.foreign_programs import go_program, node_program, output_of
from support.secured_node import SecuredNode, running
from support.secured_settings import password

pytestmark = [needs_apache_kafka, pytest.mark.slow, pytest.mark.timeout(300)]
TIMEOUT_S = 60
CLIENTS = ("franz", "sarama", "kafkajs")
ALICE = {"user": "alice", "password": password("alice")}
LOGINS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@cache
def command(client: str) -> tuple[str | Path, ...]:
    if client == "kafkajs":
        return ("node", node_program("secured_client.js"))
    return (go_program("secured"), client)


def blotted(text: str) -> list[str]:
    """Lines without what differs by nature; sorted, as Kafka answers sets in any order."""
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)
    text = re.sub(r"Request Request\(.*\) needs \w+ permission", "REFUSED", text)
    lines = []
    for line in text.splitlines():
        is_wordy = line.startswith(("acls:", "deleted:"))
        lines.append(line.replace("Cluster authorization failed", "REFUSED") if is_wordy else line)
    return sorted(lines)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SecuredNode]]:
    users = ("admin", "alice", "bob")
    with ExitStack() as stack:
        nodes = {
            name: stack.enter_context(
                running(SecuredNode(tmp_path_factory.mktemp(name), program, users))
            )
            for name, program in (("kafka", ApacheKafka()), ("barnabas", Barnabas()))
        }
        for node in nodes.values():
            node.add_users("admin", "alice")
            node.create_topic("orders", 2)
            node.wait_for_groups()
        yield nodes


def said(nodes: dict[str, SecuredNode], client: str, scenario: str, **changes: str) -> list[str]:
    """What a client says it saw; fails where it saw something else of Apache Kafka."""
    seen = {}
    for name, node in nodes.items():
        settings = node.program_settings() | changes
        seen[name] = blotted(
            output_of([*command(client), scenario, json.dumps(settings)], TIMEOUT_S)
        )
    assert seen["barnabas"] == seen["kafka"]
    return seen["barnabas"]


@pytest.mark.parametrize("client", CLIENTS)
def test_administration(nodes: dict[str, SecuredNode], client: str) -> None:
    assert len(said(nodes, client, "administer")) >= 7


@pytest.mark.parametrize("client", CLIENTS)
def test_administration_by_who_may_not(nodes: dict[str, SecuredNode], client: str) -> None:
    lines = said(nodes, client, "administer", **ALICE)
    assert any("error" in line for line in lines)


@pytest.mark.parametrize("mechanism", LOGINS)
@pytest.mark.parametrize("client", CLIENTS)
def test_records_are_carried(nodes: dict[str, SecuredNode], client: str, mechanism: str) -> None:
    name = f"{client}-{mechanism}"
    for node in nodes.values():
        node.create_topic(name)
        may = (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)
        node.allow("alice", ResourceType.TOPIC, name, *may)
        node.allow("alice", ResourceType.GROUP, name, AclOperation.READ)
    lines = said(nodes, client, "carry", **ALICE, mechanism=mechanism, topic=name, group=name)
    assert not any("error" in line for line in lines), lines


@pytest.mark.parametrize("client", CLIENTS)
def test_what_may_not_be_carried(nodes: dict[str, SecuredNode], client: str) -> None:
    lines = said(nodes, client, "carry", **ALICE)
    assert any("uthoriz" in line for line in lines), lines


@pytest.mark.parametrize("mechanism", LOGINS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_password(nodes: dict[str, SecuredNode], client: str, mechanism: str) -> None:
    lines = said(nodes, client, "carry", user="alice", mechanism=mechanism, password="guessed")
    assert any("error" in line for line in lines), lines
    assert "guessed" not in nodes["barnabas"].log()
