"""The stations: their table in PostgreSQL, and the worker that captures its changes.

Where there is no PostgreSQL, the generators write the stations to their topic themselves.
"""

from __future__ import annotations

import time
from typing import Final

from barnabas.demo.capture import Capture, NoDatabaseError
from barnabas.demo.connectors import STATIONS_CONNECTOR, WORKER
from barnabas.demo.database.place import DATABASE
from barnabas.demo.database.stations import DATABASE_NAME, DatabaseError
from barnabas.demo.outcome import Check, DemoFailedError, all_right
from barnabas.demo.parts.part import Part
from barnabas.demo.processes import Child
from barnabas.demo.supervisor import READY_SECONDS_MAX

_CAPTURED_SECONDS_MAX: Final = 60.0


class Database(Part):
    """PostgreSQL."""

    name = DATABASE

    def start(self) -> None:
        """Start it; it comes up while other parts do."""
        stage = self.stage
        try:
            stage.capture = Capture(stage.workspace, stage.settings, stage.bootstrap)
        except NoDatabaseError as reason:
            self._go_without(str(reason))
        else:
            self.say("working", "starting")
            stage.supervisor.start(stage.capture.place.spec(), self)

    def does_without(self, child: Child) -> bool:
        """The generators write the stations themselves."""
        self._go_without(f"it does not start, see {child.log_path}")
        return True

    def _go_without(self, reason: str) -> None:
        self.stage.capture = None
        self.say("waiting", f"none ({reason}): the generators write the stations themselves")

    def await_ready(self) -> None:
        """Wait for it; where it does not start, the demo does without."""
        stage = self.stage
        capture = stage.capture
        if capture is None:
            return
        stage.supervisor.wait(
            lambda: stage.capture is None or capture.answers(), READY_SECONDS_MAX, self.name
        )
        if stage.capture is None:
            return
        try:
            capture.prepare()
        except DatabaseError as error:
            raise DemoFailedError(str(error), stage.supervisor.get(self.name)) from error
        stage.supervisor.set_ready(self.name)
        self.say("ready", self.where)

    @property
    def where(self) -> str:
        """The database's address."""
        return f"postgresql://127.0.0.1:{self.stage.settings.database_port}/{DATABASE_NAME}"

    def answers(self) -> bool:
        """Return whether the server takes connections, asked once."""
        return self.stage.capture is not None and self.stage.capture.answers()


class Stations(Part):
    """The worker of the connector from table to topic."""

    name = WORKER

    def start(self) -> None:
        """Start it."""
        stage = self.stage
        if stage.capture is None:
            return
        self.say("working", "starting")
        try:
            stage.supervisor.start(stage.capture.worker_spec(stage.access), self)
        except OSError as error:
            raise DemoFailedError(f"the connectors cannot be set up: {error}") from error

    def await_ready(self) -> None:
        """Wait until the stations are in their topic: no event may miss its station."""
        stage = self.stage
        if stage.capture is None:
            return
        self.say("working", "capturing the stations")
        stage.supervisor.wait(stage.capture.is_complete, READY_SECONDS_MAX, self.name)
        stage.supervisor.set_ready(self.name)
        self.say("ready", f"{stage.settings.connect_url}, stations captured")

    def show(self) -> None:
        """Show the connector's state."""
        if self.stage.capture is not None:
            self.say(*self.stage.reports.connector(STATIONS_CONNECTOR))

    def checks(self) -> list[Check]:
        """Wait a while for the stations' last changes, and say what came of them."""
        stage = self.stage
        if stage.capture is None:
            return []
        deadline = time.monotonic() + _CAPTURED_SECONDS_MAX
        while not stage.capture.is_complete() and time.monotonic() < deadline:
            stage.supervisor.look()
        try:
            checks = stage.capture.checks()
        except DatabaseError as error:
            raise DemoFailedError(str(error), stage.supervisor.get(DATABASE)) from error
        if all_right(checks):
            self.say("done", "every change captured")
        else:
            self.say("failed", "not every change captured")
        return checks
