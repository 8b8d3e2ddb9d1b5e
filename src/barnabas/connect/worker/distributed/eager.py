"""Eager assignment: everything stops, and all of it is assigned again.

Connectors go round the members first, then tasks go on from there: dealt out together, connectors
of one task each would put all tasks on every second member.

Source: org.apache.kafka.connect.runtime.distributed.EagerAssignor (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.share import Share, by_name


def assign(configured: Share, members: Iterable[str]) -> dict[str, Share]:
    """Return what each member runs. There is at least one member."""
    names = sorted(members)
    connectors: dict[str, list[str]] = {name: [] for name in names}
    tasks: dict[str, list[TaskId]] = {name: [] for name in names}
    turn = cycle(names)
    for connector in sorted(configured.connectors):
        connectors[next(turn)].append(connector)
    for task in by_name(configured.tasks):
        tasks[next(turn)].append(task)
    return {name: Share(tuple(connectors[name]), tuple(tasks[name])) for name in names}
