"""The servers of a run: the cluster, the schema registry, the SQL server, the page and the console.

Brokers are the demo's own, or those of somebody else. The registry makes the topics, which want
their schemas in it; the SQL server takes the statements.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.schema_registry import SchemaRegistryError

from barnabas.app.secured import ADMIN
from barnabas.base.addresses import is_loopback
from barnabas.demo import broker, commands, statements
from barnabas.demo.access import Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.contract import Plan
from barnabas.demo.database.stations import DatabaseError
from barnabas.demo.generators.publisher import PublishError
from barnabas.demo.generators.run import publish_tables
from barnabas.demo.outcome import DemoFailedError
from barnabas.demo.outside import fetch_json
from barnabas.demo.parts.part import Part
from barnabas.demo.processes import Child, ChildSpec
from barnabas.demo.schemas import EVOLVED_FIELD, EVOLVING_TOPIC
from barnabas.demo.statements import SERVER, STATEMENT
from barnabas.demo.supervisor import READY_SECONDS_MAX
from barnabas.demo.workspace import Settings
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

REGISTRY_OVERRIDES = {
    "host.name": "127.0.0.1",
    # A write waits while a broker that was killed is replaced.
    "kafkastore.timeout.ms": "10000",
}
REGISTRY_ELSEWHERE = {
    "kafkastore.topic": "_barnabas-demo-schemas",
    "schema.registry.group.id": "barnabas-demo-schema-registry",
}
"""On a cluster that is not the demo's it keeps away from a registry that may be there already."""


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


class Registry(Part):
    """The registry's process."""

    name = "registry"

    def start(self) -> None:
        """Start it."""
        stage = self.stage
        self.say("working", "starting")
        spec = registry_spec(
            stage.settings,
            stage.bootstrap,
            is_own_cluster=stage.is_own_cluster,
            access=stage.access,
        )
        stage.supervisor.start(spec, self)

    @property
    def where(self) -> str:
        """Its address, and what became of the schemas."""
        progress = self.stage.reports.generators()
        if progress and progress["refused"]:
            return schemas_text(self.stage.settings, progress)
        return self.stage.settings.registry_url

    def answers(self) -> bool:
        """Return whether it answers, asked once."""
        try:
            RegistryClient(self.stage.settings.registry_url).subjects()
        except RegistryError:
            return False
        return True

    def create_topics(self) -> None:
        """Create the topics, and publish the stations to their table or topic."""
        stage = self.stage
        table = None if stage.capture is None else stage.capture.table
        try:
            publish_tables(stage.bootstrap, stage.settings.registry_url, self._plan(), table)
        except KafkaException as error:
            raise DemoFailedError(
                f"the topics could not be created: {error.args[0].str()}",
                stage.supervisor.get("broker"),
            ) from error
        except (DatabaseError, PublishError, SchemaRegistryError) as error:
            raise DemoFailedError(f"the station table could not be published: {error}") from error

    def _plan(self) -> Plan:
        settings = self.stage.settings
        return {
            "seed": settings.seed,
            "rate": settings.rate,
            "acceleration": settings.acceleration,
            "seconds": None,
        }

    def show(self) -> None:
        """Show what became of the schemas."""
        super().show()
        if not self._is_recovering:
            self.say("ready", self.where)


def schemas_text(settings: Settings, progress: dict[str, Any]) -> str:
    """Say how the schemas have evolved, and what the registry refused."""
    since = time.strftime("%a %d %b %H:%M", time.gmtime(progress["evolved_ms"] / 1000))
    return (
        f"{settings.registry_url}, {EVOLVING_TOPIC} evolved at {since}: + {EVOLVED_FIELD}; "
        f"an incompatible change was refused: {progress['refused']}"
    )


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


class Dashboard(Part):
    """The web server."""

    name = "dashboard"

    def start(self) -> None:
        """Start it, with the workers that there are to ask."""
        stage = self.stage
        self.say("working", "starting")
        spec = commands.dashboard_spec(
            stage.settings,
            stage.bootstrap,
            stage.options.host,
            stage.access,
            workers=stage.workers,
            is_iceberg=stage.lake is not None,
            console_url=self._console_url,
        )
        stage.supervisor.start(spec, self)

    @property
    def _console_url(self) -> str | None:
        """The console's address, unless the page is for browsers that cannot reach it."""
        settings = self.stage.settings
        is_near = settings.console_port is not None and is_loopback(self.stage.options.host)
        return settings.console_url if is_near else None

    @property
    def where(self) -> str:
        """The page's address."""
        return self.stage.url

    def answers(self) -> bool:
        """Return whether the page answers, asked once."""
        return self.stage.reports.page() is not None


class Console(Part):
    """The console of the demo's cluster and services."""

    name = "console"

    def start(self) -> None:
        """Start it; nobody waits for it."""
        stage = self.stage
        if stage.settings.console_port is None:
            self.say("waiting", "none: this directory is of before there was one")
            return
        self.say("working", "starting")
        spec = commands.console_spec(
            stage.settings, stage.bootstrap, stage.access, workers=stage.workers
        )
        stage.supervisor.start(spec, self)
        self._is_recovering = True

    def does_without(self, child: Child) -> bool:
        """No figure is the console's."""
        self._is_recovering = False
        self.say("waiting", f"none: it does not start, see {child.log_path}")
        return True

    @property
    def where(self) -> str:
        """The console's address."""
        return f"{self.stage.settings.console_url}/"

    def answers(self) -> bool:
        """Return whether its pages are there, asked once."""
        if fetch_json(f"{self.where}api/me") is None:
            return False
        self.stage.supervisor.set_ready(self.name)
        return True


def registry_spec(
    settings: Settings, bootstrap: str, *, is_own_cluster: bool, access: Access | None = None
) -> ChildSpec:
    """Return how to start the registry."""
    command = [*BARNABAS, "registry", "start", "--bootstrap-servers", bootstrap]
    command += [] if access is None else [access.registry_file]
    command += ["--listeners", settings.registry_url]
    for key, value in (REGISTRY_OVERRIDES | ({} if is_own_cluster else REGISTRY_ELSEWHERE)).items():
        command += ["--override", f"{key}={value}"]
    return ChildSpec(
        "registry",
        command,
        grace_seconds=10.0,
        advice="See the log; the registry needs its topic, which the cluster may refuse.",
    )
