"""Admin requests on groups of every kind: list and delete."""

from collections.abc import Iterable

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.offsets import OffsetStore
from barnabas.node.coordinator.group.records import offset_tombstone
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import ListedGroup, ListGroupsRequest


def listed(groups: GroupRegistry, request: ListGroupsRequest) -> list[ListedGroup]:
    """The groups that pass the filters; case does not count (KIP-518, KIP-848)."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    groups_listed = []
    for group in groups:
        state, kind = group.state, group.group_type
        if (states and state.lower() not in states) or (types and kind not in types):
            continue
        groups_listed.append(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=state,
                group_type=kind,
            )
        )
    return groups_listed


def deletion(
    group_ids: Iterable[str], groups: GroupRegistry, store: OffsetStore
) -> tuple[list[CoordinatorRecord], dict[str, ErrorCode]]:
    """Tombstones of groups without members and of their offsets, and the outcome for each."""
    records: list[CoordinatorRecord] = []
    outcomes: dict[str, ErrorCode] = {}
    for group_id in group_ids:
        if group_id in outcomes:
            continue
        group = groups.get(group_id)
        if group is None:
            outcomes[group_id] = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            outcomes[group_id] = ErrorCode.NON_EMPTY_GROUP
        else:
            outcomes[group_id] = ErrorCode.NONE
            records += [
                offset_tombstone(group_id, *partition)
                for partition in store.all_partitions(group_id)
            ]
            records += group.tombstones()
    return records, outcomes
