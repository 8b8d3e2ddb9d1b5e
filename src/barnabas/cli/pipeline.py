"""`barnabas pipeline`: run a pipeline that is written in Python."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from barnabas.base.errors import install_hint
from barnabas.cli.client_config import read_client_file
from barnabas.cli.connection import DEFAULT_BOOTSTRAP, Connection, command_config_option
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import json_option, print_json

CLUSTER_TIMEOUT_S = 15.0
EPILOG = """\b
Examples:
  barnabas pipeline run energy.py:pipeline
  barnabas pipeline show energy.py
"""
RUN_EPILOG = """\b
Examples:
  barnabas pipeline run energy.py:pipeline
  barnabas pipeline run energy.py -b broker:9092 \\
    --schema-registry-url http://registry:8081
  barnabas pipeline run energy.py --command-config client.properties
  barnabas pipeline run shop.pipelines:carts --guarantee exactly_once
"""
SHOW_EPILOG = """\b
Example:
  barnabas pipeline show energy.py
"""


@click.group(epilog=EPILOG)
def command() -> None:
    """Run pipelines written with `barnabas.streams`. docs/streams.md is a tutorial."""


@command.command("run", epilog=RUN_EPILOG)
@click.argument("pipeline")
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "-b",
    envvar="BARNABAS_BOOTSTRAP_SERVERS",
    metavar="HOST:PORT,...",
    help=f"The cluster; by default that of the client's properties file, then {DEFAULT_BOOTSTRAP}.",
)
@command_config_option
@click.option(
    "--schema-registry-url",
    envvar=["BARNABAS_SCHEMA_REGISTRY_URL", "BARNABAS_REGISTRY_URL"],
    metavar="URL",
    help="The schema registry, where topics are Avro.",
)
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once"]),
    default="at_least_once",
    show_default=True,
    help="at_least_once: a failure may duplicate results.",
)
@click.option(
    "--checkpoints",
    type=click.Path(file_okay=False),
    metavar="DIRECTORY",
    help="Where pipelines keep their state; by default ~/.local/state/barnabas/pipelines.",
)
@click.option(
    "--trigger", default="0 seconds", metavar="TIME", help="Minimum time between micro-batches."
)
@click.option(
    "--metrics-listener",
    default="",
    metavar="http://HOST:PORT",
    help="Serve /metrics and /health at this address, without a login; by default, do not.",
)
@click.option(
    "--until-caught-up",
    is_flag=True,
    help="Process the records that are in the topics now, then end.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option(
    "--property",
    "-X",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Kafka's clients, such as security.protocol; may be repeated.",
)
@click.option(
    "--spark-setting",
    "spark_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A Spark setting; may be repeated.",
)
@json_option
def run_command(
    pipeline: str,
    bootstrap_servers: str | None,
    client_config: str | None,
    schema_registry_url: str | None,
    guarantee: str,
    checkpoints: str | None,
    trigger: str,
    metrics_listener: str,
    until_caught_up: bool,
    master: str,
    properties: tuple[str, ...],
    spark_settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a pipeline until SIGTERM or Ctrl-C.

    It continues from its checkpoints if there are any. PIPELINE is a file and a name in it,
    `energy.py:pipeline`, or a module's, `shop.carts:pipeline`; without a name it is `pipeline`.
    """
    from barnabas.kafka.settings import librdkafka_settings
    from barnabas.streams.errors import PipelineError
    from barnabas.streams.run_options import default_checkpoints

    try:
        from barnabas.spark.session import SessionOptions, SparkStartError, start_session
    except ImportError as error:
        raise CliError(
            f"Spark is not installed: {error}", ExitCode.REFUSED, install_hint("spark")
        ) from error
    client = {} if client_config is None else read_client_file(client_config)
    client |= _pairs(properties, "--property")
    servers = bootstrap_servers or client.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
    client.pop("bootstrap.servers", None)
    try:
        loaded = _load(pipeline)
        Connection(servers, librdkafka_settings(client), CLUSTER_TIMEOUT_S).probe()
        directory = os.path.join(checkpoints or default_checkpoints(), loaded.name)
        say(f"{loaded.name}: starting Spark; it logs to {directory}/spark.log")
        spark = start_session(
            SessionOptions(
                app_name=f"barnabas-{loaded.name}",
                master=master,
                telemetry_path=os.path.join(directory, "spark.log"),
                settings=_pairs(spark_settings, "--spark-setting"),
            ),
            say,
        )
        running = loaded.start(
            servers,
            schema_registry_url,
            spark=spark,
            guarantee=guarantee,
            checkpoints=checkpoints or "",
            trigger=trigger,
            metrics_listener=metrics_listener,
            until_caught_up=until_caught_up,
            client=client,
        )
        topics = ", ".join(running.progress().queries)
        if as_json:
            facts = {"name": loaded.name, "directory": running.directory}
            print_json({**facts, "metrics": running.metrics_url})
        say(f"{loaded.name}: running; writes {topics}; state in {running.directory}")
        if running.metrics_url is not None:
            say(f"{loaded.name}: metrics at {running.metrics_url}")
        from barnabas.streams.running import run_until_signal

        run_until_signal(running)
        say(f"{loaded.name}: stopped")
    except (PipelineError, SparkStartError) as error:
        raise CliError(str(error), ExitCode.REFUSED) from error


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("pipeline")
@json_option
def show_command(pipeline: str, as_json: bool) -> None:
    """Print what a pipeline reads and writes. Starts nothing."""
    from barnabas.streams.errors import PipelineError

    try:
        loaded = _load(pipeline)
        modes = {output.topic: output.mode() for output in loaded.outputs}
    except PipelineError as error:
        raise CliError(str(error), ExitCode.REFUSED) from error
    reads = sorted({source.topic for source in loaded.sources()})
    if as_json:
        print_json(
            {
                "name": loaded.name,
                "reads": reads,
                "writes": modes,
                "dead_letters": loaded.dead_letters,
            }
        )
        return
    click.echo(f"pipeline  {loaded.name}")
    for topic in reads:
        click.echo(f"reads     {topic}")
    for topic, mode in modes.items():
        click.echo(f"writes    {topic} ({'changes' if mode == 'update' else 'each result once'})")
    if loaded.dead_letters is not None:
        click.echo(f"malformed {loaded.dead_letters}")


def say(line: str) -> None:
    """Say what happens, on standard error."""
    print(line, file=sys.stderr, flush=True)


def _load(named: str) -> Any:
    from barnabas.streams.pipeline import load_pipeline

    return load_pipeline(named)


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"{option} is NAME=VALUE, not {one!r}")
        pairs[name.strip()] = value.strip()
    return pairs
