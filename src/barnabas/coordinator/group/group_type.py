"""The kinds of groups, and which records belong to which (KIP-848, KIP-932, KIP-1071)."""

from enum import StrEnum

from barnabas.protocol.messages.share_group_records import SHARE_GROUP_RECORDS
from barnabas.protocol.messages.streams_group_records import STREAMS_GROUP_RECORDS
from barnabas.protocol.schema import Message


class GroupType(StrEnum):
    """The kind of a group; the values are what clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


def group_type_of(key: Message) -> GroupType | None:
    """The kind of group whose record has such a key; None for classic and consumer groups."""
    return _TYPES.get(type(key))


_TYPES: dict[type[Message], GroupType] = {
    **{key: GroupType.SHARE for key, _ in SHARE_GROUP_RECORDS.values()},
    **{key: GroupType.STREAMS for key, _ in STREAMS_GROUP_RECORDS.values()},
}
