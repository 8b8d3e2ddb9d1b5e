"""Endpoints of members for interactive queries, with their partitions.

Source: Kafka's EndpointToPartitionsManager.
"""

from collections.abc import Iterable

from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.tasks import TaskId, by_subtopology
from barnabas.node.coordinator.group.streams.topics import PartitionCount
from barnabas.node.coordinator.group.streams.topology import ConfiguredTopology
from barnabas.protocol.messages.streams_groups import (
    EndpointToPartitions,
    StreamsGroupHeartbeatResponseEndpoint,
    TopicPartition,
)


def endpoints(
    members: Iterable[StreamsMember],
    configured: ConfiguredTopology,
    partition_count: PartitionCount,
) -> list[EndpointToPartitions]:
    """Partitions of source topics, by the endpoint of the member that has their tasks."""
    found = []
    for member in members:
        endpoint = member.user_endpoint
        if endpoint is None:
            continue
        assigned = member.assigned
        found.append(
            EndpointToPartitions(
                user_endpoint=StreamsGroupHeartbeatResponseEndpoint(
                    host=endpoint.host, port=endpoint.port
                ),
                active_partitions=_partitions(assigned.active, configured, partition_count),
                standby_partitions=_partitions(assigned.standby, configured, partition_count),
            )
        )
    return found


def _partitions(
    tasks: Iterable[TaskId], configured: ConfiguredTopology, partition_count: PartitionCount
) -> list[TopicPartition]:
    found = []
    for subtopology_id, numbers in by_subtopology(tasks):
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        repartition = (topic.name for topic in subtopology.repartition_source_topics)
        for name in dict.fromkeys((*subtopology.source_topics, *repartition)):
            count = partition_count(name)
            if count is None:
                continue
            partitions = [number for number in numbers if number < count]
            found.append(TopicPartition(topic=name, partitions=partitions))
    return found
