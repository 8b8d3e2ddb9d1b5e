"""Tasks: the partitions of a subtopology, and who has them in which role.

An *active* task processes, a *standby* task keeps a copy of its state, a *warm-up* task fetches
state so that it can become active. Kafka 4.3 assigns no warm-up tasks yet; records may hold them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from barnabas.protocol.messages.streams_groups import TaskIds


class TaskId(NamedTuple):
    """One partition of a subtopology. Ascending order is that of records and responses."""

    subtopology_id: str
    partition: int


TaskSet = frozenset[TaskId]
"""To be iterated over in order only, by `by_subtopology` or `sorted`."""
NO_TASKS: TaskSet = frozenset()


def task_set(subtopologies: Iterable[Any]) -> TaskSet:
    """Tasks from a message or a record: partitions by subtopology."""
    return frozenset(
        TaskId(tasks.subtopology_id, number)
        for tasks in subtopologies
        for number in tasks.partitions
    )


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks in each role, without a history: a target, or what a member says that it has."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    @property
    def is_empty(self) -> bool:
        """True if there is no task in any role."""
        return not (self.active or self.standby or self.warmup)


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """Tasks that a member has; active ones with the member epoch in which they were assigned."""

    active: Mapping[TaskId, int] = field(default_factory=dict)
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    @property
    def is_empty(self) -> bool:
        """True if there is no task in any role."""
        return not (self.active or self.standby or self.warmup)

    def overlaps(self, tasks: Tasks) -> bool:
        """Return whether a task is in both, in the same role."""
        return (
            any(task in self.active for task in tasks.active)
            or not self.standby.isdisjoint(tasks.standby)
            or not self.warmup.isdisjoint(tasks.warmup)
        )

    def contains(self, tasks: Tasks) -> bool:
        """Return whether all of `tasks` are in this, in the same roles."""
        return (
            all(task in self.active for task in tasks.active)
            and tasks.standby <= self.standby
            and tasks.warmup <= self.warmup
        )


def by_subtopology(tasks: Iterable[TaskId]) -> list[tuple[str, list[int]]]:
    """Partitions for each subtopology, all ascending."""
    return [
        (subtopology_id, [task.partition for task in group])
        for subtopology_id, group in groupby(sorted(tasks), lambda task: task.subtopology_id)
    ]


def task_ids(tasks: Iterable[TaskId]) -> list[TaskIds]:
    """Tasks as messages and records hold them."""
    return [
        TaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks)
    ]
