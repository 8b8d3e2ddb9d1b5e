"""`range`: of each topic, members in order get consecutive partitions.

Topics with equal numbers of partitions are co-partitioned: equal members get equal numbers.
Members with an instance id come first, by it, so that their ranges stay when they come back under
another member id. Source: Kafka's RangeAssignor.
"""

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.assignors.spec import Assignment, GroupSpec


def assign_ranges(spec: GroupSpec) -> Assignment:
    """Assign every partition of every topic."""
    order = sorted(
        spec.members,
        key=lambda member_id: (
            (instance_id := spec.members[member_id].instance_id) is None,
            instance_id or member_id,
        ),
    )
    subscribers: dict[Uuid, list[str]] = {topic_id: [] for topic_id in spec.partition_counts}
    for member_id in order:
        for topic_id in spec.members[member_id].topic_ids:
            subscribers[topic_id].append(member_id)
    targets: dict[str, dict[Uuid, tuple[int, ...]]] = {member_id: {} for member_id in spec.members}
    for topic_id, member_ids in subscribers.items():
        if not member_ids:
            continue
        least, extra = divmod(spec.partition_counts[topic_id], len(member_ids))
        start = 0
        for position, member_id in enumerate(member_ids):
            end = start + least + (position < extra)
            if start < end:
                targets[member_id][topic_id] = tuple(range(start, end))
            start = end
    return dict(targets)
