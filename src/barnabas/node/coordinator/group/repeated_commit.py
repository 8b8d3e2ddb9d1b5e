"""A commit that repeats itself: same committer, same partitions, other offsets.

The general way makes a record of each offset, encodes it, and puts the records into a batch. Here
the batch of the commit before is kept: only offsets, epochs, time and checksum are rewritten before
it goes into the log and the shard's state. Any unusual case (an unknown group, a refused
committer, a log that takes no batch) goes the general way.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from barnabas.node.coordinator.decision import Moment
from barnabas.node.coordinator.group.offset_record import offset_record
from barnabas.node.coordinator.group.offsets import NO_EXPIRY, CommittedOffset
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.record_codec import encode_record, record_size_bytes
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import OffsetCommitRequest
from barnabas.protocol.records.batch import ATTRIBUTES_POSITION, HEADER_SIZE_BYTES
from barnabas.protocol.records.own_batch import encode_own_batch, seal_batch
from barnabas.protocol.records.walk import VARINT_BYTES_MAX, read_varint

_BEFORE_TIMESTAMPS: Final = 6
"""Bytes of attributes and last offset delta, where the checksum begins."""
_PER_PARTITION: Final = 5
"""Values of a record: offset, leader epoch, what is between, timestamp, what follows."""
_VALUE_VERSION: Final = 2
"""Bytes of it, at the start of a value."""
_NO_HEADERS: Final = 1
"""Bytes between a value and the end of its record."""


class RepeatedCommit:
    """An `EncodedStep`: the last commit of a client, with offsets to be filled in."""

    __slots__ = (
        "_coordinator",
        "_indexes",
        "_offsets",
        "_pack",
        "_request",
        "_topic",
        "_topic_id",
        "_values",
        "_version",
        "size_bytes_bound",
    )

    def __init__(
        self, coordinator: GroupCoordinator, request: OffsetCommitRequest, version: int
    ) -> None:
        """`request` is of one topic, without metadata or its own expiry."""
        self._coordinator = coordinator
        self._request = request
        self._version = version
        topic = request.topics[0]
        self._topic, self._topic_id = topic.name, topic.topic_id
        self._indexes = [partition.partition_index for partition in topic.partitions]
        self._offsets: Sequence[Any] = ()
        records = [
            encode_record(
                offset_record(
                    request.group_id,
                    topic.name,
                    index,
                    offset=0,
                    leader_epoch=0,
                    metadata="",
                    commit_timestamp_ms=0,
                    topic_id=topic.topic_id,
                )
            )
            for index in self._indexes
        ]
        self.size_bytes_bound = HEADER_SIZE_BYTES + sum(map(record_size_bytes, records))
        batch = bytes(encode_own_batch(records, 0))
        layout = Struct(f">{_BEFORE_TIMESTAMPS}sqq")
        values = list(layout.unpack_from(batch, ATTRIBUTES_POSITION))
        position = ATTRIBUTES_POSITION + layout.size
        form = layout.format
        end = HEADER_SIZE_BYTES
        for number, (_, value) in enumerate(records):
            assert value is not None
            size, start = read_varint(batch, end, number, VARINT_BYTES_MAX)
            end = start + size
            at = end - _NO_HEADERS - len(value) + _VALUE_VERSION
            one = Struct(f">{at - position}sqisq")
            values += one.unpack_from(batch, position)
            form += one.format[1:]
            position += one.size
        values.append(batch[position:])
        self._values = values
        self._pack = Struct(f"{form}{len(batch) - position}s").pack

    def commit(self, offsets: Sequence[Any]) -> ErrorCode | Promise[ErrorCode] | None:
        """Commit (offset, leader epoch) of each partition, all in one sequence.

        Returns NONE, or what the commit failed with; None: nothing was done, and it is for the
        general way.
        """
        self._offsets = offsets
        coordinator = self._coordinator
        partition = coordinator.partition_for(self._request.group_id)
        return coordinator.runtime.run_encoded(partition, self)

    def is_allowed(self, shard: GroupShard, now: Moment) -> bool:
        return shard.groups.get(self._request.group_id) is not None and not shard.check_commit(
            self._request, self._version, now
        )

    def encode(self, timestamp_ms: int, leader_epoch: int) -> bytearray:
        values = self._values
        values[1] = values[2] = timestamp_ms
        values[4::_PER_PARTITION] = self._offsets[::3]
        values[5::_PER_PARTITION] = self._offsets[1::3]
        values[7::_PER_PARTITION] = [timestamp_ms] * len(self._indexes)
        return seal_batch(self._pack(*values), leader_epoch)

    def replay(self, shard: GroupShard, end_offset: int) -> None:
        offsets = self._offsets
        indexes = self._indexes
        timestamp_ms = self._values[1]
        committed = shard.offsets.committed(self._request.group_id, self._topic)
        offset = end_offset - len(indexes)
        at = 0
        for index in indexes:
            committed[index] = CommittedOffset(
                offsets[at],
                offsets[at + 1],
                "",
                timestamp_ms,
                NO_EXPIRY,
                self._topic_id,
                offset,
            )
            offset += 1
            at += 3
