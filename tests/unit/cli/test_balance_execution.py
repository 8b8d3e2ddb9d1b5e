"""Runs of plans against a cluster that moves a partition whenever somebody waits.

The cluster is a fake at the edge: it answers requests of the protocol, as the active controller
and each broker would.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import Admin, Reassignment
from barnabas.cli.balance.execution import Execution, Outcome, Progress
from barnabas.cli.balance.flow import carry_out, progress_text, waiting_text
from barnabas.cli.balance.model import Move
from barnabas.cli.balance.options import Wishes
from barnabas.cli.balance.survey import Survey
from barnabas.cli.balance.throttles import FOLLOWER_REPLICAS_KEY, LEADER_REPLICAS_KEY, RATES
from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka.wire_admin import BrokerInfo, ClusterInfo
from barnabas.kafka.wire_routing import PartitionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs as configs_messages
from barnabas.protocol.messages import metadata, partitions

TOPIC, BROKER = 2, 4
LOOKS_MAX = 200
AT_ONCE = 2


@dataclass
class Cluster:
    """Partitions of topic t by number, with 10 bytes each, and what is set for whom."""

    replicas: dict[int, list[int]]
    live: list[int]
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    targets: dict[int, list[int]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    on_pause: Callable[[], None] = lambda: None
    timeout_s: float = 15.0
    looks: int = 0
    at_once: int = 0
    """The most that was under way at a time."""
    throttled_meanwhile: bool = False

    # -- as an Admin

    def run(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(self, *given)

    def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.looks += 1
        assert self.looks < LOOKS_MAX, "this never ends"
        self.on_pause()
        for number, target in list(self.targets.items()):
            if set(target) <= set(self.live) and self.leader_of(self.replicas[number]) >= 0:
                self.replicas[number] = self.targets.pop(number)

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> list[Any]:
        assert all(isinstance(one, partitions.DescribeLogDirsRequest) for _, one in requests)
        return [
            partitions.DescribeLogDirsResponse()
            if broker in self.live
            else CliError(f"node {broker}: connection refused", ExitCode.UNREACHABLE)
            for broker, _ in requests
        ]

    def cluster(self) -> ClusterInfo:
        known = {n for placed in self.replicas.values() for n in placed} | set(self.live)
        brokers = {n: BrokerInfo(n, "h", n, None, n not in self.live) for n in sorted(known)}
        return ClusterInfo("c", 1, brokers)

    def decide(self, request: Any, _: str = "") -> Any:
        return self._answers()[type(request)](request)

    def ask(self, request: Any, broker: int | None = None) -> Any:
        if broker in self.silent:
            raise CliError(f"node {broker}: no answer", ExitCode.UNREACHABLE)
        return self._answers()[type(request)](request)

    # -- answers

    def _answers(self) -> dict[type, Callable[[Any], Any]]:
        reassignments = partitions.AlterPartitionReassignmentsRequest
        ongoing = partitions.ListPartitionReassignmentsRequest
        alter = configs_messages.IncrementalAlterConfigsRequest
        return {
            reassignments: self._reassign,
            ongoing: self._ongoing,
            partitions.ElectLeadersRequest: self._elect,
            metadata.MetadataRequest: self._metadata,
            alter: self._alter_configs,
            configs_messages.DescribeConfigsRequest: self._describe_configs,
        }

    def _reassign(self, request: Any) -> Any:
        answers = []
        for part in request.topics[0].partitions:
            code = ErrorCode.NONE
            if part.partition_index not in self.replicas:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif part.partition_index in self.refused:
                code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
            else:
                self.targets[part.partition_index] = part.replicas
            answers.append(
                partitions.ReassignablePartitionResponse(
                    partition_index=part.partition_index, error_code=code
                )
            )
        self.at_once = max(self.at_once, len(self.targets))
        self.throttled_meanwhile = bool(self.configs)
        return partitions.AlterPartitionReassignmentsResponse(
            responses=[partitions.ReassignableTopicResponse(name="t", partitions=answers)]
        )

    def _ongoing(self, _: Any) -> Any:
        ongoing = partitions.OngoingPartitionReassignment
        return partitions.ListPartitionReassignmentsResponse(
            topics=[
                partitions.OngoingTopicReassignment(
                    name="t",
                    partitions=[ongoing(partition_index=number) for number in self.targets],
                )
            ]
        )

    def _elect(self, _: Any) -> Any:
        return partitions.ElectLeadersResponse()

    def _metadata(self, _: Any) -> Any:
        parts = [
            metadata.MetadataResponsePartition(
                partition_index=number,
                leader_id=self.leader_of(placed),
                replica_nodes=placed,
                isr_nodes=placed,
            )
            for number, placed in self.replicas.items()
        ]
        topics = [metadata.MetadataResponseTopic(name="t", partitions=parts)]
        return metadata.MetadataResponse(topics=topics if parts else [])

    def leader_of(self, placed: list[int]) -> int:
        return next((broker for broker in placed if broker in self.live), -1)

    def _alter_configs(self, request: Any) -> Any:
        for resource in request.resources:
            values = self.configs.setdefault((resource.resource_type, resource.resource_name), {})
            for config in resource.configs:
                if config.value is None:
                    values.pop(config.name, None)
                else:
                    values[config.name] = config.value
        self.configs = {key: values for key, values in self.configs.items() if values}
        return configs_messages.IncrementalAlterConfigsResponse()

    def _describe_configs(self, request: Any) -> Any:
        results = []
        for resource in request.resources:
            key = resource.resource_type, resource.resource_name
            source = 1 if resource.resource_type == TOPIC else 2
            configs = [
                configs_messages.DescribeConfigsResourceResult(
                    name=name, value=value, config_source=source
                )
                for name, value in self.configs.get(key, {}).items()
            ]
            results.append(
                configs_messages.DescribeConfigsResult(
                    resource_type=key[0], resource_name=key[1], configs=configs
                )
            )
        return configs_messages.DescribeConfigsResponse(results=results)


def move(number: int, before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    return Move("t", number, before, after, 10)


def run(
    cluster: Cluster,
    moves: Iterable[Move],
    in_flight: Iterable[Move] = (),
    *,
    throttle: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Outcome:
    execution = Execution(
        cast(Admin, cluster),
        list(moves),
        list(in_flight),
        live=cluster.live,
        throttle_bytes_per_s=throttle,
        concurrent_max=AT_ONCE,
        on_progress=on_progress,
    )
    return execution.run()


def shown(progress: Progress) -> str:
    return f"{progress_text(progress)} {waiting_text(progress)}".rstrip()


def throttled(*brokers: int) -> dict[tuple[int, str], dict[str, str]]:
    """The throttles that a killed run leaves behind."""
    rates = {(BROKER, str(number)): dict.fromkeys(RATES, "1000") for number in brokers}
    return {**rates, (TOPIC, "t"): {LEADER_REPLICAS_KEY: "0:1", FOLLOWER_REPLICAS_KEY: "0:2"}}


def test_everything_is_moved_a_few_at_a_time() -> None:
    cluster = Cluster({number: [1] for number in range(7)}, live=[1, 2])
    moves = [move(number, (1,), (2,)) for number in range(7)]
    outcome = run(cluster, moves, throttle=1000)
    assert outcome.moved == moves
    assert (cluster.at_once, cluster.throttled_meanwhile) == (AT_ONCE, True)
    assert set(map(tuple, cluster.replicas.values())) == {(2,)}
    assert cluster.configs == {}


def test_a_move_replaces_one_that_waits_for_a_lost_node() -> None:
    """As many as may be under way do already, all of them to a node that never comes back."""
    replicas = {number: [1] for number in range(AT_ONCE + 1)}
    cluster = Cluster(replicas, live=[1, 2], targets={number: [3] for number in replicas})
    in_flight = [move(number, (1,), (3,)) for number in replicas]
    totals: list[int] = []
    outcome = run(
        cluster,
        [move(number, (3,), (2,)) for number in replicas],
        in_flight,
        on_progress=lambda progress: totals.append(progress.partitions_total),
    )
    assert len(outcome.moved) == AT_ONCE + 1
    assert set(map(tuple, cluster.replicas.values())) == {(2,)}
    assert set(totals) == {AT_ONCE + 1}, "none is counted twice"


def test_who_watches_is_told_which_node_is_waited_for() -> None:
    cluster = Cluster({0: [1]}, live=[1])
    said: list[str] = []

    def come_back() -> None:
        if said and "waiting" in said[-1]:
            cluster.live = [1, 2]

    cluster.on_pause = come_back
    run(cluster, [move(0, (1,), (2,))], on_progress=lambda now: said.append(shown(now)))
    assert said[0] == "0 of 1 partitions, 0 B of 10 B"
    assert "0 of 1 partitions, 0 B of 10 B waiting for nodes that are down: 2" in said
    assert said[-1] == "1 of 1 partitions, 10 B of 10 B"


def test_who_watches_is_told_from_whom_there_is_nothing_to_copy() -> None:
    cluster = Cluster({0: [3]}, live=[1, 2], targets={0: [2]})
    said: list[str] = []

    def come_back() -> None:
        if said and "waiting" in said[-1]:
            cluster.live = [1, 2, 3]

    cluster.on_pause = come_back
    in_flight = [move(0, (3,), (2,))]
    run(cluster, [], in_flight, on_progress=lambda now: said.append(shown(now)))
    assert "0 of 1 partitions, 0 B of 10 B waiting for nodes that are down: 3" in said


def test_what_others_cancel_or_delete_is_not_called_moved() -> None:
    cluster = Cluster({number: [1] for number in range(4)}, live=[1, 2])
    moves = [move(number, (1,), (2,)) for number in range(4)]

    def interfere() -> None:
        cluster.on_pause = lambda: None
        cluster.targets.pop(0)
        cluster.targets.pop(1)
        del cluster.replicas[1], cluster.replicas[3]

    cluster.on_pause = interfere
    outcome = run(cluster, moves)
    assert outcome.moved == [moves[2]]
    assert outcome.changed == [moves[0]]
    assert sorted(map(str, outcome.deleted)) == ["t-1", "t-3"]
    assert outcome.refused == []


def test_a_broker_that_is_gone_does_not_keep_throttles_on_the_others() -> None:
    cluster = Cluster({0: [1]}, live=[1, 2, 3])
    cluster.on_pause = lambda: cluster.silent.add(2)
    cluster.replicas[1] = [2]
    outcome = run(cluster, [move(0, (1,), (3,)), move(1, (2,), (3,))], throttle=1000)
    assert (len(outcome.moved), outcome.still_throttled) == (2, [2])
    assert list(cluster.configs) == [(BROKER, "2")]


# -- the whole of a command


def survey_of(cluster: Cluster) -> Survey:
    states = [
        PartitionState("t", number, cluster.leader_of(placed), tuple(placed), tuple(placed))
        for number, placed in cluster.replicas.items()
    ]
    in_flight = {
        TopicPartition("t", number): Reassignment(
            (*target, *cluster.replicas[number]), tuple(target), tuple(cluster.replicas[number])
        )
        for number, target in cluster.targets.items()
    }
    return Survey(cluster.cluster(), states, in_flight, {})


def carried_out(cluster: Cluster, *moves: Move, throttle: int | None = None) -> dict[str, Any]:
    wishes = Wishes(throttle, AT_ONCE, is_dry_run=False, is_agreed=True)
    admin = cast(Admin, cluster)
    return carry_out(admin, survey_of(cluster), moves, wishes, as_json=True, go_on="again")


@pytest.mark.parametrize("throttle", [None, 5000])
def test_throttles_that_a_killed_run_left_do_not_hold_the_next_one_back(
    throttle: int | None,
) -> None:
    cluster = Cluster({0: [1], 1: [1]}, live=[1, 2, 3], configs=throttled(1, 2, 3))
    cluster.configs[TOPIC, "t"][LEADER_REPLICAS_KEY] = "1:1"
    value = carried_out(cluster, move(0, (1,), (2,)), throttle=throttle)
    assert (value["done"], value["moved"]) == (True, 1)
    assert cluster.throttled_meanwhile is (throttle is not None)
    assert cluster.configs == {}


def test_throttles_are_removed_where_nothing_has_to_move() -> None:
    cluster = Cluster({0: [1]}, live=[1, 2], configs=throttled(1))
    assert carried_out(cluster)["done"]
    assert cluster.configs == {}


def test_a_throttle_of_a_topic_that_no_rate_belongs_to_is_left_alone() -> None:
    standing = {(TOPIC, "t"): {LEADER_REPLICAS_KEY: "*"}}
    cluster = Cluster({0: [1]}, live=[1, 2], configs=dict(standing))
    carried_out(cluster, move(0, (1,), (2,)))
    assert cluster.configs == standing


def test_cancelled_moves_are_a_failure_and_deleted_ones_are_not() -> None:
    cluster = Cluster({0: [1], 1: [1]}, live=[1, 2])
    cluster.on_pause = lambda: cast(None, cluster.targets.pop(0, None))
    with pytest.raises(CliError) as caught:
        carried_out(cluster, move(0, (1,), (2,)), move(1, (1,), (2,)))
    assert caught.value.line() == ("cancelled or changed by somebody else: t-0; again looks again")
    cluster = Cluster({1: [1]}, live=[1, 2])
    value = carried_out(cluster, move(0, (1,), (2,)), move(1, (1,), (2,)))
    assert (value["moved"], value["deleted"]) == (1, ["t-0"])


def test_what_is_refused_is_told_with_the_way_to_go_on() -> None:
    cluster = Cluster({0: [1], 1: [1]}, live=[1, 2], refused={0})
    with pytest.raises(CliError) as caught:
        carried_out(cluster, move(0, (1,), (2,)), move(1, (1,), (2,)))
    assert cluster.replicas == {0: [1], 1: [2]}
    assert caught.value.message.startswith("not moved: t-0: ")
    assert caught.value.hint == "again continues"


def test_what_nobody_can_copy_is_left_and_told() -> None:
    cluster = Cluster({0: [3], 1: [3, 1]}, live=[1, 2])
    with pytest.raises(CliError) as caught:
        carried_out(cluster, move(0, (3,), (2,)), move(1, (3, 1), (2, 1)))
    assert cluster.replicas == {0: [3], 1: [2, 1]}
    assert cluster.targets == {}
    assert caught.value.message.startswith("not moved: t-0, ")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("start node 3; if that is lost for good, delete the ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_way_to_be_ended_removes_throttles(number: signal.Signals) -> None:
    cluster = Cluster({0: [1]}, live=[1])
    cluster.on_pause = lambda: os.kill(os.getpid(), number)
    usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
    ours = signal.signal(number, usual)  # nohup has SIGHUP ignored
    try:
        with pytest.raises(CliError) as caught:
            carried_out(cluster, move(0, (1,), (2,)), throttle=1000)
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, ours)
    assert caught.value.code is ExitCode.INTERRUPTED
    assert "the cluster is still moving 1 partitions, 0 were not started" in str(caught.value)
    assert cluster.configs == {}


def test_in_the_background_of_a_script_a_run_can_be_ended_too() -> None:
    """Where Ctrl-C is ignored."""
    cluster = Cluster({0: [1]}, live=[1])
    cluster.on_pause = lambda: os.kill(os.getpid(), signal.SIGTERM)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(CliError) as caught:
            carried_out(cluster, move(0, (1,), (2,)), throttle=1000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.code is ExitCode.INTERRUPTED
    assert cluster.configs == {}
