"""One run of the demo: start the parts in order, watch them, end them, hold figures against truth.

    broker ─▶ registry ─▶ topics ─▶ dashboard ─▶ SQL server ─▶ generators ─▶ … ─▶ catch up, summary
    PostgreSQL ─▶ stations' table ─▶ worker of connectors ─┘
    S3 server ─▶ worker that writes the warehouse

Everything is in one directory, and each part continues from what it finds there: the generators
from their checkpoint, Spark from its own, the dashboard by reading the result topics again. So a
run can be killed at any point, as a whole or a single process, and started again.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryError

from barnabas.app.secured import ADMIN
from barnabas.demo import broker, catchup, commands, registry, statements
from barnabas.demo.access import Access, client_config
from barnabas.demo.capture import Capture, NoDatabaseError
from barnabas.demo.connectors import STATIONS_CONNECTOR, WORKER
from barnabas.demo.contract import START_TIME_MS, Plan, Truth
from barnabas.demo.database.place import DATABASE
from barnabas.demo.database.stations import DATABASE_NAME, DatabaseError
from barnabas.demo.exactness import check_results
from barnabas.demo.generators.publisher import PublishError
from barnabas.demo.generators.run import publish_tables
from barnabas.demo.lake.lake import Lake, NoLakeError
from barnabas.demo.lake.place import BUCKET
from barnabas.demo.lake.table import LakeError
from barnabas.demo.lake.worker import WAREHOUSE
from barnabas.demo.outside import SignalsTo
from barnabas.demo.processes import Child, Children, ChildSpec, describe_exit
from barnabas.demo.reports import Reports
from barnabas.demo.schemas import EVOLVED_FIELD, EVOLVING_TOPIC
from barnabas.demo.statements import SERVER, STATEMENT
from barnabas.demo.terminal import Screen
from barnabas.demo.topics import WAREHOUSE_CONNECTOR
from barnabas.demo.verdict import Check, all_right, compare, compare_lags
from barnabas.demo.workspace import Settings, Workspace

PARTS = [
    *("set-up", DATABASE, BUCKET, "broker", "registry", WORKER, "dashboard", SERVER),
    *(WAREHOUSE, "generators"),
]
EXIT_RIGHT, EXIT_FAILED, EXIT_WRONG = 0, 1, 5

_LOOK_SECONDS = 0.2
_READY_SECONDS_MAX = 90.0
_SPARK_SILENCE_SECONDS_MAX = 180.0
_STILL_SECONDS_MAX = 120.0
_CAPTURED_SECONDS_MAX = 60.0
_RESTARTS_MAX = 3


class DemoFailedError(Exception):
    """A part failed for good; `child` is the one whose log says why."""

    def __init__(self, message: str, child: Child | None = None) -> None:
        super().__init__(message)
        self.child = child


class DemoEndedError(Exception):
    """Somebody asked to end at once."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@dataclass(slots=True, frozen=True)
class RunOptions:
    """What one run was asked to do. `seconds` None: until Ctrl-C."""

    seconds: int | None
    bootstrap: str | None
    host: str


@dataclass(slots=True)
class Outcome:
    """How a run went. `failure` says what failed or that it was ended, and is empty otherwise."""

    exit_code: int
    url: str
    directory: str
    events: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    late: int = 0
    restarts: dict[str, int] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    failure: str = ""


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
        self._workspace = workspace
        self._settings = settings
        self._options = options
        self._screen = screen
        self._children = children
        self._bootstrap = options.bootstrap or settings.bootstrap
        self._access: Access | None = None
        self._capture: Capture | None = None
        self._lake: Lake | None = None
        self._ready: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._reports = Reports(workspace, self.url)
        self._finishing = False
        self._end_code: int | None = None

    @property
    def url(self) -> str:
        """Where the page is."""
        host = "127.0.0.1" if self._options.host in {"0.0.0.0", "::"} else self._options.host
        return f"http://{host}:{self._settings.dashboard_port}/"

    def run(self) -> Outcome:
        """Run to the end and say how it went. Leaves no child behind."""
        outcome = Outcome(EXIT_FAILED, self.url, self._workspace.directory)
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
                self._end_children()
        outcome.restarts = dict(self._restarts)
        return outcome

    # Setting up

    def _set_up(self) -> None:
        self._screen.headline("Barnabas demo: starting")
        self._screen.part("set-up", "done", self._workspace.directory)
        self._start_bucket()
        if self._options.bootstrap is None:
            self._start_database()
            self._start_broker()
        else:
            self._screen.part("broker", "working", f"asking {self._bootstrap}")
            self._wait(lambda: broker.answers(self._bootstrap), _READY_SECONDS_MAX, "broker")
            self._screen.part("broker", "ready", f"{self._bootstrap} (not ours)")
            self._start_database()
        self._start_registry()
        self._await_database()
        self._create_topics()
        self._start_worker()
        self._await_bucket()
        self._start_dashboard()
        self._await_stations()
        self._start_sql_server()
        self._execute_statements()
        self._start_warehouse()
        self._start_generators()

    def _start_database(self) -> None:
        """Start PostgreSQL, which comes up while the brokers do."""
        try:
            self._capture = Capture(self._workspace, self._settings, self._bootstrap)
        except NoDatabaseError as reason:
            self._go_without_database(str(reason))
        else:
            self._screen.part(DATABASE, "working", "starting")
            self._start(self._capture.place.spec())

    def _go_without_database(self, reason: str) -> None:
        self._capture = None
        text = f"none ({reason}): the generators write the stations themselves"
        self._screen.part(DATABASE, "waiting", text)

    def _await_database(self) -> None:
        """Wait for it; where it does not start, the demo does without."""
        capture = self._capture
        if capture is None:
            return
        self._wait(
            lambda: self._children.get(DATABASE) is None or capture.answers(),
            _READY_SECONDS_MAX,
            DATABASE,
        )
        if self._children.get(DATABASE) is None:
            return
        try:
            capture.prepare()
        except DatabaseError as error:
            raise DemoFailedError(str(error), self._children.get(DATABASE)) from error
        self._ready.add(DATABASE)
        where = f"postgresql://127.0.0.1:{self._settings.database_port}/{DATABASE_NAME}"
        self._screen.part(DATABASE, "ready", where)

    def _start_bucket(self) -> None:
        """Start the S3 server, which may have to be downloaded."""
        try:
            self._lake = Lake(self._workspace, self._settings, self._bootstrap)
        except NoLakeError as reason:
            self._go_without_lake(str(reason))
        else:
            self._screen.part(BUCKET, "working", "starting")
            self._start(self._lake.place.spec())

    def _go_without_lake(self, reason: str) -> None:
        self._lake = None
        self._screen.part(BUCKET, "waiting", f"none ({reason}): the warehouse is Parquet files")
        self._screen.part(WAREHOUSE, "waiting", "Parquet files, which the SQL server writes")

    def _await_bucket(self) -> None:
        """Wait for it; where it cannot be had, the warehouse is Parquet files."""
        lake = self._lake
        if lake is None:
            return
        child = self._children.get(BUCKET)
        assert child is not None

        def is_settled() -> bool:
            return self._children.get(BUCKET) is None or lake.answers()

        self._wait_while_told(child, is_settled, lambda: child.end())
        if self._lake is not None:
            self._ready.add(BUCKET)
            self._screen.part(BUCKET, "ready", lake.place.url)

    def _start_warehouse(self) -> None:
        """Start the worker last: its Spark may take its time, the events wait in their topic."""
        if self._lake is None:
            return
        self._screen.part(WAREHOUSE, "working", "starting")
        try:
            self._start(self._lake.worker_spec(self._access))
        except OSError as error:
            raise DemoFailedError(f"the warehouse cannot be set up: {error}") from error
        self._ready.add(WAREHOUSE)
        self._screen.part(WAREHOUSE, "working", f"{self._settings.warehouse_url}, starting Spark")

    def _start_worker(self) -> None:
        if self._capture is None:
            return
        self._screen.part(WORKER, "working", "starting")
        try:
            self._start(self._capture.worker_spec(self._access))
        except OSError as error:
            raise DemoFailedError(f"the connectors cannot be set up: {error}") from error

    def _await_stations(self) -> None:
        """Wait until the stations are in their topic: no event may miss its station."""
        capture = self._capture
        if capture is None:
            return
        self._screen.part(WORKER, "working", "capturing the stations")
        self._wait(capture.is_complete, _READY_SECONDS_MAX, WORKER)
        self._ready.add(WORKER)
        self._screen.part(WORKER, "ready", f"{self._settings.connect_url}, stations captured")

    def _start_broker(self) -> None:
        self._screen.part("broker", "working", "starting")
        try:
            if self._settings.secure:
                self._access = self._open_access()
            specs = broker.prepare(self._workspace, self._settings, self._access)
        except broker.BrokerError as error:
            raise DemoFailedError(str(error)) from error
        for spec in specs:
            self._start(spec)
        self._wait(
            lambda: broker.answers(self._bootstrap, len(specs)), _READY_SECONDS_MAX, specs[0].name
        )
        self._ready.update(spec.name for spec in specs)
        self._screen.part("broker", "ready", self._bootstrap)

    def _open_access(self) -> Access:
        """Find or make the users; this process is the admin."""
        try:
            access = Access(self._workspace.directory, statements.SERVICE_ID)
            access.write_files(self._bootstrap)
        except (ImportError, OSError, ValueError) as error:
            raise DemoFailedError(f"the cluster cannot be secured: {error}") from error
        os.environ.update(access.environment(ADMIN))
        return access

    def _start_registry(self) -> None:
        self._screen.part("registry", "working", "starting")
        url = self._settings.registry_url
        self._start(
            registry.registry_spec(
                self._settings,
                self._bootstrap,
                is_own_cluster=self._options.bootstrap is None,
                access=self._access,
            )
        )
        self._wait(lambda: registry.answers(url), _READY_SECONDS_MAX, "registry")
        self._ready.add("registry")
        self._screen.part("registry", "ready", url)

    def _create_topics(self) -> None:
        try:
            publish_tables(
                self._bootstrap,
                self._settings.registry_url,
                self._plan(),
                None if self._capture is None else self._capture.table,
            )
        except KafkaException as error:
            raise DemoFailedError(
                f"the topics could not be created: {error.args[0].str()}",
                self._children.get("broker"),
            ) from error
        except (DatabaseError, PublishError, SchemaRegistryError) as error:
            raise DemoFailedError(f"the station table could not be published: {error}") from error

    def _plan(self) -> Plan:
        settings = self._settings
        return {
            "seed": settings.seed,
            "rate": settings.rate,
            "acceleration": settings.acceleration,
            "seconds": None,
        }

    def _start_dashboard(self) -> None:
        self._screen.part("dashboard", "working", "starting")
        self._start(
            commands.dashboard_spec(
                self._settings,
                self._bootstrap,
                self._options.host,
                self._access,
                workers=[
                    *([] if self._capture is None else [self._settings.connect_url]),
                    *([] if self._lake is None else [self._settings.warehouse_url]),
                ],
                is_iceberg=self._lake is not None,
            )
        )
        self._wait(lambda: self._reports.page() is not None, _READY_SECONDS_MAX, "dashboard")
        self._ready.add("dashboard")
        self._screen.part("dashboard", "ready", self.url)

    def _start_sql_server(self) -> None:
        self._screen.part(SERVER, "working", "starting")
        url = self._settings.sql_url
        child = self._start(
            statements.server_spec(
                self._workspace,
                self._settings,
                self._bootstrap,
                self._access,
                keeps_warehouse=self._lake is None,
            )
        )
        self._wait_for_spark(child, lambda: statements.answers(url))
        self._ready.add(SERVER)

    def _execute_statements(self) -> None:
        url = self._settings.sql_url
        child = self._children.get(SERVER)
        assert child is not None
        sending = statements.Sending(url)
        self._wait_for_spark(child, lambda: not sending.is_alive())
        if sending.failure is not None:
            raise DemoFailedError(f"a statement failed: {sending.failure}", child)
        self._screen.part(SERVER, "ready", f"{url}, statements running")
        self._screen.say(f'Try a statement: barnabas sql --server {url} -e "{STATEMENT}"')

    def _wait_for_spark(self, child: Child, condition: Callable[[], bool]) -> None:
        def fail() -> None:
            raise DemoFailedError(f"the {SERVER} did not start", child)

        self._screen.part(SERVER, "working", "starting Spark")
        self._wait_while_told(child, condition, fail)

    def _wait_while_told(
        self, child: Child, condition: Callable[[], bool], give_up: Callable[[], object]
    ) -> None:
        """Wait as long as its log says something new: a download may take minutes."""
        last_words = ""
        silent_since = time.monotonic()

        def is_met() -> bool:
            nonlocal last_words, silent_since
            words = child.log_tail(1)
            if words != last_words:
                last_words, silent_since = words, time.monotonic()
                if words.startswith("download"):
                    self._screen.part(child.spec.name, "working", words)
            if time.monotonic() - silent_since > _SPARK_SILENCE_SECONDS_MAX:
                give_up()
            return condition()

        self._wait(is_met, math.inf, child.spec.name)

    def _start_generators(self) -> None:
        goal_seconds = self._goal_seconds()
        spec = commands.generator_spec(
            self._workspace,
            self._settings,
            self._bootstrap,
            goal_seconds,
            self._access,
            None if self._capture is None else self._capture.place,
        )
        self._start(spec)
        self._ready.add("generators")
        self._screen.part("generators", "working", "starting")

    def _goal_seconds(self) -> int | None:
        """Return up to which second of the directory's whole life the generators go.

        A bounded run that was killed is resumed to the goal that it had; a finished one is
        followed by so many seconds more.
        """
        settings = self._settings
        if self._options.seconds is None:
            settings.bounded_from_seconds = None
        elif settings.bounded_from_seconds is None:
            truth = self._reports.truth()
            reached_ms = truth["event_time_ms"] - START_TIME_MS if truth else 0
            settings.bounded_from_seconds = math.ceil(reached_ms / 1000 / settings.acceleration)
        self._workspace.save_settings(settings)
        if self._options.seconds is None:
            return None
        assert settings.bounded_from_seconds is not None
        return settings.bounded_from_seconds + self._options.seconds

    # Running

    def _follow(self) -> None:
        """Watch until the generators are done or Ctrl-C."""
        bounded = self._options.seconds is not None
        hint = "ends by itself" if bounded else "Ctrl-C ends it"
        while not self._finishing:
            if not self._is_running("generators"):
                return
            self._look()
            self._show_generators()
            fraction = self._reports.generators().get("fraction") if bounded else None
            self._screen.headline(f"Barnabas demo: running on {self.url} ({hint})", fraction)
            self._screen.part(SERVER, "ready", self._reports.lags_text())
            if self._capture is not None:
                text = self._reports.connector_text(STATIONS_CONNECTOR)
                self._screen.part(WORKER, "ready", text)
            if self._lake is not None:
                text = self._reports.connector_text(WAREHOUSE_CONNECTOR)
                self._screen.part(WAREHOUSE, "ready", text)

    def _finish(self, outcome: Outcome) -> None:
        """Stop the generators, wait until all is processed, print the summary."""
        self._screen.headline("Barnabas demo: catching up (Ctrl-C ends at once)")
        generators = self._children.get("generators")
        if generators is not None:
            generators.interrupt()
            self._wait(lambda: generators.exit_code() is not None, _READY_SECONDS_MAX, "generators")
            if generators.exit_code() != 0:
                raise DemoFailedError("the generators did not end well", generators)
            self._show_generators()
            self._children.end("generators")
        captured = self._await_captured()
        caught_up = self._catch_up()
        page, truth = self._reports.page(), self._reports.truth()
        if page is None or truth is None:
            raise DemoFailedError("there is no truth to compare with, or no page")
        self._screen.headline("Barnabas demo: done")
        self._screen.freeze()
        outcome.checks = compare(page["figures"], truth["figures"])
        outcome.checks += compare_lags(page["groups"], page["statements"])
        outcome.checks += captured
        outcome.checks += self._check_warehouse(truth)
        if self._settings.exactly_once:
            outcome.checks += self._check_results()
        outcome.events, outcome.duplicates = truth["events"], truth["duplicates"]
        outcome.late = truth["late"]
        self._screen.summary(outcome.checks)
        right = all_right(outcome.checks) and caught_up and truth["pending"] == 0
        self._say_outcome(truth, right, caught_up)
        if right and truth["done"]:
            self._settings.bounded_from_seconds = None
            self._workspace.save_settings(self._settings)
        outcome.exit_code = EXIT_RIGHT if right else EXIT_WRONG

    def _await_captured(self) -> list[Check]:
        """Wait a while for the stations' last changes, and say what came of them."""
        capture = self._capture
        if capture is None:
            return []
        deadline = time.monotonic() + _CAPTURED_SECONDS_MAX
        while not capture.is_complete() and time.monotonic() < deadline:
            self._look()
        try:
            checks = capture.checks()
        except DatabaseError as error:
            raise DemoFailedError(str(error), self._children.get(DATABASE)) from error
        self._screen.part(WORKER, "done", "every change captured")
        return checks

    def _catch_up(self) -> bool:
        """Wait until everything is processed and shown; False where nothing moves any more."""
        admin = AdminClient({**client_config(self._bootstrap), "log_level": 0})
        last = catchup.UNKNOWN
        moved_at = time.monotonic()
        while True:
            self._look()
            backlog = catchup.measure(admin, self._reports.page())
            if backlog.nothing:
                self._screen.part(SERVER, "done", "everything processed")
                self._screen.part("dashboard", "done", "everything shown")
                return True
            if backlog != last:
                last, moved_at = backlog, time.monotonic()
            left = [*self._reports.failed_statements(), f"{backlog.pipeline:,} records to process"]
            self._screen.part(SERVER, "working", "; ".join(left))
            self._screen.part("dashboard", "working", f"{backlog.dashboard:,} results to read")
            if time.monotonic() - moved_at > _STILL_SECONDS_MAX:
                return False

    def _check_warehouse(self, truth: Truth) -> list[Check]:
        if self._lake is None:
            return []
        try:
            return self._lake.checks(truth)
        except LakeError as error:
            raise DemoFailedError(str(error), self._children.get(BUCKET)) from error

    def _check_results(self) -> list[Check]:
        try:
            return check_results(self._bootstrap)
        except KafkaException as error:
            raise DemoFailedError(
                f"the results could not be read again: {error.args[0].str()}"
            ) from error

    def _say_outcome(self, truth: Truth, right: bool, caught_up: bool) -> None:
        events = sum(truth["events"].values())
        say = self._screen.say
        lake = self._lake
        warehouse = self._workspace.path("warehouse") if lake is None else lake.where
        say(
            f"{events:,} events, {truth['duplicates']:,} of them sent twice and {truth['late']:,} "
            f"late; warehouse: {warehouse}"
        )
        if right:
            say("[bold green]Every figure is right.[/]")
            return
        if not caught_up:
            say(
                f"[bold red]Not everything was processed: nothing moved for "
                f"{_STILL_SECONDS_MAX:.0f} s.[/] See {self._workspace.path('logs')}"
            )
        for failed in self._reports.failed_statements():
            say(f"{failed}; see {self._workspace.path('logs', f'{SERVER}.log')}")
        say("[bold red]Not every figure is right.[/]")

    # Looking

    def _look(self) -> None:
        """Rest a moment, then restart what died or end what was asked to."""
        time.sleep(_LOOK_SECONDS)
        if self._end_code is not None:
            raise DemoEndedError(self._end_code)
        for child in self._children.ended():
            if child.spec.name == "generators" and child.exit_code() == 0:
                continue
            self._revive(child)
        self._reports.refresh_page()

    def _revive(self, child: Child) -> None:
        """Start a part again that died although it had been ready; at most three times each."""
        name = child.spec.name
        how = describe_exit(child.exit_code() or 0)
        if name == DATABASE and name not in self._ready:
            self._children.end(name)
            self._go_without_database(f"it does not start, see {child.log_path}")
            return
        if name == BUCKET and name not in self._ready:
            self._children.end(name)
            self._go_without_lake(f"{child.log_tail(1)}; see {child.log_path}")
            return
        count = self._restarts.get(name, 0) + 1
        if name not in self._ready or count > _RESTARTS_MAX or self._finishing_generators(name):
            raise DemoFailedError(f"the {name} process ended by itself ({how})", child)
        self._restarts[name] = count
        self._screen.say(
            f"The {name} process ended ({how}); it goes on where it was "
            f"(restart {count} of {_RESTARTS_MAX})."
        )
        child.end()  # what is left of its process group
        self._start(child.spec)

    def _finishing_generators(self, name: str) -> bool:
        return self._finishing and name == "generators"

    def _wait(self, condition: Callable[[], bool], seconds_max: float, part: str) -> None:
        deadline = time.monotonic() + seconds_max
        while not condition():
            self._look()
            if time.monotonic() > deadline:
                raise DemoFailedError(
                    f"{part}: not ready after {seconds_max:.0f} s", self._children.get(part)
                )

    def _show_generators(self) -> None:
        progress = self._reports.generators()
        if not progress:
            return
        when = time.strftime("%a %d %b %H:%M", time.gmtime(progress["event_time_ms"] / 1000))
        text = f"{progress['published']:,} events, event time {when}"
        self._screen.part("generators", "done" if progress["done"] else "ready", text)
        if progress["refused"]:
            self._screen.part("registry", "ready", schemas_text(self._settings, progress))

    # Processes and signals

    def _start(self, spec: ChildSpec) -> Child:
        return self._children.start(spec)

    def _is_running(self, name: str) -> bool:
        child = self._children.get(name)
        return child is not None and child.exit_code() != 0

    def _end_children(self) -> None:
        with SignalsTo(lambda number: None):
            self._children.end_all()

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGINT and not self._finishing and "generators" in self._ready:
            self._finishing = True
        else:
            self._end_code = 128 + number

    def _show(self, failure: DemoFailedError) -> None:
        child = failure.child
        if child is None:
            self._screen.freeze()
            self._screen.say(f"[bold red]{failure}[/]")
            return
        self._screen.part(child.spec.name, "failed", str(failure))
        self._screen.freeze()
        self._screen.failure(str(failure), child.spec.advice, child.log_path, child.log_tail())


def schemas_text(settings: Settings, progress: dict[str, Any]) -> str:
    """Say how the schemas have evolved, and what the registry refused."""
    since = time.strftime("%a %d %b %H:%M", time.gmtime(progress["evolved_ms"] / 1000))
    return (
        f"{settings.registry_url}, {EVOLVING_TOPIC} evolved at {since}: + {EVOLVED_FIELD}; "
        f"an incompatible change was refused: {progress['refused']}"
    )
