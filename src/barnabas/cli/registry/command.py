"""`barnabas registry`: a schema registry in the foreground, and commands for any registry."""

import logging
from typing import TYPE_CHECKING

import click

from barnabas.base.telemetry import Logs
from barnabas.cli.connection import reachable
from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.registry.check import check_command
from barnabas.cli.registry.diff import diff_command
from barnabas.cli.registry.schema import get_command, register_command
from barnabas.cli.registry.settings import config_group, mode_group
from barnabas.cli.registry.subject import subject_group
from barnabas.cli.service_options import say_ready, service_options, service_properties

if TYPE_CHECKING:
    from barnabas.registry.server import RegistryServer

BOOTSTRAP = "kafkastore.bootstrap.servers"
INIT_TIMEOUT = "kafkastore.init.timeout.ms"
EPILOG = """\b
Examples:
  barnabas registry start
  barnabas registry start schema-registry.properties
  barnabas registry start -b broker-1:9092,broker-2:9092 \\
    --listeners http://0.0.0.0:8081
  barnabas registry start schema-registry.properties \\
    --override schema.compatibility.level=full

It ends with exit code 3 if no broker accepts connections, unless kafkastore.init.timeout.ms says
how long to wait. SIGTERM and Ctrl-C end it cleanly, with exit code 0; a second signal ends it
at once.
"""


@click.group()
def command() -> None:
    """Run a schema registry; register, check and compare schemas.

    All commands but start work with any registry that has Confluent's REST interface.
    """


@command.command("start", epilog=EPILOG)
@service_options("the registry", "http://127.0.0.1:8081")
def start_command(
    properties: str | None,
    bootstrap_servers: str | None,
    listeners: str | None,
    overrides: tuple[str, ...],
    logs: Logs,
    as_json: bool,
) -> int:
    """Run a schema registry for a Kafka cluster.

    PROPERTIES is Confluent's schema-registry.properties; without it, defaults apply. The registry
    keeps schemas in the topic _schemas of the cluster. Several instances of one cluster elect a
    leader, and all of them serve requests.
    """
    values = service_properties(
        properties, overrides, bootstrap_servers, listeners, bootstrap_key=BOOTSTRAP
    )
    return _run(values, logs, as_json)


def _run(values: dict[str, str], logs: Logs, as_json: bool) -> int:
    with extra_packages("registry", "the schema registry needs"):
        from barnabas.registry.config import RegistryConfig
        from barnabas.registry.kafka.connection import security_of
        from barnabas.registry.kafka.faults import StoreError
        from barnabas.registry.server import run_registry
        from barnabas.schemas.formats import all_formats
    from barnabas.base import telemetry

    config = RegistryConfig(values)
    if INIT_TIMEOUT not in values:  # which asks to wait for a cluster
        reachable(",".join(config.bootstrap_servers), security=security_of(config))
    telemetry.configure(logs)
    if logs.level != "debug":
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
        text = (
            f"Schema registry: {', '.join(urls)}, topic {config.topic} of cluster "
            f"{server.store.cluster_id or 'unknown'} at {facts['bootstrap_servers']}"
        )
        say_ready(facts, text, as_json=as_json)

    formats = all_formats(config.get_int("schema.cache.size"))
    try:
        return run_registry(config, formats, ready)
    except StoreError as error:
        is_late = isinstance(error.__cause__, TimeoutError)
        raise CliError(str(error), ExitCode.UNREACHABLE if is_late else ExitCode.REFUSED) from error


@click.group("schema")
def schema_group() -> None:
    """Register, get, check and compare schemas."""


for _one in (register_command, get_command, check_command, diff_command):
    schema_group.add_command(_one)
for _one in (subject_group, schema_group, config_group, mode_group):
    command.add_command(_one)
