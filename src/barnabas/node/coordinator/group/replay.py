"""Replay of the records of a shard: one table for all kinds of groups.

Offsets are not here: they are many, belong to no kind, and go from the shard to the `OffsetStore`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.replay import replay_classic
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.protocol.messages.group_records import GroupMetadataKey
from barnabas.protocol.schema import Message


def replay_modern(
    kind: type[ModernGroup[Any, Any]], groups: GroupRegistry, record: CoordinatorRecord
) -> None:
    """Apply a record of a group of `kind`; the first makes it, the epoch's tombstone ends it."""
    key: Any = record.key
    is_tombstone = record.value is None
    group = groups.get_of(kind, key.group_id)
    if group is None:
        if is_tombstone:
            return
        groups.drop(key.group_id)
        group = kind(key.group_id)
        groups.put(group)
    if is_tombstone and isinstance(key, kind.records.epoch_key):
        groups.drop(key.group_id)
        return
    group.replay(record)
    if is_tombstone and isinstance(key, kind.records.member_key):
        groups.member_ended(group.member_timer_keys(key.member_id))


MODERN_KINDS: Final[tuple[type[ModernGroup[Any, Any]], ...]] = (
    ConsumerGroup,
    ShareGroup,
    StreamsGroup,
)
REPLAYS: Final[dict[type[Message], Callable[[GroupRegistry, CoordinatorRecord], None]]] = {
    GroupMetadataKey: replay_classic,
    **{key: partial(replay_modern, kind) for kind in MODERN_KINDS for key in kind.replays},
}
"""The functions that apply a group's records, by the type of the record's key."""


def replay(groups: GroupRegistry, record: CoordinatorRecord) -> None:
    """Apply a record of a group."""
    REPLAYS[type(record.key)](groups, record)
