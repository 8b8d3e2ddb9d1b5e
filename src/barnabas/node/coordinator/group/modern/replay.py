"""Replay of groups whose coordinator assigns."""

from typing import Any

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.registry import GroupRegistry


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
