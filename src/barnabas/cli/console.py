"""`barnabas console`: the web console of a cluster and its services, in the foreground."""

from typing import TYPE_CHECKING

import click

from barnabas.base.telemetry import Logs
from barnabas.cli.client_config import read_client_file
from barnabas.cli.connection import command_config_option
from barnabas.cli.errors import extra_packages
from barnabas.cli.service_options import say_ready, service_options, service_properties

if TYPE_CHECKING:
    from barnabas.console.server import ConsoleServer

BOOTSTRAP = "bootstrap.servers"
EPILOG = """\b
Examples:
  barnabas console
  barnabas console -b broker-1:9092 --registry-url http://localhost:8081
  barnabas console --command-config client.properties
  barnabas console console.properties --listeners https://0.0.0.0:8090

Without console.users.file there are no logins, and the console listens on loopback only. It starts
even if the services do not answer: a card gives the reason for each. SIGTERM and Ctrl-C end it
cleanly, with exit code 0.
"""


@click.command("console", epilog=EPILOG)
@service_options("the console", "http://127.0.0.1:8090")
@command_config_option
@click.option("--registry-url", "-r", metavar="URL,...", help="The schema registry.")
@click.option("--connect-url", metavar="URL,...", help="Kafka Connect workers.")
@click.option("--sql-url", metavar="URL,...", help="A SQL server of Barnabas, or ksqlDB's.")
def command(
    properties: str | None,
    bootstrap_servers: str | None,
    listeners: str | None,
    registry_url: str | None,
    connect_url: str | None,
    sql_url: str | None,
    overrides: tuple[str, ...],
    client_config: str | None,
    logs: Logs,
    as_json: bool,
) -> int:
    """Run a web console for a Kafka cluster, its schemas, connectors and SQL.

    PROPERTIES says who may log in and what they may do; without it, defaults apply. The file of
    --command-config says how the console logs in to the cluster.
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
    if registry_url:
        values["schema.registry.url"] = registry_url
    if connect_url:
        values["connect.url"] = connect_url
    if sql_url:
        values["sql.url"] = sql_url
    return _run(values, clients, logs, as_json)


def _run(values: dict[str, str], clients: dict[str, str], logs: Logs, as_json: bool) -> int:
    with extra_packages("console", "the console needs"):
        from barnabas.console.config import ConsoleConfig
        from barnabas.console.server import run_console
    from barnabas.base import telemetry

    telemetry.configure(logs)
    config = ConsoleConfig(values, clients)

    def ready(server: "ConsoleServer") -> None:
        urls = [str(listener) for listener in server.listeners]
        facts = {"listeners": urls, "bootstrap_servers": config.bootstrap_servers}
        text = f"Console: {', '.join(urls)} of the cluster at {config.bootstrap_servers}"
        say_ready(facts, text, as_json=as_json)

    return run_console(config, ready)
