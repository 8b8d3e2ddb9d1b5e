"""One run of the demo: start the parts in order, watch them, end them, hold figures against truth.

    broker ─▶ registry ─▶ topics ─▶ dashboard ─▶ SQL server ─▶ generators ─▶ … ─▶ catch up, summary
    PostgreSQL ─▶ stations' table ─▶ worker of connectors ─┘└─▶ console
    S3 server ─▶ worker that writes the warehouse

Everything is in one directory, and each part continues from what it finds there: the generators
from their checkpoint, Spark from its own, the dashboard by reading the result topics again. So a
run can be killed at any point, as a whole or a single process, and started again.

The parts are in `parts/`, what restarts them is `supervisor.py`, and the end is `closing.py`.
"""

from __future__ import annotations

import signal

from barnabas.demo.closing import Closing
from barnabas.demo.outcome import EXIT_FAILED, DemoEndedError, DemoFailedError, Outcome
from barnabas.demo.outside import SignalsTo
from barnabas.demo.parts.generators import Generators
from barnabas.demo.parts.part import Part, RunOptions, Stage
from barnabas.demo.parts.servers import Brokers, Console, Dashboard, Registry, SqlServer
from barnabas.demo.parts.stations import Database, Stations
from barnabas.demo.parts.warehouse import Bucket, Warehouse
from barnabas.demo.processes import Children
from barnabas.demo.reports import Reports
from barnabas.demo.supervisor import Supervisor
from barnabas.demo.terminal import Screen
from barnabas.demo.workspace import Settings, Workspace

_SHOWN: tuple[type[Part], ...] = (
    *(Database, Bucket, Brokers, Registry, Stations, Dashboard, Console, SqlServer),
    *(Warehouse, Generators),
)
PARTS = ["set-up", *(part.name for part in _SHOWN)]
"""As the terminal shows them."""


class DemoRun:
    """A run in a locked workspace."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        options: RunOptions,
        children: Children,
        screen: Screen,
    ) -> None:
        host = "127.0.0.1" if options.host in {"0.0.0.0", "::"} else options.host
        url = f"http://{host}:{settings.dashboard_port}/"
        reports = Reports(workspace, url)
        self._screen = screen
        self._supervisor = Supervisor(children, screen, self._look)
        self._stage = stage = Stage(
            workspace, settings, options, screen, self._supervisor, reports, url
        )
        self._database, self._stations = Database(stage), Stations(stage)
        self._bucket, self._warehouse = Bucket(stage), Warehouse(stage)
        self._brokers, self._registry = Brokers(stage), Registry(stage)
        self._dashboard, self._sql_server = Dashboard(stage), SqlServer(stage)
        self._console, self._generators = Console(stage), Generators(stage)
        self._servers: tuple[Part, ...] = (
            *(self._database, self._bucket, self._brokers, self._registry, self._console),
        )
        self._finishing = False

    def run(self) -> Outcome:
        """Run to the end and say how it went. Leaves no child behind."""
        outcome = Outcome(EXIT_FAILED, self._stage.url, self._stage.workspace.directory)
        with SignalsTo(self._on_signal), self._screen:
            try:
                self._set_up()
                self._follow()
                self._finish(outcome)
            except DemoEndedError as ended:
                self._screen.freeze()
                self._screen.say("Ended; the same command goes on from here.")
                outcome.exit_code, outcome.failure = ended.exit_code, "ended by a signal"
            except DemoFailedError as failure:
                self._show(failure)
                outcome.exit_code, outcome.failure = EXIT_FAILED, str(failure)
            finally:
                self._supervisor.end_all()
        outcome.restarts = self._supervisor.restarts
        return outcome

    def _set_up(self) -> None:
        """Start what others need first; what takes long and nobody waits for yet, before that."""
        self._screen.headline("Barnabas demo: starting")
        self._screen.part("set-up", "done", self._stage.workspace.directory)
        self._bucket.start()
        if self._stage.is_own_cluster:
            self._database.start()
        self._brokers.start()
        self._brokers.await_ready()
        if not self._stage.is_own_cluster:  # now that there is somebody to go on with
            self._database.start()
        self._registry.start()
        self._registry.await_ready()
        self._database.await_ready()
        self._registry.create_topics()
        self._stations.start()
        self._bucket.await_ready()
        self._dashboard.start()
        self._console.start()
        self._dashboard.await_ready()
        self._stations.await_ready()
        self._sql_server.start()
        self._sql_server.await_ready()
        self._sql_server.execute_statements()
        self._warehouse.start()
        self._generators.start()

    def _look(self) -> None:
        """At each look: refresh the page, and show the console as soon as it answers."""
        self._stage.reports.refresh_page()
        self._console.show()

    def _follow(self) -> None:
        """Watch until the generators are done or Ctrl-C."""
        bounded = self._stage.options.seconds is not None
        hint = "ends by itself" if bounded else "Ctrl-C ends it"
        headline = f"Barnabas demo: running on {self._stage.url} ({hint})"
        while not (self._finishing or self._generators.are_done):
            self._supervisor.look()
            self._screen.headline(headline, self._generators.fraction)
            self._show_parts()

    def _show_parts(self) -> None:
        for part in (
            *(self._generators, self._sql_server, self._dashboard),
            *(self._stations, self._warehouse, *self._servers),
        ):
            part.show()

    def _finish(self, outcome: Outcome) -> None:
        """Stop the generators, wait until all is processed, print the summary."""
        self._screen.headline("Barnabas demo: catching up (Ctrl-C ends at once)")
        self._generators.end()
        Closing(self._stage, self._stations, self._warehouse, self._servers).close(outcome)

    def _on_signal(self, number: int) -> None:
        is_first = not self._finishing and self._supervisor.is_ready(Generators.name)
        if number == signal.SIGINT and is_first:
            self._finishing = True
        else:
            self._supervisor.ask_to_end(128 + number)

    def _show(self, failure: DemoFailedError) -> None:
        child = failure.child
        if child is None:
            self._screen.freeze()
            self._screen.say(f"[bold red]{failure}[/]")
            return
        part = self._supervisor.owner_of(child).name
        self._screen.part(part, "failed", str(failure))
        self._screen.freeze()
        self._screen.failure(str(failure), child.spec.advice, child.log_path, child.log_tail())
