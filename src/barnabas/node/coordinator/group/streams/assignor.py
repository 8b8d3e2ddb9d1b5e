"""The sticky assignor: who shall run which task.

Active tasks first. Each stays with the member that has it, then goes to one that has a standby of
it, as far as that member is not over its share; what is left goes to the process with the least
load. Then, for each stateful task, standby replicas: to the member that had the task, to members
that had its standby, and else to the process with the least load. A process has a task once, in any
role. Load counts tasks per member, so a process with more threads gets more.

A *share* is the number of tasks per member, rounded up; each member that has come to its share
leaves the rest to be shared by the others, so that all end within one of each other.

Source: Kafka's StickyTaskAssignor. Not as there: of several members that had a standby, any may
get it again, and not only one beside the first.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.node.coordinator.group.streams.tasks import TaskId, Tasks
from barnabas.node.coordinator.group.streams.topology import ConfiguredSubtopology

NUM_STANDBY_REPLICAS = "num.standby.replicas"


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as the assignor sees it."""

    process_id: str
    previous: Tasks


class Assignment(NamedTuple):
    """Targets by member, and how many standby tasks found no process that has room for them."""

    targets: dict[str, Tasks]
    unplaced_standby_count: int


def assign(
    members: Mapping[str, MemberSpec],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    standby_replicas: int,
) -> Assignment:
    """Give every task to a member; there must be members."""
    active = [
        TaskId(subtopology_id, number)
        for subtopology_id, subtopology in subtopologies.items()
        for number in range(subtopology.task_count)
    ]
    stateful = [task for task in active if subtopologies[task.subtopology_id].is_stateful]
    board = _Board(members)
    _assign_active(board, active, len(stateful) * standby_replicas)
    unplaced = 0
    if standby_replicas:
        unplaced = _assign_standby(board, stateful, standby_replicas)
    return Assignment(
        {
            member.member_id: Tasks(frozenset(member.active), frozenset(member.standby))
            for member in board.members.values()
        },
        unplaced,
    )


@dataclass(slots=True, eq=False)
class _Process:
    """Members with one state directory. Tasks that any of them has, and how many threads."""

    order: int
    tasks: set[TaskId] = field(default_factory=set)
    members: list["_Member"] = field(default_factory=list)
    by_load: list[tuple[int, int]] = field(default_factory=list)
    """A heap of members as (tasks, place); entries that are out of date are put right when met."""

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.members)

    def least_loaded(self) -> "_Member":
        while True:
            known, place = self.by_load[0]
            member = self.members[place]
            if member.task_count == known:
                return member
            heapq.heapreplace(self.by_load, (member.task_count, place))


@dataclass(slots=True, eq=False)
class _Member:
    member_id: str
    process: _Process
    active: list[TaskId] = field(default_factory=list)
    standby: list[TaskId] = field(default_factory=list)

    @property
    def task_count(self) -> int:
        return len(self.active) + len(self.standby)


class _Share:
    """The number of tasks that a member may have before others must take the rest."""

    __slots__ = ("_members", "_tasks", "size")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.size = self._rounded_up()

    def taken(self, task_count: int) -> None:
        """A member has `task_count` tasks now."""
        if task_count == self.size:
            self._members -= 1
            self._tasks -= task_count
            self.size = self._rounded_up()

    def _rounded_up(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Board:
    """The assignment so far, and the previous one."""

    def __init__(self, members: Mapping[str, MemberSpec]) -> None:
        self.members: dict[str, _Member] = {}
        self.processes: dict[str, _Process] = {}
        self.active_before: dict[TaskId, _Member] = {}
        self.standby_before: dict[TaskId, list[_Member]] = {}
        self.active_share = self.share = _Share(0, len(members))
        for member_id, spec in members.items():
            process = self.processes.setdefault(spec.process_id, _Process(len(self.processes)))
            member = self.members[member_id] = _Member(member_id, process)
            heapq.heappush(process.by_load, (0, len(process.members)))
            process.members.append(member)
            for task in spec.previous.active:
                self.active_before[task] = member
            for task in spec.previous.standby:
                self.standby_before.setdefault(task, []).append(member)

    def give_active(self, member: _Member, task: TaskId) -> None:
        member.active.append(task)
        member.process.tasks.add(task)
        self.active_share.taken(member.task_count)
        self.share.taken(member.task_count)

    def give_standby(self, member: _Member, task: TaskId) -> None:
        member.standby.append(task)
        member.process.tasks.add(task)
        self.share.taken(member.task_count)

    def heap(self) -> list[tuple[float, int, _Process]]:
        """Processes, those with the least load first."""
        entries = [(each.load, each.order, each) for each in self.processes.values()]
        heapq.heapify(entries)
        return entries


def _assign_active(board: _Board, tasks: list[TaskId], standby_count: int) -> None:
    board.active_share = _Share(len(tasks), len(board.members))
    board.share = _Share(len(tasks) + standby_count, len(board.members))
    # Partitions of one number lie together where topics are read in ranges.
    by_partition = sorted(tasks, key=lambda task: (task.partition, task.subtopology_id))
    left: list[TaskId] = []
    for task in by_partition:
        member = board.active_before.get(task)
        if member is not None and member.task_count < board.active_share.size:
            board.give_active(member, task)
        else:
            left.append(task)
    new: list[TaskId] = []
    for task in left:
        member = _least_loaded(board.standby_before.get(task, ()))
        if member is not None and member.task_count < board.active_share.size:
            board.give_active(member, task)
        else:
            new.append(task)
    heap = board.heap()
    for task in sorted(new):
        _, order, process = heap[0]
        board.give_active(process.least_loaded(), task)
        heapq.heapreplace(heap, (process.load, order, process))


def _assign_standby(board: _Board, tasks: list[TaskId], replicas: int) -> int:
    by_partition = sorted(
        tasks, key=lambda task: (task.partition, task.subtopology_id), reverse=True
    )
    left: list[tuple[TaskId, int]] = []
    for task in by_partition:
        for placed in range(replicas):
            member = _former_holder(board, task)
            if member is None:
                left.append((task, replicas - placed))
                break
            board.give_standby(member, task)
    heap = board.heap()
    unplaced = 0
    for task, missing in sorted(left, reverse=True):
        for placed in range(missing):
            if not _place_standby(board, heap, task):
                unplaced += missing - placed
                break
    return unplaced


def _former_holder(board: _Board, task: TaskId) -> _Member | None:
    """The member that had the task in any role, may have more, and does not have it in any role
    yet.
    """
    member = board.active_before.get(task)
    if (
        member is not None
        and task not in member.process.tasks
        and member.task_count < board.share.size
    ):
        return member
    member = _least_loaded(
        member for member in board.standby_before.get(task, ()) if task not in member.process.tasks
    )
    if member is not None and member.task_count < board.share.size:
        return member
    return None


def _place_standby(board: _Board, heap: list[tuple[float, int, _Process]], task: TaskId) -> bool:
    """Give a standby to the least loaded process that does not have the task."""
    passed: list[tuple[float, int, _Process]] = []
    is_placed = False
    while heap and not is_placed:
        entry = heapq.heappop(heap)
        _, order, process = entry
        if task in process.tasks:
            passed.append(entry)
            continue
        board.give_standby(process.least_loaded(), task)
        heapq.heappush(heap, (process.load, order, process))
        is_placed = True
    for entry in passed:
        heapq.heappush(heap, entry)
    return is_placed


def _least_loaded(members: Iterable[_Member]) -> _Member | None:
    """The one whose process has the least load, and of those the one with the fewest tasks."""
    return min(members, key=lambda member: (member.process.load, member.task_count), default=None)
