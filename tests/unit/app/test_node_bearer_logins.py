"""A node that takes bearer tokens, and logs in to itself by them."""

import logging
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import LoginError
from barnabas.node.net.oauth.token_login import RefreshSettings, TokenLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from sim.fake_disk import FakeDisk
from support.eventually import eventually
from support.identity_provider import IdentityProvider
from support.tokens import Issuer, unsecured

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};"
SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    "connection.failed.authentication.delay.ms": "0",
}
UNSECURED = {
    f"listener.name.{name}.oauthbearer.sasl.jaas.config": MODULE.format(
        'unsecuredLoginStringClaim_sub="node"'
    )
    for name in ("plaintext", "controller")
}
SIGNED = {
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer",
    "sasl.oauthbearer.client.credentials.client.id": "node",
    "sasl.oauthbearer.client.credentials.client.secret": "node-secret",
    "sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
}


@asynccontextmanager
async def running(overrides: Mapping[str, str]) -> AsyncIterator[Node]:
    values = standalone_properties("/data", overrides={**SASL, **overrides})
    config = NodeConfig.from_properties(values)
    disk, clock = FakeDisk(), SystemClock()
    options = FormatOptions(cluster_id="abcdefghijklmnopqrstuv")
    format_directories(disk, config, options, random=random.Random(1), now_ms=clock.now_ms())
    node = await Node.open(config, disk, clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def ask(node: Node, token: str, listener: str = "PLAINTEXT") -> str:
    """The cluster's id, asked for by somebody with this token."""
    login = TokenLogin(
        lambda: token,
        SystemClock(),
        random.Random(1),
        refresh=RefreshSettings(),
        retry_ms=1,
        retry_max_ms=1,
        extensions={"traceId": "1"},
        in_thread=False,
    )
    peer = Peer(
        TcpNetwork(),
        SystemClock(),
        "127.0.0.1",
        node.bound_port(listener),
        client_id="test",
        dialing=Dialing(login=login),
    )
    try:
        cluster_id: str = (await peer.send(DescribeClusterRequest())).cluster_id
        return cluster_id
    finally:
        peer.close()


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider().serving() as serving:
        yield serving


def keys_of(issuer: Issuer, directory: Path) -> dict[str, str]:
    file = directory / "keys.json"
    file.write_text(issuer.key_set())
    return {"sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}


async def test_unsecured_tokens_are_taken_where_nothing_else_is_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with running(UNSECURED) as node:
            token = unsecured({"sub": "alice", "exp": SystemClock().now_ms() // 1000 + 60})
            assert await ask(node, token)
            expired = unsecured({"sub": "alice", "exp": 5})
            with pytest.raises(LoginError):
                await ask(node, expired)
            signed = Issuer().token()
            with pytest.raises(LoginError, match="invalid_token"):
                await ask(node, signed)
    failed = [line for line in caplog.messages if line.startswith("authentication of")]
    assert [line.partition(" failed: ")[2] for line in failed] == [
        "the token has expired",
        "Unsecured JWS must have 'none' for an algorithm",
    ], "one line for each"
    told = [line for line in caplog.messages if "unsecured OAUTHBEARER tokens" in line]
    assert len(told) == 2, "once for each listener"
    for token in (expired, signed):
        assert token.split(".")[1] not in caplog.text


async def test_a_node_logs_in_to_itself_by_tokens_of_a_provider(
    provider: IdentityProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    issuer = provider.issuer
    provider.answer = lambda asked: (
        f'{{"access_token": "{issuer.token("node", aud="kafka", iss="https://issuer")}"}}'.encode()
    )
    given = {
        **SIGNED,
        **keys_of(issuer, tmp_path),
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
    }
    # The only node asks nobody, so it is a second one, as a broker, that logs in.
    async with running(given) as node:
        assert await ask(node, issuer.token(aud="kafka", iss="https://issuer"))
        login = node_login(given, node)
        peer = Peer(
            TcpNetwork(),
            SystemClock(),
            "127.0.0.1",
            node.bound_port("CONTROLLER"),
            client_id="test",
            dialing=Dialing(login=login),
        )
        assert (await peer.send(DescribeClusterRequest(endpoint_type=2))).cluster_id
        peer.close()
    assert provider.asked[0].form["grant_type"] == "client_credentials"
    assert "node-secret" not in caplog.text


def node_login(given: Mapping[str, str], node: Node) -> TokenLogin:
    from barnabas.node.net.own_login import Toward, own_login

    config = NodeConfig.from_properties(standalone_properties("/data", overrides={**SASL, **given}))
    login = own_login(config, Toward.CONTROLLERS, random.Random(1), SystemClock())
    assert isinstance(login, TokenLogin)
    return login


async def test_keys_that_change_at_an_endpoint(provider: IdentityProvider) -> None:
    issuer = provider.issuer
    given = {
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/jwks",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        "sasl.oauthbearer.client.credentials.client.id": "node",
        "sasl.oauthbearer.client.credentials.client.secret": "node-secret",
    }
    async with running(given) as node:
        # The endpoint is asked beside the logins.
        await eventually(lambda: is_taken(node, issuer.token()), "a login by the first key")
        old = issuer.token()
        issuer.rotate("second")
        await eventually(lambda: is_taken(node, issuer.token()), "a login by the second key")
        with pytest.raises(LoginError, match="invalid_token"):
            await ask(node, old)


async def is_taken(node: Node, token: str) -> bool:
    try:
        await ask(node, token)
    except LoginError:
        return False
    return True


HANDLER = "sasl.server.callback.handler.class"
JWKS = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "listener.name.plaintext.oauthbearer.sasl.jaas.config"),
        (UNSECURED | {HANDLER: "com.example.Handler"}, HANDLER),
        (
            UNSECURED | {f"listener.name.plaintext.oauthbearer.{HANDLER}": "com.example.Handler"},
            f"listener.name.plaintext.oauthbearer.{HANDLER}",
        ),
        (UNSECURED | {HANDLER: SIGNED[HANDLER]}, JWKS),
        (UNSECURED | {"sasl.oauthbearer.jwt.validator.class": "X"}, "sasl.oauthbearer.jwt"),
        (
            UNSECURED
            | {
                "listener.name.plaintext.oauthbearer.sasl.jaas.config": (
                    "org.apache.kafka.common.security.plain.PlainLoginModule required;"
                )
            },
            "listener.name.plaintext.oauthbearer.sasl.jaas.config",
        ),
    ],
)
def test_configurations_that_are_refused(given: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        NodeConfig.from_properties(standalone_properties("/data", overrides={**SASL, **given}))


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({JWKS: "ftp://host/keys"}, JWKS),
        ({JWKS: "file:///no/such/file"}, JWKS),
        ({JWKS: "http://127.0.0.1:1/", f"{JWKS[:-3]}refresh.ms": "0"}, f"{JWKS[:-3]}refresh.ms"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/"}, "client.id"),
        (
            {
                "sasl.login.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
                )
            },
            "sasl.oauthbearer.token.endpoint.url",
        ),
        (
            {
                "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/",
                "sasl.oauthbearer.assertion.claim.iss": "me",
            },
            "private.key.file",
        ),
    ],
)
async def test_nodes_that_do_not_start(given: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        async with running({**UNSECURED, **given}):
            pass
