"""A secure cluster on this machine: its certificates, users, ACLs and configurations.

For `barnabas dev --secure` and `barnabas.Cluster(security=...)`. All of it is in one directory,
whose files their owner alone can read, and is found there again when the cluster is started again:

- `ca.pem` and `ca-key.pem`, the authority; `node-N.pem`, a node's key and certificate;
- `users.json`, the mode and the passwords;
- for each user `NAME.properties` for Java and our command line, `NAME.librdkafka.properties` and
  `NAME.spark.conf`; with mutual TLS `NAME.pem` too;
- `schema-registry.properties`, how a schema registry logs in.

Nodes log in to each other by what clients use, and to controllers by PLAIN over TLS where that is
SCRAM: a controller that has just begun has not read the users yet.
"""

import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from random import SystemRandom
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.base.private_files import write_private
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.ids import RandomSource, random_uuid
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord

ADMIN, DEMO_USER, NODE = "admin", "alice", "node"
"""A super user; one who may do all with names that begin with `DEMO_PREFIX`; the nodes' own."""
USERS = (ADMIN, DEMO_USER)
TOKENS = "delegation tokens"
"""Not a user: the secret that nodes make tokens with."""
DEMO_PREFIX = "alice-"
DIRECTORY = "security"
USERS_FILE, CA_FILE, CA_KEY_FILE = "users.json", "ca.pem", "ca-key.pem"
REGISTRY_FILE = "schema-registry.properties"
DAYS, CA_DAYS = 825, 3650
PASSWORD_SIZE_BYTES = 24
SCRAM_MECHANISM = "SCRAM-SHA-512"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"
MODULES = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    SCRAM_MECHANISM: f"{_MODULES}.scram.ScramLoginModule",
}


class Security(Enum):
    """The kinds of secured clusters."""

    SCRAM = "scram"
    """TLS, and users with passwords that the cluster keeps as salted hashes."""
    PLAIN = "plain"
    """TLS, and users with passwords in the nodes' configuration."""
    MTLS = "mtls"
    """TLS, and a certificate for each user."""
    TLS = "tls"
    """TLS alone: nobody listens, and everybody may do everything."""

    @property
    def mechanism(self) -> str | None:
        """Of SASL, by which users log in."""
        return {Security.SCRAM: SCRAM_MECHANISM, Security.PLAIN: "PLAIN"}.get(self)

    @property
    def protocol(self) -> str:
        """The security protocol of the listeners."""
        return "SSL" if self.mechanism is None else "SASL_SSL"

    @property
    def has_users(self) -> bool:
        """True if the cluster knows who asks, and ACLs say what they may do."""
        return self is not Security.TLS


@dataclass(frozen=True, slots=True)
class Right:
    """A user's right to a topic, group or transactional id, or to all whose names begin so."""

    user: str
    resource_type: ResourceType
    name: str
    operations: Sequence[Operation] = (Operation.ALL,)
    pattern: PatternType = PatternType.LITERAL


DEMO_RIGHTS = tuple(
    Right(DEMO_USER, kind, DEMO_PREFIX, pattern=PatternType.PREFIXED)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
)


@dataclass(frozen=True, slots=True)
class Secured:
    """The secrets of one cluster, and the configurations that follow from them."""

    directory: str
    mode: Security
    passwords: Mapping[str, str] = field(repr=False)
    rights: Sequence[Right] = DEMO_RIGHTS

    @property
    def users(self) -> list[str]:
        """Everybody who can log in but the nodes."""
        return [name for name in self.passwords if name not in (NODE, TOKENS)]

    # -- nodes

    @property
    def listener(self) -> str:
        """The name of the listener for clients and nodes."""
        return self.mode.protocol

    def make_certificate(self, node_id: int, hosts: Sequence[str]) -> None:
        """A node's key and certificate, unless it has them. Raises OSError."""
        name = f"node-{node_id}"
        own = ("localhost", "127.0.0.1", "::1", socket.gethostname())
        self._issue(name, NODE, [*hosts, *own])

    def node_properties(self, node_id: int, controller_listener: str) -> dict[str, str]:
        """The security settings of a node's server.properties."""
        mechanism, name = self.mode.mechanism, self.listener
        values = {
            "listener.security.protocol.map": f"{name}:{name},{controller_listener}:{name}",
            "inter.broker.listener.name": name,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._path(f"node-{node_id}.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._path(CA_FILE),
            "ssl.client.auth": "required" if self.mode is Security.MTLS else "none",
        }
        if self.mode is Security.MTLS:
            values["ssl.principal.mapping.rules"] = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
        if mechanism is not None:
            controllers = f"listener.name.{controller_listener.lower()}"
            clients = f"listener.name.{name.lower()}"
            values |= {
                "sasl.enabled.mechanisms": mechanism,
                "sasl.mechanism.inter.broker.protocol": mechanism,
                "sasl.mechanism.controller.protocol": "PLAIN",
                f"{controllers}.sasl.enabled.mechanisms": "PLAIN",
                f"{controllers}.plain.sasl.jaas.config": self._jaas("PLAIN", NODE, [NODE]),
                f"{clients}.{mechanism.lower()}.sasl.jaas.config": self._jaas(
                    mechanism, NODE, [*self.users, NODE] if self.mode is Security.PLAIN else []
                ),
            }
        if self.mode.has_users:
            values["authorizer.class.name"] = AUTHORIZER
            values["super.users"] = f"User:{ADMIN};User:{NODE}"
            values["delegation.token.secret.key"] = self.passwords[TOKENS]
        return values

    @property
    def scram(self) -> list[str]:
        """The users of a new cluster, as `storage format --add-scram` takes them."""
        if self.mode is not Security.SCRAM:
            return []
        return [
            f"{SCRAM_MECHANISM}=[name={name},password={self.passwords[name]}]"
            for name in (*self.users, NODE)
        ]

    def acls(self, random: RandomSource) -> list[MetadataRecord]:
        """The ACLs of a new cluster."""
        if not self.mode.has_users:
            return []
        return [
            MetadataRecord(
                AccessControlEntryRecord(
                    id=random_uuid(random),
                    resource_type=right.resource_type,
                    resource_name=right.name,
                    pattern_type=right.pattern,
                    principal=f"User:{right.user}",
                    host=WILDCARD,
                    operation=operation,
                    permission_type=Permission.ALLOW,
                )
            )
            for right in self.rights
            for operation in right.operations
        ]

    def _jaas(self, mechanism: str, user: str, known: Sequence[str]) -> str:
        """A line of JAAS: who logs in, and with PLAIN who may."""
        options = {"username": user, "password": self.passwords[user]}
        options |= {f"user_{name}": self.passwords[name] for name in known}
        shown = " ".join(f'{name}="{value}"' for name, value in options.items())
        return f"{MODULES[mechanism]} required {shown};"

    # -- clients

    def java_properties(self, user: str = ADMIN) -> dict[str, str]:
        """The settings that Java clients and our command line need beside the addresses."""
        values = {
            "security.protocol": self.mode.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._path(CA_FILE),
        }
        mechanism = self.mode.mechanism
        if mechanism is not None:
            values["sasl.mechanism"] = mechanism
            values["sasl.jaas.config"] = self._jaas(mechanism, user, [])
        elif self.mode is Security.MTLS:
            values["ssl.keystore.type"] = "PEM"
            values["ssl.keystore.location"] = self._path(f"{user}.pem")
        return values

    def librdkafka_config(self, user: str = ADMIN) -> dict[str, str]:
        """The settings that librdkafka's clients (confluent-kafka) need beside the addresses."""
        values = {
            "security.protocol": self.mode.protocol,
            "ssl.ca.location": self._path(CA_FILE),
        }
        mechanism = self.mode.mechanism
        if mechanism is not None:
            values["sasl.mechanism"] = mechanism
            values["sasl.username"] = user
            values["sasl.password"] = self.passwords[user]
        elif self.mode is Security.MTLS:
            values["ssl.certificate.location"] = self._path(f"{user}.pem")
            values["ssl.key.location"] = self._path(f"{user}.pem")
        return values

    def file_of(self, user: str = ADMIN) -> str:
        """The properties file of a user for Java and our command line."""
        return self._path(f"{user}.properties")

    def write_client_files(self, bootstrap_servers: str) -> None:
        """Write the files for clients, with these addresses. Raises OSError."""
        for user in self.users:
            if self.mode is Security.MTLS:
                self._issue(user, user, ())
            java = {"bootstrap.servers": bootstrap_servers, **self.java_properties(user)}
            other = {"bootstrap.servers": bootstrap_servers, **self.librdkafka_config(user)}
            write_private(self.file_of(user), _lines(java, "="))
            write_private(self._path(f"{user}.librdkafka.properties"), _lines(other, "="))
            spark = {f"kafka.{key}": value for key, value in java.items()}
            write_private(self._path(f"{user}.spark.conf"), _lines(spark, " "))
        registry = {f"kafkastore.{key}": text for key, text in self.java_properties(ADMIN).items()}
        write_private(self._path(REGISTRY_FILE), _lines(registry, "="))

    # -- files

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _issue(self, file: str, name: str, hosts: Sequence[str]) -> None:
        from barnabas.node.security import development_ca

        path = self._path(f"{file}.pem")
        if os.path.exists(path):
            return
        with open(self._path(CA_KEY_FILE)) as key, open(self._path(CA_FILE)) as own:
            authority = development_ca.identity_of(key.read() + own.read())
        usage = development_ca.Usage.NODE if hosts else development_ca.Usage.CLIENT
        made = development_ca.issue(authority, name, usage, hosts, days=DAYS, now=datetime.now(UTC))
        write_private(path, made.text)


def open_secured(
    directory: str,
    mode: Security,
    users: Sequence[str] = USERS,
    rights: Sequence[Right] = DEMO_RIGHTS,
) -> Secured:
    """The secrets below a cluster's directory: those of an earlier start, or new ones.

    Raises ValueError where the cluster there has another mode, ModuleNotFoundError without the
    package `cryptography`, OSError.
    """
    from barnabas.node.security import development_ca

    place = os.path.join(os.path.abspath(directory), DIRECTORY)
    known = _read(os.path.join(place, USERS_FILE))
    if known is not None:
        if known["security"] != mode.value:
            raise ValueError(
                f"{directory} holds a cluster with security {known['security']}, not {mode.value}"
            )
        return Secured(place, mode, known["passwords"], rights)
    os.makedirs(place, mode=0o700, exist_ok=True)
    authority = development_ca.new_authority(
        "Barnabas development", days=CA_DAYS, now=datetime.now(UTC)
    )
    write_private(os.path.join(place, CA_KEY_FILE), authority.key)
    write_private(os.path.join(place, CA_FILE), authority.certificates)
    passwords = {
        name: secrets.token_urlsafe(PASSWORD_SIZE_BYTES) for name in (*users, NODE, TOKENS)
    }
    secured = Secured(place, mode, passwords, rights)
    # Last: what makes the directory count as made.
    made = {"security": mode.value, "passwords": passwords}
    write_private(os.path.join(place, USERS_FILE), json.dumps(made, indent=2) + "\n")
    return secured


def format_secured(properties: Mapping[str, str], cluster_id: str, secured: Secured) -> None:
    """Format a node's directories as part of a cluster with these users and rights.

    Raises FormatError, ConfigError, OSError.
    """
    random = SystemRandom()
    options = FormatOptions(
        cluster_id, ignore_formatted=True, scram=secured.scram, records=secured.acls(random)
    )
    disk = LocalDisk()
    try:
        config = NodeConfig.from_properties(dict(properties))
        now_ms = SystemClock().now_ms()
        format_directories(disk, config, options, random=random, now_ms=now_ms)
    finally:
        disk.close()


def found_security(directory: str) -> Security | None:
    """The kind of security that an earlier start set up there. Raises OSError, ValueError."""
    known = _read(os.path.join(directory, DIRECTORY, USERS_FILE))
    return None if known is None else Security(known["security"])


def _read(path: str) -> dict[str, Any] | None:
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
        return content


def _lines(values: Mapping[str, str], between: str) -> str:
    return "".join(f"{key}{between}{value}\n" for key, value in values.items())
