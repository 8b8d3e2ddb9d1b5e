"""ACLs on three nodes, by real clients: made, listed, deleted, and in force at once everywhere.

Nodes are super users; what clients ask any broker for is decided by the controller in their name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
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
from kafka.admin import ACL, ACLFilter, KafkaAdminClient
from kafka.admin import ACLOperation as PythonOperation
from kafka.admin import ACLPermissionType as PythonPermission
from kafka.admin import ACLResourcePatternType as PythonPatternType
from kafka.admin import ResourcePattern as PythonPattern
from kafka.admin import ResourcePatternFilter as PythonPatternFilter
from kafka.admin import ResourceType as PythonResourceType

import barnabas
from barnabas.protocol.messages.acls import DescribeAclsRequest, DescribeAclsResponse
from support.java_host import JavaHost
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.raw_client import RawClient

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = ("node", "admin", "alice")
JAAS = (
    f"{MODULE} required username=node password=node-secret "
    + " ".join(f"user_{user}={user}-secret" for user in USERS)
    + ";"
)
SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:admin",
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    "listener.name.controller.plain.sasl.jaas.config": JAAS,
}
ANY: Any = None
"""Every name, principal or host; the library's types do not know it."""
ANY_ACL = AclBindingFilter(
    ResourceType.ANY,
    ANY,
    ResourcePatternType.ANY,
    ANY,
    ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(nodes=3, config=SECURED) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: barnabas.Cluster) -> Iterator[AdminClient]:
    admin = client(cluster.bootstrap_servers, "admin")
    yield admin
    done(admin.delete_acls([ANY_ACL]))
    wait_until(lambda: acls(admin) == set(), "no ACLs")


def client(servers: str, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
            "log_level": 0,
        }
    )


def done(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(PATIENCE_S) for future in futures.values()]


def acl(
    operation: AclOperation,
    name: str = "orders",
    kind: ResourceType = ResourceType.TOPIC,
    *,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    principal: str = "User:alice",
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, "*", operation, permission)


def acls(admin: AdminClient) -> set[AclBinding]:
    found: set[AclBinding] = set(admin.describe_acls(ANY_ACL).result(PATIENCE_S))
    return found


def outcome(futures: dict[Any, Any]) -> int:
    """The error code of the only outcome."""
    (future,) = futures.values()
    try:
        future.result(PATIENCE_S)
    except KafkaException as error:
        return int(error.args[0].code())
    return 0


def create(admin: AdminClient, topic: str) -> int:
    return outcome(admin.create_topics([NewTopic(topic, 1, 3)]))


def test_librdkafka_administers_acls(admin: AdminClient) -> None:
    wanted = {
        acl(AclOperation.READ),
        acl(AclOperation.ALL, "pay-", pattern=ResourcePatternType.PREFIXED),
        acl(AclOperation.WRITE, permission=AclPermissionType.DENY, principal="User:*"),
        acl(AclOperation.DESCRIBE, "g", ResourceType.GROUP),
        acl(AclOperation.CREATE, "kafka-cluster", ResourceType.BROKER),
    }
    done(admin.create_acls(list(wanted)))
    done(admin.create_acls([acl(AclOperation.READ)]))
    wait_until(lambda: acls(admin) == wanted, "the ACLs")
    prefixed = AclBindingFilter(
        ResourceType.TOPIC,
        "pay-7",
        ResourcePatternType.MATCH,
        "User:alice",
        ANY,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    ((deleted),) = done(admin.delete_acls([prefixed]))
    assert [binding.name for binding in deleted] == ["pay-"]
    wait_until(lambda: len(acls(admin)) == 4, "one ACL less")


def test_kafka_python_administers_acls(cluster: barnabas.Cluster, admin: AdminClient) -> None:
    python = KafkaAdminClient(
        bootstrap_servers=cluster.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password="admin-secret",
    )
    with contextlib.closing(python):
        administer(python, admin)


def administer(python: KafkaAdminClient, admin: AdminClient) -> None:
    binding = ACL(
        "User:alice",
        "*",
        PythonOperation.READ,
        PythonPermission.ALLOW,
        PythonPattern(PythonResourceType.TOPIC, "orders"),
    )
    result = python.create_acls([binding])
    assert result["succeeded"] == [binding]
    wait_until(lambda: acls(admin) == {acl(AclOperation.READ)}, "the ACL")
    asked = ACLFilter(
        None,
        None,
        PythonOperation.ANY,
        PythonPermission.ANY,
        PythonPatternFilter(PythonResourceType.TOPIC, "orders", PythonPatternType.LITERAL),
    )
    # It may ask a node that has not heard of it yet.
    wait_until(lambda: python.describe_acls(asked)[0] == [binding], "the ACL, seen from any node")
    python.delete_acls([asked])
    wait_until(lambda: acls(admin) == set(), "no ACLs")


def test_a_change_counts_on_open_connections(cluster: barnabas.Cluster, admin: AdminClient) -> None:
    """Any broker passes a client's request on to the controller, which decides it in its name."""
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    servers = cluster.bootstrap_servers.split(",")
    alices = [client(server, "alice") for server in servers]
    for number, alice in enumerate(alices):
        assert create(alice, f"mine-{number}") == denied
    done(
        admin.create_acls([acl(AclOperation.CREATE, "mine-", pattern=ResourcePatternType.PREFIXED)])
    )
    for number, alice in enumerate(alices):
        wait_until(lambda a=alice, n=number: create(a, f"mine-{n}") == 0, "the right")
        assert create(alice, f"theirs-{number}") == denied
    done(
        admin.create_acls(
            [acl(AclOperation.ALL, "*", permission=AclPermissionType.DENY, principal="User:*")]
        )
    )
    for alice in alices:
        wait_until(lambda a=alice: create(a, "mine-later") == denied, "the denial")

    def topics() -> set[str]:
        return set(admin.list_topics(timeout=PATIENCE_S).topics)

    # It may ask a node that has not heard of the last one yet.
    wait_until(lambda: topics() >= {"mine-0", "mine-1", "mine-2"}, "the topics, seen from any node")
    assert not any(topic.startswith("theirs") or topic == "mine-later" for topic in topics())


def test_acls_are_for_those_who_may_alter_the_cluster(
    cluster: barnabas.Cluster, admin: AdminClient
) -> None:
    alice = client(cluster.bootstrap_servers, "alice")
    denied = KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert outcome(alice.create_acls([acl(AclOperation.ALL, "*")])) == denied
    assert outcome(alice.delete_acls([ANY_ACL])) == denied
    assert acls(admin) == set()
    done(admin.create_acls([acl(AclOperation.READ)]))
    wait_until(lambda: len(acls(admin)) == 1, "the ACL")
    assert acls(alice) == set()


def test_without_an_authorizer_there_is_nothing_to_administer() -> None:
    with barnabas.Cluster() as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        disabled = KafkaError.SECURITY_DISABLED
        assert outcome(admin.create_acls([acl(AclOperation.READ)])) == disabled
        assert outcome(admin.delete_acls([ANY_ACL])) == disabled
        with RawClient(cluster.bootstrap_servers) as raw:
            described = raw.call(DescribeAclsRequest(), DescribeAclsResponse)
        assert described.error_code == disabled
        assert described.error_message == "No Authorizer is configured on the broker"


@pytest.mark.slow
def test_kafka_acls(
    cluster: barnabas.Cluster, admin: AdminClient, java: JavaHost, tmp_path: Path
) -> None:
    """Kafka's tool prints what it prints of Kafka's own brokers."""
    config = tmp_path / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        f"{MODULE} required username=admin password=admin-secret;\n"
    )

    def tool(*arguments: str) -> list[str]:
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        return java.run("kafka-acls", *server, "--command-config", str(config), *arguments).lines

    added = tool(
        *("--add", "--allow-principal", "User:alice", "--producer"),
        *("--topic", "orders-", "--resource-pattern-type", "prefixed"),
    )
    pattern = "`ResourcePattern(resourceType=TOPIC, name=orders-, patternType=PREFIXED)`:"
    entries = {
        f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)"
        for operation in ("WRITE", "DESCRIBE", "CREATE")
    }
    assert {line.strip() for line in added} >= entries | {f"Adding ACLs for resource {pattern}"}
    wait_until(lambda: len(acls(admin)) == 3, "three ACLs")
    listed = {line.strip() for line in tool("--list", "--principal", "User:alice")}
    assert listed >= entries | {f"Current ACLs for resource {pattern}"}
    tool("--remove", "--topic", "orders-", "--resource-pattern-type", "prefixed", "--force")
    wait_until(lambda: acls(admin) == set(), "no ACLs")
    assert not [line for line in tool("--list") if "principal=" in line]
