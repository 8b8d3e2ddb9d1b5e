"""`barnabas connect start` and `mirror`, in the foreground.

A worker of connectors, and Kafka's connect-mirror-maker.sh.
"""

import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.telemetry import Logs
from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.node_options import log_options
from barnabas.cli.output import counted, json_option
from barnabas.cli.service_options import say_ready, service_properties

if TYPE_CHECKING:
    from barnabas.connect.rest.run import ConnectServer

EPILOG = """\b
Examples:
  barnabas connect start connect-distributed.properties
  barnabas connect start connect-standalone.properties source.properties \\
    sink.json
  barnabas connect start connect-distributed.properties \\
    -l http://0.0.0.0:8083 --override barnabas.connect.engine=local

A file with group.id starts a distributed worker; workers with the same group.id share
connectors. SIGTERM and Ctrl-C end a worker cleanly, with exit code 0.
"""
MIRROR_EPILOG = """\b
Examples:
  barnabas connect mirror mm2.properties
  barnabas connect mirror mm2.properties --clusters east

Run it near the target. SIGTERM and Ctrl-C end it cleanly, with exit code 0.
"""


@click.command("start", epilog=EPILOG)
@click.argument("properties", type=click.Path(dir_okay=False))
@click.argument("connectors", nargs=-1, type=click.Path(dir_okay=False))
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "-b",
    metavar="HOST:PORT,...",
    help="Brokers to contact first; by default those of the file.",
)
@click.option(
    "--listeners",
    "-l",
    metavar="http://HOST:PORT,...",
    help="Addresses to listen on; by default those of the file, then http://127.0.0.1:8083.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the worker; may be repeated. Overrides the file.",
)
@log_options
@json_option
def start_command(
    properties: str,
    connectors: tuple[str, ...],
    bootstrap_servers: str | None,
    listeners: str | None,
    overrides: tuple[str, ...],
    logs: Logs,
    as_json: bool,
) -> int:
    """Run a Connect worker.

    PROPERTIES is Kafka's connect-distributed.properties or connect-standalone.properties. In
    standalone mode each of CONNECTORS is a file that describes a connector to start with.
    """
    values = service_properties(
        properties, overrides, bootstrap_servers, listeners, bootstrap_key="bootstrap.servers"
    )
    return _run(values, connectors, logs, as_json)


def _run(values: dict[str, str], connectors: tuple[str, ...], logs: Logs, as_json: bool) -> int:
    with extra_packages("connect", "a Connect worker needs"):
        from barnabas.connect.rest.run import run_worker
        from barnabas.connect.worker.connector_files import ConnectorFile, read_connector
        from barnabas.connect.worker.making import NoClusterError
        from barnabas.connect.worker.settings import is_distributed
    from barnabas.base import telemetry
    from barnabas.base.config.properties import parse_properties

    def read(path: str) -> ConnectorFile:
        try:
            with open(path, encoding="utf-8") as file:
                return read_connector(path, file.read(), parse_properties)
        except UnicodeDecodeError as error:
            raise CliError(f"{path}: {error}", ExitCode.USAGE) from error

    if connectors and is_distributed(values):
        raise CliError(
            "distributed workers keep their connectors in the cluster",
            ExitCode.USAGE,
            "use `barnabas connect apply`",
        )
    telemetry.configure(logs)

    def ready(server: "ConnectServer") -> None:
        facts: dict[str, Any] = {
            "listeners": [str(listener) for listener in server.listeners],
            "mode": server.mode,
            "bootstrap_servers": values["bootstrap.servers"],
            "cluster_id": server.herder.cluster_id,
            "connectors": server.herder.connectors(),
        }
        text = (
            f"Connect worker: {', '.join(facts['listeners'])}, {server.mode}, cluster "
            f"{facts['cluster_id'] or 'unknown'} at {facts['bootstrap_servers']}, "
            f"{counted(len(facts['connectors']), 'connector')}"
        )
        say_ready(facts, text, as_json=as_json)

    try:
        return run_worker(values, [read(path) for path in connectors], ready)
    except NoClusterError as error:
        raise CliError(str(error), ExitCode.UNREACHABLE) from error


@click.command("mirror", epilog=MIRROR_EPILOG)
@click.argument("properties", type=click.Path(dir_okay=False))
@click.option("--clusters", metavar="A,B,...", default="", help="Only flows to these clusters.")
@log_options
@json_option
def mirror_command(properties: str, clusters: str, logs: Logs, as_json: bool) -> int:
    """Mirror clusters to each other.

    The file is one for Kafka's connect-mirror-maker.sh.
    """
    with extra_packages("connect", "mirroring needs"):
        from barnabas.connect.connectors.mirror.dedicated import DedicatedMirror
        from barnabas.connect.worker.making import NoClusterError
    from barnabas.base import telemetry
    from barnabas.base.config.properties import parse_properties

    try:
        with open(properties, encoding="utf-8") as file:
            given = parse_properties(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{properties}: {error}", ExitCode.USAGE) from error
    telemetry.configure(logs)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    targets = tuple(one.strip() for one in clusters.split(",") if one.strip())
    try:
        mirror = DedicatedMirror(given, targets)
        try:
            mirror.start()
            flows = [f"{flow.source}->{flow.target}" for flow in mirror.flows]
            say_ready({"flows": flows}, f"mirroring {', '.join(flows)}", as_json=as_json)
            stopping.wait()
        finally:
            mirror.close()
    except NoClusterError as error:
        raise CliError(str(error), ExitCode.UNREACHABLE) from error
    return 0
