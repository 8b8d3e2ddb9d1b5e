"""A source that does not come back from its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from barnabas.connect.connectors.base import (
    ConnectorContext,
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)

HANGING = f"{__name__}.Hanging"


class Hanging(SourceConnector):
    """Makes the file `begun`, and hangs."""

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        Path(settings["begun"]).touch()
        Event().wait()

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        raise NotImplementedError

    def reader(self, context: TaskContext) -> SourceReader:
        raise NotImplementedError
