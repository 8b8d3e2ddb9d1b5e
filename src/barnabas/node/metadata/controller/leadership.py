"""Leader and ISR updates of every partition that a broker's coming or going touches.

Source: Kafka's ReplicationControlManager.generateLeaderAndIsrUpdates.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from barnabas.base.ids import Uuid
from barnabas.node.config.definitions import TOPIC_KEYS
from barnabas.node.config.topic import topic_default
from barnabas.node.metadata.controller.decision import ControllerState
from barnabas.node.metadata.controller.partition_change import Election, PartitionChange
from barnabas.node.metadata.controller.placement import default_directories
from barnabas.node.metadata.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from barnabas.node.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ConfigResourceType,
    MetadataImage,
    PartitionImage,
    PartitionKey,
    TopicImage,
)
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.features import ELR_VERSION

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class Located(NamedTuple):
    """A partition and where it stands."""

    topic: TopicImage
    partition_id: int
    partition: PartitionImage


class ChangeRules:
    """The rules for changes of partitions in one decision: looked up once, not per partition.

    `is_live` says which brokers may lead; without it, those that are active.
    """

    __slots__ = ("_brokers", "_by_topic", "_elr_enabled", "_is_live", "_level", "_state")

    def __init__(
        self, state: ControllerState, is_live: Callable[[int], bool] | None = None
    ) -> None:
        self._state = state
        self._brokers = state.image.brokers
        self._is_live = is_live or (lambda replica: is_active(state, replica))
        self._level = state.image.metadata_version
        self._elr_enabled = state.image.features.get(ELR_VERSION, 0) >= 1
        self._by_topic: dict[str, tuple[bool, int]] = {}

    def change(self, located: Located) -> PartitionChange:
        """A change of one partition with the rules of its topic and the level of the cluster."""
        topic, partition_id, partition = located
        unclean, min_isr = self._topic(topic.name)
        return PartitionChange(
            topic_id=topic.id,
            partition_id=partition_id,
            partition=partition,
            level=self._level,
            is_acceptable_leader=lambda replica: self._may_lead(partition, replica),
            elr_enabled=self._elr_enabled,
            min_isr=min_isr,
            election=Election.UNCLEAN if unclean else Election.ONLINE,
            default_directory=self._default_directory,
        )

    def allows_unclean_election(self, topic: str) -> bool:
        """Return whether the topic would rather lose data than wait for who has it."""
        return self._topic(topic)[0]

    def _topic(self, name: str) -> tuple[bool, int]:
        configs = self._state.image.configs
        # Most topics set nothing, so they are equal.
        key = name if configs.for_resource(ConfigResourceType.TOPIC, name) else ""
        known = self._by_topic.get(key)
        if known is None:
            known = self._by_topic[key] = (
                _topic_value(self._state, key, UNCLEAN_ELECTION),
                _topic_value(self._state, key, MIN_ISR),
            )
        return known

    def _may_lead(self, partition: PartitionImage, replica: int) -> bool:
        if not self._is_live(replica):
            return False
        replicas = partition.replicas
        place = replicas.index(replica) if replica in replicas else len(replicas)
        directories = partition.directories
        directory = directories[place] if place < len(directories) else None
        return _is_online(self._brokers.get(replica), directory)

    def _default_directory(self, replica: int) -> Uuid:
        return default_directories([replica], self._brokers)[0]


def partition_change(state: ControllerState, located: Located) -> PartitionChange:
    """A change of a single partition."""
    return ChangeRules(state).change(located)


def _topic_value(state: ControllerState, topic: str, name: str) -> Any:
    """One topic configuration as it holds; building all of them costs too much per partition."""
    configs = state.image.configs
    text = configs.for_resource(ConfigResourceType.TOPIC, topic).get(name)
    if text is not None:
        return TOPIC_KEYS[name].parse(text)
    return topic_default(state.effective.broker(configs), name)


def is_active(state: ControllerState, broker_id: int) -> bool:
    """Return whether the broker is registered, unfenced and not shutting down."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def leader_and_isr_records(
    state: ControllerState,
    partitions: Iterable[Located],
    *,
    leaving: int = NO_LEADER,
    joining: int = NO_LEADER,
    unclean: int = NO_LEADER,
) -> list[MetadataRecord]:
    """Records that take a broker out of the ISRs, or let one that comes back lead.

    `leaving` is fenced or shuts down, `joining` counts as live though the image still shows it
    fenced, `unclean` lost its claim to hold all that was acknowledged.
    """
    live = {broker.id: True for broker in state.image.brokers.values() if broker.is_active}
    if joining != NO_LEADER:
        live[joining] = True
    live.pop(leaving, None)
    live.pop(unclean, None)
    rules = ChangeRules(state, live.__contains__)
    gone = (leaving, unclean)
    records = []
    for located in partitions:
        change = rules.change(located)
        change.isr = tuple([member for member in located.partition.isr if member not in gone])
        if unclean != NO_LEADER:
            change.unclean_shutdown = (unclean,)
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def partitions_with_isr_member(state: ControllerState, broker_id: int) -> Iterator[Located]:
    """The partitions in whose ISR the broker is, those it leads included."""
    return locate(state.image, state.image.topics.index.in_sync(broker_id))


def partitions_with_elr_member(state: ControllerState, broker_id: int) -> Iterator[Located]:
    """The partitions that the broker could lead though it left their ISR."""
    return locate(state.image, state.image.topics.index.eligible(broker_id))


def partitions_without_leader(state: ControllerState) -> Iterator[Located]:
    """The partitions that wait for a leader."""
    return locate(state.image, state.image.topics.index.leaderless)


def partitions_in_directory(
    state: ControllerState, broker_id: int, directory: Uuid
) -> Iterator[Located]:
    """The partitions that the broker keeps in one of its log directories."""
    for topic in state.image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            placed = zip(partition.replicas, partition.directories, strict=False)
            if (broker_id, directory) in placed:
                yield Located(topic, number, partition)


def has_leaderships(state: ControllerState, broker_id: int) -> bool:
    """Return whether the broker leads any partition."""
    return state.image.topics.index.leadership_count(broker_id) > 0


def locate(image: MetadataImage, keys: Iterable[PartitionKey]) -> Iterator[Located]:
    """The partitions that an index of this image names."""
    by_id = image.topics.by_id
    for topic_id, number in keys:
        topic = by_id[topic_id]
        yield Located(topic, number, topic.partitions[number])


def _is_online(broker: BrokerImage | None, directory: Uuid | None) -> bool:
    """Return whether the replica's directory answers. Source: Kafka's DirectoryId.isOnline."""
    if directory in (None, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    if directory == DIRECTORY_LOST:
        return False
    return broker is None or not broker.log_dirs or directory in broker.log_dirs
