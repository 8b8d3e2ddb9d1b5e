"""The table of rights, with ACLs and a user who logs in, on Apache Kafka's broker and on ours.

So what the table says of Kafka is Kafka's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.apis import ApiKey
from barnabas.protocol.messages.credentials import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import PROPERTIES, Barnabas, ClusterProcesses, Program
from support.ports import free_port
from support.raw_client import RawClient
from support.required_rights.acl_rights import AclRights
from support.required_rights.needs import Case, rights_of
from support.required_rights.rights_world import World, ask, bytes_of, errors_in, seen
from support.required_rights.table import CASES

pytestmark = pytest.mark.slow
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TOLD = {ApiKey.ALTER_SHARE_GROUP_OFFSETS}
"""Kafka refuses with the id of the topic; we do not."""
USER, PASSWORD = "ann", "secret"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(ApacheKafka(), marks=needs_apache_kafka, id="kafka"),
        pytest.param(Barnabas(), id="barnabas"),
    ],
)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    program: Program = request.param
    plain, controller, sasl = (free_port() for _ in range(3))
    cluster = ClusterProcesses(
        tmp_path_factory.mktemp("rights"),
        1,
        _properties(plain, controller, sasl),
        program=program,
    )
    node = cluster.nodes[1]
    node.port, node.controller_port = plain, controller
    with (
        cluster,
        RawClient(f"127.0.0.1:{plain}") as admin,
        RawClient(f"127.0.0.1:{sasl}") as user,
    ):
        _log_in(user)
        rights = AclRights(admin, f"User:{USER}")
        rights.grant_all()
        yield World(admin, user, rights)


def _properties(plain: int, controller: int, sasl: int) -> dict[str, str]:
    return {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": (
            f"PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},"
            f"SASL_PLAINTEXT://127.0.0.1:{sasl}"
        ),
        "listener.security.protocol.map": (
            f"{PROPERTIES['listener.security.protocol.map']},SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN} user_{USER}="{PASSWORD}";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.share.assignment.interval.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }


def _log_in(client: RawClient) -> None:
    answer = client.call(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    assert not answer.error_code
    login = SaslAuthenticateRequest(auth_bytes=f"\0{USER}\0{PASSWORD}".encode())
    assert not client.call(login, SaslAuthenticateResponse).error_code


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_right_is_needed(world: World, case: Case) -> None:
    for need in case.needs:
        world.rights.grant_all()
        world.renew()
        request = case.make(world)
        world.rights.grant_all_but(rights_of(world, need.kinds))
        answer, answered = ask(world.user, request, case.version)
        expected = set() if need.error is None else {need.error}
        assert errors_in(answer) == expected, f"without {need}"
        if case.api.key not in TOLD and not need.is_named_without:
            told = seen(world, bytes_of(request, case.version), answered)
            assert not told, f"without {need}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rights_of_the_table_are_enough(world: World, case: Case) -> None:
    ways = max((len(need.kinds) for need in case.needs), default=1)
    for way in range(ways):
        world.rights.grant_all()
        world.renew()
        request = case.make(world)
        kinds = [need.kinds[min(way, len(need.kinds) - 1)] for need in case.needs]
        world.rights.grant_only(rights_of(world, kinds))
        answer, _ = ask(world.user, request, case.version)
        assert errors_in(answer) <= case.succeeds_with, kinds
