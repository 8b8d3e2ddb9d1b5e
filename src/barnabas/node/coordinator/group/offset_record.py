"""The record of a committed offset: what this coordinator writes more often than anything else.

It goes from a commit into the log and from there into the shard's state, and is a message only for
who asks for one. The bytes are those of `OffsetCommitKey` and `OffsetCommitValue`.
"""

from functools import lru_cache
from struct import Struct
from typing import Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.coordinator.group.offsets import NO_EXPIRY, CommittedOffset
from barnabas.node.coordinator.record_codec import SelfEncoding, encode_key, encode_value
from barnabas.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.records.batch import NO_OFFSET
from barnabas.protocol.records.own_batch import KeyValue

VERSION: Final = 4
VERSION_WITH_EXPIRY: Final = 1
"""The only version that holds an expiry of the offset's own (OffsetCommit up to version 4)."""
KEYS_REMEMBERED_MAX: Final = 1024

METADATA_SHORT_MAX: Final = 126
"""Characters of metadata whose compact length takes one byte."""

_pack_head = Struct(">hqiB").pack
_pack_time = Struct(">q").pack
_pack_plain = Struct(">hqiBqB").pack
_pack_with_id = Struct(">hqiBq3s16s").pack
_EMPTY: Final = 1
"""The compact length of empty metadata."""
_NO_TAGS: Final = b"\0"
_ID_TAG: Final = b"\1\0\x10"
"""One tagged field, with tag 0, of sixteen bytes."""


class OffsetRecord(SelfEncoding):
    """A committed offset of one partition."""

    __slots__ = ("committed", "group_id", "partition", "topic")

    def __init__(
        self, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """`committed` becomes part of the state; its `record_offset` is set when it does."""
        self.group_id = group_id
        self.topic = topic
        self.partition = partition
        self.committed = committed

    @property
    def key(self) -> OffsetCommitKey:  # type: ignore[override]  # made only where it is asked for
        return OffsetCommitKey(group=self.group_id, topic=self.topic, partition=self.partition)

    @property
    def value(self) -> OffsetCommitValue:  # type: ignore[override]  # as above
        committed = self.committed
        return OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        )

    @property
    def value_version(self) -> int:  # type: ignore[override]  # as above
        has_expiry = self.committed.expire_timestamp_ms != NO_EXPIRY
        return VERSION_WITH_EXPIRY if has_expiry else VERSION

    def encoded(self) -> KeyValue:
        committed = self.committed
        metadata = committed.metadata
        key = _encode_key(self.group_id, self.topic, self.partition)
        if (
            len(metadata) > METADATA_SHORT_MAX
            or not metadata.isascii()
            or committed.expire_timestamp_ms != NO_EXPIRY
        ):
            return key, encode_value(self.value, self.value_version)
        has_id = committed.topic_id != ZERO_UUID
        if metadata:
            return key, b"".join(
                (
                    _pack_head(
                        VERSION, committed.offset, committed.leader_epoch, len(metadata) + 1
                    ),
                    metadata.encode(),
                    _pack_time(committed.commit_timestamp_ms),
                    _ID_TAG + committed.topic_id if has_id else _NO_TAGS,
                )
            )
        if not has_id:
            return key, _pack_plain(
                VERSION,
                committed.offset,
                committed.leader_epoch,
                _EMPTY,
                committed.commit_timestamp_ms,
                0,
            )
        return key, _pack_with_id(
            VERSION,
            committed.offset,
            committed.leader_epoch,
            _EMPTY,
            committed.commit_timestamp_ms,
            _ID_TAG,
            committed.topic_id,
        )


def offset_record(
    group_id: str,
    topic: str,
    partition: int,
    *,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_EXPIRY,
    topic_id: Uuid = ZERO_UUID,
) -> OffsetRecord:
    """A committed offset."""
    return OffsetRecord(
        group_id,
        topic,
        partition,
        CommittedOffset(
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms,
            topic_id,
            NO_OFFSET,
        ),
    )


@lru_cache(KEYS_REMEMBERED_MAX)
def _encode_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
