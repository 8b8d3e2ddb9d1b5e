"""The demo's SQL server: the process, and the statements of `demo/sql` and their state."""

from __future__ import annotations

import os
import shutil
import threading
import time
from importlib import resources
from typing import Final

from barnabas.demo import sql
from barnabas.demo.access import Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace
from barnabas.sql.shell.client import Context, KsqlClient, ShellError
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import CreateAsSelect

FILES: Final = ("retail.sql", "charging.sql")
FILES_WITH_RECORDS: Final = {"charging.sql"}
"""Their queries have records to read before the first event: the station table's."""
SERVICE_ID: Final = "barnabas_demo_"
SERVER: Final = "sql-server"
"""The part's name."""
STATEMENT: Final = "SELECT * FROM station_availability WHERE station_id = 'st-0001';"
"""A pull query to try."""

PROPERTIES: Final = {
    "ksql.service.id": SERVICE_ID,
    "ksql.streams.auto.offset.reset": "earliest",
    "barnabas.sql.pipelines": "barnabas.demo.spark.pipeline",
    # Some hundred events a second, on two cores that do everything else too.
    "ksql.runtime.feature.shared.enabled": "true",
    "barnabas.sql.spark.tasks": "1",
    # Spark's workers may start too late where there is much to do, and the demo waits two minutes.
    "ksql.query.retry.backoff.max.ms": "15000",
}
EXACTLY_ONCE: Final = {
    "ksql.streams.processing.guarantee": "exactly_once_v2",
    # Micro-batches end with what there is then, and each costs Spark as much.
    "barnabas.sql.spark.trigger.ms": "1000",
    # So that the demo can count them at its end.
    "barnabas.sql.mark.results": "true",
}
_TIMEOUT_SECONDS: Final = 600.0
_FIRST_BATCH_SECONDS_MAX: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_CONTEXT: Final = Context({}, {})


class StatementError(Exception):
    """The server does not take a statement; the message is its own."""


def server_spec(
    workspace: Workspace,
    settings: Settings,
    bootstrap: str,
    access: Access | None = None,
    *,
    keeps_warehouse: bool,
) -> ChildSpec:
    """Return how to start the SQL server, with its functions in place."""
    properties = {
        **PROPERTIES,
        **(EXACTLY_ONCE if settings.exactly_once else {}),
        "ksql.extension.dir": install_functions(workspace.path("functions")),
        "ksql.streams.state.dir": workspace.path("checkpoints"),
        **({"barnabas.demo.warehouse": workspace.path("warehouse")} if keeps_warehouse else {}),
    }
    command = [*BARNABAS, "sql", "server", "--bootstrap-servers", bootstrap]
    command += [] if access is None else [access.sql_file]
    command += ["--listeners", settings.sql_url, "--schema-registry-url", settings.registry_url]
    for key, value in properties.items():
        command += ["--override", f"{key}={value}"]
    return ChildSpec(
        SERVER,
        command,
        grace_seconds=25.0,
        advice="See the log. If packages are missing: the first start of Spark downloads its Kafka "
        "connector and Avro functions, and needs the network.",
    )


def install_functions(directory: str) -> str:
    """Copy our functions of SQL to where nobody else may write, which the server insists on."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory, mode=0o755)
    for source in (resources.files(sql) / "functions").iterdir():
        if source.name.endswith(".py"):
            path = os.path.join(directory, source.name)
            with open(path, "w", encoding="utf-8") as out:
                out.write(source.read_text(encoding="utf-8"))
            os.chmod(path, 0o644)
    return directory


def text_of(name: str) -> str:
    """Return a file of statements."""
    return (resources.files(sql) / name).read_text(encoding="utf-8")


def answers(url: str) -> bool:
    """Return whether the server answers, asked once."""
    client = KsqlClient(url)
    try:
        client.info()
    except ShellError:
        return False
    finally:
        client.close()
    return True


class Sending(threading.Thread):
    """`send` in a thread that ends with the process, however long the server takes."""

    def __init__(self, url: str) -> None:
        super().__init__(name="statements", daemon=True)
        self._url = url
        self.failure: StatementError | None = None
        self.start()

    def run(self) -> None:
        """Send them, and keep what goes wrong."""
        try:
            send(self._url)
        except StatementError as error:
            self.failure = error


def send(url: str) -> None:
    """Send all statements; those that the server has already change nothing.

    Returns when all are executed. The first query waits for Spark's start. A query that finds
    records starts Python workers at once: the next statement waits until it has read them, as all
    together take longer than Spark gives them. Raises StatementError.
    """
    client = KsqlClient(url, timeout_s=_TIMEOUT_SECONDS)
    try:
        for name in FILES:
            for parsed in parse(text_of(name)):
                for answer in client.statement(parsed.text, _CONTEXT):
                    status = answer.get("commandStatus") or {"status": "SUCCESS"}
                    if status["status"] != "SUCCESS":
                        raise StatementError(f"{name}: {status.get('message')}")
                if name in FILES_WITH_RECORDS and isinstance(parsed.statement, CreateAsSelect):
                    _await_first_batch(client, parsed.statement.name)
    except ShellError as error:
        raise StatementError(str(error)) from error
    finally:
        client.close()


def _await_first_batch(client: KsqlClient, table: str) -> None:
    """Wait until a query has read something, or has failed, or for a minute."""
    deadline = time.monotonic() + _FIRST_BATCH_SECONDS_MAX
    while time.monotonic() < deadline:
        (answer,) = client.statement(f"DESCRIBE `{table}` EXTENDED;", _CONTEXT)
        described = answer["sourceDescription"]
        has_read = any(one["topicSummaries"] for one in described["queryOffsetSummaries"])
        if has_read or any(one["state"] != "RUNNING" for one in described["writeQueries"]):
            return
        time.sleep(_LOOK_SECONDS)
