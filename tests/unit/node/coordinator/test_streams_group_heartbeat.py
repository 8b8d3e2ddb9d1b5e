"""StreamsGroupHeartbeat: what is refused and in which words, joining, following, leaving."""

from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.member import MemberState
from barnabas.node.coordinator.group.streams.tasks import TaskId
from barnabas.node.coordinator.group.streams.topology import Status
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import group_records as records
from barnabas.protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.streams_groups import (
    Endpoint,
    KeyValue,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from support.group_world import Call
from support.streams_world import (
    COUNTING,
    StreamsWorld,
    StreamThread,
    joining,
    statuses,
    subtopology,
    tasks_of,
    topology,
)

JOIN = joining("m")
STAY: dict[str, Any] = {"member_id": "m", "member_epoch": 3}
TASK = [TaskIds(subtopology_id="0", partitions=[0])]
ALL_TASKS = {TaskId(name, number) for name in "01" for number in range(4)}


@pytest.fixture
def world() -> StreamsWorld:
    world = StreamsWorld()
    world.set_topics({"in": 4})
    return world


@pytest.fixture
def thread(world: StreamsWorld) -> StreamThread:
    """The one member of a group that is stable."""
    thread = StreamThread(world, "m", "p")
    thread.step()
    thread.step()
    assert world.streams_group().state is ModernGroupState.STABLE
    assert thread.epoch == 3
    return thread


def fixed_changelog() -> Any:
    """A topology that says how many partitions a changelog has."""
    changed = subtopology("0", sources=["in"])
    changed.state_changelog_topics = [TopicInfo(name="c", partitions=3)]
    return topology(changed)


def by_pattern() -> Any:
    """A topology that reads topics by a pattern."""
    changed = subtopology("0", sources=["in"])
    changed.source_topic_regex = ["i.*"]
    return topology(changed)


INVALID = {
    "instance id": ({**JOIN, "instance_id": "i"}, "Static membership is not yet supported."),
    "task offsets": (
        {**JOIN, "task_offsets": [TaskOffset()]},
        "TaskOffsets are not supported yet.",
    ),
    "task end offsets": ({**JOIN, "task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
    "warm-up tasks": ({**JOIN, "warmup_tasks": TASK}, "WarmupTasks are not supported yet."),
    "pattern": (
        {**JOIN, "topology": by_pattern()},
        "Regular expressions for source topics are not supported yet.",
    ),
    "no member id": ({**JOIN, "member_id": " "}, "MemberId can't be empty."),
    "no group id": ({**JOIN, "group_id": ""}, "GroupId can't be empty."),
    "no rack": ({**JOIN, "rack_id": ""}, "RackId can't be empty."),
    "no time-out": (
        {**JOIN, "rebalance_timeout_ms": -1},
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    "active tasks": (
        {**JOIN, "active_tasks": TASK},
        "ActiveTasks must be empty when (re-)joining.",
    ),
    "standby tasks": (
        {**JOIN, "standby_tasks": TASK},
        "StandbyTasks must be empty when (re-)joining.",
    ),
    "no topology": (
        {**JOIN, "topology": None},
        "Topology must be non-null when (re-)joining.",
    ),
    "static leave": ({"member_id": "m", "member_epoch": -2}, "InstanceId can't be null."),
    "epoch": (
        {"member_id": "m", "member_epoch": -3},
        "MemberEpoch is -3, but must be greater than or equal to -2.",
    ),
    "some tasks unsaid": (
        {**STAY, "active_tasks": [], "standby_tasks": []},
        "If one task-type is non-null, all must be non-null.",
    ),
    "topology later": (
        {**STAY, "topology": COUNTING},
        "Topology can only be provided when (re-)joining.",
    ),
}


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_invalid_requests(world: StreamsWorld, case: tuple[dict[str, Any], str]) -> None:
    fields, message = case
    response = world.beat_streams(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert world.log.records() == []


INVALID_TOPOLOGIES = {
    "changelog with partitions": (
        fixed_changelog(),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "Changelog topic c must have an undefined partition count, but it is set to 3.",
    ),
    "two of one name": (
        topology(subtopology("0", sources=["in"]), subtopology("0", sources=["in"])),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
    "epoch": (
        topology(subtopology("0", sources=["in"]), epoch=-1),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
    "no sources": (
        topology(subtopology("0")),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "No source topics found for subtopology 0",
    ),
}


@pytest.mark.parametrize("case", INVALID_TOPOLOGIES.values(), ids=INVALID_TOPOLOGIES.keys())
def test_invalid_topologies(world: StreamsWorld, case: tuple[Any, ErrorCode, str | None]) -> None:
    sent, error, message = case
    response = world.join_streams("m", topology=sent)
    assert (response.error_code, response.error_message) == (error, message)
    assert world.log.records() == []


REFUSED = {
    "no such group": (
        {**STAY, "group_id": "x"},
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Streams group x not found.",
    ),
    "leaves no such group": (
        {"group_id": "x", "member_id": "m", "member_epoch": -1},
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group x not found.",
    ),
    "stranger": (
        {"member_id": "n", "member_epoch": 3},
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member n is not a member of group g.",
    ),
    "stranger leaves": (
        {"member_id": "n", "member_epoch": -1},
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member n is not a member of group g.",
    ),
    "greater epoch": (
        {"member_id": "m", "member_epoch": 4},
        ErrorCode.FENCED_MEMBER_EPOCH,
        (
            "The streams group member has a greater member epoch (4) than the one known by the "
            "group coordinator (3). The member must abandon all its partitions and rejoin."
        ),
    ),
    "smaller epoch": (
        {
            "member_id": "m",
            "member_epoch": 1,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
        ErrorCode.FENCED_MEMBER_EPOCH,
        (
            "The streams group member has a smaller member epoch (1) than the one known by the "
            "group coordinator (3). The member must abandon all its partitions and rejoin."
        ),
    ),
    "unknown subtopology": (
        {
            **STAY,
            "active_tasks": [TaskIds(subtopology_id="7", partitions=[0])],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
        ErrorCode.INVALID_REQUEST,
        "Subtopology 7 does not exist in the topology.",
    ),
    "unknown task": (
        {
            **STAY,
            "active_tasks": [],
            "standby_tasks": [TaskIds(subtopology_id="1", partitions=[4])],
            "warmup_tasks": [],
        },
        ErrorCode.INVALID_REQUEST,
        "Task 4 for subtopology 1 is invalid. Number of tasks for this subtopology: 4",
    ),
    "another topology": (
        {**JOIN, "topology": topology(subtopology("0", sources=["in"]))},
        ErrorCode.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    ),
    "newer topology": (
        {**JOIN, "topology": topology(*COUNTING.subtopologies, epoch=1)},
        ErrorCode.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refused_requests(
    world: StreamsWorld, thread: StreamThread, case: tuple[dict[str, Any], ErrorCode, str]
) -> None:
    fields, error, message = case
    before = len(world.log.records())
    response = world.beat_streams(**fields)
    assert (response.error_code, response.error_message) == (error, message)
    assert len(world.log.records()) == before


def test_groups_of_other_protocols(world: StreamsWorld) -> None:
    world.stable_group("c", group_id="classic")
    world.beat_joining("m", "in", group_id="consumer")
    for group_id in ("classic", "consumer"):
        for epoch in (0, 1, -1):
            fields = {**JOIN} if epoch == 0 else {"member_id": "m", "member_epoch": epoch}
            response = world.beat_streams(**{**fields, "group_id": group_id})
            assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert response.error_message == f"Group {group_id} is not a streams group."


def test_first_member_waits_for_internal_topics(world: StreamsWorld) -> None:
    world.creates_topics = False
    heard = world.hear(**JOIN)
    assert {(topic.name, topic.partitions) for topic in heard.missing_topics} == {
        ("by-key", 4),
        ("counts", 4),
    }
    response = heard.response
    assert (response.member_id, response.member_epoch) == ("m", 2)
    assert tasks_of(response.active_tasks) == set()
    (status,) = response.status or ()
    assert status.status_code == Status.MISSING_INTERNAL_TOPICS
    assert status.status_detail == "Internal topics are missing: by-key, counts"
    assert world.streams_group().state is ModernGroupState.NOT_READY
    world.create(heard.missing_topics)
    response = world.beat_streams(member_id="m", member_epoch=2)
    assert response.member_epoch == 3
    assert tasks_of(response.active_tasks) == ALL_TASKS
    assert response.status == []
    assert world.streams_group().state is ModernGroupState.STABLE
    # Nothing changes: nothing is written, and tasks are not told again.
    before = len(world.log.records())
    response = world.beat_streams(member_id="m", member_epoch=3)
    assert response.active_tasks is None
    assert len(world.log.records()) == before


def test_source_topics_that_come_later(world: StreamsWorld) -> None:
    world.set_topics({})
    response = world.join_streams("m")
    assert statuses(response) == [Status.MISSING_SOURCE_TOPICS]
    assert world.streams_group().state is ModernGroupState.NOT_READY
    world.set_topics({"in": 1})
    response = world.beat_streams(member_id="m", member_epoch=response.member_epoch)
    assert statuses(response) == [Status.MISSING_INTERNAL_TOPICS]
    response = world.beat_streams(member_id="m", member_epoch=response.member_epoch)
    assert tasks_of(response.active_tasks) == {TaskId("0", 0), TaskId("1", 0)}


def test_source_topic_that_grows(world: StreamsWorld, thread: StreamThread) -> None:
    """Its changelog does not fit any more: all tasks are taken away, as Kafka does."""
    world.set_topics({**world.topics, "in": 5})
    thread.step()
    assert thread.last is not None
    assert statuses(thread.last) == [Status.INCORRECTLY_PARTITIONED_TOPICS]
    assert world.streams_group().state is ModernGroupState.NOT_READY
    thread.step()
    assert thread.has == (frozenset(), frozenset())


def test_tasks_are_handed_over(world: StreamsWorld, thread: StreamThread) -> None:
    other = StreamThread(world, "n", "q")
    other.step()
    group = world.streams_group()
    assert other.has == (frozenset(), frozenset())
    assert group.members["n"].state is MemberState.UNRELEASED_TASKS
    thread.step()
    assert group.members["m"].state is MemberState.UNREVOKED_TASKS
    assert group.members["m"].member_epoch == 3
    other.step()
    assert other.has == (frozenset(), frozenset())
    thread.step()
    assert group.members["m"].state is MemberState.STABLE
    other.step()
    assert thread.has[0] | other.has[0] == ALL_TASKS
    assert len(thread.has[0]) == len(other.has[0]) == 4
    assert group.state is ModernGroupState.STABLE


def test_one_that_does_not_give_tasks_up_is_fenced(
    world: StreamsWorld, thread: StreamThread
) -> None:
    other = StreamThread(world, "n", "q")
    other.step()
    thread.step()  # it hears of it, and says nothing of giving up
    for _ in range(7):
        world.beat_streams(member_id="m", member_epoch=3)
        world.clock.advance(5_000)
    response = world.beat_streams(member_id="m", member_epoch=3)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(2):
        other.step()
    assert other.has[0] == ALL_TASKS


def test_silent_member_is_fenced(world: StreamsWorld, thread: StreamThread) -> None:
    world.clock.advance(44_000)
    thread.step()
    world.clock.advance(44_999)
    assert not world.streams_group().is_empty
    world.clock.advance(2)
    group = world.streams_group()
    assert group.is_empty
    assert group.state is ModernGroupState.EMPTY
    assert group.epoch == 4


def test_silent_member_is_fenced_after_a_move(world: StreamsWorld, thread: StreamThread) -> None:
    world.clock.advance(40_000)
    world.reload()
    world.clock.advance(44_000)
    assert not world.streams_group().is_empty
    world.clock.advance(1_001)
    assert world.streams_group().is_empty


def test_lost_response(world: StreamsWorld, thread: StreamThread) -> None:
    """A member that has not heard of its epoch may go on with the one before."""
    says = {
        "active_tasks": [TaskIds(subtopology_id="0", partitions=[0, 1])],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    response = world.beat_streams(member_id="m", member_epoch=2, **says)
    assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, 3)
    response = world.beat_streams(member_id="m", member_epoch=2)
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_new_group_waits_for_more_members() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=3_000)
    world.set_topics({"in": 4})
    threads = [StreamThread(world, f"m{n}", f"p{n}") for n in range(3)]
    for thread in threads:
        thread.step()
        assert thread.last is not None
        assert Status.ASSIGNMENT_DELAYED in statuses(thread.last)
        world.clock.advance(500)
    world.clock.advance(2_000)
    for _ in range(2):
        for thread in threads:
            thread.step()
    assert world.streams_group().state is ModernGroupState.STABLE
    assert sorted(len(thread.has[0]) for thread in threads) == [2, 3, 3]
    # Nobody had to give anything up.
    assert all(thread.epoch == threads[0].epoch for thread in threads)


def test_delay_ends_without_a_heartbeat() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=3_000)
    world.set_topics({"in": 4, "by-key": 4, "counts": 4})
    thread = StreamThread(world, "m", "p")
    thread.step()
    thread.step()
    assert world.streams_group().state is ModernGroupState.ASSIGNING
    world.clock.advance(3_001)
    group = world.streams_group()
    assert group.assignment_epoch == group.epoch
    assert group.state is ModernGroupState.RECONCILING


def test_assignments_keep_their_distance() -> None:
    world = StreamsWorld(group_streams_assignment_interval_ms=5_000)
    world.set_topics({"in": 4, "by-key": 4, "counts": 4})
    first, second = StreamThread(world, "m", "p"), StreamThread(world, "n", "q")
    first.step()
    second.step()
    assert second.last is not None
    (status,) = second.last.status or ()
    assert (status.status_code, status.status_detail) == (
        Status.ASSIGNMENT_DELAYED,
        "Assignment delayed due to the configured assignment interval.",
    )
    assert world.streams_group().state is ModernGroupState.ASSIGNING
    world.clock.advance(5_001)
    for _ in range(3):
        first.step()
        second.step()
    assert len(second.has[0]) == 4


def test_settings_of_a_group(world: StreamsWorld, thread: StreamThread) -> None:
    other = StreamThread(world, "n", "q")
    for _ in range(3):
        other.step()
        thread.step()
    assert not thread.has[1]
    assert not other.has[1]
    world.set_topics(
        world.topics,
        group_configs={
            "g": {
                "streams.num.standby.replicas": "5",  # no more than 2 count
                "streams.heartbeat.interval.ms": "20000",
                "streams.session.timeout.ms": "50000",
            }
        },
    )
    for _ in range(3):
        other.step()
        thread.step()
    assert other.last is not None
    assert other.last.heartbeat_interval_ms == 15_000
    assert thread.has[1] | other.has[1] == {TaskId("1", number) for number in range(4)}
    assert world.streams_group().assignment_configs == {"num.standby.replicas": "2"}
    world.clock.advance(49_000)
    assert len(world.streams_group().members) == 2
    world.clock.advance(2_000)
    assert world.streams_group().is_empty


def test_full_group() -> None:
    world = StreamsWorld(group_streams_max_size=1)
    world.set_topics({"in": 1})
    world.join_streams("m")
    response = world.join_streams("n")
    assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert response.error_message == (
        "The streams group has reached its maximum capacity of 1 members."
    )


def test_older_topology_may_join(world: StreamsWorld) -> None:
    world.join_streams("m", topology=topology(*COUNTING.subtopologies, epoch=2))
    response = world.join_streams("n")
    assert not response.error_code
    assert Status.STALE_TOPOLOGY in statuses(response)
    details = {status.status_code: status.status_detail for status in response.status or ()}
    assert details[Status.STALE_TOPOLOGY] == (
        "The member's topology epoch 0 is behind the group's topology epoch 2."
    )


def test_shutdown_of_the_application(world: StreamsWorld, thread: StreamThread) -> None:
    other = StreamThread(world, "n", "q")
    other.step()
    world.beat_streams(**STAY, shutdown_application=True)
    other.step()
    assert other.last is not None
    (status,) = other.last.status or ()
    assert (status.status_code, status.status_detail) == (
        Status.SHUTDOWN_APPLICATION,
        (
            "Streams group member m encountered a fatal error and requested a shutdown for the "
            "entire application."
        ),
    )
    thread.leave()
    other.step()
    assert statuses(other.last) == [Status.SHUTDOWN_APPLICATION]
    other.leave()
    assert statuses(world.join_streams("o")) == []


def test_endpoints_of_interactive_queries(world: StreamsWorld) -> None:
    endpoint = Endpoint(host="h", port=8080)
    world.set_topics({"in": 2, "by-key": 2, "counts": 2})
    response = world.join_streams("m", user_endpoint=endpoint)
    assert response.endpoint_information_epoch == 0
    response = world.beat_streams(
        member_id="m", member_epoch=response.member_epoch, endpoint_information_epoch=-1
    )
    (found,) = response.partitions_by_user_endpoint or ()
    assert (found.user_endpoint.host, found.user_endpoint.port) == ("h", 8080)
    assert {each.topic: each.partitions for each in found.active_partitions} == {
        "in": [0, 1],
        "by-key": [0, 1],
    }
    assert found.standby_partitions == []
    again = world.beat_streams(
        member_id="m",
        member_epoch=response.member_epoch,
        endpoint_information_epoch=response.endpoint_information_epoch,
    )
    assert again.partitions_by_user_endpoint is None
    # Another member with an endpoint is news to the first.
    world.join_streams("n", user_endpoint=Endpoint(host="i", port=1))
    news = world.beat_streams(
        member_id="m",
        member_epoch=response.member_epoch,
        endpoint_information_epoch=response.endpoint_information_epoch,
    )
    hosts = [each.user_endpoint.host for each in news.partitions_by_user_endpoint or ()]
    assert hosts == ["i", "h"]
    assert news.endpoint_information_epoch > response.endpoint_information_epoch


def test_what_is_written(world: StreamsWorld) -> None:
    world.set_topics({"in": 1, "by-key": 1, "counts": 1})
    world.join_streams("m", rack_id="r", client_tags=[KeyValue(key="zone", value="a")])
    written = world.log.records()
    assert [type(record.value) for record in written] == [
        records.StreamsGroupMemberMetadataValue,
        records.StreamsGroupTopologyValue,
        records.StreamsGroupMetadataValue,
        records.StreamsGroupTargetAssignmentMemberValue,
        records.StreamsGroupTargetAssignmentMetadataValue,
        records.StreamsGroupCurrentMemberAssignmentValue,
    ]
    member, _, epoch, target, target_epoch, current = (record.value for record in written)
    assert isinstance(member, records.StreamsGroupMemberMetadataValue)
    assert (member.rack_id, member.client_host, member.topology_epoch) == ("r", "/10.0.0.1", 0)
    assert isinstance(epoch, records.StreamsGroupMetadataValue)
    assert (epoch.epoch, epoch.validated_topology_epoch) == (2, 0)
    assert isinstance(target, records.StreamsGroupTargetAssignmentMemberValue)
    assert [tasks.subtopology_id for tasks in target.active_tasks] == ["0", "1"]
    assert isinstance(target_epoch, records.StreamsGroupTargetAssignmentMetadataValue)
    assert target_epoch.assignment_epoch == 2
    assert isinstance(current, records.StreamsGroupCurrentMemberAssignmentValue)
    assert [tasks.assignment_epochs for tasks in current.active_tasks] == [[2], [2]]
    assert current.state == 1, "Kafka's number for a stable member"
    world.beat_streams(member_id="m", member_epoch=-1)
    left = world.log.records()[6:]
    assert [type(record.key).__name__ for record in left] == [
        "StreamsGroupCurrentMemberAssignmentKey",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupMetadataKey",
    ]
    assert [record.value is None for record in left] == [True, True, True, False]


def test_failed_write_changes_nothing(world: StreamsWorld, thread: StreamThread) -> None:
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    response = world.join_streams("n")
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert set(world.streams_group().members) == {"m"}
    world.log.append_error = None
    assert not world.join_streams("n").error_code
    assert set(world.streams_group().members) == {"m", "n"}


def test_lost_configuration_is_made_again(world: StreamsWorld) -> None:
    """The write that should say that topics fit fails; the next heartbeat says it."""
    world.join_streams("m")
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.beat_streams(member_id="m", member_epoch=2)
    world.log.append_error = None
    response = world.beat_streams(member_id="m", member_epoch=2)
    assert tasks_of(response.active_tasks) == ALL_TASKS
    assert world.streams_group().metadata_hash != 0


# Offsets


def test_commits_of_members(world: StreamsWorld, thread: StreamThread) -> None:
    other = StreamThread(world, "n", "q")
    for _ in range(3):
        other.step()
        thread.step()
    assert (thread.epoch, other.epoch) == (4, 4)
    old, new = min(thread.has[0]), min(other.has[0])
    topic = {"0": "in", "1": "by-key"}
    cases = [
        (old, "m", 4, ErrorCode.NONE),
        (old, "m", 3, ErrorCode.NONE),  # it has had the task since epoch 3
        (old, "m", 2, ErrorCode.STALE_MEMBER_EPOCH),
        (new, "m", 3, ErrorCode.STALE_MEMBER_EPOCH),  # it has given that one up
        (new, "n", 4, ErrorCode.NONE),
        (new, "n", 3, ErrorCode.STALE_MEMBER_EPOCH),  # it did not have it then
        (old, "m", 5, ErrorCode.STALE_MEMBER_EPOCH),
        (old, "x", 4, ErrorCode.UNKNOWN_MEMBER_ID),
        (old, "", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    for task, member, epoch, error in cases:
        name = topic[task.subtopology_id]
        assert world.commit_error({(name, task.partition): 1}, member, epoch) is error
        in_transaction = world.transactional_commit_error((name, task.partition), member, epoch)
        if error is ErrorCode.STALE_MEMBER_EPOCH:
            assert in_transaction == ErrorCode.ILLEGAL_GENERATION
        elif not member:
            assert in_transaction == ErrorCode.NONE  # no member is named, so none is checked
        else:
            assert in_transaction == error
    assert world.commit_error({("x", 0): 1}, "m", 3) is ErrorCode.STALE_MEMBER_EPOCH
    version_8 = world.commit_error({("in", 0): 1}, "m", 4, version=8)
    assert version_8 is ErrorCode.UNSUPPORTED_VERSION


def test_fetches_of_members(world: StreamsWorld, thread: StreamThread) -> None:
    world.commit({("in", 0): 5}, "m", 3)
    assert world.fetch(("in", 0), member_id="m", member_epoch=3).error is ErrorCode.NONE
    assert world.fetch(("in", 0)).error is ErrorCode.NONE
    stale = world.fetch(("in", 0), member_id="m", member_epoch=2)
    assert stale.error is ErrorCode.STALE_MEMBER_EPOCH
    unknown = world.fetch(("in", 0), member_id="n", member_epoch=3)
    assert unknown.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_that_expire() -> None:
    """Those of topics that the group reads stay as long as it has members."""
    world = StreamsWorld(offsets_retention_minutes=1)
    world.set_topics({"in": 1, "gone": 1})
    thread = StreamThread(world, "m", "p")
    thread.step()
    thread.step()
    world.commit({("in", 0): 5, ("gone", 0): 6}, "m", thread.epoch)
    for _ in range(2):
        world.clock.advance(40_000)
        thread.step()
    world.coordinator.expire_offsets()
    assert world.offsets() == {("in", 0): 5}
    thread.leave()
    world.coordinator.expire_offsets()
    assert world.offsets() == {}
    assert world.shard.groups.get("g") is None


# Administration


def test_description(world: StreamsWorld, thread: StreamThread) -> None:
    group = world.describe_streams()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    first, second = group.topology.subtopologies
    assert (first.subtopology_id, first.source_topics) == ("0", ["in"])
    assert first.repartition_sink_topics == ["by-key"]
    (repartition,) = second.repartition_source_topics
    assert (repartition.name, repartition.partitions) == ("by-key", 4)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("m", 3, "p")
    assert tasks_of(member.assignment.active_tasks) == ALL_TASKS
    assert tasks_of(member.target_assignment.active_tasks) == ALL_TASKS
    world.reload()  # nobody has put the topology on the topics here yet
    group = world.describe_streams()
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    (repartition,) = group.topology.subtopologies[1].repartition_source_topics
    assert repartition.partitions == 0


def test_description_of_others(world: StreamsWorld) -> None:
    world.stable_group("c", group_id="classic")
    for group_id, message in (
        ("x", "Group x not found."),
        ("classic", "Group classic is not a streams group."),
    ):
        described = world.describe_streams(group_id)
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert described.error_message == message
    assert world.describe_streams("").error_code == ErrorCode.INVALID_GROUP_ID


def test_listing_and_deletion(world: StreamsWorld, thread: StreamThread) -> None:
    call: Call[Any] = Call(
        world.coordinator.list_groups(ListGroupsRequest(types_filter=["Streams"]))
    )
    (listed,) = call.response.groups
    assert (listed.group_id, listed.protocol_type) == ("g", "streams")
    assert (listed.group_state, listed.group_type) == ("Stable", "streams")
    world.commit({("in", 0): 5}, "m", 3)
    assert deletion(world) == ErrorCode.NON_EMPTY_GROUP
    thread.leave()
    assert deletion(world) == ErrorCode.NONE
    assert world.shard.groups.get("g") is None
    assert world.offsets() == {}
    world.reload()
    assert world.shard.groups.get("g") is None
    assert deletion(world) == ErrorCode.GROUP_ID_NOT_FOUND


def deletion(world: StreamsWorld) -> ErrorCode:
    """The outcome of DeleteGroups."""
    request = DeleteGroupsRequest(groups_names=["g"])
    call: Call[Any] = Call(world.coordinator.delete_groups(request))
    return ErrorCode(call.response.results[0].error_code)


def test_from_classic_and_back(world: StreamsWorld) -> None:
    """An empty group changes its protocol; its offsets stay."""
    (member_id,) = world.stable_group("c")
    world.commit({("in", 0): 5}, member_id, 1)
    assert world.join_streams("m").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    world.leave((member_id, None))
    assert not world.join_streams("m").error_code
    assert isinstance(world.shard.groups.get("g"), StreamsGroup)
    assert world.offsets() == {("in", 0): 5}
    world.reload()
    assert isinstance(world.shard.groups.get("g"), StreamsGroup)
    assert world.join("c").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world.beat_streams(member_id="m", member_epoch=-1)
    world.stable_group("d")
    assert isinstance(world.shard.groups.get("g"), ClassicGroup)
    world.reload()
    assert isinstance(world.shard.groups.get("g"), ClassicGroup)
    assert world.offsets() == {("in", 0): 5}


def test_from_offsets_without_members(world: StreamsWorld) -> None:
    world.commit({("in", 0): 5})
    assert not world.join_streams("m").error_code
    world.crash()
    assert isinstance(world.shard.groups.get("g"), StreamsGroup)
    assert world.offsets() == {("in", 0): 5}
