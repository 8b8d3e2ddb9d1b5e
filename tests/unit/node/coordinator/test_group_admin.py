"""ListGroups, DescribeGroups, DeleteGroups."""

from typing import Any

import pytest

from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from support.group_world import GroupWorld, subscription


def client(version: int) -> ClientInfo:
    return ClientInfo("admin", "10.0.0.1", ANONYMOUS, version)


def three_groups() -> GroupWorld:
    world = GroupWorld(offsets_topic_num_partitions=4)
    world.stable_group("a", group_id="stable")
    world.commit({("t", 0): 1}, group_id="simple")
    world.join("b", group_id="empty")
    return world


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {"stable", "simple", "empty"}),
        (["Stable"], [], {"stable"}),
        ([" stable ", "EMPTY"], [], {"stable", "simple", "empty"}),
        (["Dead"], [], set()),
        (["nonsense"], [], set()),
        ([], ["classic"], {"stable", "simple", "empty"}),
        ([], ["Consumer"], set()),
        (["empty"], ["CLASSIC", "share"], {"simple", "empty"}),
    ],
)
def test_list_filters(states, types, expected):
    world = three_groups()
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    response = world.coordinator.list_groups(request)
    assert {group.group_id for group in response.groups} == expected


def test_what_a_listing_says():
    response = three_groups().coordinator.list_groups(ListGroupsRequest())
    listed = {
        group.group_id: (group.protocol_type, group.group_state, group.group_type)
        for group in response.groups
    }
    assert listed == {
        "stable": ("consumer", "Stable", "classic"),
        "simple": ("", "Empty", "classic"),
        "empty": ("", "Empty", "classic"),
    }


def describe(world: GroupWorld, *names: str, version: int = 6):
    return world.coordinator.classics.describe(
        DescribeGroupsRequest(groups=list(names)), client(version)
    ).groups


def test_describe_a_stable_group():
    world = GroupWorld()
    (a,) = world.stable_group("a")
    (group,) = describe(world, "g")
    assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
    assert group.protocol_data == "range"
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (a, "a", "/10.0.0.1")
    assert member.member_metadata == subscription("t")
    assert member.member_assignment == a.encode()


def test_metadata_is_shown_of_stable_groups_only():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    world.join("a", a)
    (group,) = describe(world, "g")
    assert group.group_state == "PreparingRebalance"
    assert group.protocol_data == ""
    assert [member.member_id for member in group.members] == [a, b]
    assert {member.member_assignment for member in group.members} == {b""}


@pytest.mark.parametrize(("version", "expected"), [(5, "NONE"), (6, "GROUP_ID_NOT_FOUND")])
def test_describe_an_unknown_group(version, expected):
    (group,) = describe(GroupWorld(), "nobody", version=version)
    assert group.error_code == ErrorCode[expected]
    assert group.group_state == "Dead"
    assert (group.error_message is not None) == (version == 6)


def test_describe_groups_of_another_coordinator():
    world = GroupWorld()
    world.coordinator.unload(0)
    (group,) = describe(world, "g")
    assert group.error_code == ErrorCode.NOT_COORDINATOR


def test_delete_groups():
    world = three_groups()
    request = DeleteGroupsRequest(groups_names=["stable", "simple", "empty", "nobody", "simple"])
    outcomes = {
        result.group_id: ErrorCode(result.error_code)
        for result in world.coordinator.delete_groups(request).results
    }
    assert outcomes == {
        "stable": ErrorCode.NON_EMPTY_GROUP,
        "simple": ErrorCode.NONE,
        "empty": ErrorCode.NONE,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    world.reload()
    listed = world.coordinator.list_groups(ListGroupsRequest()).groups
    assert [group.group_id for group in listed] == ["stable"]
    assert world.offsets("simple") == {}


def test_delete_groups_of_another_coordinator():
    world = GroupWorld()
    world.coordinator.unload(0)
    response = world.coordinator.delete_groups(DeleteGroupsRequest(groups_names=["g"]))
    assert response.results[0].error_code == ErrorCode.NOT_COORDINATOR


def test_requests_for_several_groups_wait_for_all():
    world = GroupWorld(offsets_topic_num_partitions=4)
    world.log.holds_commits = True
    world.commit({("t", 0): 1}, group_id="one")
    listing = world.coordinator.list_groups(ListGroupsRequest())
    done: list[Any] = []
    listing.then(done.append)
    assert not done
    for partition in range(4):
        world.log.commit(partition)
    assert [group.group_id for group in done[0].groups] == ["one"]
