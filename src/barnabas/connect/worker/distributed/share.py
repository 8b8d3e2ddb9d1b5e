"""The connectors and tasks that one worker runs, or should run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.connect.tasks.base import TaskId


@dataclass(slots=True, frozen=True)
class Share:
    """Connectors and tasks, in an order that says which goes first."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[TaskId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def without(self, other: Share) -> Share:
        """Return what is in this one only."""
        gone, done = set(other.connectors), set(other.tasks)
        return Share(
            tuple(name for name in self.connectors if name not in gone),
            tuple(task for task in self.tasks if task not in done),
        )

    def within(self, other: Share) -> Share:
        """Return what is in both."""
        return self.without(self.without(other))

    def plus(self, other: Share) -> Share:
        """Return both, each item once."""
        return Share(
            tuple(dict.fromkeys(self.connectors + other.connectors)),
            tuple(dict.fromkeys(self.tasks + other.tasks)),
        )


NOTHING = Share()


def total(shares: Iterable[Share]) -> Share:
    """Return all of them as one."""
    connectors: dict[str, None] = {}
    tasks: dict[TaskId, None] = {}
    for share in shares:
        connectors.update(dict.fromkeys(share.connectors))
        tasks.update(dict.fromkeys(share.tasks))
    return Share(tuple(connectors), tuple(tasks))


def by_name(tasks: Iterable[TaskId]) -> list[TaskId]:
    """Return tasks in Kafka's order."""
    return sorted(tasks, key=lambda task: (task.connector, task.task))
