"""The warehouse as a table of Iceberg: the bucket that it is in, and the worker that writes it.

If the bucket is not available, the warehouse is Parquet files, which the SQL server writes.
"""

from __future__ import annotations

from barnabas.demo.contract import Truth
from barnabas.demo.lake.lake import Lake, LakeError, NoLakeError
from barnabas.demo.lake.place import BUCKET
from barnabas.demo.lake.worker import WAREHOUSE
from barnabas.demo.outcome import Check, DemoFailedError, all_right
from barnabas.demo.parts.part import Part
from barnabas.demo.processes import Child
from barnabas.demo.topics import WAREHOUSE_CONNECTOR


class Bucket(Part):
    """The S3 server."""

    name = BUCKET

    def start(self) -> None:
        """Start it; it may have to be downloaded."""
        stage = self.stage
        try:
            stage.lake = Lake(stage.workspace, stage.settings, stage.bootstrap)
        except NoLakeError as reason:
            self._go_without(str(reason))
        else:
            self.say("working", "starting")
            stage.supervisor.start(stage.lake.place.spec(), self)

    def does_without(self, child: Child) -> bool:
        """The warehouse is Parquet files."""
        self._go_without(f"{child.log_tail(1)}; see {child.log_path}")
        return True

    def _go_without(self, reason: str) -> None:
        self.stage.lake = None
        self.say("waiting", f"none ({reason}): the warehouse is Parquet files")
        text = "Parquet files, which the SQL server writes"
        self.stage.screen.part(WAREHOUSE, "waiting", text)

    def await_ready(self) -> None:
        """Wait for it; if it is not available, the demo runs without it."""
        stage = self.stage
        lake, child = stage.lake, stage.supervisor.get(self.name)
        if lake is None:
            return
        assert child is not None
        stage.supervisor.wait_while_told(
            child, lambda: stage.lake is None or lake.answers(), child.end
        )
        if stage.lake is not None:
            stage.supervisor.set_ready(self.name)
            self.say("ready", self.where)

    @property
    def where(self) -> str:
        """The server's address."""
        return "" if self.stage.lake is None else self.stage.lake.place.url

    def answers(self) -> bool:
        """Return whether the server takes connections, asked once."""
        return self.stage.lake is not None and self.stage.lake.answers()


class Warehouse(Part):
    """The worker of the connector from topic to table."""

    name = WAREHOUSE

    def start(self) -> None:
        """Start it last: its Spark may take its time, the events wait in their topic."""
        stage = self.stage
        if stage.lake is None:
            return
        self.say("working", "starting")
        try:
            stage.supervisor.start(stage.lake.worker_spec(stage.access), self)
        except OSError as error:
            raise DemoFailedError(f"the warehouse cannot be set up: {error}") from error
        stage.supervisor.set_ready(self.name)
        self.say("working", f"{stage.settings.warehouse_url}, starting Spark")

    def show(self) -> None:
        """Show the connector's state."""
        if self.stage.lake is not None:
            self.say(*self.stage.reports.connector(WAREHOUSE_CONNECTOR))

    @property
    def where(self) -> str:
        """A hint for users: what to look for, and where."""
        lake = self.stage.lake
        return self.stage.workspace.path("warehouse") if lake is None else lake.where

    def checks(self, truth: Truth) -> list[Check]:
        """Hold the table against the truth."""
        stage = self.stage
        if stage.lake is None:
            return []
        try:
            checks = stage.lake.checks(truth)
        except LakeError as error:
            raise DemoFailedError(str(error), stage.supervisor.get(BUCKET)) from error
        if all_right(checks):
            self.say("done", "every event written")
        else:
            self.say("failed", "not every event written once")
        return checks
