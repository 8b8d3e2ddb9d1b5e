"""Share groups (KIP-932) as a log holds them.

A directory that Apache Kafka wrote may hold them. Their records are kept, so that the groups are
listed, their offsets read, committed and expired, and they can be deleted. Their members cannot
send heartbeats here, so their sessions end, and then classic members may use the group id.
"""

from enum import StrEnum

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_group_records as share
from barnabas.protocol.messages.streams_group_records import STREAMS_GROUP_RECORDS
from barnabas.protocol.schema import Message


class GroupType(StrEnum):
    """The kind of a group; the values are what clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class UnservedGroup:
    """One such group: its records by type and member."""

    __slots__ = ("group_id", "group_type", "records")

    def __init__(self, group_id: str, group_type: GroupType) -> None:
        self.group_id = group_id
        self.group_type = group_type
        self.records: dict[tuple[type[Message], str], CoordinatorRecord] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        """Keep a record, or forget what its tombstone names."""
        key = (type(record.key), _part_of(record.key))
        if record.value is None:
            self.records.pop(key, None)
        else:
            self.records[key] = record

    @property
    def members(self) -> list[str]:
        """Ids of the members."""
        return [part for kind, part in self.records if kind in _MEMBER_KEYS]

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def is_subscribed(self, topic: str) -> bool:
        """Share groups keep no offsets that a subscription would protect."""
        return False

    def check_member(self, member_id: str, member_epoch: int) -> ErrorCode:
        """NONE, UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH, as for commits of a member."""
        if member_epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        for kind in _CURRENT_ASSIGNMENT_KEYS:
            record = self.records.get((kind, member_id))
            if record is not None and getattr(record.value, "member_epoch", None) == member_epoch:
                return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH

    def tombstones(self) -> list[CoordinatorRecord]:
        """Delete the group: members' parts first, as Kafka's own replay demands."""
        keys = sorted(
            (record.key for record in self.records.values()),
            key=lambda key: _DELETION_ORDER.index(type(key)),
        )
        return [CoordinatorRecord(key, None) for key in keys]

    def member_tombstones(self) -> list[CoordinatorRecord]:
        """Remove all members and leave the group."""
        return [
            CoordinatorRecord(record.key, None)
            for record in self.tombstones()
            if hasattr(record.key, "member_id")
        ]


def group_type_of(key: Message) -> GroupType | None:
    """The kind of group whose record has such a key; None for classic and consumer groups."""
    return _TYPES.get(type(key))


def _part_of(key: Message) -> str:
    part: str = getattr(key, "member_id", "") or getattr(key, "regular_expression", "")
    return part


_DELETION_ORDER: list[type[Message]] = [
    share.ShareGroupCurrentMemberAssignmentKey,
    share.ShareGroupTargetAssignmentMemberKey,
    share.ShareGroupTargetAssignmentMetadataKey,
    share.ShareGroupMemberMetadataKey,
    share.ShareGroupStatePartitionMetadataKey,
    share.ShareGroupMetadataKey,
]
_TYPES: dict[type[Message], GroupType] = {
    **dict.fromkeys(_DELETION_ORDER, GroupType.SHARE),
    **{key: GroupType.STREAMS for key, _ in STREAMS_GROUP_RECORDS.values()},
}
_MEMBER_KEYS = (share.ShareGroupMemberMetadataKey,)
_CURRENT_ASSIGNMENT_KEYS: tuple[type[Message], ...] = (share.ShareGroupCurrentMemberAssignmentKey,)
