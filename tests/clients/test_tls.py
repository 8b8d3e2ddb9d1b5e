"""Clients that speak TLS with certificates of their own, to nodes that do so among each other."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import NameOID

import barnabas
from kafka import KafkaConsumer, KafkaProducer
from support.certificates import Authority
from support.client_logins import SelfClosingSocket
from support.java_host import JavaHost
from support.node_process import wait_until
from support.patience import PATIENCE_S

PASSWORD = "store-secret"
KEYSTORE = "listener.name.plaintext.ssl.keystore.location"


class Secured:
    """Three nodes on whose listeners everyone shows a certificate."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory)
        self.broker = self.authority.issue("broker")
        self.files = {name: self.authority.issue(name) for name in ("alice", "stranger")}
        self.stranger_to_all = str(directory / "elsewhere")
        self.config = {
            "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.broker,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:broker;User:alice",
        }

    def librdkafka(self, name: str = "alice") -> dict[str, Any]:
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SSL",
            "ssl.ca.location": self.authority.file,
            "ssl.certificate.location": self.files[name],
            "ssl.key.location": self.files[name],
            "log_level": 0,
        }

    def context(self, name: str = "alice") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.file)
        context.load_cert_chain(self.files[name])
        return context

    servers: str


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    world = Secured(tmp_path_factory.mktemp("tls"))
    with barnabas.Cluster(nodes=3, config=world.config) as cluster:
        world.servers = cluster.bootstrap_servers
        yield world


def make_topic(secured: Secured, name: str) -> str:
    admin = AdminClient(secured.librdkafka())
    admin.create_topics([NewTopic(name, 3, 3)])[name].result(PATIENCE_S)
    return name


def test_librdkafka_writes_and_reads(secured: Secured) -> None:
    topic = make_topic(secured, "librdkafka")
    producer = Producer(secured.librdkafka() | {"acks": "all"})
    for number in range(300):
        producer.produce(topic, bytes(20_000), str(number))
    assert producer.flush(PATIENCE_S) == 0
    group = {"group.id": "librdkafka", "auto.offset.reset": "earliest"}
    consumer = Consumer(secured.librdkafka() | group)
    consumer.subscribe([topic])
    keys: list[bytes | None] = []
    while len(keys) < 300:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        assert message.value() == bytes(20_000)
        keys.append(message.key())
    consumer.close()
    assert sorted(keys, key=str) == sorted((str(n).encode() for n in range(300)), key=str)


def test_aiokafka_writes_and_reads(secured: Secured) -> None:
    topic = make_topic(secured, "aiokafka")

    async def run() -> list[bytes | None]:
        common: dict[str, Any] = {
            "bootstrap_servers": secured.servers,
            "security_protocol": "SSL",
            "ssl_context": secured.context(),
        }
        producer = AIOKafkaProducer(**common)
        await producer.start()
        for number in range(100):
            await producer.send(topic, str(number).encode())
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic, group_id="aiokafka", auto_offset_reset="earliest", **common
        )
        await consumer.start()
        async with asyncio.timeout(PATIENCE_S):
            found = [(await consumer.getone()).value for _ in range(100)]
        await consumer.stop()
        return found

    assert sorted(asyncio.run(run()), key=str) == sorted(
        (str(n).encode() for n in range(100)), key=str
    )


def test_kafka_python_writes_and_reads(secured: Secured) -> None:
    topic = make_topic(secured, "kafka-python")
    context = secured.context()
    context.sslsocket_class = SelfClosingSocket
    common: dict[str, Any] = {
        "bootstrap_servers": secured.servers.split(","),
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    producer = KafkaProducer(**common)
    for number in range(100):
        producer.send(topic, str(number).encode())
    producer.close()
    consumer = KafkaConsumer(
        topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
        **common,
    )
    assert len({next(consumer).value for _ in range(100)}) == 100
    consumer.close()


def test_a_certificate_says_who_a_client_is(secured: Secured) -> None:
    admin = AdminClient(secured.librdkafka("stranger"))
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic("refused", 1)])["refused"].result(PATIENCE_S)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_kafkas_own_tool_speaks_it_with_a_store_of_java(
    secured: Secured, java: JavaHost, tmp_path: Path
) -> None:
    make_topic(secured, "of-java")
    text = Path(secured.files["alice"]).read_text()
    private, begin, certificate = text.partition("-----BEGIN CERTIFICATE")
    store = tmp_path / "alice.p12"
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"alice",
            load_pem_private_key(private.encode(), None),  # type: ignore[arg-type]  # a known kind
            x509.load_pem_x509_certificate((begin + certificate).encode()),
            None,
            BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SSL\n"
        "ssl.keystore.type=PKCS12\n"
        f"ssl.keystore.location={store}\n"
        f"ssl.keystore.password={PASSWORD}\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secured.authority.file}\n"
    )

    def listed() -> list[str]:
        return java.run(
            "kafka-topics",
            "--bootstrap-server", secured.servers,
            "--command-config", str(properties),
            "--list",
        ).lines  # fmt: skip

    # It may ask a node that has not heard of the topic yet.
    wait_until(lambda: "of-java" in listed(), "the topic in the list")


# -- certificates that change


def shown(secured: Secured, port: int) -> int:
    """The number of the certificate that a new connection sees."""
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        secured.context().wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        der = tls.getpeercert(binary_form=True)
        assert der is not None
        return x509.load_der_x509_certificate(der).serial_number


def alter(secured: Secured, value: str) -> None:
    """Name another key store for node 1, as kafka-configs does."""
    entry = ConfigEntry(KEYSTORE, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient(secured.librdkafka())
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def test_a_certificate_is_replaced_while_clients_stay(secured: Secured) -> None:
    topic = make_topic(secured, "stays")
    port = int(secured.servers.split(",")[0].rpartition(":")[2])
    producer = Producer(secured.librdkafka())
    producer.produce(topic, b"before")
    assert producer.flush(PATIENCE_S) == 0
    before = shown(secured, port)
    with pytest.raises(KafkaException, match="cannot be read"):
        alter(secured, "/nowhere.pem")
    with pytest.raises(KafkaException, match="DistinguishedName does not match"):
        alter(secured, secured.files["stranger"])
    assert shown(secured, port) == before
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    alter(secured, secured.authority.issue("second", subject=subject))
    wait_until(lambda: shown(secured, port) != before, "the new certificate")
    producer.produce(topic, b"after")
    assert producer.flush(PATIENCE_S) == 0
