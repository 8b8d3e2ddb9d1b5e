"""The records of `__consumer_offsets` that this coordinator writes, as Kafka 4.3 writes them."""

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.classic import ClassicGroup
from barnabas.coordinator.record_codec import RecordTypes
from barnabas.protocol.messages.group_records import (
    GROUP_RECORDS,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
)
from barnabas.protocol.messages.share_group_records import SHARE_GROUP_RECORDS
from barnabas.protocol.messages.streams_group_records import STREAMS_GROUP_RECORDS

RECORD_TYPES: Final[RecordTypes] = {
    **GROUP_RECORDS,
    **SHARE_GROUP_RECORDS,
    **STREAMS_GROUP_RECORDS,
}
GROUP_METADATA_VERSION = 3


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """The group with its members, each with what `assignments` gives it (nothing if absent)."""
    name = group.protocol_name
    members = []
    for member in group.members.values():
        subscription = None if name is None else member.metadata(name)
        assert subscription is not None, f"{member.member_id} has no metadata for {name}"
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=subscription,
                assignment=assignments.get(member.member_id, b""),
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A group that has come into being: no generation yet, no members."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_timestamp_ms,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """The group is deleted."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """A committed offset is forgotten."""
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
    )
