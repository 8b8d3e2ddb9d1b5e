"""A part of a run, and the state that all parts of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from barnabas.demo.access import Access
from barnabas.demo.capture import Capture
from barnabas.demo.lake.lake import Lake
from barnabas.demo.processes import Child
from barnabas.demo.reports import Reports
from barnabas.demo.supervisor import READY_SECONDS_MAX, Supervisor
from barnabas.demo.terminal import Screen
from barnabas.demo.workspace import Settings, Workspace


@dataclass(slots=True, frozen=True)
class RunOptions:
    """The options of one run. `seconds` None: until Ctrl-C."""

    seconds: int | None
    bootstrap: str | None
    host: str


@dataclass(slots=True)
class Stage:
    """The shared state of one run's parts."""

    workspace: Workspace
    settings: Settings
    options: RunOptions
    screen: Screen
    supervisor: Supervisor
    reports: Reports
    url: str
    """The address of its page."""
    access: Access | None = None
    """None where the cluster is not a secure one."""
    capture: Capture | None = None
    """None where there is no PostgreSQL."""
    lake: Lake | None = None
    """None where the warehouse is Parquet files."""

    @property
    def bootstrap(self) -> str:
        """The cluster's bootstrap servers."""
        return self.options.bootstrap or self.settings.bootstrap

    @property
    def workers(self) -> list[str]:
        """The URLs of the workers of connectors that run."""
        return [
            *([] if self.capture is None else [self.settings.connect_url]),
            *([] if self.lake is None else [self.settings.warehouse_url]),
        ]

    @property
    def is_own_cluster(self) -> bool:
        """True if the demo starts the cluster."""
        return self.options.bootstrap is None


class Part:
    """One part. A subclass has `start`, which raises DemoFailedError."""

    name: ClassVar[str]
    """As the terminal shows it; mostly that of its process, too."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._is_recovering = False

    @property
    def where(self) -> str:
        """The text that is shown once the part is ready: mostly an address."""
        return ""

    def say(self, state: str, text: str) -> None:
        """Show how it is doing: waiting, working, ready, done or failed."""
        self.stage.screen.part(self.name, state, text)

    def await_ready(self) -> None:
        """Wait until it answers. Raises DemoFailedError, DemoEndedError."""
        self.stage.supervisor.wait(self.answers, READY_SECONDS_MAX, self.name)
        self.stage.supervisor.set_ready(self.name)
        self.say("ready", self.where)

    def does_without(self, child: Child) -> bool:
        """Go on without a process that died before it was ready; False where that cannot be."""
        return False

    def recover(self) -> None:
        """Note that a process of it died and was started again."""
        self._is_recovering = True
        self.say("working", "starting again")

    def answers(self) -> bool:
        """Return whether it does its work, asked once."""
        return True

    def show(self) -> None:
        """Show how it is doing while the generators run."""
        if self._is_recovering and self.answers():
            self._is_recovering = False
            self.say("ready", self.where)
