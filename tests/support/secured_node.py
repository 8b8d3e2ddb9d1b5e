"""One node that asks everybody who they are, of Barnabas or of Apache Kafka, for real clients.

Users log in over TLS by every mechanism there is, or by a certificate. Other listeners are there to
be complained of: one shows a certificate that has ended, one that of another host. `TRUSTED` is for
clients that cannot log in, and may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic

from support.certificates import Authority
from support.cluster_processes import ClusterNode, Loopback, Program
from support.node_process import wait_until
from support.ports import free_port
from support.secured_settings import AUTHORIZER, NODES, PLAIN_LOGIN, SCRAM, SCRAM_LOGIN, password

HOST = "127.0.0.1"
OTHER_HOST = "127.0.0.9"
OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
PROTOCOLS = {
    "CLIENTS": "SASL_SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SASL_SSL",
    "ELSEWHERE": "SASL_SSL",
    "OPEN": "SASL_PLAINTEXT",
    "TRUSTED": "PLAINTEXT",
}
ANSWER_S = 60
SCRAM_NAMES = dict(
    zip(SCRAM, (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512), strict=True)
)


def jaas(user: str, mechanism: str, secret: str | None = None) -> str:
    """The line of a client in Java."""
    if mechanism == "OAUTHBEARER":
        return f'{OAUTH_LOGIN} unsecuredLoginStringClaim_sub="{user}";'
    module = PLAIN_LOGIN if mechanism == "PLAIN" else SCRAM_LOGIN
    return f'{module} username="{user}" password="{secret or password(user)}";'


class SecuredNode:
    """Its settings, and what clients must know to be let in."""

    def __init__(
        self, directory: Path, program: Program, users: tuple[str, ...], **settings: str
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(directory)
        self.users = users
        self.node = ClusterNode(1, directory / "node", Loopback(), program)
        self.ports = {name: free_port() for name in PROTOCOLS} | {"CLIENTS": self.node.port}
        self._settings = settings

    def servers(self, listener: str = "CLIENTS") -> str:
        """Return where a listener is reached."""
        return f"{HOST}:{self.ports[listener]}"

    def log(self) -> str:
        """Return what the node has said."""
        return self.node.output.read_text()

    def settings(self) -> dict[str, str]:
        """Properties that both programs take."""
        protocols = {**PROTOCOLS, "CONTROLLER": "PLAINTEXT"}
        known = " ".join(f'user_{user}="{password(user)}"' for user in (NODES, *self.users))
        plain = f'{PLAIN_LOGIN} username="{NODES}" password="{password(NODES)}" {known};'
        certificate = self.authority.issue
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self.node.controller_port}",
            "log.dirs": str(self.node.data),
            "listeners": ",".join(
                [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
                + [f"CONTROLLER://{HOST}:{self.node.controller_port}"]
            ),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "CLIENTS",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificate("node", [HOST]),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.location": certificate("old", [HOST], days=-1),
            "listener.name.elsewhere.ssl.keystore.location": certificate("other", [OTHER_HOST]),
            "listener.name.clients.oauthbearer.sasl.jaas.config": jaas(NODES, "OAUTHBEARER"),
            "delegation.token.secret.key": "the-nodes-own-secret",
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{NODES};User:ANONYMOUS;User:admin",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
        }
        for listener, protocol in PROTOCOLS.items():
            if protocol.startswith("SASL"):
                settings[f"listener.name.{listener.lower()}.plain.sasl.jaas.config"] = plain
        for mechanism in SCRAM:
            key = f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config"
            settings[key] = jaas(NODES, mechanism)
        return settings | self._settings

    def librdkafka(self, user: str, mechanism: str = "PLAIN", /, **settings: Any) -> dict[str, Any]:
        """The configuration of a user's client of librdkafka."""
        common = {
            "bootstrap.servers": self.servers(),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.authority.file,
            "sasl.mechanism": mechanism,
        }
        if mechanism == "OAUTHBEARER":
            common["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
            common["sasl.oauthbearer.config"] = f"principal={user}"
        else:
            common |= {"sasl.username": user, "sasl.password": password(user)}
        return common | settings

    def java(
        self, user: str, mechanism: str = "PLAIN", secret: str | None = None
    ) -> dict[str, str]:
        """The configuration of a user's client in Java."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas(user, mechanism, secret),
        }

    def java_file(self, name: str, settings: dict[str, str]) -> str:
        """The path of a client's configuration as a properties file."""
        path = self.directory / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)

    def program_settings(self) -> dict[str, str]:
        """Settings of the programs in Go and JavaScript, for the user who may do everything."""
        return {
            "bootstrap": self.servers(),
            "ca": self.authority.file,
            "user": "admin",
            "password": password("admin"),
            "mechanism": "PLAIN",
            "topic": "orders",
            "group": "readers",
        }

    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient(self.librdkafka("admin"))

    def add_users(self, *users: str) -> None:
        """Let users log in by SCRAM too, and wait until they are known."""
        admin = self.admin()
        for user in users:
            for mechanism, kind in SCRAM_NAMES.items():
                info = ScramCredentialInfo(kind, 4096)
                change = UserScramCredentialUpsertion(user, info, password(user).encode())
                admin.alter_user_scram_credentials([change])[user].result(ANSWER_S)
                client = AdminClient(self.librdkafka(user, mechanism, log_level=0))
                wait_until(partial(_is_served, client), f"{user} by {mechanism}", ANSWER_S)

    def create_topic(self, name: str, partitions: int = 1) -> str:
        admin = self.admin()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1)
        admin.create_topics([topic])[name].result(ANSWER_S)
        wait_until(lambda: name in admin.list_topics(timeout=ANSWER_S).topics, f"topic {name}")
        return name

    def wait_for_groups(self) -> None:
        """Wait until there is a coordinator: the first question makes its topic."""
        consumer = Consumer(self.librdkafka("admin", **{"group.id": "first"}))
        consumer.committed([TopicPartition("orders", 0)], ANSWER_S)
        consumer.close()

    def allow(
        self,
        user: str,
        kind: ResourceType,
        name: str,
        *operations: AclOperation,
        is_prefix: bool = False,
    ) -> None:
        """Let a user do some things with a resource."""
        pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
        bindings = [
            AclBinding(
                *(kind, name, pattern, f"User:{user}"),
                *("*", operation, AclPermissionType.ALLOW),
            )
            for operation in operations
        ]
        admin = self.admin()  # it must outlive the answers
        for future in admin.create_acls(bindings).values():
            future.result(ANSWER_S)


def _is_served(client: AdminClient) -> bool:
    try:
        client.list_topics(timeout=ANSWER_S)
    except KafkaException:
        return False
    return True


@contextmanager
def running(node: SecuredNode) -> Iterator[SecuredNode]:
    """The node, while it runs."""
    try:
        node.node.format(node.settings())
        node.node.wait_formatted()
        node.node.start()
        wait_until(node.node.answers, "the node answers", ANSWER_S)
        wait_until(lambda: _is_served(node.admin()), "the node serves", ANSWER_S, node.log)
        yield node
    finally:
        node.node.kill()
