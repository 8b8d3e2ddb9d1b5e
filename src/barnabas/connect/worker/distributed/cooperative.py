"""Cooperative assignment: members keep what they run, and only what must move is stopped.

A round is one join of the group. Its leader compares what was assigned, what members say they run
and what is configured:

    created      configured, never assigned             to the members that have least
    deleted      assigned, no longer configured         revoked
    duplicated   run by several members                 revoked from all of them, new in the next
    lost         assigned, run by nobody: their worker  kept for it until a delay is over; then to
                 is gone                                members that came empty, or to all
    too many     more than a fair part                  revoked, new to others in the next round

Members with revoked work rejoin at once, so that revoking takes two rounds and nothing runs twice.
Rounds that revoke again and again wait for longer and longer (up to the same delay).

The leader's memory is a `Memory`; a new leader begins with an empty one, for which what is lost is
created. Members are taken in the order of their names.

Source: org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor (Kafka 4.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final, TypeVar

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.share import NOTHING, Share, by_name, total

_BACKOFF_FACTOR: Final = 40
T = TypeVar("T", str, TaskId)


@dataclass(slots=True)
class Memory:
    """A leader's memory of earlier rounds. `delay_ms_max`: scheduled.rebalance.max.delay.ms."""

    delay_ms_max: int
    assigned: Share = NOTHING
    revoked: Share = NOTHING
    generation: int = -1
    """Of the round that `assigned` is of."""
    members: frozenset[str] = frozenset()
    came_empty: dict[str, None] = field(default_factory=dict)
    """Members that had nothing while something was lost: perhaps the lost one, started again."""
    due_ms: int = 0
    """When what is lost goes to others; 0 while nothing waits."""
    delay_ms: int = 0
    has_revoked: bool = False
    """True if the last round balanced by revoking."""
    rounds_revoking: int = 0


@dataclass(slots=True, frozen=True)
class Round:
    """The work that a round assigns to and revokes from each member, and what it runs then."""

    assigned: Mapping[str, Share]
    revoked: Mapping[str, Share]
    running: Mapping[str, Share]
    delay_ms: int


class _Load:
    """The work of a member after this round."""

    def __init__(self, member: str, share: Share) -> None:
        self.member = member
        self.connectors = list(share.connectors)
        self.tasks = list(share.tasks)

    def remove(self, share: Share) -> None:
        left = self.share().without(share)
        self.connectors, self.tasks = list(left.connectors), list(left.tasks)

    def share(self) -> Share:
        return Share(tuple(self.connectors), tuple(self.tasks))


def assign(
    memory: Memory,
    configured: Share,
    members: Mapping[str, Share],
    *,
    now_ms: int,
    generation: int,
    last_generation: int,
) -> Round:
    """Do one round; `members` is what each says it runs. Changes `memory`.

    `last_generation` is the last one in which this leader itself got its assignment.
    """
    if memory.generation != last_generation:
        memory.assigned = NOTHING  # the last round did not reach the members
    running = total(members.values())
    if memory.revoked.within(running):
        memory.assigned = running  # what was revoked still runs: revoke it again
    memory.revoked = NOTHING

    deleted = memory.assigned.without(configured)
    twice = _duplicated(members.values())
    lost = memory.assigned.without(running).without(deleted)
    created = configured.without(memory.assigned).without(running)

    loads = [_Load(member, members[member]) for member in sorted(members)]
    revoked: dict[str, Share] = {}
    for load in loads:
        stops = deleted.plus(twice).within(members[load.member])
        if stops:
            revoked[load.member] = stops
            load.remove(stops)

    free = created.plus(_handle_lost(memory, lost, loads, now_ms))
    if memory.delay_ms == 0:
        _balance(memory, configured, loads, revoked, now_ms)
    else:
        memory.has_revoked = False

    _deal(loads, sorted(free.connectors), lambda load: load.connectors)
    _deal(loads, by_name(free.tasks), lambda load: load.tasks)

    next_running = {load.member: load.share() for load in loads}
    stopped = total(revoked.values())
    memory.assigned = total(next_running.values()).without(stopped).plus(lost)
    memory.revoked = stopped
    memory.generation = generation
    memory.members = frozenset(members)
    kept = {member: members[member].without(deleted) for member in members}
    return Round(
        assigned={member: share.without(kept[member]) for member, share in next_running.items()},
        revoked=revoked,
        running={
            member: share.without(revoked.get(member, NOTHING))
            for member, share in next_running.items()
        },
        delay_ms=memory.delay_ms,
    )


def _duplicated(shares: Iterable[Share]) -> Share:
    connectors: Counter[str] = Counter()
    tasks: Counter[TaskId] = Counter()
    for share in shares:
        connectors.update(share.connectors)
        tasks.update(share.tasks)
    return Share(
        tuple(name for name, count in connectors.items() if count > 1),
        tuple(task for task, count in tasks.items() if count > 1),
    )


def _handle_lost(memory: Memory, lost: Share, loads: list[_Load], now_ms: int) -> Share:
    """Return what of `lost` is dealt out now like new work; may give it to members that wait."""
    if not lost and not memory.has_revoked:
        _end_delay(memory)
        return NOTHING
    has_all = memory.members <= {load.member for load in loads}
    if (memory.due_ms <= 0 and has_all) or memory.delay_ms_max == 0:
        return lost  # nobody has left: an assignment did not arrive
    if 0 < memory.due_ms <= now_ms:
        back = [load for load in loads if load.member in memory.came_empty]
        if back:
            for name, load in zip(lost.connectors, cycle(back), strict=False):
                load.connectors.append(name)
            for task, load in zip(lost.tasks, cycle(back), strict=False):
                load.tasks.append(task)
        _end_delay(memory)
        memory.has_revoked = False
        return NOTHING if back else lost
    memory.came_empty.update({load.member: None for load in loads if not load.share()})
    if now_ms < memory.due_ms:
        memory.delay_ms = min(memory.due_ms - now_ms, memory.delay_ms_max)
    else:
        memory.delay_ms = memory.delay_ms_max
    memory.due_ms = now_ms + memory.delay_ms
    return NOTHING


def _end_delay(memory: Memory) -> None:
    memory.came_empty.clear()
    memory.due_ms = memory.delay_ms = 0


def _balance(
    memory: Memory, configured: Share, loads: list[_Load], revoked: dict[str, Share], now_ms: int
) -> None:
    """Revoke what members have too much of, unless the last round did and a pause is due."""
    excess: dict[str, Share] = {}
    if configured and any(load.share() for load in loads):
        connectors = _excess(len(configured.connectors), loads, lambda load: load.connectors)
        tasks = _excess(len(configured.tasks), loads, lambda load: load.tasks)
        for member in connectors | tasks:
            excess[member] = Share(tuple(connectors.get(member, ())), tuple(tasks.get(member, ())))
    if not excess:
        if memory.has_revoked:
            memory.has_revoked = False
            memory.rounds_revoking = 0
        return
    if memory.has_revoked:
        memory.rounds_revoking += 1
        pause_ms = min(_BACKOFF_FACTOR ** min(memory.rounds_revoking, 9), memory.delay_ms_max)
        if pause_ms > 0:
            memory.delay_ms = pause_ms
            memory.due_ms = now_ms + pause_ms
            return
    else:
        memory.has_revoked = True
    for load in loads:
        gone = excess.get(load.member)
        if gone:
            load.remove(gone)
            revoked[load.member] = revoked.get(load.member, NOTHING).plus(gone)


def _excess(count: int, loads: list[_Load], part: Callable[[_Load], list[T]]) -> dict[str, list[T]]:
    """Return what each member has more than its fair part of `count`."""
    least, extra = divmod(count, len(loads))
    sizes = [len(part(load)) for load in loads]
    with_extra = sizes.count(least + 1)
    if with_extra == extra and sizes.count(least) + with_extra == len(loads):
        return {}
    gone: dict[str, list[T]] = {}
    for load in loads:
        held = part(load)
        if len(held) <= least:
            continue
        allowed = least
        if extra > 0:
            extra -= 1
            allowed = least + 1
        if len(held) > allowed:
            gone[load.member] = held[: len(held) - allowed]
    return gone


def _deal(loads: list[_Load], items: Sequence[T], part: Callable[[_Load], list[T]]) -> None:
    """Give each item to the member that has least."""
    for item in items:
        part(min(loads, key=lambda load: (len(part(load)), load.member))).append(item)
