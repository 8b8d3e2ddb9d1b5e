"""AlterPartitionReassignments and ListPartitionReassignments as the controller decides them."""

from collections.abc import Callable
from typing import Any

import pytest
from controller_harness import Harness

from barnabas.node.metadata.image import NO_LEADER, LeaderRecoveryState, PartitionImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)


def create(controller: Harness, *partitions: list[int], name: str = "t", **configs: str) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=number, broker_ids=replicas)
                    for number, replicas in enumerate(partitions)
                ],
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ]
    )
    assert controller.do(request).topics[0].error_code == 0


def partition(controller: Harness, name: str = "t", number: int = 0) -> PartitionImage:
    return controller.image.topics.by_name[name].partitions[number]


def reassign(
    controller: Harness,
    replicas: list[int] | None,
    *,
    name: str = "t",
    number: int = 0,
    allow_replication_factor_change: bool = True,
) -> tuple[ErrorCode, str | None]:
    response = controller.do(
        AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                ReassignableTopic(
                    name=name,
                    partitions=[ReassignablePartition(partition_index=number, replicas=replicas)],
                )
            ],
        )
    )
    assert (response.error_code, response.error_message) == (0, None)
    [answer] = response.responses[0].partitions
    return ErrorCode(answer.error_code), answer.error_message


def alter_isr(controller: Harness, *isr: int) -> Any:
    before = partition(controller)
    [topic] = controller.do(
        AlterPartitionRequest(
            broker_id=before.leader,
            broker_epoch=controller.image.brokers[before.leader].epoch,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=controller.image.topics.by_name["t"].id,
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=0,
                            leader_epoch=before.leader_epoch,
                            partition_epoch=before.partition_epoch,
                            new_isr_with_epochs=[BrokerState(broker_id=member) for member in isr],
                        )
                    ],
                )
            ],
        )
    ).topics
    return topic.partitions[0]


def cluster(count: int = 6, **level: Any) -> Harness:
    controller = Harness(**level)
    controller.add_brokers(count)
    return controller


def test_replicas_are_added_then_dropped_when_all_that_stay_are_in_sync() -> None:
    controller = cluster()
    create(controller, [0, 1, 2])
    assert reassign(controller, [3, 4, 5]) == (ErrorCode.NONE, None)
    moving = partition(controller)
    assert moving.replicas == (3, 4, 5, 0, 1, 2)
    assert (moving.adding, moving.removing) == ((3, 4, 5), (0, 1, 2))
    assert (moving.leader, moving.isr, moving.leader_epoch) == (0, (0, 1, 2), 0)
    assert alter_isr(controller, 0, 1, 2, 3).error_code == 0
    assert partition(controller).replicas == moving.replicas, "two are still missing"
    last = alter_isr(controller, 0, 1, 2, 3, 4, 5)
    assert last.error_code == ErrorCode.NEW_LEADER_ELECTED, "the leader was one that leaves"
    done = partition(controller)
    assert (done.replicas, done.isr, done.leader) == ((3, 4, 5), (3, 4, 5), 3)
    assert (done.adding, done.removing) == ((), ())
    assert done.leader_epoch == 1


def test_the_directories_of_new_replicas_are_noted() -> None:
    controller = cluster()
    create(controller, [0])
    reassign(controller, [1])
    brokers = controller.image.brokers
    assert partition(controller).directories == (brokers[1].log_dirs[0], brokers[0].log_dirs[0])
    alter_isr(controller, 0, 1)
    assert partition(controller).directories == brokers[1].log_dirs


def test_a_leader_that_stays_goes_on_in_a_new_epoch() -> None:
    """Replicas that left must not go on fetching in the old one."""
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [0, 2])
    assert alter_isr(controller, 0, 1, 2).error_code == 0
    done = partition(controller)
    assert (done.replicas, done.isr, done.leader, done.leader_epoch) == ((0, 2), (0, 2), 0, 1)


@pytest.mark.parametrize(
    ("target", "leader", "isr"),
    {
        "another order": ([2, 1, 0], 0, (0, 1, 2)),
        "fewer": ([1, 2], 1, (1, 2)),
        "one": ([2], 2, (2,)),
        "the same": ([0, 1, 2], 0, (0, 1, 2)),
    }.values(),
    ids=["another order", "fewer", "one", "the same"],
)
def test_where_nothing_is_copied_it_is_done_at_once(
    target: list[int], leader: int, isr: tuple[int, ...]
) -> None:
    controller = cluster()
    create(controller, [0, 1, 2])
    assert reassign(controller, target)[0] is ErrorCode.NONE
    done = partition(controller)
    assert (done.replicas, done.leader, done.isr) == (tuple(target), leader, isr)
    assert not done.adding
    assert not done.removing
    assert bool(controller.records) is (target != [0, 1, 2])


def test_a_second_target_replaces_the_first_and_both_can_be_cancelled() -> None:
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [2, 3])
    assert reassign(controller, [2, 4])[0] is ErrorCode.NONE
    moving = partition(controller)
    assert (moving.replicas, moving.adding, moving.removing) == ((2, 4, 0, 1), (2, 4), (0, 1))
    assert reassign(controller, None)[0] is ErrorCode.NONE
    back = partition(controller)
    assert (set(back.replicas), back.adding, back.removing) == ({0, 1}, (), ())
    assert back.leader == 0


def test_what_was_to_be_added_stays_while_only_it_is_in_sync() -> None:
    controller = cluster()
    create(controller, [0])
    reassign(controller, [1, 2])
    alter_isr(controller, 0, 1)
    controller.heartbeat(0, want_fence=True)
    assert reassign(controller, [3])[0] is ErrorCode.NONE
    moving = partition(controller)
    assert (moving.isr, moving.leader, moving.removing) == ((1,), 1, (0, 1, 2))
    alter_isr(controller, 1, 3)
    assert (partition(controller).replicas, partition(controller).leader) == ((3,), 3)


def test_a_second_target_may_keep_what_the_first_removes() -> None:
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [1, 2])
    assert reassign(controller, [0, 1, 2])[0] is ErrorCode.NONE
    moving = partition(controller)
    assert (moving.replicas, moving.adding, moving.removing) == ((0, 1, 2), (2,), ())
    alter_isr(controller, 0, 1, 2)
    assert partition(controller).replicas == (0, 1, 2)
    assert partition(controller).adding == ()


def test_a_dead_replica_can_be_replaced() -> None:
    controller = cluster()
    create(controller, [0, 1, 2])
    controller.heartbeat(2, want_fence=True)
    assert reassign(controller, [0, 1, 3])[0] is ErrorCode.NONE
    alter_isr(controller, 0, 1, 3)
    assert partition(controller).replicas == (0, 1, 3)


def test_it_goes_on_when_the_leader_dies() -> None:
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [2, 3])
    controller.heartbeat(0, want_fence=True)
    moving = partition(controller)
    assert (moving.leader, moving.adding, moving.removing) == (1, (2, 3), (0, 1))
    alter_isr(controller, 1, 2, 3)
    assert partition(controller).replicas == (2, 3)
    assert partition(controller).leader == 2


def test_eligible_replicas_that_leave_are_eligible_no_longer() -> None:
    controller = cluster()
    create(controller, [0, 1], min_insync_replicas="2")
    controller.heartbeat(1, want_fence=True)
    assert partition(controller).elr == (1,)
    reassign(controller, [2])
    alter_isr(controller, 0, 2)
    done = partition(controller)
    assert (done.replicas, done.isr, done.elr) == ((2,), (2,), ())


REFUSED: dict[str, tuple[Callable[[Harness], Any], dict[str, Any], ErrorCode, str]] = {
    "unknown topic": (
        lambda c: None,
        {"name": "u", "replicas": [0]},
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find a topic named u.",
    ),
    "deleted topic": (
        lambda c: c.do(DeleteTopicsRequest(topic_names=["t"])),
        {"replicas": [0]},
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find a topic named t.",
    ),
    "unknown partition": (
        lambda c: None,
        {"number": 7, "replicas": [0]},
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find partition t:7.",
    ),
    "no replicas": (
        lambda c: None,
        {"replicas": []},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    "one twice": (
        lambda c: None,
        {"replicas": [3, 4, 3]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes the broker 3 more than once.",
    ),
    "unknown broker": (
        lambda c: None,
        {"replicas": [3, 9]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    "dead broker": (
        lambda c: c.heartbeat(3, want_fence=True),
        {"replicas": [0, 3]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (
            "The manual partition assignment includes broker 3, which is fenced and could not "
            "copy the partition. Start it first, or name another broker."
        ),
    ),
    "another replication factor": (
        lambda c: None,
        {"replicas": [0, 1], "allow_replication_factor_change": False},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 3 to 2",
    ),
    "nothing to cancel": (
        lambda c: None,
        {"replicas": None},
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.message,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    controller = cluster()
    create(controller, [0, 1, 2])
    prepare, arguments, code, message = REFUSED[case]
    prepare(controller)
    before = controller.image
    assert reassign(controller, **arguments) == (code, message)
    assert controller.image.topics is before.topics


def test_one_refusal_does_not_stop_the_others() -> None:
    controller = cluster()
    create(controller, [0], [1])
    response = controller.do(
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name="t",
                    partitions=[
                        ReassignablePartition(partition_index=0, replicas=[9]),
                        ReassignablePartition(partition_index=1, replicas=[2]),
                    ],
                )
            ]
        )
    )
    codes = [answer.error_code for answer in response.responses[0].partitions]
    assert codes == [ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NONE]
    assert partition(controller, number=1).adding == (2,)


def test_a_partition_named_twice_gets_both_in_turn() -> None:
    controller = cluster()
    create(controller, [0])
    controller.do(
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name="t",
                    partitions=[
                        ReassignablePartition(partition_index=0, replicas=replicas)
                        for replicas in ([1], [2])
                    ],
                )
            ]
        )
    )
    moving = partition(controller)
    assert (moving.replicas, moving.adding, moving.removing) == ((2, 0), (2,), (0,))


def test_the_replication_factor_of_one_under_way_is_what_it_leads_to() -> None:
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [2, 3])
    code, _ = reassign(controller, [4, 5], allow_replication_factor_change=False)
    assert code is ErrorCode.NONE


# -- cancellation


def test_a_cancelled_reassignment_leaves_the_replicas_as_they_were() -> None:
    controller = cluster()
    create(controller, [0, 1])
    reassign(controller, [2, 3])
    alter_isr(controller, 0, 1, 2)
    assert reassign(controller, None)[0] is ErrorCode.NONE
    back = partition(controller)
    assert (set(back.replicas), set(back.isr), back.leader) == ({0, 1}, {0, 1}, 0)
    assert back.leader_epoch == 1, "the replicas that leave must notice"
    assert reassign(controller, None)[0] is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize("level", [MetadataVersion.IBP_3_9_IV0, MetadataVersion.IBP_4_3_IV0])
def test_where_only_the_new_have_everything_cancelling_would_lose_data(
    unclean: bool, level: MetadataVersion
) -> None:
    controller = cluster(level=level)
    create(controller, [0], unclean_leader_election_enable=str(unclean).lower())
    reassign(controller, [1, 2])
    alter_isr(controller, 0, 1)
    controller.heartbeat(0, want_fence=True)
    assert partition(controller).isr == (1,)
    controller.heartbeat(0)
    code, message = reassign(controller, None)
    if not unclean:
        assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert message is not None
        assert "unclean" in message
        assert partition(controller).adding == (1, 2)
        return
    assert code is ErrorCode.NONE
    back = partition(controller)
    assert (back.replicas, back.isr, back.leader) == ((0,), (0,), 0)
    assert back.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_an_unclean_cancellation_with_nobody_alive_leaves_no_leader() -> None:
    controller = cluster(level=MetadataVersion.IBP_3_9_IV0)
    create(controller, [0], unclean_leader_election_enable="true")
    reassign(controller, [1, 2])
    alter_isr(controller, 0, 1)
    controller.heartbeat(0, want_fence=True)
    assert reassign(controller, None)[0] is ErrorCode.NONE
    assert (partition(controller).isr, partition(controller).leader) == ((0,), NO_LEADER)


# -- listing


def test_ongoing_reassignments_are_listed() -> None:
    controller = cluster()
    create(controller, [0], [1])
    create(controller, [0], name="u")
    reassign(controller, [3], number=1)
    [topic] = controller.do(ListPartitionReassignmentsRequest(topics=None)).topics
    [ongoing] = topic.partitions
    assert (topic.name, ongoing.partition_index) == ("t", 1)
    assert ongoing.replicas == [3, 1]
    assert (ongoing.adding_replicas, ongoing.removing_replicas) == ([3], [1])


@pytest.mark.parametrize(
    ("name", "indexes", "found"),
    [
        ("t", [0, 1, 9], [1]),
        ("t", [0], []),
        ("nope", [0], []),
        ("t", [1, 1, 1], [1]),
    ],
)
def test_listing_can_be_narrowed(name: str, indexes: list[int], found: list[int]) -> None:
    controller = cluster()
    create(controller, [0], [1])
    reassign(controller, [3], number=1)
    wanted = ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
    response = controller.do(ListPartitionReassignmentsRequest(topics=[wanted, wanted]))
    assert [p.partition_index for topic in response.topics for p in topic.partitions] == found
