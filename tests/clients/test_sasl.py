"""Clients that log in by each mechanism, to a listener with all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from client_cluster import NODES
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

import barnabas
from kafka import KafkaConsumer, KafkaProducer
from support.java_host import JavaHost
from support.patience import PATIENCE_S

USERS = {
    "node": "node-secret",
    "admin": "admin-secret",
    "al=ice,": "alice-secret",
    "alice": "alice-secret",
}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username=node password="node-secret" '
    + " ".join(f'"user_{user}"="{password}"' for user, password in USERS.items())
    + ";"
)
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    "listener.name.controller.plain.sasl.jaas.config": JAAS,
    "listener.name.plaintext.connections.max.reauth.ms": "2000",
}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
USER, PASSWORD = "al=ice,", "alice-secret"
SIMPLE_USER = "alice"
"""For kafka-python, which sends names as they are."""


def librdkafka(
    servers: str, mechanism: str = "PLAIN", user: str = USER, password: str = PASSWORD
) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


def credential(user: str, mechanism: ScramMechanism, password: str) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(
        user, ScramCredentialInfo(mechanism, 4096), password.encode()
    )


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Cluster(NODES, config=SECURED) as cluster:
        admin = AdminClient(librdkafka(cluster.bootstrap_servers, "PLAIN", "admin", "admin-secret"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            for user in (USER, SIMPLE_USER):
                alter(admin, credential(user, mechanism, PASSWORD))
        yield cluster.bootstrap_servers


def alter(admin: AdminClient, *changes: Any) -> None:
    for future in admin.alter_user_scram_credentials(list(changes)).values():
        future.result(PATIENCE_S)


def logs_in(config: dict[str, Any]) -> bool:
    """Return whether a client can log in."""
    errors: list[KafkaError] = []
    client = Producer(config | {"error_cb": errors.append})
    client.produce("logins", b"")
    while len(client):
        client.poll(0.05)
        if any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            client.purge()
            client.flush()
            return False
    return True


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(servers: str, mechanism: str) -> None:
    config = librdkafka(servers, mechanism)
    producer = Producer(config)
    producer.produce(f"rdkafka-{mechanism}", b"value")
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(config | {"group.id": mechanism, "auto.offset.reset": "earliest"})
    consumer.subscribe([f"rdkafka-{mechanism}"])
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    assert message.value() == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(servers: str, mechanism: str) -> None:
    login = {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": SIMPLE_USER,
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**login)
    producer.send(f"python-{mechanism}", b"value").get(PATIENCE_S)
    producer.close()
    consumer = KafkaConsumer(f"python-{mechanism}", auto_offset_reset="earliest", **login)
    assert next(consumer).value == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(servers: str, mechanism: str) -> None:
    login = {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    topic = f"aiokafka-{mechanism}"

    async def run() -> bytes:
        async with AIOKafkaProducer(**login) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **login) as consumer:
            value: bytes = (await consumer.getone()).value
            return value

    assert asyncio.run(asyncio.wait_for(run(), PATIENCE_S)) == b"value"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD)])
def test_who_shows_something_else_stays_outside(
    servers: str, mechanism: str, user: str, password: str
) -> None:
    assert not logs_in(librdkafka(servers, mechanism, user, password))


def test_credentials_change_while_clients_are_served(servers: str) -> None:
    admin = AdminClient(librdkafka(servers, "PLAIN", "admin", "admin-secret"))
    mechanism = ScramMechanism.SCRAM_SHA_512
    first = librdkafka(servers, "SCRAM-SHA-512", "carol", "first-secret")
    second = librdkafka(servers, "SCRAM-SHA-512", "carol", "second-secret")
    assert not logs_in(first)
    alter(admin, credential("carol", mechanism, "first-secret"))
    assert logs_in(first)
    alter(admin, credential("carol", mechanism, "second-secret"))
    assert not logs_in(first)
    assert logs_in(second)
    futures: Any = admin.describe_user_scram_credentials(["carol"])
    (info,) = futures["carol"].result(PATIENCE_S).scram_credential_infos
    assert (info.mechanism, info.iterations) == (mechanism, 4096)
    alter(admin, UserScramCredentialDeletion("carol", mechanism))
    assert not logs_in(second)


@pytest.mark.slow
def test_kafka_configs_sets_shows_and_deletes_users(
    servers: str, java: JavaHost, tmp_path: Any
) -> None:
    command_config = tmp_path / "admin.properties"
    command_config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="admin-secret";\n'
    )
    common = ["--bootstrap-server", servers, "--command-config", str(command_config)]
    entity = ["--entity-type", "users", "--entity-name", "dave"]
    java.run(
        "kafka-configs",
        *(*common, "--alter", *entity),
        *("--add-config", "SCRAM-SHA-256=[iterations=8192,password=dave-secret]"),
    )
    assert logs_in(librdkafka(servers, "SCRAM-SHA-256", "dave", "dave-secret"))
    shown = java.run("kafka-configs", *common, "--describe", *entity)
    assert "SCRAM-SHA-256=iterations=8192" in shown.out
    java.run("kafka-configs", *common, "--alter", *entity, "--delete-config", "SCRAM-SHA-256")
    assert not logs_in(librdkafka(servers, "SCRAM-SHA-256", "dave", "dave-secret"))
