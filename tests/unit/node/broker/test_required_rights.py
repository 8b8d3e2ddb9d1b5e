"""For each API: without one of its rights nothing is read or changed, with all of them it works.

The table of rights is in `support/required_rights`; what Kafka demands is in its KafkaApis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.node.broker.apis.config_resources import logger_levels
from barnabas.node.broker.controller.handlers import CONTROLLER_ROUTES
from barnabas.node.broker.handlers import ROUTES
from barnabas.node.coordinator.group.streams.topology import Status
from barnabas.protocol import apis
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from support.node_process import wait_until
from support.raw_client import RawClient
from support.required_rights import of_controller
from support.required_rights.needs import AUTHORIZATION_ERRORS, Case, Need, Right, rights_of
from support.required_rights.of_groups import streams_heartbeat
from support.required_rights.rights_world import (
    World,
    ask,
    bytes_of,
    errors_in,
    seen,
)
from support.required_rights.table import CASES
from support.rights import Rights

BEFORE_LOGIN = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""By these callers become somebody; they need no right."""
MISSING_INTERNAL_TOPICS = Status.MISSING_INTERNAL_TOPICS
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
def rights() -> Rights:
    return Rights(user_host=USER_HOST, implies_describe=False)


@pytest.fixture(scope="module")
def cluster(rights: Rights) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.app.authorization.ALLOW_ALL", rights)
        running = Cluster(config=CONFIG).start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def controller(cluster: Cluster) -> Iterator[RawClient]:
    """The user's connection to the controller."""
    _, _, address = cluster.nodes[1].properties["controller.quorum.voters"].partition("@")
    with RawClient(address, source=USER_HOST) as client:
        yield client


@pytest.fixture(scope="module")
def world(cluster: Cluster, rights: Rights) -> Iterator[World]:
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
        _refuse(cluster, case_world, case_world.user, case, need)


def _refuse(cluster: Cluster, world: World, client: RawClient, case: Case, need: Need) -> None:
    world.rights.grant_all()
    world.renew()
    request = case.make(world)
    world.rights.grant_all_but(rights_of(world, need.kinds))
    before = state_of(cluster)
    answer, answered = ask(client, request, case.version)
    expected = set() if need.error is None else {need.error}
    assert errors_in(answer) == expected, f"without {need}"
    if not need.is_named_without:
        assert not seen(world, bytes_of(request, case.version), answered), f"without {need}"
    if need.error is not None and not need.is_done_without:
        assert state_of(cluster) == before, f"without {need}"


@pytest.mark.parametrize("case", TRIED, ids=str)
def test_the_rights_of_the_table_are_enough(case_world: World, case: Case) -> None:
    _allow(case_world, case_world.user, case)


def _allow(world: World, client: RawClient, case: Case) -> None:
    ways = max((len(need.kinds) for need in case.needs), default=1)
    for way in range(ways):
        world.rights.grant_all()
        world.renew()
        request = case.make(world)
        kinds = [need.kinds[min(way, len(need.kinds) - 1)] for need in case.needs]
        world.rights.grant_only(rights_of(world, kinds))
        answer, answered = ask(client, request, case.version)
        errors = errors_in(answer)
        if client is world.user:
            assert errors <= case.succeeds_with, kinds
        else:
            assert not errors & AUTHORIZATION_ERRORS, kinds
        if any(need.error is None for need in case.needs):
            assert seen(world, bytes_of(request, case.version), answered), kinds


AT_CONTROLLER = [
    *of_controller.CASES,
    *(
        case
        for case in CASES
        if case.api.key in {route.api.key for route in CONTROLLER_ROUTES}
        and str(case) not in map(str, of_controller.CASES)
        and case.api is not apis.FETCH
    ),
]


def test_the_rights_of_each_api_of_controllers_are_in_the_table() -> None:
    served = {route.api.key for route in CONTROLLER_ROUTES}
    assert served <= {case.api.key for case in AT_CONTROLLER} | BEFORE_LOGIN


@pytest.mark.parametrize("case", AT_CONTROLLER, ids=str)
def test_the_controller_reads_and_changes_nothing_without_a_right(
    cluster: Cluster, case_world: World, controller: RawClient, case: Case
) -> None:
    for need in case.needs:
        _refuse(cluster, case_world, controller, case, need)


@pytest.mark.parametrize("case", AT_CONTROLLER, ids=str)
def test_the_rights_of_the_table_are_enough_for_the_controller(
    case_world: World, controller: RawClient, case: Case
) -> None:
    _allow(case_world, controller, case)


HIDING = [
    case
    for case in TRIED
    if any(need.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED for need in case.needs)
]


@pytest.mark.parametrize("case", HIDING, ids=str)
def test_a_hidden_topic_is_answered_as_one_that_is_not_there(case_world: World, case: Case) -> None:
    world = case_world
    world.renew()
    request = case.make(world)
    asked = bytes_of(request, case.version)
    is_named = world.topic.encode() in asked
    if not is_named or not any(world.topic_id) or bytes(world.topic_id) in asked:
        return  # ids are no secret (KIP-516), and what is to be created is not there
    hidden = {Right(operation, ResourceType.TOPIC, world.topic) for operation in Operation}
    for need in case.needs:
        if need.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            hidden |= rights_of(world, need.kinds)
    world.rights.grant_all_but(hidden)
    _, of_hidden = ask(world.user, request, case.version)
    world.delete_topic()
    _, of_absent = ask(world.user, request, case.version)
    assert of_hidden == of_absent


def test_a_member_cannot_have_internal_topics_created_that_it_may_not_create(
    cluster: Cluster, case_world: World
) -> None:
    world = case_world
    world.renew()
    world.make_topic()
    name = f"{world.group}-changelog"
    request = streams_heartbeat(world, changelog=name)
    ways = [
        Right(Operation.CREATE, ResourceType.TOPIC, name),
        Right(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
    ]
    world.rights.grant_all_but(ways)
    answer, _ = ask(world.user, request)
    (status,) = [each for each in answer.status if each.status_code == MISSING_INTERNAL_TOPICS]
    assert status.status_detail.endswith(f"; Unauthorized to CREATE on topics {name}.")
    for way in ways:
        assert name not in _services(cluster).image.topics.by_name
        world.rights.grant_all_but({*ways} - {way})
        answer, _ = ask(world.user, request)
        assert "Unauthorized" not in answer.status[0].status_detail
        wait_until(lambda: name in _services(cluster).image.topics.by_name, "the topic")
        world.delete_topic(name)
        wait_until(lambda: name not in _services(cluster).image.topics.by_name, "its end")


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
        image.controllers,
        image.next_producer_id,
        sorted(image.brokers),
    )
    return metadata, logs, groups, logger_levels(), set(services.logs.futures)


def test_authorization_errors_are_no_success() -> None:
    assert not any(case.succeeds_with & AUTHORIZATION_ERRORS for case in CASES)
    assert ErrorCode.NONE not in AUTHORIZATION_ERRORS
