"""The classic consumer protocol embedded in JoinGroup and SyncGroup, to bytes and back.

Source: Kafka's ConsumerProtocol.
"""

from typing import Final

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.records import Target
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

VERSION_MAX: Final = 3


def embedded_version(data: bytes) -> int:
    """The version that the bytes begin with, or the last one known. Raises DecodeError."""
    if len(data) < 2:
        raise DecodeError("the embedded consumer protocol has no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise DecodeError(f"the embedded consumer protocol has version {version}")
    return min(version, VERSION_MAX)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Read a member's subscription and owned partitions. Raises DecodeError."""
    subscription, _ = decode_at(ConsumerProtocolSubscription, embedded_version(data), data, 2)
    return subscription


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Read a member's assignment. Raises DecodeError."""
    assignment, _ = decode_at(ConsumerProtocolAssignment, embedded_version(data), data, 2)
    return assignment


def encode_assignment(target: Target, metadata: GroupMetadata, version: int) -> bytes:
    """An assignment by topic names; topics that are gone are left out."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=list(numbers))
            for topic_id, numbers in target.items()
            if (name := metadata.topic_name(topic_id)) is not None
        ]
    )
    return version.to_bytes(2, "big") + encode(assignment, version)


def assigned_by_id(
    assignment: ConsumerProtocolAssignment, metadata: GroupMetadata
) -> dict[Uuid, tuple[int, ...]]:
    """The partitions of an assignment by topic id; topics that are gone are left out."""
    by_name = metadata.topics.by_name
    return {
        by_name[part.topic].id: tuple(sorted(part.partitions))
        for part in assignment.assigned_partitions
        if part.topic in by_name
    }


def owned_by_id(
    subscription: ConsumerProtocolSubscription, metadata: GroupMetadata
) -> dict[Uuid, list[int]]:
    """The partitions that a member says it owns, by topic id."""
    by_name = metadata.topics.by_name
    return {
        by_name[part.topic].id: part.partitions
        for part in subscription.owned_partitions
        if part.topic in by_name
    }
