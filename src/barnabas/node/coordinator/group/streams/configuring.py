"""The group's topology, and the topics that it runs on.

Source: Kafka's GroupMetadataManager.maybeUpdateTopology and what follows it in a heartbeat.
"""

from barnabas.node.coordinator.group.step import Refusal, Step
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.records import topology_record
from barnabas.node.coordinator.group.streams.topics import configure
from barnabas.node.coordinator.group.streams.topology import (
    ConfiguredTopology,
    Topology,
    topology_value,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_groups as requests


def updated_topology(
    step: Step, group: StreamsGroup, sent: requests.StreamsGroupHeartbeatTopology | None
) -> Topology | Refusal:
    """The group's topology, which the first member sets and no other may change yet.

    One with an older topology may join; its answer says that it is behind.
    """
    known = group.topology
    if sent is None:
        return known or Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    value = topology_value(sent)
    topology = Topology(value)
    if sent.epoch < 0 or len(topology.subtopologies) < len(sent.subtopologies):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if known is None:
        step.records.append(topology_record(group.group_id, value))
        return topology
    if known.epoch > sent.epoch or known == topology:
        return known
    return Refusal(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")


def configured_topology(
    step: Step, group: StreamsGroup, topology: Topology
) -> ConfiguredTopology | Refusal:
    """The topology on the topics that exist; looked at again when any topic has changed."""
    configured = group.configured
    is_checked = group.topology is not None and group.has_checked(step.metadata.topics)
    if configured is not None and is_checked:
        return configured
    metadata_hash = step.metadata.subscription_hash(topology.required_topics)
    if (
        configured is not None
        and configured.metadata_hash == metadata_hash
        and configured.epoch == topology.epoch
    ):
        return configured
    topology_or_refusal = configure(topology, step.metadata.named_partition_count, metadata_hash)
    if isinstance(topology_or_refusal, ConfiguredTopology):
        group.configured = topology_or_refusal
    return topology_or_refusal
