"""The states of a classic group and the events that lead from one to another.

    Empty               no members; offsets may be there
    PreparingRebalance  waits for its members to join again
    CompletingRebalance a new generation; waits for its leader's assignment
    Stable              every member has its assignment
    Dead                left this node, or deleted

A pair that is not in TRANSITIONS is a bug and raises. Source: Kafka's ClassicGroupState.
"""

from enum import StrEnum
from typing import Final


class GroupState(StrEnum):
    """The state of a classic group; the values are what clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(StrEnum):
    """The events of a classic group."""

    REBALANCE_CAUSED = "a member joined, left, failed or changed"
    MEMBERS_JOINED = "all members have joined, or the time for it is up"
    LAST_MEMBER_GONE = "no member is left to join"
    ASSIGNMENT_STORED = "the leader's assignment is committed"
    GROUP_GONE = "the group was deleted or has moved to another node"


TRANSITIONS: Final = {
    (GroupState.EMPTY, GroupEvent.REBALANCE_CAUSED): GroupState.PREPARING_REBALANCE,
    (GroupState.STABLE, GroupEvent.REBALANCE_CAUSED): GroupState.PREPARING_REBALANCE,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.REBALANCE_CAUSED): GroupState.PREPARING_REBALANCE,
    (GroupState.PREPARING_REBALANCE, GroupEvent.MEMBERS_JOINED): GroupState.COMPLETING_REBALANCE,
    (GroupState.PREPARING_REBALANCE, GroupEvent.LAST_MEMBER_GONE): GroupState.EMPTY,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.ASSIGNMENT_STORED): GroupState.STABLE,
    (GroupState.EMPTY, GroupEvent.GROUP_GONE): GroupState.DEAD,
    (GroupState.PREPARING_REBALANCE, GroupEvent.GROUP_GONE): GroupState.DEAD,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.GROUP_GONE): GroupState.DEAD,
    (GroupState.STABLE, GroupEvent.GROUP_GONE): GroupState.DEAD,
}


def next_state(state: GroupState, event: GroupEvent) -> GroupState:
    """The state after `event`. Raises AssertionError for a pair that is not in the table."""
    target = TRANSITIONS.get((state, event))
    if target is None:
        raise AssertionError(f"a group that is {state} cannot take: {event}")
    return target


def diagram() -> str:
    """TRANSITIONS as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> Empty"]
    lines += [
        f"    {state} --> {target}: {event}" for (state, event), target in TRANSITIONS.items()
    ]
    lines.append("    Dead --> [*]")
    return "\n".join(lines) + "\n"
