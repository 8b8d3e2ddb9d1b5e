"""The SQL server, and the statements that run on it."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.demo import statements
from barnabas.demo.outcome import DemoFailedError
from barnabas.demo.parts.part import Part
from barnabas.demo.statements import SERVER, STATEMENT


class SqlServer(Part):
    """The server, which has a Spark."""

    name = SERVER

    def start(self) -> None:
        """Start it."""
        stage = self.stage
        self.say("working", "starting")
        spec = statements.server_spec(
            stage.workspace,
            stage.settings,
            stage.bootstrap,
            stage.access,
            keeps_warehouse=stage.lake is None,
        )
        stage.supervisor.start(spec, self)

    def await_ready(self) -> None:
        """Wait until it answers."""
        url = self.stage.settings.sql_url
        self._wait(lambda: statements.answers(url))
        self.stage.supervisor.set_ready(self.name)

    def execute_statements(self) -> None:
        """Send all statements, and wait until they run."""
        url = self.stage.settings.sql_url
        sending = statements.Sending(url)
        self._wait(lambda: not sending.is_alive())
        if sending.failure is not None:
            child = self.stage.supervisor.get(self.name)
            raise DemoFailedError(f"a statement failed: {sending.failure}", child)
        self.say("ready", f"{url}, statements running")
        self.stage.screen.say(f'Try a statement: barnabas sql --server {url} -e "{STATEMENT}"')

    def _wait(self, condition: Callable[[], bool]) -> None:
        child = self.stage.supervisor.get(self.name)
        assert child is not None

        def fail() -> None:
            raise DemoFailedError(f"the {self.name} did not start", child)

        self.say("working", "starting Spark")
        self.stage.supervisor.wait_while_told(child, condition, fail)

    def show(self) -> None:
        """Show how far the statements are behind."""
        self.say(*self.stage.reports.statements())
