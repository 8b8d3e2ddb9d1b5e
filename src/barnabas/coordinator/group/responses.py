"""Responses that the group coordinator makes without asking a shard, and those of old versions."""

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

NULLABLE_PROTOCOL_FROM_VERSION = 7


def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same outcome for every partition of a commit."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_commit_error(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same outcome for every partition of a transactional commit."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetch_error(error: ErrorCode) -> ErrorCode:
    """Old consumers do not expect COORDINATOR_NOT_AVAILABLE here; both make them look again."""
    return ErrorCode.NOT_COORDINATOR if error is ErrorCode.COORDINATOR_NOT_AVAILABLE else error


def join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    """A JoinGroup that comes to nothing."""
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
