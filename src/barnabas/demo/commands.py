"""Start of the demo's other processes, and checks of what they need."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence

from barnabas.base.errors import install_hint
from barnabas.demo.access import DASHBOARD, GENERATORS, Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.database.place import OPERATOR, PASSWORD_VARIABLE, Place
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace

MODULES = (
    *("pyspark", "pyarrow", "starlette", "uvicorn", "hypercorn"),
    *("aiokafka", "fastavro", "httptools", "httpx", "jsonschema_specifications"),
    "psycopg",
)
"""Some of what the extra `demo` installs: one of each thing that it is made of."""


class MissingError(Exception):
    """Something that the demo needs is not installed; the message is one line with the remedy."""


def check_requirements() -> None:
    """Raise MissingError for the first thing that is missing: a module of the extra, or Java."""
    for module in MODULES:
        if importlib.util.find_spec(module) is None:
            raise MissingError(
                f"the demo needs {module}, which is not installed: {install_hint('demo')}"
            )
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME ({home}) has none" if home else "there is none on the PATH"
        raise MissingError(
            f"the demo's Spark needs Java 17 or later, and {where}: "
            "apt-get install openjdk-17-jre-headless (or set JAVA_HOME)"
        )


def generator_spec(
    workspace: Workspace,
    settings: Settings,
    bootstrap: str,
    goal_seconds: int | None,
    access: Access | None = None,
    database: Place | None = None,
) -> ChildSpec:
    """Return how to start the generators; `goal_seconds` counts from the directory's first run."""
    environment = {} if access is None else access.environment(GENERATORS)
    command = [sys.executable, "-m", "barnabas.demo.generators", "--bootstrap", bootstrap]
    command += ["--registry", settings.registry_url]
    command += ["--state-dir", workspace.path("generators"), "--seed", str(settings.seed)]
    command += ["--rate", str(settings.rate), "--acceleration", str(settings.acceleration)]
    if goal_seconds is not None:
        command += ["--seconds", str(goal_seconds)]
    if database is not None:
        command += ["--database-port", str(settings.database_port)]
        environment[PASSWORD_VARIABLE] = database.password_file(OPERATOR)
    return ChildSpec(
        "generators",
        command,
        environment=environment,
        grace_seconds=15.0,
        advice="See the log; what was acknowledged is kept, so starting again goes on from there.",
    )


def dashboard_spec(
    settings: Settings,
    bootstrap: str,
    host: str,
    access: Access | None = None,
    *,
    workers: Sequence[str] = (),
    is_iceberg: bool = False,
    console_url: str | None = None,
) -> ChildSpec:
    """Return how to start the dashboard's web server; `workers` are URLs of Connect's."""
    command = [sys.executable, "-m", "barnabas.demo.dashboard.server", "--bootstrap", bootstrap]
    command += ["--registry", settings.registry_url]
    command += ["--sql-server", settings.sql_url]
    command += [word for url in workers for word in ("--connect", url)]
    command += ["--iceberg"] if is_iceberg else []
    command += [] if console_url is None else ["--console", console_url]
    command += ["--host", host, "--port", str(settings.dashboard_port)]
    return ChildSpec(
        "dashboard",
        command,
        environment={} if access is None else access.environment(DASHBOARD),
        grace_seconds=10.0,
        advice="See the log; --port chooses another port for the page.",
    )


def console_spec(
    settings: Settings, bootstrap: str, access: Access | None = None, *, workers: Sequence[str] = ()
) -> ChildSpec:
    """Return how to start the console; `workers` are URLs of Connect's.

    On a secure cluster its user may change nothing, and neither may who looks at its pages.
    """
    command = [*BARNABAS, "console", "--bootstrap-servers", bootstrap]
    command += ["--listeners", settings.console_url, "--registry-url", settings.registry_url]
    command += ["--sql-url", settings.sql_url]
    command += ["--connect-url", ",".join(workers)] if workers else []
    if access is not None:
        command += ["--command-config", access.console_file]
        command += ["--override", "console.read.only=true"]
    return ChildSpec("console", command, advice="See the log; the demo runs without it.")
