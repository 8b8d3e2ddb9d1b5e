"""ElectLeaders, and the elections that the controller holds from time to time."""

from typing import Any

import pytest
from controller_harness import Harness
from test_controller_reassignments import alter_isr, reassign

from barnabas.node.metadata.active_controller import PERIODIC
from barnabas.node.metadata.controller import elections
from barnabas.node.metadata.controller.elections import balance_leaders, elect_unclean_leaders
from barnabas.node.metadata.image import NO_LEADER, LeaderRecoveryState, PartitionImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.partitions import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

PREFERRED, UNCLEAN = 0, 1
UNCLEAN_KEY = "unclean.leader.election.enable"


def cluster(**config: Any) -> Harness:
    """Brokers 0 to 2 and topic `t`: partition 0 on 0, 1; partition 1 on 1, 2."""
    controller = Harness(**config)
    controller.add_brokers(3)
    controller.do(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="t",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=number, broker_ids=replicas)
                        for number, replicas in enumerate([[0, 1], [1, 2]])
                    ],
                )
            ]
        )
    )
    return controller


def partition(controller: Harness, number: int = 0) -> PartitionImage:
    return controller.image.topics.by_name["t"].partitions[number]


def elect(controller: Harness, kind: int, *numbers: int, topic: str = "t") -> list[ErrorCode]:
    response = controller.do(
        ElectLeadersRequest(
            election_type=kind,
            topic_partitions=[TopicPartitions(topic=topic, partitions=list(numbers))],
        )
    )
    assert response.error_code == 0
    [result] = response.replica_election_results
    return [ErrorCode(answer.error_code) for answer in result.partition_result]


def rejoin(controller: Harness, broker_id: int, isr: bool = True) -> None:
    """Broker 0 was away and is back, in sync again or not."""
    controller.heartbeat(broker_id)
    if isr:
        before = partition(controller)
        assert alter_isr(controller, *before.isr, broker_id).error_code == 0


def configure(controller: Harness, kind: int, name: str, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    [answer] = controller.do(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == 0, answer


def lose_all_in_sync(controller: Harness) -> None:
    """Partition 0 has no leader; broker 1 lives and is not known to have everything."""
    controller.heartbeat(1, want_fence=True)
    controller.heartbeat(0, want_fence=True)
    controller.register(0, incarnation_number=5)
    controller.register(1, incarnation_number=6)
    controller.heartbeat(1)
    assert partition(controller).leader == NO_LEADER


def test_the_preferred_replica_leads_again() -> None:
    controller = cluster()
    controller.heartbeat(0, want_fence=True)
    assert partition(controller).leader == 1
    rejoin(controller, 0)
    assert elect(controller, PREFERRED, 0) == [ErrorCode.NONE]
    elected = partition(controller)
    assert (elected.leader, elected.leader_epoch) == (0, 2)
    assert elected.leader_recovery_state == LeaderRecoveryState.RECOVERED


def test_what_each_partition_is_told() -> None:
    controller = cluster()
    controller.heartbeat(0, want_fence=True)
    answers = {
        "preferred is dead": elect(controller, PREFERRED, 0),
        "leads already": elect(controller, PREFERRED, 1),
        "has a leader": elect(controller, UNCLEAN, 0),
        "no such partition": elect(controller, PREFERRED, 9),
        "no such topic": elect(controller, PREFERRED, 0, topic="nope"),
    }
    assert answers == {
        "preferred is dead": [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE],
        "leads already": [ErrorCode.ELECTION_NOT_NEEDED],
        "has a leader": [ErrorCode.ELECTION_NOT_NEEDED],
        "no such partition": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "no such topic": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    }


def test_a_preferred_replica_that_is_not_in_sync_waits() -> None:
    controller = cluster()
    controller.heartbeat(0, want_fence=True)
    rejoin(controller, 0, isr=False)
    assert elect(controller, PREFERRED, 0) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert partition(controller).leader == 1


def test_an_unclean_leader_is_any_that_lives() -> None:
    controller = cluster()
    lose_all_in_sync(controller)
    assert elect(controller, UNCLEAN, 0) == [ErrorCode.NONE]
    elected = partition(controller)
    assert (elected.leader, elected.isr, elected.elr) == (1, (1,), ())
    assert elected.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_no_leader_can_be_had_where_all_are_dead() -> None:
    controller = cluster()
    controller.heartbeat(0, want_fence=True)
    controller.heartbeat(1, want_fence=True)
    assert elect(controller, UNCLEAN, 0) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_null_means_all_and_names_only_those_that_need_it() -> None:
    controller = cluster()
    controller.heartbeat(0, want_fence=True)
    rejoin(controller, 0)
    response = controller.do(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None))
    [result] = response.replica_election_results
    assert [(p.partition_id, p.error_code) for p in result.partition_result] == [(0, 0)]


def test_an_unknown_kind_of_election_is_refused() -> None:
    request = ElectLeadersRequest(
        election_type=7, topic_partitions=[TopicPartitions(topic="t", partitions=[0])]
    )
    response = cluster().do(request)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    [answer] = response.replica_election_results[0].partition_result
    assert answer.error_message == "Unknown election type 7"


# -- from time to time


def decide(controller: Harness, decision: Any) -> bool:
    assert decision is not None
    controller.append(decision.records)
    more: bool = decision.response
    return more


def test_leaders_are_balanced() -> None:
    controller = cluster()
    assert balance_leaders(controller.state()) is None
    controller.heartbeat(0, want_fence=True)
    assert balance_leaders(controller.state()) is None, "the preferred replica is dead"
    rejoin(controller, 0)
    assert decide(controller, balance_leaders(controller.state())) is False
    assert partition(controller).leader == 0
    assert balance_leaders(controller.state()) is None


def test_leaders_stay_where_balancing_is_switched_off() -> None:
    controller = cluster(auto_leader_rebalance_enable="false")
    controller.heartbeat(0, want_fence=True)
    rejoin(controller, 0)
    assert balance_leaders(controller.state()) is None


def test_a_round_of_elections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_PER_ROUND_MAX", 1)
    controller = cluster()
    for broker in (0, 1):
        controller.heartbeat(broker, want_fence=True)
    controller.heartbeat(1)
    controller.heartbeat(0)
    for number in (0, 1):
        assert partition(controller, number).leader in (1, 2)
    state = controller.state()
    decision = balance_leaders(state)
    assert decision is None or len(decision.records) == 1


@pytest.mark.parametrize(("kind", "name"), [(2, "t"), (4, "")])
def test_allowing_unclean_elections_ends_the_wait(kind: int, name: str) -> None:
    controller = cluster()
    lose_all_in_sync(controller)
    assert elect_unclean_leaders(controller.state()) is None
    configure(controller, kind, name, UNCLEAN_KEY, "true")
    elected = partition(controller)
    assert (elected.leader, elected.isr) == (1, (1,))
    assert elected.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_another_topic_goes_on_waiting() -> None:
    controller = cluster()
    lose_all_in_sync(controller)
    controller.do(
        CreateTopicsRequest(
            topics=[CreatableTopic(name="u", num_partitions=1, replication_factor=1)]
        )
    )
    configure(controller, 2, "u", UNCLEAN_KEY, "true")
    assert partition(controller).leader == NO_LEADER


def test_the_table_of_periodic_decisions() -> None:
    controller = cluster()
    periods = {entry.name: entry.period_ms(controller.effective.static) for entry in PERIODIC}
    assert periods == {
        "balance leaders": 300_000,
        "elect unclean leaders": 300_000,
        "remove expired delegation tokens": 3_600_000,
    }
    assert [entry.decide(controller.state()) for entry in PERIODIC] == [None] * 3


def test_an_unclean_leader_had_the_partition_before_it_was_reassigned() -> None:
    """A replica that is only being added may be empty; it comes last."""
    controller = cluster()
    lose_all_in_sync(controller)
    assert reassign(controller, [2, 1])[0] is ErrorCode.NONE
    assert partition(controller).replicas == (2, 1, 0)
    assert elect(controller, UNCLEAN, 0) == [ErrorCode.NONE]
    assert partition(controller).leader == 1
