"""What clients are told when something is wrong with a login or with TLS, and what our log says.

Each ends with an error, and the node writes a line of it that holds no secret.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafka import KafkaProducer
from support.certificates import Authority
from support.cluster_processes import Barnabas
from support.java_host import JavaHost
from support.node_process import wait_until
from support.secured_node import SecuredNode, jaas, running
from support.secured_settings import password

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
TIMEOUT_S = 20
GUESSED = "guessed-secret-77"
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "password": ("CLIENTS", {"secret": GUESSED}),
    "scram-password": ("CLIENTS", {"mechanism": "SCRAM-SHA-512", "secret": GUESSED}),
    "mechanism": ("OPEN", {"mechanism": "SCRAM-SHA-256", "protocol": "SASL_PLAINTEXT"}),
    "expired": ("EXPIRED", {}),
    "other-host": ("ELSEWHERE", {}),
    "unknown-ca": ("CLIENTS", {"ca": "unknown"}),
    "plain-on-tls": ("CLIENTS", {"protocol": "SASL_PLAINTEXT"}),
    "tls-on-plain": ("OPEN", {}),
    "no-certificate": ("MUTUAL", {"protocol": "SSL"}),
}
HUNG_UP = "it closed the connection during the TLS handshake"
"""aiokafka's report if it gets no alert."""
NEW_LINES = {
    "password": ("Invalid username or password",),
    "scram-password": ("no such user, or another password",),
    "mechanism": ("Unsupported SASL mechanism SCRAM-SHA-256",),
    "expired": ("it refused our certificate", HUNG_UP),
    "other-host": ("it refused our certificate", HUNG_UP),
    # Java says no more than that it does not know the certificate.
    "unknown-ca": ("does not trust the authority", "it refused our certificate", HUNG_UP),
    "plain-on-tls": ("it sends Kafka requests in plain text",),
    "tls-on-plain": ("looks like a TLS handshake",),
    "no-certificate": ("it showed no certificate",),
}


@pytest.fixture(autouse=True)
def sockets_of_clients() -> Iterator[None]:
    """Clients of Python leave the sockets of failed handshakes to the garbage collector."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    directory = tmp_path_factory.mktemp("wrong-logins")
    with running(SecuredNode(directory, Barnabas(), ("admin", "alice"))) as node:
        node.add_users("alice")
        yield node


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A certificate of somebody who has signed nothing."""
    return Authority(tmp_path_factory.mktemp("unknown"), "unknown").file


class Wrong:
    """One case as settings of each client."""

    def __init__(self, node: SecuredNode, name: str, unknown: str) -> None:
        listener, changes = CASES[name]
        self.servers = node.servers(listener)
        self.is_tls = listener != "OPEN"
        self.ca = unknown if "ca" in changes else node.authority.file
        self.mechanism = changes.get("mechanism", "PLAIN")
        self.protocol = changes.get("protocol", "SASL_SSL")
        self.secret = changes.get("secret", password("alice"))

    def context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.ca) if "SSL" in self.protocol else None

    def python(self) -> dict[str, Any]:
        """The settings that aiokafka and kafka-python share."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "security_protocol": self.protocol,
            "ssl_context": self.context(),
            "request_timeout_ms": 5000,
        }
        if self.protocol != "SSL":
            settings["sasl_mechanism"] = self.mechanism
            settings["sasl_plain_username"] = "alice"
            settings["sasl_plain_password"] = self.secret
        return settings


def librdkafka(wrong: Wrong) -> str:
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": wrong.servers,
        "security.protocol": wrong.protocol,
        "ssl.ca.location": wrong.ca,
        "error_cb": errors.append,
        "log_level": 0,
    }
    if wrong.protocol != "SSL":
        settings |= {
            "sasl.mechanism": wrong.mechanism,
            "sasl.username": "alice",
            "sasl.password": wrong.secret,
        }
    client = AdminClient(settings)
    only_sees_it_close = wrong.protocol == "SASL_PLAINTEXT" and wrong.is_tls

    def told() -> bool:
        client.poll(0.1)
        return any(
            only_sees_it_close or error.code() != KafkaError._ALL_BROKERS_DOWN for error in errors
        )

    wait_until(told, "an error")
    with pytest.raises(KafkaException) as refused:
        client.list_topics(timeout=1)
    return " ".join([*(error.str() for error in errors), str(refused.value)])


def aiokafka(wrong: Wrong) -> str:
    async def start() -> None:
        producer = AIOKafkaProducer(**wrong.python())
        try:
            await asyncio.wait_for(producer.start(), TIMEOUT_S)
        finally:
            await producer.stop()

    with pytest.raises(Exception, match="Unable to bootstrap") as told:
        asyncio.run(start())
    return str(told.value)


def kafka_python(wrong: Wrong) -> str:
    with pytest.raises(Exception, match="Unable to bootstrap") as told:
        KafkaProducer(**wrong.python(), bootstrap_timeout_ms=1500).close()
    return str(told.value)


def check(node: SecuredNode, name: str, ask: Callable[[], str]) -> None:
    before = len(node.log())
    told = ask()
    assert told
    words = NEW_LINES[name]
    wait_until(lambda: any(word in node.log()[before:] for word in words), "a line in the log")
    for text in (told, node.log()):
        assert GUESSED not in text
        assert password("alice") not in text


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("client", [librdkafka, aiokafka, kafka_python])
def test_clients_of_python(
    node: SecuredNode, unknown: str, name: str, client: Callable[[Wrong], str]
) -> None:
    check(node, name, lambda: client(Wrong(node, name, unknown)))


@pytest.mark.parametrize("name", CASES)
def test_java(node: SecuredNode, unknown: str, java: JavaHost, tmp_path: Path, name: str) -> None:
    wrong = Wrong(node, name, unknown)
    config = node.java_file(
        f"wrong-{name}",
        {
            "security.protocol": wrong.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": wrong.ca,
            "sasl.mechanism": wrong.mechanism,
            "sasl.jaas.config": jaas("alice", wrong.mechanism, wrong.secret),
            "default.api.timeout.ms": "6000",
            "request.timeout.ms": "5000",
        },
    )

    def ask() -> str:
        command = ("kafka-topics", "--bootstrap-server", wrong.servers, "--command-config", config)
        result = java.run(*command, "--list", exit_code=1)
        return result.out + result.err

    check(node, name, ask)
