"""The context that a task gives its reader."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from barnabas.connect.connectors.base import (
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.record import SourceRecord
from barnabas.connect.testing import ConnectKit


class Waiting(SourceConnector):
    """Waits for an hour in its first look for what is new."""

    contexts: list[TaskContext] = []  # noqa: RUF012  for the test to reach in

    def task_settings(self, tasks_max: int) -> list[Settings]:
        return [{}]

    def reader(self, context: TaskContext) -> SourceReader:
        self.contexts.append(context)
        return WaitingReader(context)


class WaitingReader(SourceReader):
    """Keeps its context, as a user's connector may."""

    def __init__(self, context: TaskContext) -> None:
        self.context = context
        self.waited: list[bool | None] = []

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return {"n": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        self.waited.append(self.context.wait(3600))
        return {"n": 0}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        return []

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        return iter(())


def test_a_wait_ends_with_the_task_and_can_be_copied() -> None:
    Waiting.contexts.clear()
    with ConnectKit() as kit:
        running = kit.start("c", {"connector.class": f"{__name__}:Waiting"})
        kit.wait_until(lambda: Waiting.contexts)
        (context,) = Waiting.contexts
        running.stop()
        assert running.tasks[0].join(60)
        assert context.wait(3600) is True
    assert deepcopy(context.wait)(3600) is True  # of this process
    assert pickle.loads(pickle.dumps(context.wait))(0) is None
