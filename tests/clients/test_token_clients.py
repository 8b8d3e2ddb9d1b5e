"""Real clients that log in by tokens: OAUTHBEARER of a provider, and Kafka's delegation tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka.admin import AdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

from barnabas.app.cluster import Cluster
from barnabas.base.clock import SystemClock
from barnabas.cli.errors import ExitCode
from barnabas.kafka.wire_producer import WireProducer
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import PlainLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.credentials import CreatableRenewers, CreateDelegationTokenRequest
from kafka import KafkaProducer
from support.cli import Result, run_cli
from support.identity_provider import IdentityProvider
from support.java_host import JavaHost
from support.node_process import wait_until
from support.patience import PATIENCE_S

MODULES = "org.apache.kafka.common.security"
TOPIC = "by-token"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider().serving() as serving:
        yield serving


@pytest.fixture(scope="module")
def cluster(provider: IdentityProvider) -> Iterator[Cluster]:
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f"{MODULES}.plain.PlainLoginModule required username=node password=node-secret "
            "user_node=node-secret user_alice=alice-secret user_bob=bob-secret;"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/jwks",
        "delegation.token.secret.key": "the-nodes-own-secret",
        "num.partitions": "1",
    }
    with Cluster(config=config) as running:
        yield running


SASL: dict[str, Any] = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "OAUTHBEARER",
    "allow.auto.create.topics": "true",
}


def produce(config: dict[str, Any]) -> None:
    """Write a record, or fail with what the client was told."""
    errors: list[Any] = []
    producer = confluent_kafka.Producer({**config, "error_cb": errors.append})
    producer.produce(TOPIC, b"value", on_delivery=lambda error, _: errors.append(error))
    left = producer.flush(PATIENCE_S)
    assert (left, [error for error in errors if error]) == (0, []), errors


def test_librdkafka_with_a_callback(cluster: Cluster, provider: IdentityProvider) -> None:
    asked = []

    def token(config: str) -> tuple[str, float]:
        asked.append(config)
        return provider.issuer.token("alice"), time.time() + 3600

    produce({**SASL, "bootstrap.servers": cluster.bootstrap_servers, "oauth_cb": token})
    assert asked


def test_librdkafka_asks_the_provider_itself(cluster: Cluster, provider: IdentityProvider) -> None:
    provider.subject = "by-oidc"
    produce(
        {
            **SASL,
            "bootstrap.servers": cluster.bootstrap_servers,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "s3cret",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        }
    )
    assert provider.times("/token") >= 1


def test_every_command_logs_in_with_a_token(
    cluster: Cluster,
    provider: IdentityProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of librdkafka, and those of our own connections."""
    provider.subject = "by-oidc"
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s3cret",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={one}\n" for key, one in login.items()))

    def run(command: str) -> Result:
        flags = ["-b", cluster.bootstrap_servers, "--command-config", str(file)]
        return run_cli(*command.split(), *flags, "--json")

    for command in ("topic list", "cluster status", "token list"):
        result = run(command)
        assert result.code == 0, result.err
    provider.failures.append(401)
    refused = run("topic list")
    assert refused.code == ExitCode.REFUSED
    assert "no token" in json.loads(refused.err)["error"]
    monkeypatch.setattr(provider, "lifetime_seconds", -3600)
    refused = run("topic list")
    assert refused.code == ExitCode.REFUSED
    assert "by OAUTHBEARER failed" in json.loads(refused.err)["error"]
    assert json.loads(refused.err)["hint"].startswith("check the token")


@pytest.mark.parametrize("is_callback", [True, False])
def test_records_with_the_timestamp_0_are_written_with_the_same_login(
    cluster: Cluster, provider: IdentityProvider, is_callback: bool
) -> None:
    provider.subject = "by-oidc"
    login: dict[str, Any] = {
        **SASL,
        "bootstrap.servers": cluster.bootstrap_servers,
        "sasl.oauthbearer.extensions": "logicalCluster=a",
    }
    if is_callback:
        login["oauth_cb"] = lambda _: (provider.issuer.token("alice"), time.time() + 3600)
    else:
        login |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "s3cret",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        }
    before = provider.times("/token")
    errors: list[Any] = []
    writer = WireProducer(login)
    topic = f"at-zero-{is_callback}"
    for number in range(3):
        writer.produce(
            topic,
            str(number).encode(),
            timestamp=0,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert writer.flush(PATIENCE_S) == 0
    assert errors == [None] * 3
    assert provider.times("/token") - before == (0 if is_callback else 1), "it is kept"


def test_a_refused_token_is_an_error_of_the_login(cluster: Cluster) -> None:
    login: dict[str, Any] = {
        **SASL,
        "bootstrap.servers": cluster.bootstrap_servers,
        "oauth_cb": lambda _: ("no.token.this", time.time() + 3600),
    }
    errors: list[Any] = []
    writer = WireProducer(login)
    writer.produce("refused", b"x", timestamp=0, on_delivery=lambda error, _: errors.append(error))
    writer.flush(PATIENCE_S)
    assert [error.code() for error in errors] == [confluent_kafka.KafkaError._AUTHENTICATION]


@pytest.mark.slow
def test_librdkafka_logs_in_again_before_its_token_ends(
    cluster: Cluster, provider: IdentityProvider
) -> None:
    """The same connection goes on when its first token has ended (KIP-368).

    The client is given half the lifetime of a token. It logs in again for a new token and once more
    when its session is about to end, and twice in a second is too often, as in Kafka.
    """
    issued: list[float] = []
    errors: list[confluent_kafka.KafkaError] = []

    def token(_: str) -> tuple[str, float]:
        issued.append(time.time() + 4)
        return provider.issuer.token("alice", 4), time.time() + 2.4

    settings: dict[str, Any] = {
        **SASL,
        "bootstrap.servers": cluster.bootstrap_servers,
        "oauth_cb": token,
        "error_cb": errors.append,
    }
    admin = AdminClient(settings)
    while not issued or time.time() < issued[0] + 0.5:
        assert admin.list_topics(timeout=PATIENCE_S).brokers
        admin.poll(0.1)
    assert len(issued) >= 2
    assert not errors


@pytest.mark.parametrize("claims", [{"exp": 5, "iat": 1}, {"aud": "others"}], ids=["old", "aud"])
def test_librdkafka_is_told_of_a_refusal(
    cluster: Cluster, provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(
        {
            **SASL,
            "bootstrap.servers": cluster.bootstrap_servers,
            "oauth_cb": lambda _: (provider.issuer.token("a", **claims), time.time() + 3600),
            "error_cb": errors.append,
        }
    )

    def is_told() -> bool:
        producer.poll(0.1)
        failed = confluent_kafka.KafkaError._AUTHENTICATION
        return any(error.code() == failed and "invalid_token" in error.str() for error in errors)

    wait_until(is_told, "a refusal of the token", shown=lambda: errors)


async def test_aiokafka(cluster: Cluster, provider: IdentityProvider) -> None:
    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return provider.issuer.token("alice")

    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    )
    await producer.start()
    try:
        assert (await producer.send_and_wait(TOPIC, b"value")).topic == TOPIC
    finally:
        await producer.stop()


def test_kafka_python(cluster: Cluster, provider: IdentityProvider) -> None:
    class Provider(KafkaPythonTokenProvider):  # type: ignore[misc]
        def __init__(self, token: str) -> None:
            super().__init__()
            self._token = token

        def token(self) -> str:
            return self._token

    settings = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    token = Provider(provider.issuer.token("alice"))
    producer = KafkaProducer(sasl_oauth_token_provider=token, **settings)
    assert producer.send(TOPIC, b"value").get(PATIENCE_S).topic == TOPIC
    producer.close()


@pytest.mark.slow
def test_nodes_log_in_to_each_other_by_tokens(provider: IdentityProvider) -> None:
    """Three of them, by tokens of three seconds, and no write is held up when those end."""
    given = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/jwks",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        "sasl.oauthbearer.client.credentials.client.id": "node",
        "sasl.oauthbearer.client.credentials.client.secret": "node-secret",
    }
    provider.subject, provider.lifetime_seconds = "node", 3
    with Cluster(nodes=3, config=given) as cluster:
        settings: dict[str, Any] = {
            **SASL,
            "acks": "all",
            "bootstrap.servers": cluster.bootstrap_servers,
            "oauth_cb": lambda _: (provider.issuer.token("alice"), time.time() + 3600),
        }
        producer = confluent_kafka.Producer(settings)
        lost: list[Any] = []
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            producer.produce(TOPIC, b"value", on_delivery=lambda error, _: lost.append(error))
            assert producer.flush(PATIENCE_S) == 0
        assert set(lost) == {None}
    provider.lifetime_seconds = 3600


# -- Kafka's own


def properties(path: Path, **settings: str) -> str:
    lines = {"security.protocol": "SASL_PLAINTEXT"} | {
        name.replace("_", "."): value for name, value in settings.items()
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return str(path)


def scram(token_id: str, hmac: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    return {
        "sasl_mechanism": mechanism,
        "sasl_jaas_config": (
            f'{MODULES}.scram.ScramLoginModule required username="{token_id}" '
            f'password="{hmac}" tokenauth="true";'
        ),
    }


def plain(user: str) -> dict[str, str]:
    return {
        "sasl_mechanism": "PLAIN",
        "sasl_jaas_config": (
            f"{MODULES}.plain.PlainLoginModule required username={user} password={user}-secret;"
        ),
    }


async def made(cluster: Cluster) -> Any:
    """A delegation token of alice's, which bob may renew."""
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    login = PlainLogin("alice", "alice-secret")
    clock = SystemClock()
    dialing = Dialing(login=login)
    peer = Peer(TcpNetwork(), clock, host, int(port), client_id="test", dialing=dialing)
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    response = await peer.send(CreateDelegationTokenRequest(renewers=[renewer]))
    peer.close()
    assert response.error_code == 0
    return response


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java_by_a_delegation_token(
    cluster: Cluster, java: JavaHost, tmp_path: Path, mechanism: str
) -> None:
    token = asyncio.run(made(cluster))
    hmac = base64.b64encode(token.hmac).decode()
    config = properties(tmp_path / "token.properties", **scram(token.token_id, hmac, mechanism))
    listed = java.run(
        *("kafka-topics", "--bootstrap-server", cluster.bootstrap_servers),
        *("--command-config", config, "--create", "--topic", f"java-{random.randrange(10**9)}"),
    )
    assert "Created topic" in listed.out


def test_java_by_a_token_of_the_provider(
    cluster: Cluster, java: JavaHost, tmp_path: Path, provider: IdentityProvider
) -> None:
    java.token_file.write_text(provider.issuer.token("java"))
    package = f"{MODULES}.oauthbearer"
    config = properties(
        tmp_path / "oauth.properties",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=f"{package}.OAuthBearerLoginModule required;",
        sasl_login_callback_handler_class=f"{package}.OAuthBearerLoginCallbackHandler",
        sasl_oauthbearer_token_endpoint_url=java.token_file.as_uri(),
    )
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    assert TOPIC in java.run("kafka-topics", *server, "--command-config", config, "--list").lines


def test_kafkas_tool_for_delegation_tokens(
    cluster: Cluster, java: JavaHost, tmp_path: Path
) -> None:
    """The whole life: create, describe, renew, log in, expire, be refused."""

    def tool(who: str, *arguments: str, exit_code: int = 0) -> str:
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        config = ("--command-config", who)
        result = java.run(
            "kafka-delegation-tokens", *server, *config, *arguments, exit_code=exit_code
        )
        return result.out + result.err

    alice = properties(tmp_path / "alice.properties", **plain("alice"))
    bob = properties(tmp_path / "bob.properties", **plain("bob"))
    created = tool(
        *(alice, "--create", "--max-life-time-period", "-1"),
        *("--renewer-principal", "User:bob"),
    )
    fields = created.split("\n")[-2].split() if created.strip() else []
    token_id, hmac = fields[0], fields[1]
    assert "User:alice" in created
    described = tool(bob, "--describe", "--owner-principal", "User:alice")
    assert token_id in described
    held = properties(tmp_path / "held.properties", **scram(token_id, hmac))
    java.run(
        *("kafka-topics", "--bootstrap-server", cluster.bootstrap_servers),
        *("--command-config", held, "--list"),
    )
    refused = tool(held, "--create", "--max-life-time-period", "-1", exit_code=1)
    assert "DelegationTokenDisabledException" in refused or "not allowed" in refused
    renewed = tool(bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew operation" in renewed
    expired = tool(alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in expired
    assert token_id not in tool(alice, "--describe", "--owner-principal", "User:alice")
    failed = java.run(
        *("kafka-topics", "--bootstrap-server", cluster.bootstrap_servers),
        *("--command-config", held, "--list"),
        exit_code=1,
    )
    assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in failed.out + failed.err


@pytest.fixture(scope="module")
def trusting() -> Iterator[Cluster]:
    """Takes tokens that nobody signed, as Kafka does by default."""
    module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.plaintext.oauthbearer.sasl.jaas.config": (
            f'{module} unsecuredLoginStringClaim_sub="node" unsecuredValidatorRequiredScope="use";'
        ),
    }
    with Cluster(config=config) as running:
        yield running


def test_librdkafka_with_a_token_that_nobody_signed(trusting: Cluster) -> None:
    produce(
        {
            **SASL,
            "bootstrap.servers": trusting.bootstrap_servers,
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=alice scope=use extension_traceId=1",
        }
    )


@pytest.mark.parametrize(("scope", "exit_code"), [("|use|see", 0), ("|see", 1)])
def test_java_with_a_token_that_nobody_signed(
    trusting: Cluster, java: JavaHost, tmp_path: Path, scope: str, exit_code: int
) -> None:
    config = properties(
        tmp_path / "unsecured.properties",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=(
            f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
            f'unsecuredLoginStringClaim_sub="alice" unsecuredLoginListClaim_scope="{scope}" '
            'unsecuredLoginExtension_traceId="1";'
        ),
    )
    server = ("--bootstrap-server", trusting.bootstrap_servers)
    listed = java.run(
        *("kafka-topics", *server, "--command-config", config, "--list"), exit_code=exit_code
    )
    assert exit_code == 0 or '"status":"insufficient_scope","scope":"use"' in listed.out
