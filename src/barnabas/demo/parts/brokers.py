"""The cluster: brokers of the demo's own, or those of somebody else."""

from __future__ import annotations

import os

from barnabas.app.secured import ADMIN
from barnabas.demo import broker, statements
from barnabas.demo.access import Access
from barnabas.demo.outcome import DemoFailedError
from barnabas.demo.parts.part import Part
from barnabas.demo.supervisor import READY_SECONDS_MAX


class Brokers(Part):
    """One node or more, each a process."""

    name = "broker"
    _nodes: tuple[str, ...] = ()

    def start(self) -> None:
        """Start all nodes, or only say where those of somebody else are asked."""
        stage = self.stage
        if not stage.is_own_cluster:
            self.say("working", f"asking {stage.bootstrap}")
            return
        self.say("working", "starting")
        try:
            if stage.settings.secure:
                stage.access = self._open_access()
            specs = broker.prepare(stage.workspace, stage.settings, stage.access)
        except broker.BrokerError as error:
            raise DemoFailedError(str(error)) from error
        for spec in specs:
            stage.supervisor.start(spec, self)
        self._nodes = tuple(spec.name for spec in specs)

    def await_ready(self) -> None:
        """Wait until the cluster knows all of its nodes."""
        first = self._nodes[0] if self._nodes else self.name
        self.stage.supervisor.wait(self.answers, READY_SECONDS_MAX, first)
        self.stage.supervisor.set_ready(*self._nodes)
        self.say("ready", self.where)

    @property
    def where(self) -> str:
        """The cluster's bootstrap servers."""
        return self.stage.bootstrap + ("" if self._nodes else " (not ours)")

    def answers(self) -> bool:
        """Return whether the cluster knows all of its nodes."""
        return broker.answers(self.stage.bootstrap, len(self._nodes) or 1)

    def _open_access(self) -> Access:
        """Find or make the users; this process is the admin."""
        try:
            access = Access(self.stage.workspace.directory, statements.SERVICE_ID)
            access.write_files(self.stage.bootstrap)
        except (ImportError, OSError, ValueError) as error:
            raise DemoFailedError(f"the cluster cannot be secured: {error}") from error
        os.environ.update(access.environment(ADMIN))
        return access
