"""A source that does not come back from its start, or from its stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import ClassVar

from barnabas.connect.allowed_plugins import allow
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)

HANGING = f"{__name__}.Hanging"
STOPPING = f"{__name__}.HangingInStop"
allow([__name__])


class Hanging(SourceConnector):
    """Makes the file `begun`, and hangs until it is set free."""

    free: ClassVar[Event] = Event()

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        Path(settings["begun"]).touch()
        self.free.wait()

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return []

    def reader(self, context: TaskContext) -> SourceReader:
        raise NotImplementedError


class HangingInStop(Hanging):
    """Starts, and hangs when it is stopped."""

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        Path(settings["begun"]).touch()

    def stop(self) -> None:
        self.free.wait()
