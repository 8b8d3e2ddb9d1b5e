"""The records of classic groups, as Kafka 4.3 writes them, and their replay."""

from collections.abc import Mapping
from typing import Any

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.member import Member
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.registry import GroupRegistry
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


# -- replay: each record holds all that is kept of a group


def replay_classic(groups: GroupRegistry, record: CoordinatorRecord) -> None:
    """Apply the record of a classic group."""
    key: Any = record.key
    value: Any = record.value
    if value is not None:
        groups.put(group_from_record(key.group, value))
    elif groups.get_of(ClassicGroup, key.group) is not None:
        groups.drop(key.group)


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group as its records describe it: without members empty, otherwise stable."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_timestamp_ms=value.current_state_timestamp,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        rebalance_timeout_ms = member.rebalance_timeout
        group.add(
            Member(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=(
                    member.session_timeout if rebalance_timeout_ms == -1 else rebalance_timeout_ms
                ),
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=[(value.protocol or "", member.subscription)],
                assignment=member.assignment,
            )
        )
    group.refresh_subscribed_topics()
    return group
