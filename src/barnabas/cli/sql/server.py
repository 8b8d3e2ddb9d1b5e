"""`barnabas sql server`: a server with ksqlDB's REST interface, in the foreground."""

from typing import TYPE_CHECKING

import click

from barnabas.base.telemetry import Logs
from barnabas.cli.client_config import read_client_file
from barnabas.cli.connection import Connection, command_config_option
from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.output import counted
from barnabas.cli.service_options import say_ready, service_options, service_properties

if TYPE_CHECKING:
    from barnabas.sql.server.run import Server

BOOTSTRAP = "bootstrap.servers"
CLUSTER_TIMEOUT_S = 15.0
CLIENT_PREFIX = "ksql.streams."
"""Of properties that concern the clients of the cluster alone, and not the listeners."""
REGISTRY = "ksql.schema.registry.url"
EPILOG = """\b
Examples:
  barnabas sql server
  barnabas sql server ksql-server.properties
  barnabas sql server --command-config client.properties
  barnabas sql server -b broker-1:9092 --listeners http://0.0.0.0:8088
  barnabas sql server --schema-registry-url http://localhost:8081 \\
    -o ksql.service.id=shop_

SIGTERM and Ctrl-C end it cleanly, with exit code 0; its statements continue after a restart.
"""


@click.command("server", epilog=EPILOG)
@service_options("the server", "http://127.0.0.1:8088")
@command_config_option
@click.option(
    "--schema-registry-url",
    "-r",
    metavar="URL,...",
    help="The schema registry, for AVRO, PROTOBUF and JSON_SR; by default as the file says.",
)
def server_command(
    properties: str | None,
    bootstrap_servers: str | None,
    listeners: str | None,
    schema_registry_url: str | None,
    overrides: tuple[str, ...],
    client_config: str | None,
    logs: Logs,
    as_json: bool,
) -> int:
    """Run a server with ksqlDB's REST interface.

    PROPERTIES is ksqlDB's ksql-server.properties; without it, defaults apply. Statements are kept
    in a topic of the cluster, and the server resumes all of them after a restart. PROPERTIES, or
    else the file of --command-config, says how it logs in to the cluster.
    """
    clients = {} if client_config is None else read_client_file(client_config)
    values = service_properties(
        properties,
        overrides,
        bootstrap_servers,
        listeners,
        bootstrap_key=BOOTSTRAP,
        bootstrap_default=clients.get(BOOTSTRAP),
    )
    if not any(f"{prefix}security.protocol" in values for prefix in ("", CLIENT_PREFIX)):
        values = {f"{CLIENT_PREFIX}{key}": value for key, value in clients.items()} | values
    if schema_registry_url:
        values[REGISTRY] = schema_registry_url
    return _run(values, logs, as_json)


def _run(values: dict[str, str], logs: Logs, as_json: bool) -> int:
    with extra_packages("sql", "the SQL server needs"):
        import starlette  # noqa: F401  read in no time, and its absence is told before all else

        from barnabas.sql.server.config import ServerConfig, ServerConfigError
        from barnabas.sql.server.spark_session import ServerSession
    from barnabas.base import telemetry

    telemetry.configure(logs)
    config = ServerConfig(values)
    try:
        clients = {key: str(value) for key, value in config.kafka.items()}
    except ServerConfigError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    Connection(clients.pop(BOOTSTRAP), clients, CLUSTER_TIMEOUT_S).probe()
    session = ServerSession(config)
    try:
        session.begin()
    except ServerConfigError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    with extra_packages("sql", "the SQL server needs"):  # they are read while Spark starts
        from barnabas.sql.engine.cluster import ClusterError
        from barnabas.sql.engine.command_log import CommandLogError
        from barnabas.sql.server.run import run_server
        from barnabas.sql.udf import ExtensionError

    def ready(server: "Server") -> None:
        urls = [str(listener) for listener in server.listeners]
        facts = {
            "listeners": urls,
            "bootstrap_servers": config.bootstrap_servers,
            "service_id": config.service_id,
            "cluster_id": server.cluster.cluster_id,
            "queries": len(server.engine.queries),
        }
        text = (
            f"SQL server: {', '.join(urls)}, service {config.service_id} on cluster "
            f"{facts['cluster_id'] or 'unknown'} at {config.bootstrap_servers}, "
            f"{counted(len(server.engine.queries), 'query', 'queries')}"
        )
        say_ready(facts, text, as_json=as_json)

    try:
        return run_server(config, ready, session)
    except (ServerConfigError, ExtensionError) as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    except (ClusterError, CommandLogError) as error:
        raise CliError(str(error), ExitCode.UNREACHABLE) from error
