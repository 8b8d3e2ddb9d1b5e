"""Plans made by hand: what they ask for, held against what there is."""

from collections.abc import Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.balance.model import Move, PlanError
from barnabas.cli.balance.survey import Survey


def moves_to(found: Survey, wanted: Mapping[TopicPartition, Sequence[int]]) -> list[Move]:
    """The changes until every partition has its wanted replicas.

    Raises PlanError for partitions that do not exist, and replicas on nodes that are down or
    unknown.
    """
    placement = {TopicPartition(item.topic, item.index): item for item in found.placement()}
    moves = []
    for key, replicas in wanted.items():
        current = placement.get(key)
        if current is None:
            raise PlanError(f"there is no partition {key}; take it out of the plan")
        for broker in replicas:
            check_target(found, broker, current.replicas, f"{key}")
        if tuple(replicas) != current.replicas:
            moves.append(
                Move(
                    key.topic, key.partition, current.replicas, tuple(replicas), current.size_bytes
                )
            )
    return moves


def check_target(found: Survey, broker: int, current: Sequence[int], what: str) -> None:
    """Raise PlanError for a broker that cannot take a replica it does not have yet."""
    known = found.cluster.brokers.get(broker)
    if known is None:
        ids = ", ".join(map(str, found.cluster.brokers))
        raise PlanError(f"{what}: there is no node {broker}; there are {ids}")
    if known.is_fenced and broker not in current:
        raise PlanError(
            f"{what}: node {broker} is down and cannot take a replica; start it first, or choose "
            "another node"
        )
