"""The types of the records of `__consumer_offsets`, and the tombstone of an offset."""

from typing import Final

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.record_codec import RecordTypes
from barnabas.protocol.messages.group_records import (
    GROUP_RECORDS,
    SHARE_GROUP_RECORDS,
    STREAMS_GROUP_RECORDS,
    OffsetCommitKey,
)

RECORD_TYPES: Final[RecordTypes] = {
    **GROUP_RECORDS,
    **SHARE_GROUP_RECORDS,
    **STREAMS_GROUP_RECORDS,
}


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """A committed offset is forgotten."""
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
    )
