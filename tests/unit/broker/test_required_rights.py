"""For each API: without one of its rights nothing is read or changed, with all of them it works.

The table of rights is in `support/required_rights`; what Kafka demands is in its KafkaApis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.broker.apis.configs.broker_loggers import logger_levels
from barnabas.broker.handlers import ROUTES
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.security.controller_checks import ControllerChecks
from support.raw_client import RawClient
from support.required_rights import of_cluster, of_groups, of_security, of_topics
from support.required_rights.needs import AUTHORIZATION_ERRORS, Case, Need, rights_of
from support.required_rights.rights_world import (
    METADATA,
    RECORD,
    GrantedRights,
    World,
    ask,
    bytes_of,
    errors_in,
)

CASES = (*of_topics.CASES, *of_groups.CASES, *of_cluster.CASES, *of_security.CASES)
BEFORE_LOGIN = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""By these callers become somebody; they need no right."""
USER_HOST = "127.0.0.2"
TRIED = [case for case in CASES if case.api.key in {route.api.key for route in ROUTES}]
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[World]:
    rights = GrantedRights(USER_HOST)
    services = _services(cluster)
    services.authorizer = rights
    services.metadata.checks = ControllerChecks(rights)
    with (
        RawClient(cluster.bootstrap_servers) as admin,
        RawClient(cluster.bootstrap_servers, source=USER_HOST) as user,
    ):
        yield World(admin, user, rights)


@pytest.fixture
def case_world(world: World) -> Iterator[World]:
    yield world
    world.rights.grant_all()


def _services(cluster: Cluster) -> Any:
    (node,) = cluster._running()._running.values()
    return node._broker.services


def test_the_rights_of_each_api_are_in_the_table() -> None:
    served = {route.api.key for route in ROUTES}
    assert served <= {case.api.key for case in CASES} | BEFORE_LOGIN


@pytest.mark.parametrize("case", TRIED, ids=str)
def test_without_a_right_nothing_is_read_or_changed(
    cluster: Cluster, case_world: World, case: Case
) -> None:
    for need in case.needs:
        _refuse(cluster, case_world, case, need)


def _refuse(cluster: Cluster, world: World, case: Case, need: Need) -> None:
    world.rights.grant_all()
    world.renew()
    request = case.make(world)
    world.rights.grant_all_but(rights_of(world, need.kinds))
    before = state_of(cluster)
    answer, answered = ask(world.user, request, case.version)
    expected = set() if need.error is None else {need.error}
    assert errors_in(answer) == expected, f"without {need}"
    if not need.is_named_without:
        assert not seen(world, bytes_of(request, case.version), answered), f"without {need}"
    if need.error is not None and not need.is_done_without:
        assert state_of(cluster) == before, f"without {need}"


@pytest.mark.parametrize("case", TRIED, ids=str)
def test_the_rights_of_the_table_are_enough(case_world: World, case: Case) -> None:
    world = case_world
    ways = max((len(need.kinds) for need in case.needs), default=1)
    for way in range(ways):
        world.rights.grant_all()
        world.renew()
        request = case.make(world)
        kinds = [need.kinds[min(way, len(need.kinds) - 1)] for need in case.needs]
        world.rights.grant_only(rights_of(world, kinds))
        answer, answered = ask(world.user, request, case.version)
        errors = errors_in(answer)
        assert errors <= case.succeeds_with, kinds
        if any(need.error is None for need in case.needs):
            assert seen(world, bytes_of(request, case.version), answered), kinds


def seen(world: World, asked: bytes, answered: bytes) -> list[bytes]:
    """What an answer tells of the case's resources that was not in the request."""
    secrets = [
        *(text.encode() for text in (world.topic, world.group, world.transactional_id)),
        *(text.encode() for text in (RECORD, METADATA)),
    ]
    if any(world.topic_id):
        secrets.append(bytes(world.topic_id))
    return [secret for secret in secrets if secret in answered and secret not in asked]


def state_of(cluster: Cluster) -> Any:
    """All that requests can change: metadata, logs, groups, loggers."""
    services = _services(cluster)
    image = services.image
    logs = {
        log.topic_partition: (log.log_start_offset, log.log_end_offset) for log in services.logs
    }
    groups = [
        (group.group_id, group.group_type, sorted(group.members), repr(group))
        for entry in services.groups.runtime._entries.values()
        for group in entry.shard.groups
    ]
    metadata = (
        image.features,
        image.topics,
        image.configs,
        image.client_quotas,
        image.acls,
        image.scram,
        image.delegation_tokens,
        sorted(image.brokers),
    )
    return metadata, logs, groups, logger_levels(), set(services.logs.futures)


def test_authorization_errors_are_no_success() -> None:
    assert not any(case.succeeds_with & AUTHORIZATION_ERRORS for case in CASES)
    assert ErrorCode.NONE not in AUTHORIZATION_ERRORS
