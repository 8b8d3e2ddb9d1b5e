"""Responses of the classic protocol: refusals, and those of old versions."""

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    JoinGroupResponse,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

NULLABLE_PROTOCOL_FROM_VERSION = 7


def join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    """The response to a JoinGroup that is refused."""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def level_join(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Up to version 6 a protocol cannot be null, but empty."""
    if response.protocol_name is None and version < NULLABLE_PROTOCOL_FROM_VERSION:
        response.protocol_name = ""
    return response


def level_leave(response: LeaveGroupResponse) -> LeaveGroupResponse:
    """Versions that name one member carry its error as the whole's."""
    if not response.error_code and response.members:
        response.error_code = response.members[0].error_code
    response.members = []
    return response


def unknown_members(leaving: list[MemberIdentity]) -> LeaveGroupResponse:
    """A LeaveGroup of members whom nobody knows."""
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in leaving
        ]
    )
