"""DescribeGroups: a classic group as administrators see it."""

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.refusal import Refusal
from barnabas.protocol.messages.groups import DescribedGroup, DescribedGroupMember

ERROR_MESSAGE_FROM_VERSION = 6


def described(group_id: str, group: ClassicGroup | Refusal, version: int) -> DescribedGroup:
    """A classic group; any other is not found, which older versions hear as Dead (KIP-1043)."""
    if isinstance(group, Refusal):
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
        if version >= ERROR_MESSAGE_FROM_VERSION:
            response.error_code = group.error
            response.error_message = group.message
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
