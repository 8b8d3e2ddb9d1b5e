"""Streams groups as Apache Kafka coordinates them and as we do: same requests, same answers.

Two directories, each served by one of the programs, hear one script. Then the programs change
places: each goes on with the group that the other one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.node.coordinator.group.streams.topology import Status
from barnabas.protocol.messages import streams_groups
from barnabas.protocol.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas, ClusterNode, ClusterProcesses
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.raw_client import RawClient
from support.streams_world import COUNTING, subtopology, tasks_of, topology

pytestmark = [
    pytest.mark.slow,
    needs_apache_kafka,
]
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.size": "2",
}
TASK = streams_groups.TaskIds
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
RETRIABLE = (14, 15, 16)
Transcript = list[tuple[str, Any]]


class Script:
    """One connection to a group's coordinator, and everything that it said."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.client = RawClient(servers)
        self.said: Transcript = []
        self.epochs = {"m": 0, "n": 0}
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        wait_until(lambda: self._is_found(find), "a coordinator")

    def _is_found(self, find: FindCoordinatorRequest) -> bool:
        (found,) = self.client.call(find, FindCoordinatorResponse, 4).coordinators
        described = self._describe("g")
        return not found.error_code and described.error_code not in RETRIABLE

    def beat(self, what: str, member_id: str = "m", **fields: Any) -> Any:
        """A heartbeat; `what` names it in the transcript."""
        fields.setdefault("group_id", "g")
        fields.setdefault("member_epoch", self.epochs.get(member_id, 0))
        request = streams_groups.StreamsGroupHeartbeatRequest(member_id=member_id, **fields)
        response = self.client.call(request, streams_groups.StreamsGroupHeartbeatResponse, 0)
        if not response.error_code and response.member_epoch > 0:
            self.epochs[member_id] = response.member_epoch
        self.said.append((what, self._shown(response)))
        return response

    def beat_until(self, what: str, *codes: int) -> None:
        """Heartbeats until one brings these statuses: a coordinator hears of topics late."""

        def has_come() -> bool:
            response = self.beat(what)
            if [status.status_code for status in response.status or ()] == list(codes):
                return True
            self.said.pop()
            return False

        wait_until(has_come, what)

    def join(self, what: str, member_id: str = "m", **fields: Any) -> Any:
        """A first heartbeat."""
        first = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 30_000,
            "topology": COUNTING,
            "process_id": f"process of {member_id}",
            **NO_TASKS,
        }
        return self.beat(what, member_id, **(first | fields))

    def describe(self, what: str, group_id: str = "g") -> None:
        """A description, without what the programs may choose freely."""
        group = self._describe(group_id)
        subtopologies = [] if group.topology is None else group.topology.subtopologies or []
        self.said.append(
            (
                what,
                {
                    "error": (group.error_code, group.error_message),
                    "state": (group.group_state, group.group_epoch, group.assignment_epoch),
                    "topology": [
                        (
                            each.subtopology_id,
                            each.source_topics,
                            each.repartition_sink_topics,
                            [
                                (topic.name, topic.partitions)
                                for topic in each.state_changelog_topics
                            ],
                            [
                                (topic.name, topic.partitions)
                                for topic in each.repartition_source_topics
                            ],
                        )
                        for each in subtopologies
                    ],
                    "members": sorted(
                        (
                            member.member_id,
                            member.member_epoch,
                            member.topology_epoch,
                            member.process_id,
                            member.client_id,
                            member.client_host,
                            member.rack_id,
                            len(tasks_of(member.assignment.active_tasks)),
                            len(tasks_of(member.target_assignment.active_tasks)),
                            len(tasks_of(member.target_assignment.standby_tasks)),
                        )
                        for member in group.members
                    ),
                },
            )
        )

    def _describe(self, group_id: str) -> streams_groups.DescribedGroup:
        request = streams_groups.StreamsGroupDescribeRequest(group_ids=[group_id])
        (group,) = self.client.call(request, streams_groups.StreamsGroupDescribeResponse, 0).groups
        return group

    def commit(self, what: str, member_id: str, epoch: int, version: int = 9) -> None:
        """A commit of one partition of the input."""
        request = OffsetCommitRequest(
            group_id="g",
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[
                OffsetCommitRequestTopic(
                    name="in",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=1, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        response = self.client.call(request, OffsetCommitResponse, version)
        self.said.append((what, response.topics[0].partitions[0].error_code))

    def fetch(self, what: str, member_id: str | None, epoch: int) -> None:
        """The committed offset of that partition."""
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    member_id=member_id,
                    member_epoch=epoch,
                    topics=[OffsetFetchRequestTopics(name="in", partition_indexes=[0])],
                )
            ]
        )
        (group,) = self.client.call(request, OffsetFetchResponse, 9).groups
        offsets = [one.committed_offset for topic in group.topics for one in topic.partitions]
        self.said.append((what, (group.error_code, offsets)))

    def listed(self, what: str) -> None:
        """The groups of type streams."""
        request = ListGroupsRequest(types_filter=["streams"])
        groups = self.client.call(request, ListGroupsResponse, 5).groups
        shown = [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in groups]
        self.said.append((what, shown))

    def delete(self, what: str) -> None:
        """DeleteGroups."""
        request = DeleteGroupsRequest(groups_names=["g"])
        (result,) = self.client.call(request, DeleteGroupsResponse, 2).results
        self.said.append((what, result.error_code))

    @staticmethod
    def _shown(response: Any) -> dict[str, Any]:
        """Which tasks a member has is free, how many is not."""
        tasks = response.active_tasks
        return {
            "error": (response.error_code, response.error_message),
            "member": (response.member_id, response.member_epoch, response.heartbeat_interval_ms),
            "status": [
                (status.status_code, sorted(status.status_detail.replace(",", "").split()))
                for status in response.status or ()
            ],
            "tasks": None if tasks is None else len(tasks_of(tasks)),
            "standby": None
            if response.standby_tasks is None
            else len(tasks_of(response.standby_tasks)),
            "endpoint epoch": response.endpoint_information_epoch,
            "endpoints": None
            if response.partitions_by_user_endpoint is None
            else sorted(
                (
                    each.user_endpoint.host,
                    each.user_endpoint.port,
                    sorted((one.topic, len(one.partitions)) for one in each.active_partitions),
                )
                for each in response.partitions_by_user_endpoint
            ),
        }


def refusals(script: Script) -> None:
    """Invalid requests, and the error messages of each program."""
    regex = subtopology("0", sources=["in"])
    regex.source_topic_regex = ["i.*"]
    sized = subtopology("0", sources=["in"])
    sized.state_changelog_topics = [streams_groups.TopicInfo(name="c", partitions=3)]
    endless = topology(
        subtopology("0", repartition_sources={"b": 0}, sinks=["a"]),
        subtopology("1", repartition_sources={"a": 0}, sinks=["b"]),
    )
    wrong: dict[str, dict[str, Any]] = {
        "instance": {"instance_id": "i"},
        "task offsets": {"task_offsets": []},
        "end offsets": {"task_end_offsets": []},
        "warm-up": {"warmup_tasks": [TASK(subtopology_id="0", partitions=[0])]},
        "pattern": {"topology": topology(regex)},
        "member id": {"member_id": " "},
        "group id": {"group_id": ""},
        "rack": {"rack_id": ""},
        "time-out": {"rebalance_timeout_ms": -1},
        "active": {"active_tasks": [TASK(subtopology_id="0", partitions=[0])]},
        "standby": {"standby_tasks": [TASK(subtopology_id="0", partitions=[0])]},
        "no topology": {"topology": None},
        "sized changelog": {"topology": topology(sized)},
        "internal topic": {"topology": topology(subtopology("0", sources=["__consumer_offsets"]))},
        "invalid name": {"topology": topology(subtopology("0", sources=["a/b"]))},
        "two of one name": {
            "group_id": "h",
            "topology": topology(subtopology("0", sources=["in"]), subtopology("0")),
        },
        "topology epoch": {"group_id": "h", "topology": topology(epoch=-1)},
        "no sources": {"group_id": "h", "topology": topology(subtopology("0"))},
        "loop": {"group_id": "h", "topology": endless},
        "never written": {
            "group_id": "h",
            "topology": topology(subtopology("0", repartition_sources={"r": 0})),
        },
        "place": {
            "group_id": "h",
            "topology": topology(subtopology("0", sources=["in"], copartitioned=[([3], [])])),
        },
        "other topology": {"topology": topology(subtopology("0", sources=["in"]))},
        "newer topology": {"topology": topology(*COUNTING.subtopologies, epoch=1)},
    }
    for what, fields in wrong.items():
        script.join(what, **({"member_id": "z"} | fields))
    script.beat("static leave", member_epoch=-2)
    script.beat("epoch", member_epoch=-3)
    script.beat("some tasks", active_tasks=[])
    script.beat("late topology", topology=COUNTING)
    script.beat("no such group", group_id="x", member_epoch=1)
    script.beat("leaves no such group", group_id="x", member_epoch=-1)
    script.beat("stranger", "x", member_epoch=1)
    script.beat("stranger leaves", "x", member_epoch=-1)
    script.beat("greater epoch", member_epoch=99)
    script.beat("smaller epoch", member_epoch=1, **NO_TASKS)
    for what, task in {"subtopology": ("7", 0), "task": ("1", 3)}.items():
        tasks = [TASK(subtopology_id=task[0], partitions=[task[1]])]
        script.beat(f"no such {what}", **(NO_TASKS | {"active_tasks": tasks}))


def before(script: Script) -> None:
    """A group comes into being, and a second member takes its share."""
    script.join("no source topics")
    script.describe("not ready")
    create(script, "in", 3)
    script.beat_until("source topics are there", Status.MISSING_INTERNAL_TOPICS)
    exists(script, "by-key", "counts")
    script.beat_until("internal topics are there")
    script.beat("nothing new")
    script.describe("stable")
    refusals(script)
    endpoint = streams_groups.Endpoint(host="h", port=80)
    script.join("second", "n", user_endpoint=endpoint, rack_id="r")
    script.join("third", "o")
    first = script.beat("must give up", endpoint_information_epoch=-1)
    script.describe("reconciling")
    script.beat("still has all")
    owned = [
        TASK(subtopology_id=t.subtopology_id, partitions=t.partitions) for t in first.active_tasks
    ]
    script.beat("has given up", **(NO_TASKS | {"active_tasks": owned}))
    script.beat("takes its share", "n", endpoint_information_epoch=-1)
    script.beat("hears of it", endpoint_information_epoch=0)
    script.describe("shared")
    epoch = script.epochs["m"]
    for what, member_id, named in (
        ("current", "m", epoch),
        ("too new", "m", epoch + 1),
        ("too old", "m", 1),
        ("stranger", "x", epoch),
        ("nobody", "", -1),
    ):
        script.commit(f"commit: {what}", member_id, named)
        script.fetch(f"fetch: {what}", member_id or None, named)
    script.commit("commit: old version", "m", epoch, 8)
    script.listed("listed")
    script.delete("not empty")


def after(script: Script) -> None:
    """The group goes on under another program, and ends."""
    script.describe("taken over")
    # The programs hash topics in their own ways, so the group's epoch rises once.
    script.beat("goes on")
    script.beat("goes on", "n")
    script.beat("nothing new")
    script.describe("goes on")
    script.beat("asks for an end", shutdown_application=True)
    script.beat("is told to end", "n")
    script.beat("leaves", member_epoch=-1)
    script.beat("is left", "n")
    script.beat("leaves too", "n", member_epoch=-1)
    script.describe("empty")
    script.listed("empty")
    script.join("comes back")
    script.beat("leaves again", member_epoch=-1)
    script.delete("deleted")
    script.describe("gone")
    script.listed("gone")


def create(script: Script, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": script.servers})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    exists(script, name)


def exists(script: Script, *names: str) -> None:
    """Wait until the node lists the topics."""
    admin = AdminClient({"bootstrap.servers": script.servers})
    wait_until(lambda: admin.list_topics(timeout=PATIENCE_S).topics.keys() >= set(names), "topics")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[ClusterProcesses]]:
    """One node of each program."""
    with (
        ClusterProcesses(tmp_path / "kafka", 1, SETTINGS, program=ApacheKafka()) as kafka,
        ClusterProcesses(tmp_path / "barnabas", 1, SETTINGS) as barnabas,
    ):
        yield [kafka, barnabas]


def test_same_requests_same_answers(nodes: list[ClusterProcesses]) -> None:
    epochs: dict[str, int] = {}
    parts: list[Callable[[Script], None]] = [before, after]
    for part in parts:
        transcripts = []
        for cluster in nodes:
            script = Script(cluster.bootstrap_servers)
            script.epochs |= epochs
            part(script)
            transcripts.append(script.said)
            script.client.socket.close()
        epochs = script.epochs
        different = [(k, b) for k, b in zip(*transcripts, strict=True) if k != b]
        assert different == []
        programs: tuple[Any, Any] = (Barnabas(), ApacheKafka())
        for cluster, program in zip(nodes, programs, strict=True):
            node: ClusterNode = cluster.nodes[1]
            cluster.stop(1)
            node._program = program
            cluster.start(1)
