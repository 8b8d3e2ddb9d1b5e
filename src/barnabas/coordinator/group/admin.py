"""What administrators ask: list, describe and delete groups."""

from collections.abc import Iterable

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.classic.group import ClassicGroup
from barnabas.coordinator.group.classic.records import group_tombstone
from barnabas.coordinator.group.classic.states import GroupState
from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.group_type import GroupType
from barnabas.coordinator.group.offsets import OffsetStore
from barnabas.coordinator.group.records import offset_tombstone
from barnabas.coordinator.group.registry import Group, GroupRegistry
from barnabas.coordinator.group.share.group import ShareGroup
from barnabas.coordinator.group.streams.group import StreamsGroup
from barnabas.coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

ERROR_MESSAGE_FROM_VERSION = 6


def listed(groups: GroupRegistry, request: ListGroupsRequest) -> list[ListedGroup]:
    """The groups that pass the filters; case does not count (KIP-518, KIP-848)."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    found = []
    for group in groups:
        state, kind = _state_and_type(group)
        if (states and state.lower() not in states) or (types and kind not in types):
            continue
        found.append(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=_protocol_type(group),
                group_state=state,
                group_type=kind,
            )
        )
    return found


def described(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """A classic group; any other is not found, which older versions hear as Dead (KIP-1043)."""
    if not isinstance(group, ClassicGroup):
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
        if version >= ERROR_MESSAGE_FROM_VERSION:
            response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            response.error_message = (
                f"Group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a classic group."
            )
        return response
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol) or b"",
                member_assignment=b"" if protocol is None else member.assignment,
            )
            for member in group.members.values()
        ],
    )


def deletion(
    group_ids: Iterable[str], groups: GroupRegistry, store: OffsetStore
) -> tuple[list[CoordinatorRecord], dict[str, ErrorCode]]:
    """Tombstones of groups without members and of their offsets, and the outcome for each."""
    records: list[CoordinatorRecord] = []
    outcomes: dict[str, ErrorCode] = {}
    for group_id in group_ids:
        if group_id in outcomes:
            continue
        group = groups.get(group_id)
        if group is None:
            outcomes[group_id] = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            outcomes[group_id] = ErrorCode.NON_EMPTY_GROUP
        else:
            outcomes[group_id] = ErrorCode.NONE
            records += [
                offset_tombstone(group_id, *partition)
                for partition in store.all_partitions(group_id)
            ]
            records += group_tombstones(group)
    return records, outcomes


def group_tombstones(group: Group) -> list[CoordinatorRecord]:
    """What deletes the group itself."""
    if not isinstance(group, ClassicGroup):
        return group.tombstones()
    return [group_tombstone(group.group_id)]


def _protocol_type(group: Group) -> str:
    if isinstance(group, ClassicGroup):
        return group.protocol_type or ""
    return CONSUMER_PROTOCOL_TYPE if isinstance(group, ConsumerGroup) else _TYPES[type(group)]


def _state_and_type(group: Group) -> tuple[str, str]:
    return group.state, _TYPES[type(group)]


_TYPES: dict[type, GroupType] = {
    ClassicGroup: GroupType.CLASSIC,
    ConsumerGroup: GroupType.CONSUMER,
    ShareGroup: GroupType.SHARE,
    StreamsGroup: GroupType.STREAMS,
}
