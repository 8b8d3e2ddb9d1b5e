"""Consumer groups on a clock that stands still, with members that behave as clients do.

`ConsumerWorld` adds topics and ConsumerGroupHeartbeat to `GroupWorld`. A `ModernMember` is a
client of the consumer protocol: it sends all that it knows when it joins and little afterwards,
gives partitions up before it says so, and starts over when it is fenced. A `ClassicMember` speaks
the classic protocol, giving everything up before it joins again (eager).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.embedded import decode_assignment, encode_assignment
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.metadata.image import (
    BrokerImage,
    ConfigResourceType,
    ConfigsImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from barnabas.protocol.messages.groups import ConsumerProtocolSubscription
from support.group_world import Call, GroupWorld

Owned = set[tuple[str, int]]
UNKNOWN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


def topic_id(name: str) -> Uuid:
    """A fixed id for a topic of that name."""
    return Uuid(hashlib.md5(name.encode()).digest())


def image_of(
    topics: Mapping[str, int],
    *,
    offset: int = 1,
    racks: Mapping[int, str] | None = None,
    group_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> MetadataImage:
    """Topics with their numbers of partitions, each with replicas on all of `racks`' brokers."""
    replicas = tuple(racks) if racks else (1,)
    images = [
        TopicImage(
            name,
            topic_id(name),
            {
                index: PartitionImage(replicas, replicas, replicas[0], 0, 0)
                for index in range(count)
            },
        )
        for name, count in topics.items()
    ]
    brokers = {
        node: BrokerImage(node, 1, Uuid(bytes(16)), {}, rack, False, False, ())
        for node, rack in (racks or {}).items()
    }
    configs = {
        (int(ConfigResourceType.GROUP), group): values
        for group, values in (group_configs or {}).items()
    }
    return MetadataImage(
        offset=offset,
        topics=TopicsImage(
            {image.name: image for image in images}, {image.id: image for image in images}
        ),
        brokers=brokers,
        configs=ConfigsImage(configs),
    )


class ConsumerWorld(GroupWorld):
    """One coordinator, its clock and log, and the topics that there are."""

    def __init__(self, seed: int = 1, **settings: object) -> None:
        self.topics: dict[str, int] = {}
        self.image = image_of({})
        settings.setdefault("group_consumer_assignment_interval_ms", 0)
        super().__init__(seed, **settings)

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = super()._new_coordinator()
        coordinator.image_changed(self.image, has_new_topics=True)
        return coordinator

    def set_topics(self, topics: Mapping[str, int], **options: Any) -> None:
        """Have these topics, and no others."""
        is_new = bool(topics.keys() - self.topics.keys())
        self.topics = dict(topics)
        self.image = image_of(topics, offset=self.image.offset + 1, **options)
        self.coordinator.image_changed(self.image, has_new_topics=is_new)

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        """A consumer group."""
        group = self.shard.groups.get(group_id)
        assert isinstance(group, ConsumerGroup)
        return group

    def beat(
        self, *, version: int = 1, client: str = "c", **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a ConsumerGroupHeartbeat; it is answered at once if nothing holds the log."""
        return self.start_beat(version=version, client=client, **fields).response

    def start_beat(
        self, *, version: int = 1, client: str = "c", **fields: Any
    ) -> Call[ConsumerGroupHeartbeatResponse]:
        """Send a ConsumerGroupHeartbeat."""
        fields.setdefault("group_id", "g")
        request = ConsumerGroupHeartbeatRequest(**fields)
        return Call(self.coordinator.consumers.heartbeat(request, self.client(client, version)))

    def beat_joining(self, member_id: str, *topics: str, **fields: Any) -> Any:
        """Send the first heartbeat of a member."""
        fields.setdefault("rebalance_timeout_ms", 30_000)
        if topics:
            fields["subscribed_topic_names"] = list(topics)
        return self.beat(member_id=member_id, member_epoch=0, topic_partitions=[], **fields)

    def names(self, partitions: Any) -> Owned:
        """(topic, partition) of topics by id."""
        names = {topic_id(name): name for name in self.topics}
        return {
            (names[part.topic_id], number)
            for part in partitions
            if part.topic_id in names
            for number in part.partitions
        }


@dataclass
class ModernMember:
    """A client of the consumer protocol."""

    world: ConsumerWorld
    member_id: str
    topics: list[str]
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 30_000
    epoch: int = 0
    owned: Owned = field(default_factory=set)
    assigned: Owned | None = None
    """What it shall have once it has given up what is not in there, before its next heartbeat."""
    is_classic = False
    _has_subscription_to_say: bool = True
    _has_owned_to_say: bool = True

    def step(self) -> None:
        """Finish what the last heartbeat asked for, and send the next.

        Giving partitions up takes time, in which others must not have them yet.
        """
        if self.assigned is not None:
            self.owned, self.assigned = self.assigned, None
        is_joining = self.epoch == 0
        fields: dict[str, Any] = {"member_id": self.member_id, "member_epoch": self.epoch}
        if self.instance_id is not None:
            fields["instance_id"] = self.instance_id
        if is_joining or self._has_subscription_to_say:
            fields["subscribed_topic_names"] = self.topics
            fields["subscribed_topic_regex"] = self.regex or ""
            fields["rebalance_timeout_ms"] = self.rebalance_timeout_ms
            fields["server_assignor"] = self.assignor
        if is_joining or self._has_subscription_to_say or self._has_owned_to_say:
            fields["topic_partitions"] = self._owned_message()
        response = self.world.beat(**fields)
        error = ErrorCode(response.error_code)
        if error in UNKNOWN:
            self.lose_everything()
            return
        assert error in (ErrorCode.NONE, ErrorCode.UNRELEASED_INSTANCE_ID), response
        if error:
            return
        self.epoch = response.member_epoch
        self._has_subscription_to_say = self._has_owned_to_say = False
        if response.assignment is not None:
            assigned = self.world.names(response.assignment.topic_partitions)
            self._has_owned_to_say = assigned != self.owned
            if self.owned <= assigned:
                self.owned = assigned
            else:
                self.assigned = assigned

    def subscribe(self, *topics: str, regex: str | None = None) -> None:
        """Want other topics; the next heartbeat says so."""
        self.topics, self.regex = list(topics), regex
        self._has_subscription_to_say = True

    def leave(self, epoch: int = -1) -> None:
        """Say good-bye, for good or as a static member that will be back."""
        if self.epoch > 0:
            self.world.beat(
                member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
            )
        self.lose_everything()

    def lose_everything(self) -> None:
        """Start over with the next heartbeat."""
        self.owned, self.assigned = set(), None
        self.epoch = 0

    def commit(self, partition: tuple[str, int]) -> ErrorCode:
        """Commit an offset of a partition."""
        return self.world.commit_error({partition: 1}, self.member_id, self.epoch)

    def _owned_message(self) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        by_topic: dict[str, list[int]] = {}
        for name, number in sorted(self.owned):
            by_topic.setdefault(name, []).append(number)
        return [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id(name), partitions=numbers)
            for name, numbers in by_topic.items()
        ]


@dataclass
class ClassicMember:
    """An eager consumer of the classic protocol."""

    world: ConsumerWorld
    name: str
    topics: list[str]
    member_id: str = ""
    epoch: int = -1
    owned: Owned = field(default_factory=set)
    is_classic = True
    _join: Any = None
    _sync: Any = None

    def step(self) -> None:
        """Go on from wherever it stands: join, ask for the assignment, or send a heartbeat."""
        if self._sync is not None:
            self._finish_sync()
        elif self._join is not None:
            self._finish_join()
        elif self.epoch < 0:
            self._start_join()
        else:
            error = self.world.heartbeat(self.member_id, self.epoch).error
            if error:
                self._begin_anew(error)
        if self._join is not None and self._join.is_done:
            self._finish_join()

    def leave(self) -> None:
        """Say good-bye."""
        if self.member_id:
            self.world.leave((self.member_id, None))
        self.lose_everything()
        self.member_id = ""

    def lose_everything(self) -> None:
        """Forget the generation and what comes with it."""
        self.owned, self.epoch, self._join, self._sync = set(), -1, None, None

    def commit(self, partition: tuple[str, int]) -> ErrorCode:
        """Commit an offset of a partition."""
        return self.world.commit_error({partition: 1}, self.member_id, self.epoch)

    def _begin_anew(self, error: ErrorCode) -> None:
        self.lose_everything()
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _start_join(self) -> None:
        data = (1).to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=self.topics), 1)
        self._join = self.world.join(self.name, self.member_id, metadata=data)

    def _finish_join(self) -> None:
        if not self._join.is_done:
            return
        join, self._join = self._join, None
        response = join.response
        if join.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._start_join()
        elif join.error:
            self._begin_anew(join.error)
        else:
            self.member_id, self.epoch = response.member_id, response.generation_id
            assignments = self._lead(response) if response.leader == self.member_id else None
            self._sync = self.world.sync(self.member_id, self.epoch, assignments)
            self._finish_sync()

    def _lead(self, response: Any) -> dict[str, bytes]:
        """Spread partitions round robin, as the leader of a classic group."""
        shares: dict[str, dict[Uuid, tuple[int, ...]]] = {m.member_id: {} for m in response.members}
        for name in self.topics:
            count = self.world.topics.get(name, 0)
            for index, share in enumerate(shares.values()):
                numbers = tuple(range(index, count, len(shares)))
                if numbers:
                    share[topic_id(name)] = numbers
        metadata = GroupMetadata(self.world.image)
        return {key: encode_assignment(share, metadata, 1) for key, share in shares.items()}

    def _finish_sync(self) -> None:
        if not self._sync.is_done:
            return
        sync, self._sync = self._sync, None
        if sync.error:
            self._begin_anew(sync.error)
            return
        data = sync.response.assignment
        parts = decode_assignment(data).assigned_partitions if data else []
        self.owned = {(part.topic, number) for part in parts for number in part.partitions}
