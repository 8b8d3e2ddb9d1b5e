"""The records of classic groups, as Kafka 4.3 writes them."""

from collections.abc import Mapping

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

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
