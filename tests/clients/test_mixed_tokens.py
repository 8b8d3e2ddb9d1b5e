"""Delegation tokens in a cluster of Apache Kafka's brokers and ours, whichever decides them.

A token is a record and a secret that every broker computes for itself, so what one hands out must
be what the other takes.
"""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import SystemClock
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import Login, LoginError, PlainLogin, ScramLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas, ClusterNode, Loopback, Program
from support.eventually import eventually
from support.node_process import wait_until
from support.ports import free_port

pytestmark = [needs_apache_kafka, pytest.mark.slow, pytest.mark.timeout(180)]
MODULES = "org.apache.kafka.common.security"


def properties(node: ClusterNode, controller: ClusterNode, client_port: int) -> dict[str, str]:
    listeners = f"PLAINTEXT://127.0.0.1:{node.port},CLIENTS://127.0.0.1:{client_port}"
    roles = "broker"
    if node is controller:
        roles = "broker,controller"
        listeners += f",CONTROLLER://127.0.0.1:{node.controller_port}"
    return {
        "process.roles": roles,
        "node.id": str(node.node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": (
            f"{MODULES}.plain.PlainLoginModule required user_alice=alice-secret;"
        ),
        "listener.name.clients.scram-sha-256.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required;"
        ),
        "listener.name.clients.scram-sha-512.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required;"
        ),
        "delegation.token.secret.key": "the-same-everywhere",
        "controller.quorum.voters": f"{controller.node_id}@127.0.0.1:{controller.controller_port}",
        "log.dirs": str(node.data),
    }


async def ask(port: int, login: Login, request: Any) -> Any:
    clock = SystemClock()
    peer = Peer(TcpNetwork(), clock, "127.0.0.1", port, client_id="t", dialing=Dialing(login=login))
    try:
        return await peer.send(request)
    finally:
        peer.close()


async def is_taken(port: int, login: Login) -> bool:
    try:
        await ask(port, login, DescribeClusterRequest())
    except LoginError:
        return False
    return True


async def is_refused(port: int, login: Login) -> bool:
    return not await is_taken(port, login)


@pytest.mark.parametrize("decides", ["barnabas", "kafka"])
def test_each_takes_what_the_other_hands_out(tmp_path: Path, decides: str) -> None:
    ours, theirs = Barnabas(), ApacheKafka()
    programs: tuple[Program, Program] = (ours, theirs) if decides == "barnabas" else (theirs, ours)
    nodes = [
        ClusterNode(number, tmp_path / str(number), Loopback(), program)
        for number, program in enumerate(programs, 1)
    ]
    ports = [free_port(), free_port()]
    for node, port in zip(nodes, ports, strict=True):
        node.format(properties(node, nodes[0], port))
    try:
        for node in nodes:
            node.wait_formatted()
        for node in nodes:
            node.start()
        for node in nodes:
            wait_until(node.answers, f"node {node.node_id} answers", 60)
        asyncio.run(_live(ports))
    finally:
        for node in nodes:
            node.kill()


async def _live(ports: list[int]) -> None:
    """A token from each broker, held against both; its end at one is its end at the other."""
    alice = PlainLogin("alice", "alice-secret")
    for port in ports:
        made = await ask(port, alice, CreateDelegationTokenRequest())
        assert made.error_code == 0
        password = base64.b64encode(made.hmac).decode()
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            login = ScramLogin(
                mechanism, made.token_id, password, lambda: "a-nonce", {"tokenauth": "true"}
            )
            for other in ports:
                # Brokers learn of tokens one after another.
                await eventually(partial(is_taken, other, login), f"a login at {other}")
        everyones = DescribeDelegationTokenRequest(owners=None)
        shown = [(await ask(each, alice, everyones)).tokens for each in ports]
        assert shown[0] == shown[1]
        assert shown[0][0].hmac == made.hmac
        ended = await ask(
            ports[0], alice, ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        )
        assert ended.error_code == 0
        for other in ports:
            await eventually(partial(is_refused, other, login), f"a refusal at {other}")
