"""`barnabas registry start`: a schema registry in the foreground."""

import logging
import os
import sys
from typing import TYPE_CHECKING

import click

from barnabas.base.config.overrides import from_flags
from barnabas.cli.connection import DEFAULT_BOOTSTRAP
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.node_options import log_level_option, read_properties
from barnabas.cli.output import json_option, print_json

if TYPE_CHECKING:
    from barnabas.registry.server import RegistryServer

BOOTSTRAP = "kafkastore.bootstrap.servers"
BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP_SERVERS"
LISTENERS = "listeners"
EPILOG = """\b
Examples:
  barnabas registry start
  barnabas registry start schema-registry.properties
  barnabas registry start -b broker-1:9092,broker-2:9092 --listeners http://0.0.0.0:8081
  barnabas registry start schema-registry.properties --override schema.compatibility.level=full

SIGTERM and Ctrl-C end it cleanly, with exit code 0; a second signal ends it at once.
"""


@click.command("start", epilog=EPILOG)
@click.argument("properties", required=False, type=click.Path(dir_okay=False))
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "-b",
    metavar="HOST:PORT,...",
    help="Brokers to contact first; by default those of the file, then "
    f"{BOOTSTRAP_VARIABLE}, then {DEFAULT_BOOTSTRAP}.",
)
@click.option(
    "--listeners",
    "-l",
    metavar="http://HOST:PORT,...",
    help="Where to listen; by default as the file says, then http://0.0.0.0:8081.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the registry; may be repeated. Overrides the file.",
)
@log_level_option
@json_option
def start_command(
    properties: str | None,
    bootstrap_servers: str | None,
    listeners: str | None,
    overrides: tuple[str, ...],
    log_level: str,
    as_json: bool,
) -> int:
    """Run a schema registry for a Kafka cluster.

    PROPERTIES is Confluent's schema-registry.properties; without it, defaults do. Schemas are in
    the topic _schemas of the cluster. Several instances of one cluster elect a leader, and any
    of them can be asked.
    """
    values = read_properties(properties) if properties is not None else {}
    values |= from_flags(overrides)
    if bootstrap_servers:
        values[BOOTSTRAP] = bootstrap_servers
    elif not values.get(BOOTSTRAP):
        values[BOOTSTRAP] = os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    if listeners:
        values[LISTENERS] = listeners
    return _run(values, log_level, as_json)


def _run(values: dict[str, str], log_level: str, as_json: bool) -> int:
    try:
        from barnabas.registry.config import RegistryConfig
        from barnabas.registry.formats import all_formats
        from barnabas.registry.kafka.faults import StoreError
        from barnabas.registry.server import CannotListenError, run_registry
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("barnabas"):
            raise
        # Not by name: on the public index that name is another project's.
        raise CliError(
            f"the schema registry needs {error.name}, which is not installed",
            hint="pip install '.[registry]' in the checkout of Barnabas",
        ) from error
    from barnabas.base import telemetry

    config = RegistryConfig(values)
    telemetry.configure(log_level)
    if log_level != "debug":
        # It says in several lines what the registry says in one, and has no handler.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    def ready(server: "RegistryServer") -> None:
        urls = [str(listener) for listener in server.listeners]
        facts = {
            "listeners": urls,
            "bootstrap_servers": ",".join(config.bootstrap_servers),
            "cluster_id": server.store.cluster_id,
            "topic": config.topic,
        }
        if as_json:
            print_json({"ready": True, **facts})
        else:
            click.echo(
                f"Schema registry: {', '.join(urls)}, topic {config.topic} of cluster "
                f"{server.store.cluster_id or 'unknown'} at {facts['bootstrap_servers']}"
            )
        sys.stdout.flush()

    formats = all_formats(config.get_int("schema.cache.size"))
    try:
        return run_registry(config, formats, ready)
    except CannotListenError as error:
        raise CliError(str(error), hint="choose another address with --listeners") from error
    except StoreError as error:
        is_late = isinstance(error.__cause__, TimeoutError)
        raise CliError(str(error), ExitCode.UNREACHABLE if is_late else ExitCode.REFUSED) from error
