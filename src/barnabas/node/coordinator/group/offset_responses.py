"""Responses about offsets that the group coordinator makes without asking a shard."""

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


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
