"""Streams groups on a clock that stands still, with stream threads that behave as Kafka's do.

`StreamsWorld` adds StreamsGroupHeartbeat to `ConsumerWorld`, and creates the internal topics that
heartbeats ask for. A `StreamThread` reports its tasks whenever they have changed, gives tasks up
before it reports so, and starts over when it is fenced.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.heartbeat import Heard
from barnabas.node.coordinator.group.streams.tasks import TaskId, by_subtopology
from barnabas.node.coordinator.group.streams.topology import InternalTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_groups import (
    CopartitionGroup,
    DescribedGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTopology,
    TaskIds,
    TopicInfo,
)
from support.consumer_world import UNKNOWN, ConsumerWorld
from support.group_world import Call

Roles = tuple[frozenset[TaskId], frozenset[TaskId]]
"""Active and standby tasks."""
NOTHING: Roles = (frozenset(), frozenset())


def subtopology(
    name: str,
    *,
    sources: Iterable[str] = (),
    repartition_sources: dict[str, int] | None = None,
    sinks: Iterable[str] = (),
    changelogs: Iterable[str] = (),
    copartitioned: Iterable[tuple[list[int], list[int]]] = (),
) -> StreamsGroupHeartbeatSubtopology:
    """A subtopology; copartition groups give places among sources and repartition sources."""
    return StreamsGroupHeartbeatSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_source_topics=[
            TopicInfo(name=topic, partitions=count)
            for topic, count in (repartition_sources or {}).items()
        ],
        repartition_sink_topics=list(sinks),
        state_changelog_topics=[TopicInfo(name=topic) for topic in changelogs],
        copartition_groups=[
            CopartitionGroup(source_topics=sources, repartition_source_topics=repartition)
            for sources, repartition in copartitioned
        ],
    )


def topology(
    *subtopologies: StreamsGroupHeartbeatSubtopology, epoch: int = 0
) -> StreamsGroupHeartbeatTopology:
    """A topology."""
    return StreamsGroupHeartbeatTopology(epoch=epoch, subtopologies=list(subtopologies))


COUNTING = topology(
    subtopology("0", sources=["in"], sinks=["by-key"]),
    subtopology("1", repartition_sources={"by-key": 0}, changelogs=["counts"]),
)
"""Records are sent on by another key and counted: a repartition topic and a changelog."""


class StreamsWorld(ConsumerWorld):
    """One coordinator, its clock and log, and the topics that there are."""

    def __init__(self, seed: int = 1, **settings: object) -> None:
        settings.setdefault("group_streams_assignment_interval_ms", 0)
        settings.setdefault("group_streams_initial_rebalance_delay_ms", 0)
        super().__init__(seed, **settings)
        self.creates_topics = True

    def streams_group(self, group_id: str = "g") -> StreamsGroup:
        """A streams group."""
        group = self.shard.groups.get(group_id)
        assert isinstance(group, StreamsGroup)
        return group

    def hear(self, *, client: str = "c", **fields: Any) -> Heard:
        """Send a StreamsGroupHeartbeat; missing internal topics are created afterwards."""
        fields.setdefault("group_id", "g")
        request = StreamsGroupHeartbeatRequest(**fields)
        call: Call[Heard] = Call(
            self.coordinator.streams.heartbeat(request, self.client(client, 0))
        )
        heard = call.response
        if self.creates_topics and heard.missing_topics:
            self.create(heard.missing_topics)
        return heard

    def beat_streams(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """As `hear`, without the topics."""
        return self.hear(**fields).response

    def join_streams(self, member_id: str, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send the first heartbeat of a member."""
        return self.beat_streams(**{**joining(member_id), **fields})

    def create(self, topics: Iterable[InternalTopic]) -> None:
        """Create internal topics."""
        self.set_topics({**self.topics, **{topic.name: topic.partitions for topic in topics}})

    def describe_streams(self, group_id: str = "g") -> DescribedGroup:
        """StreamsGroupDescribe of one group."""
        call: Call[list[DescribedGroup]] = Call(self.coordinator.streams.describe([group_id]))
        return call.response[0]


def joining(member_id: str) -> dict[str, Any]:
    """The fields of a first heartbeat."""
    return {
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "topology": COUNTING,
        "process_id": f"process of {member_id}",
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }


def tasks_of(message: Any) -> frozenset[TaskId]:
    """Tasks of a request or response."""
    return frozenset(
        TaskId(each.subtopology_id, number) for each in message or () for number in each.partitions
    )


def statuses(response: StreamsGroupHeartbeatResponse) -> list[int]:
    """The status codes of a response."""
    return [status.status_code for status in response.status or ()]


@dataclass
class StreamThread:
    """A client of the streams protocol."""

    world: StreamsWorld
    member_id: str
    process_id: str
    topology: StreamsGroupHeartbeatTopology = field(default_factory=lambda: COUNTING)
    epoch: int = 0
    has: Roles = NOTHING
    assigned: Roles | None = None
    """What it shall have once it has given up what is not in there, before its next heartbeat."""
    endpoint_epoch: int = -1
    last: StreamsGroupHeartbeatResponse | None = None
    _has_tasks_to_say: bool = True

    def step(self) -> None:
        """Finish what the last heartbeat asked for, and send the next."""
        if self.assigned is not None:
            self.has, self.assigned = self.assigned, None
        fields: dict[str, Any] = {
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "endpoint_information_epoch": self.endpoint_epoch,
        }
        if self.epoch == 0:
            fields |= joining(self.member_id)
            fields |= {"topology": self.topology, "process_id": self.process_id}
        elif self._has_tasks_to_say:
            active, standby = self.has
            fields |= {
                "active_tasks": _message(active),
                "standby_tasks": _message(standby),
                "warmup_tasks": [],
            }
        response = self.last = self.world.beat_streams(**fields)
        error = ErrorCode(response.error_code)
        if error in UNKNOWN or error is ErrorCode.GROUP_ID_NOT_FOUND:
            self.lose_everything()
            return
        assert not error, response
        self.epoch = response.member_epoch
        self.endpoint_epoch = response.endpoint_information_epoch
        self._has_tasks_to_say = False
        if response.active_tasks is not None:
            assigned = tasks_of(response.active_tasks), tasks_of(response.standby_tasks)
            self._has_tasks_to_say = assigned != self.has
            if self.has[0] <= assigned[0] and self.has[1] <= assigned[1]:
                self.has = assigned
            else:
                self.assigned = assigned

    def leave(self) -> None:
        """Say good-bye."""
        if self.epoch > 0:
            self.world.beat_streams(member_id=self.member_id, member_epoch=-1)
        self.lose_everything()

    def lose_everything(self) -> None:
        """Start over with the next heartbeat."""
        self.has, self.assigned, self.epoch = NOTHING, None, 0

    def commit(self, task: TaskId) -> ErrorCode:
        """Commit an offset of a topic that the task reads."""
        topic = "in" if task.subtopology_id == "0" else "by-key"
        return self.world.commit_error({(topic, task.partition): 1}, self.member_id, self.epoch)


def _message(tasks: frozenset[TaskId]) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=subtopology_id, partitions=numbers)
        for subtopology_id, numbers in by_subtopology(tasks)
    ]
