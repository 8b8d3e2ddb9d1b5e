"""Registration, heartbeats, fencing and leadership as the controller decides them."""

from typing import Any

import pytest
from controller_harness import CLUSTER_ID, Harness, directory, incarnation

from barnabas.base.ids import ZERO_UUID
from barnabas.node.metadata.controller import brokers
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.image import NO_LEADER, LeaderRecoveryState, PartitionImage
from barnabas.node.metadata.registration import broker_registration, recovery_report
from barnabas.node.metadata.replay import ImageDelta
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import SUPPORTED_FEATURES
from barnabas.protocol.messages.metadata_records import RegisterBrokerRecord
from barnabas.protocol.messages.nodes import (
    BrokerHeartbeatRequest,
    Feature,
    UnregisterBrokerRequest,
)
from barnabas.protocol.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    BrokerState,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest


def registration(**changes: Any) -> Any:
    request = broker_registration(
        broker_id=5,
        cluster_id=CLUSTER_ID,
        incarnation_id=incarnation(1),
        listeners={},
        rack=None,
        log_dirs=[directory(5)],
        previous_broker_epoch=-1,
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def create(controller: Harness, *replicas: int, **configs: str) -> None:
    """Topic `t` with one partition on `replicas`."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
                ],
                configs=[
                    CreatableTopicConfig(name=name.replace("_", "."), value=value)
                    for name, value in configs.items()
                ],
            )
        ]
    )
    assert controller.do(request).topics[0].error_code == 0


def partition(controller: Harness) -> PartitionImage:
    return controller.image.topics.by_name["t"].partitions[0]


def test_a_broker_is_registered_fenced_with_the_offset_as_epoch() -> None:
    controller = Harness()
    expected = controller.next_offset
    assert controller.register(5, rack="r1") == expected
    broker = controller.image.brokers[5]
    assert (broker.epoch, broker.fenced, broker.rack) == (expected, True, "r1")
    assert broker.log_dirs == (directory(5),)
    assert broker.features == dict(SUPPORTED_FEATURES)
    assert not controller.heartbeat(5).is_fenced
    assert controller.image.brokers[5].is_active


def test_a_broker_that_lags_behind_its_registration_stays_fenced() -> None:
    controller = Harness()
    epoch = controller.register(5)
    assert controller.heartbeat(5, want_fence=True).is_fenced
    response = controller.do(
        BrokerHeartbeatRequest(broker_id=5, broker_epoch=epoch, current_metadata_offset=epoch - 1)
    )
    assert (response.is_caught_up, response.is_fenced) == (False, True)


REFUSED_REGISTRATIONS: dict[str, Any] = {
    "another cluster": ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    "zookeeper": ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    "no directory": ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
    "reserved directory": ({"log_dirs": [ZERO_UUID]}, ErrorCode.INVALID_REGISTRATION),
    "directory twice": ({"log_dirs": [directory(5)] * 2}, ErrorCode.INVALID_REGISTRATION),
    "directory of another": ({"log_dirs": [directory(0)]}, ErrorCode.INVALID_REGISTRATION),
    "too old": ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
}


@pytest.mark.parametrize("case", REFUSED_REGISTRATIONS)
def test_refused_registrations(case: str) -> None:
    controller = Harness()
    controller.add_brokers(1)
    changes, code = REFUSED_REGISTRATIONS[case]
    response = controller.do(registration(**changes))
    assert ErrorCode(response.error_code) is code
    assert 5 not in controller.image.brokers


@pytest.mark.parametrize(
    ("ranges", "says"),
    [
        ({}, "between 0 and 0"),
        ({"metadata.version": (7, 29)}, "between 7 and 29"),
        ({"metadata.version": (31, 40)}, "between 31 and 40"),
        ({**SUPPORTED_FEATURES, "group.version": (0, 0)}, "finalized version 1 of group.version"),
    ],
)
def test_a_broker_must_run_every_finalized_level(
    ranges: dict[str, tuple[int, int]], says: str
) -> None:
    controller = Harness()
    features = [
        Feature(name=name, min_supported_version=least, max_supported_version=greatest)
        for name, (least, greatest) in ranges.items()
    ]
    state, request = controller.state(), registration(features=features)
    failure = brokers._check_registration(state, request, has_session=False)
    assert failure is not None
    assert failure.code is ErrorCode.UNSUPPORTED_VERSION
    assert says in (failure.message or "")


def test_features_that_the_controller_does_not_know_are_kept() -> None:
    controller = Harness()
    features = [
        *registration().features,
        Feature(name="shoe.version", min_supported_version=1, max_supported_version=2),
    ]
    assert controller.do(registration(features=features)).error_code == 0
    assert controller.image.brokers[5].features["shoe.version"] == (1, 2)


def test_who_was_unregistered_and_crashed_is_eligible_no_longer() -> None:
    controller = Harness()
    controller.add_brokers(1)
    create(controller, 0)
    controller.heartbeat(0, want_fence=True)
    controller.do(UnregisterBrokerRequest(broker_id=0))
    assert partition(controller).elr == (0,)
    controller.register(0, incarnation_number=4)
    lost = partition(controller)
    assert (lost.isr, lost.elr, lost.last_known_elr) == ((), (), (0,))


def test_a_fence_says_whether_the_session_had_ended() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1)

    def expired_brokers(broker_id: int, *, before_its_time: bool) -> set[int]:
        state, broker = controller.state(), controller.image.brokers[broker_id]
        base = controller.image
        controller.append(brokers.fence_records(state, broker, before_its_time=before_its_time))
        delta = ImageDelta(base)
        for record in controller.records:
            delta.replay(record.message)
        return delta.expired_brokers

    assert expired_brokers(0, before_its_time=True) == set()
    assert controller.image.brokers[0].fenced
    assert (partition(controller).leader, partition(controller).isr) == (1, (1,))
    assert expired_brokers(1, before_its_time=False) == {1}
    assert controller.image.brokers[1].fenced
    controller.register(1, incarnation_number=4)
    delta = ImageDelta(controller.image)
    delta.expired_brokers.add(1)
    for record in controller.records:
        delta.replay(record.message)
    assert delta.expired_brokers == set()


def test_an_incarnation_that_asked_for_its_end_does_not_come_back() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1)
    controller.heartbeat(0, want_shut_down=True)
    assert controller.heartbeat(0, want_shut_down=True).should_shut_down
    assert controller.heartbeat(0).is_fenced
    controller.register(0, incarnation_number=4)
    assert not controller.heartbeat(0).is_fenced


def test_what_a_broker_cordoned_outlives_a_changed_registration() -> None:
    controller = Harness()
    controller.add_brokers(1)
    controller.heartbeat(0, cordoned_log_dirs=[directory(0)])
    controller.register(0, rack="moved")
    assert controller.image.brokers[0].cordoned_log_dirs == (directory(0),)


def test_a_live_brokers_id_cannot_be_taken() -> None:
    controller = Harness()
    controller.add_brokers(1)
    decide = DECIDE[type(registration())]
    request = registration(broker_id=0, log_dirs=[directory(0)])
    decision = decide(controller.state(), request, has_session=True)  # type: ignore[call-arg]  # its own keyword
    assert decision.response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_the_same_incarnation_keeps_epoch_and_state() -> None:
    controller = Harness()
    controller.add_brokers(1)
    before = controller.image.brokers[0]
    assert controller.register(0, rack="moved") == before.epoch
    after = controller.image.brokers[0]
    assert (after.epoch, after.fenced, after.rack) == (before.epoch, False, "moved")


@pytest.mark.parametrize("unknown", [False, True])
def test_heartbeats_of_another_incarnation_are_stale(unknown: bool) -> None:
    controller = Harness()
    controller.add_brokers(1)
    request = BrokerHeartbeatRequest(broker_id=9 if unknown else 0, broker_epoch=99)
    assert controller.do(request).error_code == ErrorCode.STALE_BROKER_EPOCH


# -- leadership


def test_fencing_moves_leaderships_and_shrinks_isrs() -> None:
    controller = Harness()
    controller.add_brokers(3)
    create(controller, 0, 1, 2)
    controller.heartbeat(0, want_fence=True)
    assert (partition(controller).leader, partition(controller).isr) == (1, (1, 2))
    assert partition(controller).leader_epoch == 1
    controller.heartbeat(2, want_fence=True)
    assert (partition(controller).leader, partition(controller).isr) == (1, (1,))
    assert partition(controller).leader_epoch == 1, "a shrinking ISR keeps the epoch"
    assert partition(controller).partition_epoch == 2


def test_the_last_in_sync_replica_stays_eligible_and_leads_again() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1, min_insync_replicas="2")
    controller.heartbeat(1, want_fence=True)
    assert partition(controller).elr == (1,), "below the minimum, who leaves stays eligible"
    controller.heartbeat(0, want_fence=True)
    gone = partition(controller)
    assert (gone.leader, gone.isr, set(gone.elr)) == (NO_LEADER, (), {0, 1})
    assert gone.last_known_elr == (0,)
    controller.heartbeat(1)
    back = partition(controller)
    assert (back.leader, back.isr, back.elr) == (1, (1,), (0,))
    assert back.last_known_elr == ()
    assert back.leader_recovery_state == LeaderRecoveryState.RECOVERED


def test_a_broker_that_crashed_is_no_longer_eligible() -> None:
    controller = Harness()
    controller.add_brokers(1)
    create(controller, 0)
    controller.register(0, incarnation_number=2)
    lost = partition(controller)
    assert (lost.leader, lost.isr, lost.elr, lost.last_known_elr) == (NO_LEADER, (), (), (0,))
    controller.heartbeat(0)
    back = partition(controller)
    assert (back.leader, back.isr) == (0, (0,))
    assert back.leader_recovery_state == LeaderRecoveryState.RECOVERING
    report = recovery_report(controller.image, 0, controller.image.brokers[0].epoch)
    assert report is not None
    assert controller.do(report).topics[0].partitions[0].error_code == 0
    assert partition(controller).leader_recovery_state == LeaderRecoveryState.RECOVERED
    assert recovery_report(controller.image, 0, 0) is None


def test_a_broker_that_ended_cleanly_keeps_its_place() -> None:
    controller = Harness()
    controller.add_brokers(1)
    create(controller, 0)
    epoch = controller.image.brokers[0].epoch
    controller.heartbeat(0, want_shut_down=True)
    controller.heartbeat(0, want_shut_down=True)
    controller.register(0, incarnation_number=2, previous_epoch=epoch)
    controller.heartbeat(0)
    back = partition(controller)
    assert (back.leader, back.leader_recovery_state) == (0, LeaderRecoveryState.RECOVERED)


def test_controlled_shutdown_moves_leaders_before_it_is_granted() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1)
    first = controller.heartbeat(0, want_shut_down=True)
    assert not first.should_shut_down
    assert controller.image.brokers[0].in_controlled_shutdown
    assert (partition(controller).leader, partition(controller).isr) == (1, (1,))
    second = controller.heartbeat(0, want_shut_down=True)
    assert second.should_shut_down
    assert controller.image.brokers[0].fenced


def test_a_broker_without_leaderships_may_go_at_once() -> None:
    controller = Harness()
    controller.add_brokers(1)
    assert controller.heartbeat(0, want_shut_down=True).should_shut_down


def test_unclean_election_only_where_the_topic_allows_it() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1, unclean_leader_election_enable="true")
    controller.heartbeat(1, want_fence=True)
    controller.heartbeat(0, want_fence=True)
    controller.register(0, incarnation_number=3)
    controller.heartbeat(1)
    elected = partition(controller)
    assert (elected.leader, elected.isr) == (1, (1,))
    assert elected.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_unregistering_forgets_the_broker() -> None:
    controller = Harness()
    controller.add_brokers(2)
    create(controller, 0, 1)
    assert controller.do(UnregisterBrokerRequest(broker_id=0)).error_code == 0
    assert (set(controller.image.brokers), partition(controller).leader) == ({1}, 1)
    response = controller.do(UnregisterBrokerRequest(broker_id=0))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


# -- log directories


def test_a_failed_directory_takes_its_partitions_only() -> None:
    controller = Harness()
    controller.register(0, directories=2)
    controller.heartbeat(0)
    controller.register(1)
    controller.heartbeat(1)
    create(controller, 0, 1)
    topic_id = controller.image.topics.by_name["t"].id
    response = controller.do(
        AssignReplicasToDirsRequest(
            broker_id=0,
            broker_epoch=controller.image.brokers[0].epoch,
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id=directory(0, 1),
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index)
                                for index in (0, 7)
                            ],
                        )
                    ],
                )
            ],
        )
    )
    codes = [part.error_code for part in response.directories[0].topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert partition(controller).directories == (directory(0, 1), directory(1))
    controller.heartbeat(0, offline_log_dirs=[directory(0, 0)])
    assert partition(controller).leader == 0, "another directory failed"
    controller.heartbeat(0, offline_log_dirs=[directory(0, 0), directory(0, 1)])
    assert partition(controller).leader == 1


def test_cordoned_directories_get_no_new_replicas() -> None:
    controller = Harness()
    controller.add_brokers(2)
    controller.heartbeat(0, cordoned_log_dirs=[directory(0)])
    assert controller.image.brokers[0].cordoned_log_dirs == (directory(0),)
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="u", num_partitions=4, replication_factor=1)]
    )
    controller.do(request)
    partitions = controller.image.topics.by_name["u"].partitions.values()
    assert {image.replicas for image in partitions} == {(1,)}


# -- AlterPartition

ALTER_CASES = {
    "grow": ({}, [0, 1, 2], ErrorCode.NONE),
    "shrink": ({}, [0], ErrorCode.NONE),
    "not the leader": ({"broker_id": 1}, [0, 1], ErrorCode.INVALID_REQUEST),
    "without the leader": ({}, [1, 2], ErrorCode.INVALID_REQUEST),
    "a stranger": ({}, [0, 9], ErrorCode.INVALID_REQUEST),
    "one twice": ({}, [0, 1, 1], ErrorCode.INVALID_REQUEST),
    "old leader epoch": ({"leader_epoch": -1}, [0], ErrorCode.FENCED_LEADER_EPOCH),
    "future leader epoch": ({"leader_epoch": 9}, [0], ErrorCode.NOT_CONTROLLER),
    "old partition epoch": ({"partition_epoch": -1}, [0], ErrorCode.INVALID_UPDATE_VERSION),
    "future partition epoch": ({"partition_epoch": 9}, [0], ErrorCode.NOT_CONTROLLER),
    "recovering again": ({"leader_recovery_state": 1}, [0], ErrorCode.INVALID_REQUEST),
    "fenced member": ({"fence": 2}, [0, 1, 2], ErrorCode.INELIGIBLE_REPLICA),
    "member of another incarnation": ({"epoch": 77}, [0, 1], ErrorCode.INELIGIBLE_REPLICA),
}


@pytest.mark.parametrize("case", ALTER_CASES)
def test_alter_partition(case: str) -> None:
    controller = Harness()
    controller.add_brokers(3)
    create(controller, 0, 1, 2)
    changes, isr, code = ALTER_CASES[case]
    if "fence" in changes:
        controller.heartbeat(changes["fence"], want_fence=True)
    asker = changes.get("broker_id", 0)
    before = partition(controller)
    [topic] = controller.do(
        AlterPartitionRequest(
            broker_id=asker,
            broker_epoch=controller.image.brokers[asker].epoch,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=controller.image.topics.by_name["t"].id,
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=0,
                            leader_epoch=changes.get("leader_epoch", before.leader_epoch),
                            partition_epoch=changes.get("partition_epoch", before.partition_epoch),
                            leader_recovery_state=changes.get("leader_recovery_state", 0),
                            new_isr_with_epochs=[
                                BrokerState(
                                    broker_id=replica, broker_epoch=changes.get("epoch", -1)
                                )
                                for replica in isr
                            ],
                        )
                    ],
                )
            ],
        )
    ).topics
    [result] = topic.partitions
    assert ErrorCode(result.error_code) is code
    if code is ErrorCode.NONE:
        assert result.isr == isr
        assert partition(controller).isr == tuple(isr)
        assert result.partition_epoch == partition(controller).partition_epoch
    else:
        assert partition(controller) == before


# -- producer ids, and what every request can be told


def test_blocks_of_producer_ids_never_overlap() -> None:
    controller = Harness()
    controller.add_brokers(2)
    starts = [
        controller.do(
            AllocateProducerIdsRequest(
                broker_id=broker, broker_epoch=controller.image.brokers[broker].epoch
            )
        ).producer_id_start
        for broker in (0, 1, 0)
    ]
    assert starts == [0, 1000, 2000]
    stale = controller.do(AllocateProducerIdsRequest(broker_id=0, broker_epoch=1))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_every_request_can_be_refused_as_a_whole() -> None:
    for request_type in DECIDE:
        response = refuse(request_type(), ErrorCode.NOT_CONTROLLER)
        assert type(response).__name__ == request_type.__name__.replace("Request", "Response")
    topics = [CreatableTopic(name=name) for name in ("a", "b")]
    response = refuse(CreateTopicsRequest(topics=topics), ErrorCode.REQUEST_TIMED_OUT)
    assert [(t.name, t.error_code) for t in response.topics] == [("a", 7), ("b", 7)]


def test_registration_is_one_record_of_the_clusters_level() -> None:
    controller = Harness()
    controller.register(3)
    [record] = controller.records
    assert (type(record.message), record.version) == (RegisterBrokerRecord, 4)
