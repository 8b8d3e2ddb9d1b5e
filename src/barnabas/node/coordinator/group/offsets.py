"""The offsets that groups have committed, by group, topic and partition.

Offsets of an open transaction are kept apart by producer id until its end marker moves them over
or drops them; where both a plain and a transactional commit of a partition are there, the later one
in the log counts, regardless of the order in which they came to count (compaction
may take either away). Source: Kafka's OffsetMetadataManager.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.records.batch import NO_PRODUCER_ID

NO_EXPIRY = -1


@dataclass(slots=True)
class CommittedOffset:
    """One committed offset. `record_offset` is the offset of its record in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: Uuid
    record_offset: int


TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]


class OffsetStore:
    """Committed offsets of one shard, and those of transactions that are open."""

    __slots__ = ("_committed", "_open")

    def __init__(self) -> None:
        self._committed: dict[str, GroupOffsets] = {}
        self._open: dict[int, dict[str, GroupOffsets]] = {}

    # Reading

    def group(self, group_id: str) -> GroupOffsets:
        """The committed offsets of a group, which callers must not change."""
        return self._committed.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """One committed offset."""
        return self._committed.get(group_id, {}).get(topic, {}).get(partition)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction commits this partition (KIP-447)."""
        return any(
            partition in groups.get(group_id, {}).get(topic, {}) for groups in self._open.values()
        )

    def has_open_transactions(self, group_id: str) -> bool:
        """Return whether an open transaction commits offsets of the group."""
        return any(group_id in groups for groups in self._open.values())

    def all_partitions(self, group_id: str) -> list[tuple[str, int]]:
        """Every partition of a group with a committed or an open offset, once each."""
        ordered: dict[tuple[str, int], None] = {}
        for offsets in self._everywhere(group_id):
            for topic, partitions in offsets.items():
                for partition in partitions:
                    ordered[topic, partition] = None
        return list(ordered)

    def partitions_of_topics(self, topics: frozenset[str]) -> list[tuple[str, str, int]]:
        """Every (group, topic, partition) with an offset in one of `topics`, once each."""
        partitions: dict[tuple[str, str, int], None] = {}
        for groups in (self._committed, *self._open.values()):
            for group_id, offsets in groups.items():
                for topic in topics.intersection(offsets):
                    for partition in offsets[topic]:
                        partitions[group_id, topic, partition] = None
        return list(partitions)

    def expired(
        self,
        group_id: str,
        is_expired: Callable[[CommittedOffset], bool],
        is_subscribed: Callable[[str], bool],
    ) -> tuple[list[tuple[str, int]], bool]:
        """The expired partitions of a group, and whether nothing else keeps the group."""
        expired = []
        is_all = not self.has_open_transactions(group_id)
        for topic, partitions in self.group(group_id).items():
            if is_subscribed(topic):
                is_all = False
                continue
            for partition, offset in partitions.items():
                if is_expired(offset) and not self.is_unstable(group_id, topic, partition):
                    expired.append((topic, partition))
                else:
                    is_all = False
        return expired, is_all

    # Replay

    def replay(
        self,
        record_offset: int,
        producer_id: int,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
    ) -> None:
        """Apply a commit, or a tombstone, which takes open offsets along."""
        if value is None:
            _remove(self._committed, key)
            for groups in self._open.values():
                _remove(groups, key)
            return
        offset = CommittedOffset(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )
        self.put(producer_id, key.group, key.topic, key.partition, offset)

    def put(
        self, producer_id: int, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        """Take a commit in, in place of the one before."""
        groups = (
            self._committed
            if producer_id == NO_PRODUCER_ID
            else self._open.setdefault(producer_id, {})
        )
        _partitions(groups, group_id, topic)[partition] = offset

    def committed(self, group_id: str, topic: str) -> TopicOffsets:
        """The committed offsets of a group in a topic, to which callers may add."""
        return _partitions(self._committed, group_id, topic)

    def replay_end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a transaction."""
        groups = self._open.pop(producer_id, None)
        if groups is None or not is_commit:
            return
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    current = self.get(group_id, topic, partition)
                    if current is None or offset.record_offset > current.record_offset:
                        self._committed.setdefault(group_id, {}).setdefault(topic, {})[
                            partition
                        ] = offset

    def _everywhere(self, group_id: str) -> Iterator[GroupOffsets]:
        yield self.group(group_id)
        for groups in self._open.values():
            yield groups.get(group_id, {})


def is_valid_for(offset: CommittedOffset | None, topic_id: Uuid) -> bool:
    """Return whether there is an offset and it is of this topic, not of a namesake deleted since.

    ZERO_UUID, on either side, means that the id is not known.
    """
    return offset is not None and (
        topic_id == ZERO_UUID or offset.topic_id in (ZERO_UUID, topic_id)
    )


def _partitions(groups: dict[str, GroupOffsets], group_id: str, topic: str) -> TopicOffsets:
    topics = groups.get(group_id)
    if topics is None:
        topics = groups[group_id] = {}
    partitions = topics.get(topic)
    if partitions is None:
        partitions = topics[topic] = {}
    return partitions


def _remove(groups: dict[str, GroupOffsets], key: OffsetCommitKey) -> None:
    topics = groups.get(key.group)
    partitions = None if topics is None else topics.get(key.topic)
    if topics is None or partitions is None:
        return
    partitions.pop(key.partition, None)
    if not partitions:
        del topics[key.topic]
    if not topics:
        del groups[key.group]
