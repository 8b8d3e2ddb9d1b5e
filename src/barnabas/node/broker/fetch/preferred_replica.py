"""Choice of the replica that a consumer should fetch from (KIP-392).

`replica.selector.class` names Kafka's RackAwareReplicaSelector, which is the one known here: a
replica in the consumer's rack, the one that lags least; the leader where it is in that rack
itself, or none else is. Only in-sync replicas that have the offset are considered.
"""

from collections.abc import Mapping

from barnabas.node.broker.fetch.codec import NO_REPLICA
from barnabas.node.config.node_config import RACK_AWARE_SELECTOR, NodeConfig
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.replication.partition import Partition


def is_rack_aware(config: NodeConfig) -> bool:
    """Return whether consumers are sent to replicas of their rack."""
    return config.get_str_or_none("replica.selector.class") == RACK_AWARE_SELECTOR


def preferred_replica(
    partition: Partition,
    brokers: Mapping[int, BrokerImage],
    rack_id: str,
    fetch_offset: int,
    listener_name: str,
) -> int:
    """The replica to fetch from instead of this leader, or -1."""
    leading = partition.leading
    if leading is None or not rack_id:
        return NO_REPLICA
    leader = brokers.get(partition.node_id)
    if leader is not None and leader.rack == rack_id:
        return NO_REPLICA
    best = NO_REPLICA
    best_rank: tuple[int, int, int] | None = None
    for follower in leading.followers:
        broker = brokers.get(follower.broker_id)
        if (
            broker is None
            or broker.fenced
            or broker.rack != rack_id
            or listener_name not in broker.listeners
            or not follower.is_in_isr
            or not follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        ):
            continue
        # The end furthest on, then who was caught up last, then the lower id.
        rank = (follower.log_end_offset, follower.last_caught_up_ms, -follower.broker_id)
        if best_rank is None or rank > best_rank:
            best, best_rank = follower.broker_id, rank
    return best
