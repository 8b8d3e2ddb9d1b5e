"""A node whose listeners want logins, and what logs in to it: itself, and others by `Peer`."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import Clock, SystemClock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import Login, LoginError, PlainLogin, ScramLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from sim.fake_disk import FakeDisk

JAAS = "org.apache.kafka.common.security.{}Module required username=node password=node-secret"
PLAIN = JAAS.format("plain.PlainLogin") + ' user_node="node-secret" user_alice="alice-secret";'
SCRAM = JAAS.format("scram.ScramLogin") + ";"
SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN,
    "listener.name.controller.plain.sasl.jaas.config": PLAIN,
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": SCRAM,
    "connection.failed.authentication.delay.ms": "0",
}
USERS = [
    "SCRAM-SHA-512=[name=node,password=node-secret]",
    "SCRAM-SHA-256=[name=alice,password=alice-secret]",
]


@asynccontextmanager
async def running(
    overrides: Mapping[str, str] | None = None, clock: Clock | None = None
) -> AsyncIterator[Node]:
    values = standalone_properties("/data", overrides={**SASL, **(overrides or {})})
    config = NodeConfig.from_properties(values)
    disk, clock = FakeDisk(), clock or SystemClock()
    options = FormatOptions(cluster_id="abcdefghijklmnopqrstuv", scram=USERS)
    format_directories(disk, config, options, random=random.Random(1), now_ms=clock.now_ms())
    node = await Node.open(config, disk, clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def peer_of(
    node: Node, login: Login | None, listener: str = "PLAINTEXT", clock: Clock | None = None
) -> Peer:
    return Peer(
        TcpNetwork(),
        clock or SystemClock(),
        "127.0.0.1",
        node.bound_port(listener),
        client_id="test",
        dialing=Dialing(login=login),
    )


def scram(mechanism: str, user: str, password: str) -> Login:
    return ScramLogin(mechanism, user, password, lambda: "some-nonce")


LOGINS: dict[str, Login] = {
    "plain": PlainLogin("alice", "alice-secret"),
    "scram 256": scram("SCRAM-SHA-256", "alice", "alice-secret"),
    "scram 512": scram("SCRAM-SHA-512", "node", "node-secret"),
}
REFUSED: dict[str, tuple[Login, str]] = {
    "plain, wrong password": (
        PlainLogin("alice", "wrong-secret"),
        "Authentication failed: Invalid username or password",
    ),
    "plain, unknown user": (
        PlainLogin("bob", "alice-secret"),
        "Authentication failed: Invalid username or password",
    ),
    "scram, wrong password": (
        scram("SCRAM-SHA-256", "alice", "wrong-secret"),
        "due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    ),
    "scram, unknown user": (
        scram("SCRAM-SHA-256", "bob", "alice-secret"),
        "due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    ),
    "scram, other mechanism": (
        scram("SCRAM-SHA-512", "alice", "alice-secret"),
        "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
    ),
}


async def test_who_knows_a_password_is_served(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as node:
        for name, login in LOGINS.items():
            peer = peer_of(node, login)
            assert (await peer.send(DescribeClusterRequest())).cluster_id, name
            peer.close()
    assert not [record for record in caplog.records if "failed" in record.getMessage()]


async def test_who_does_not_is_told_why(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as node:
        for name, (login, text) in REFUSED.items():
            caplog.clear()
            peer = peer_of(node, login)
            with pytest.raises(LoginError, match=text):
                await peer.send(DescribeClusterRequest())
            peer.close()
            lines = [record.getMessage() for record in caplog.records]
            assert len([line for line in lines if "on listener PLAINTEXT failed" in line]) == 1, (
                name
            )
            assert not [line for line in lines if "secret" in line]


async def test_who_does_not_log_in_is_not_served() -> None:
    async with running() as node:
        for listener in ("PLAINTEXT", "CONTROLLER"):
            peer = peer_of(node, None, listener)
            with pytest.raises(ConnectionError):
                await peer.send(DescribeClusterRequest())
            peer.close()
