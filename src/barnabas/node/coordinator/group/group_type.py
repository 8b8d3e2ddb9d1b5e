"""The kinds of groups (KIP-848, KIP-932, KIP-1071)."""

from enum import StrEnum


class GroupType(StrEnum):
    """The kind of a group; the values are what clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
