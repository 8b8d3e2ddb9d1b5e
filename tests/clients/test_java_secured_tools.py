"""Kafka's own tools on a secured node say the same of Barnabas as of Apache Kafka.

Each story is a list of commands, run against both; what differs from run to run by nature (ports,
token ids, keys, times) is blotted out before the outputs are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas
from support.java_host import JavaHost
from support.secured_node import SecuredNode, running

pytestmark = [needs_apache_kafka, pytest.mark.slow, pytest.mark.timeout(180)]
USERS = ("admin", "alice", "bob")
BLOTS = (
    (r"\S+/[\w-]+\.properties", "FILE"),
    (r"Request Request\(.*?\) needs (\w+) permission\.", "REFUSED"),
    (r"(?<=ClusterAuthorizationException: )Cluster authorization failed\.", "REFUSED"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME"),
    (r"\b[\w-]{22}\b(?=\s)", "ID"),
    (r"\S{86,88}==", "HMAC"),
    (r"\b1\d{12}\b", "MILLISECONDS"),
    (r"Epoch: \d+", "EPOCH"),
    (r"console-consumer-\d+", "GROUP"),
    (r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "-UUID"),
)

API = re.compile(r"^\s*(\w+\(\d+\)): (.*?)(?: \[usable.*)?,?$", re.MULTILINE)


def blotted(text: str) -> list[str]:
    """Lines without what differs by nature; sorted, as tools print sets in any order."""
    for pattern, word in BLOTS:
        text = re.sub(pattern, word, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return sorted(line for line in lines if line)


@dataclass
class Both:
    """The two nodes, and the JVM that asks them."""

    java: JavaHost
    nodes: dict[str, SecuredNode]

    def run(
        self,
        tool: str,
        *arguments: str,
        user: str = "admin",
        mechanism: str = "PLAIN",
        stdin: str = "",
    ) -> list[str]:
        """What a tool prints of both nodes, after its exit code; fails where they differ."""
        said = {}
        for name, node in self.nodes.items():
            config = node.java_file(f"{user}-{mechanism}", node.java(user, mechanism))
            result = self.java.run(
                *(tool, "--bootstrap-server", node.servers(), "--command-config", config),
                *arguments,
                stdin=stdin,
                exit_code=None,
            )
            said[name] = [
                f"exit {result.exit_code}",
                *blotted(result.out),
                *(f"stderr: {line}" for line in blotted(result.err)),
            ]
        by_word = {
            name: [sorted(re.split("[, ]+", line)) for line in lines]
            for name, lines in said.items()
        }
        assert by_word["barnabas"] == by_word["kafka"], f"{tool} {' '.join(arguments)}\n{said}"
        return said["barnabas"]


@pytest.fixture(scope="module")
def both(java: JavaHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with ExitStack() as stack:
        nodes = {
            name: stack.enter_context(
                running(SecuredNode(tmp_path_factory.mktemp(name), program, USERS))
            )
            for name, program in (("kafka", ApacheKafka()), ("barnabas", Barnabas()))
        }
        for node in nodes.values():
            node.add_users("alice")
            node.create_topic("orders", 2)
        yield Both(java, nodes)


ACL_STEPS = {
    "producer": ("--add", "--allow-principal", "User:bob", "--producer", "--topic", "sales"),
    "idempotent": (
        *("--add", "--allow-principal", "User:bob", "--producer", "--idempotent"),
        *("--topic", "sales-", "--transactional-id", "t-", "--resource-pattern-type", "prefixed"),
    ),
    "consumer": (
        *("--add", "--allow-principal", "User:bob", "--allow-host", "127.0.0.1"),
        *("--consumer", "--topic", "sales", "--group", "readers"),
    ),
    "denial": (
        *("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1"),
        *("--operation", "all", "--topic", "*"),
    ),
    "cluster": ("--add", "--allow-principal", "User:bob", "--operation", "alter", "--cluster"),
    "token": (
        *("--add", "--allow-principal", "User:bob", "--operation", "describe"),
        *("--delegation-token", "t"),
    ),
    "user": (
        *("--add", "--allow-principal", "User:bob", "--operation", "CreateTokens"),
        *("--user-principal", "User:alice"),
    ),
    "wrong operation": (
        *("--add", "--allow-principal", "User:bob", "--operation", "alter"),
        *("--group", "readers"),
    ),
    "no such operation": (
        *("--add", "--allow-principal", "User:bob", "--operation", "dance", "--topic", "x"),
    ),
    "list": ("--list",),
    "list of bob": ("--list", "--principal", "User:bob"),
    "list that match": ("--list", "--topic", "sales-1", "--resource-pattern-type", "match"),
    "list any": ("--list", "--topic", "sales", "--resource-pattern-type", "any"),
    "remove some": (
        *("--remove", "--force", "--allow-principal", "User:bob", "--producer"),
        *("--topic", "sales"),
    ),
    "remove prefixed": (
        *("--remove", "--force", "--topic", "sales-", "--resource-pattern-type", "prefixed"),
    ),
    "list after": ("--list",),
    "remove what is not there": ("--remove", "--force", "--topic", "nothing"),
    "remove the rest of topics": ("--remove", "--force", "--topic", "*"),
    "list at the end": ("--list",),
}


def test_acls(both: Both) -> None:
    said = {name: both.run("kafka-acls", *step) for name, step in ACL_STEPS.items()}
    assert any("User:eve" in line for line in said["list"])
    assert not any("User:eve" in line for line in said["list at the end"])
    both.run("kafka-acls", "--list", user="bob")  # may alter the cluster, not describe it
    refused = both.run("kafka-acls", "--list", user="alice")
    assert any("ClusterAuthorizationException" in line for line in refused)


def users(name: str, *rest: str) -> tuple[str, ...]:
    return ("--entity-type", "users", "--entity-name", name, *rest)


CONFIG_STEPS = {
    "scram": (
        *("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]"),
        *users("carol"),
    ),
    "two mechanisms at once": (
        *("--alter", "--add-config"),
        "SCRAM-SHA-256=[password=x],SCRAM-SHA-512=[password=y]",
        *users("carol"),
    ),
    "the other mechanism": (
        *("--alter", "--add-config", "SCRAM-SHA-512=[password=y]"),
        *users("carol"),
    ),
    "few iterations": (
        *("--alter", "--add-config", "SCRAM-SHA-256=[iterations=100,password=x]"),
        *users("carol"),
    ),
    "many iterations": (
        *("--alter", "--add-config", "SCRAM-SHA-256=[iterations=100000,password=x]"),
        *users("carol"),
    ),
    "unknown mechanism": (
        *("--alter", "--add-config", "SCRAM-SHA-1=[password=x]"),
        *users("carol"),
    ),
    "describe": ("--describe", *users("carol")),
    "describe all": ("--describe", "--entity-type", "users"),
    "delete one": ("--alter", "--delete-config", "SCRAM-SHA-256", *users("carol")),
    "delete it again": ("--alter", "--delete-config", "SCRAM-SHA-256", *users("carol")),
    "describe the other": ("--describe", *users("carol")),
    "quota of a user": (
        *("--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048"),
        *users("carol"),
    ),
    "quota of a user's client": (
        *("--alter", "--add-config", "request_percentage=50.5"),
        *users("carol", "--entity-type", "clients", "--entity-name", "app"),
    ),
    "quota of all users": (
        *("--alter", "--add-config", "controller_mutation_rate=10"),
        *("--entity-type", "users", "--entity-default"),
    ),
    "quota of a client": (
        *("--alter", "--add-config", "producer_byte_rate=4096"),
        *("--entity-type", "clients", "--entity-name", "app"),
    ),
    "quota of all clients": (
        *("--alter", "--add-config", "consumer_byte_rate=4096"),
        *("--entity-type", "clients", "--entity-default"),
    ),
    "quota of an address": (
        *("--alter", "--add-config", "connection_creation_rate=100"),
        *("--entity-type", "ips", "--entity-name", "127.0.0.1"),
    ),
    "quota of all addresses": (
        *("--alter", "--add-config", "connection_creation_rate=1000"),
        *("--entity-type", "ips", "--entity-default"),
    ),
    "quota of no address": (
        *("--alter", "--add-config", "connection_creation_rate=100"),
        *("--entity-type", "ips", "--entity-name", "not an address"),
    ),
    "no such quota": ("--alter", "--add-config", "speed=3", *users("carol")),
    "negative quota": ("--alter", "--add-config", "producer_byte_rate=-1", *users("carol")),
    "fraction": ("--alter", "--add-config", "producer_byte_rate=1.5", *users("carol")),
    "describe users": ("--describe", "--entity-type", "users"),
    "describe clients": ("--describe", "--entity-type", "clients"),
    "describe ips": ("--describe", "--entity-type", "ips"),
    "describe both": ("--describe", *users("carol", "--entity-type", "clients")),
    "describe a default": ("--describe", "--entity-type", "users", "--entity-default"),
    "delete a quota": ("--alter", "--delete-config", "consumer_byte_rate", *users("carol")),
    "delete no quota": ("--alter", "--delete-config", "request_percentage", *users("carol")),
    "delete the default": (
        *("--alter", "--delete-config", "controller_mutation_rate"),
        *("--entity-type", "users", "--entity-default"),
    ),
    "describe what is left": ("--describe", "--entity-type", "users"),
    "describe one": ("--describe", *users("carol")),
}


def test_users_and_quotas(both: Both) -> None:
    said = {name: both.run("kafka-configs", *step) for name, step in CONFIG_STEPS.items()}
    assert any("iterations=8192" in line for line in said["describe"])
    for step in ("scram", "quota of a user"):
        refused = both.run("kafka-configs", *CONFIG_STEPS[step], user="alice")
        assert any("ClusterAuthorizationException" in line for line in refused), refused
    for kind in ("users", "clients", "ips"):
        both.run("kafka-configs", "--describe", "--entity-type", kind, user="alice")


def test_secrets_are_not_described(both: Both) -> None:
    said = both.run("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-default")
    assert not any("secret" in line for line in said)


def test_delegation_tokens(both: Both) -> None:
    """Beside the whole life of a token in `test_token_clients`: what is refused."""
    tool = "kafka-delegation-tokens"
    made = both.run(
        tool,
        *("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"),
        user="alice",
    )
    assert any("HMAC" in line for line in made)
    both.run(tool, "--describe", user="alice")
    both.run(tool, "--describe", user="bob")
    both.run(tool, "--describe", "--owner-principal", "User:alice", user="bob")
    both.run(tool, "--describe", "--owner-principal", "User:nobody", user="alice")
    wrong = ("--hmac", "d3Jvbmc=")
    both.run(tool, "--renew", "--renew-time-period", "-1", *wrong, user="alice")
    both.run(tool, "--expire", "--expiry-time-period", "-1", *wrong, user="alice")
    both.run(tool, "--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob")
    both.run(
        tool,
        *("--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob"),
        user="alice",
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_console_and_groups(both: Both, mechanism: str) -> None:
    topic, group = f"said-{mechanism}", f"heard-{mechanism}"
    for node in both.nodes.values():
        node.create_topic(topic)
    login = {"user": "alice", "mechanism": mechanism}
    produce = ("kafka-console-producer", "--topic", topic)
    consume = (
        *("kafka-console-consumer", "--topic", topic, "--from-beginning", "--group", group),
        *("--max-messages", "2"),
    )
    refused = both.run(*produce, stdin="one\n", **login)
    assert any("TOPIC_AUTHORIZATION_FAILED" in line for line in refused), refused
    refused = both.run(*consume, **login)
    assert any("AuthorizationException" in line for line in refused), refused
    may = (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)
    for node in both.nodes.values():
        node.allow("alice", ResourceType.TOPIC, topic, *may)
    refused = both.run(*consume, **login)
    assert any("GroupAuthorizationException" in line for line in refused), refused
    for node in both.nodes.values():
        node.allow("alice", ResourceType.GROUP, group, AclOperation.READ)
    both.run(*produce, stdin="one\ntwo\n", **login)
    assert {"one", "two"} <= set(both.run(*consume, **login))
    groups = ("kafka-consumer-groups", "--describe", "--group", group)
    assert any(topic in line for line in both.run(*groups, **login))
    assert any(group in line for line in both.run("kafka-consumer-groups", "--list", **login))
    both.run("kafka-consumer-groups", "--list", user="bob")
    both.run(*groups, user="bob")
    both.run("kafka-consumer-groups", "--delete", "--group", group, **login)
    both.run("kafka-topics", "--describe", "--topic", topic, user="bob")
    both.run("kafka-topics", "--delete", "--topic", topic, **login)


def test_what_authorised_operations_say(both: Both) -> None:
    for node in both.nodes.values():
        node.allow("bob", ResourceType.TOPIC, "orders", AclOperation.DESCRIBE)
    both.run("kafka-topics", "--describe", "--topic", "orders", user="bob")
    both.run("kafka-topics", "--list", user="bob")
    both.run("kafka-metadata-quorum", "describe", "--status", user="alice")
    both.run("kafka-features", "describe", user="alice")


def test_every_api_is_there(both: Both) -> None:
    """In every version of Apache Kafka's."""
    apis = {}
    for name, node in both.nodes.items():
        config = node.java_file("admin", node.java("admin"))
        result = both.java.run(
            "kafka-broker-api-versions",
            *("--bootstrap-server", node.servers(), "--command-config", config),
        )
        apis[name] = {
            found[1]: found[2]
            for found in re.finditer(
                r"^\s*(\w+\(\d+\)): (.*?)(?: \[usable.*)?,?$", result.out, re.MULTILINE
            )
        }
    assert len(apis["kafka"]) > 60
    assert apis["barnabas"] == apis["kafka"]


@pytest.mark.parametrize("program", ["kafka", "barnabas"])
def test_kafkas_own_test_of_compatibility(both: Both, program: str) -> None:
    """It can only talk to those who trust it."""
    supported = "offsets-for-times cluster-id create-topics describe-acls describe-configs"
    said = both.java.run(
        *("client-compatibility-test", "--topic", "compatible"),
        *("--bootstrap-server", both.nodes[program].servers("TRUSTED")),
        *("--num-cluster-nodes", "1", "--expect-record-too-large-exception", "false"),
        *(
            word
            for feature in (*supported.split(), "idempotent-producer")
            for word in (f"--{feature}-supported", "true")
        ),
    )
    assert "SUCCESS." in said.lines
