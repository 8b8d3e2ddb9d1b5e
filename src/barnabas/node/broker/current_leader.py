"""The current leader, named with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951)."""

from collections.abc import Iterable

from barnabas.base.ids import Uuid
from barnabas.node.broker.fetch.codec import NodeAddress
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import NO_LEADER
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_LEADER_EPOCH

HINTED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors with which answers name the leader. With others they say that it is unknown."""


def current_leader(services: BrokerServices, topic: str | Uuid, index: int) -> tuple[int, int]:
    """(leader, leader epoch) of a partition as far as this node knows, -1 for unknown."""
    replicas, topics = services.replicas, services.image.topics
    if isinstance(topic, bytes):
        partition, image = replicas.find_by_id(topic, index), topics.by_id.get(topic)
    else:
        partition, image = replicas.find(topic, index), topics.by_name.get(topic)
    if isinstance(partition, Partition):
        return partition.leader_id, partition.leader_epoch
    placed = None if image is None else image.partitions.get(index)
    return (NO_LEADER, NO_LEADER_EPOCH) if placed is None else (placed.leader, placed.leader_epoch)


def addresses(
    services: BrokerServices, node_ids: Iterable[int], listener_name: str
) -> list[NodeAddress]:
    """The addresses of those brokers that are alive and have the listener, each once."""
    brokers = services.image.brokers
    addresses = []
    for node_id in dict.fromkeys(node_ids):
        broker = brokers.get(node_id)
        if broker is None or broker.fenced:
            continue
        endpoint = broker.listeners.get(listener_name)
        if endpoint is not None:
            addresses.append(NodeAddress(node_id, endpoint.host, endpoint.port, broker.rack))
    return addresses
