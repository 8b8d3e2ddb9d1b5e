"""Leader and ISR updates of every partition that a broker's coming or going touches.

Source: Kafka's ReplicationControlManager.generateLeaderAndIsrUpdates.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from barnabas.base.config.definitions import TOPIC_KEYS
from barnabas.base.config.topic import topic_default
from barnabas.base.ids import Uuid
from barnabas.metadata.controller.decision import ControllerState
from barnabas.metadata.controller.partition_change import Election, PartitionChange
from barnabas.metadata.controller.placement import default_directories
from barnabas.metadata.features import ELR_VERSION
from barnabas.metadata.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from barnabas.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ConfigResourceType,
    PartitionImage,
    TopicImage,
)
from barnabas.metadata.records import MetadataRecord


class Located(NamedTuple):
    """A partition and where it stands."""

    topic: TopicImage
    partition_id: int
    partition: PartitionImage


def partition_change(
    state: ControllerState,
    located: Located,
    *,
    is_acceptable_leader: Callable[[int], bool] | None = None,
) -> PartitionChange:
    """A change of one partition with the rules of its topic and the level of the cluster."""
    topic, partition_id, partition = located
    acceptable = is_acceptable_leader or (lambda replica: is_active(state, replica))
    directories = dict(zip(partition.replicas, partition.directories, strict=False))
    unclean = _topic_value(state, topic.name, "unclean.leader.election.enable")
    min_isr = _topic_value(state, topic.name, "min.insync.replicas")
    return PartitionChange(
        topic_id=topic.id,
        partition_id=partition_id,
        partition=partition,
        level=state.image.metadata_version,
        is_acceptable_leader=lambda replica: (
            acceptable(replica)
            and _is_online(state.image.brokers.get(replica), directories.get(replica))
        ),
        elr_enabled=state.image.features.get(ELR_VERSION, 0) >= 1,
        min_isr=min(min_isr, len(partition.replicas)),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
        default_directory=lambda replica: default_directories([replica], state.image.brokers)[0],
    )


def _topic_value(state: ControllerState, topic: str, name: str) -> Any:
    """One topic configuration as it holds; building all of them costs too much per partition."""
    configs = state.image.configs
    text = configs.for_resource(ConfigResourceType.TOPIC, topic).get(name)
    if text is not None:
        return TOPIC_KEYS[name].parse(text)
    return topic_default(state.effective.broker(configs), name)


def is_active(state: ControllerState, broker_id: int) -> bool:
    """Whether the broker is registered, unfenced and not shutting down."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def leader_and_isr_records(
    state: ControllerState,
    partitions: Iterator[Located],
    *,
    leaving: int = NO_LEADER,
    joining: int = NO_LEADER,
    unclean: int = NO_LEADER,
) -> list[MetadataRecord]:
    """Records that take a broker out of the ISRs, or let one that comes back lead.

    `leaving` is fenced or shuts down, `joining` counts as live though the image still shows it
    fenced, `unclean` lost its claim to hold all that was acknowledged.
    """

    def is_acceptable(replica: int) -> bool:
        if replica in (leaving, unclean):
            return False
        return replica == joining or is_active(state, replica)

    records = []
    for located in partitions:
        change = partition_change(state, located, is_acceptable_leader=is_acceptable)
        change.isr = tuple(
            replica for replica in located.partition.isr if replica not in (leaving, unclean)
        )
        if unclean != NO_LEADER:
            change.unclean_shutdown = (unclean,)
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def partitions_with_isr_member(state: ControllerState, broker_id: int) -> Iterator[Located]:
    """The partitions in whose ISR the broker is, those it leads included."""
    return _select(state, lambda partition: broker_id in partition.isr)


def partitions_with_elr_member(state: ControllerState, broker_id: int) -> Iterator[Located]:
    """The partitions that the broker could lead though it left their ISR."""
    return _select(state, lambda partition: broker_id in partition.elr)


def partitions_without_leader(state: ControllerState) -> Iterator[Located]:
    """The partitions that wait for a leader."""
    return _select(state, lambda partition: partition.leader == NO_LEADER)


def partitions_in_directory(
    state: ControllerState, broker_id: int, directory: Uuid
) -> Iterator[Located]:
    """The partitions that the broker keeps in one of its log directories."""
    return _select(state, lambda partition: (broker_id, directory) in _placed(partition))


def has_leaderships(state: ControllerState, broker_id: int) -> bool:
    """Whether the broker leads any partition."""
    return any(
        partition.leader == broker_id
        for topic in state.image.topics.by_id.values()
        for partition in topic.partitions.values()
    )


def _placed(partition: PartitionImage) -> Iterator[tuple[int, Uuid]]:
    return zip(partition.replicas, partition.directories, strict=False)


def _select(state: ControllerState, wanted: Callable[[PartitionImage], bool]) -> Iterator[Located]:
    for topic in state.image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            if wanted(partition):
                yield Located(topic, number, partition)


def _is_online(broker: BrokerImage | None, directory: Uuid | None) -> bool:
    """Whether the replica's directory answers. Source: Kafka's DirectoryId.isOnline."""
    if directory in (None, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    if directory == DIRECTORY_LOST:
        return False
    return broker is None or not broker.log_dirs or directory in broker.log_dirs
