"""`barnabas storage`: directories are formatted and inspected as by Kafka's storage tool."""

import random

import click

from barnabas.base.local_disk import LocalDisk
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.node_options import format_node, load_node_config, override_option
from barnabas.cli.output import Output, json_option
from barnabas.node.metadata.storage_format import (
    FormatOptions,
    random_cluster_id,
    storage_info,
)


@click.group()
def command() -> None:
    """Format and inspect a node's data directories."""


config_option = click.option(
    "--config",
    "-c",
    "properties",
    required=True,
    type=click.Path(dir_okay=False),
    help="The node's server.properties.",
)


@command.command(
    "random-uuid", epilog="\b\nExample:\n  CLUSTER_ID=$(barnabas storage random-uuid)\n"
)
@json_option
def random_uuid_command(as_json: bool) -> None:
    """Print a new random id, for a cluster or a directory."""
    cluster_id = random_cluster_id(random.SystemRandom())
    Output(as_json).result({"uuid": cluster_id}, cluster_id)


@command.command(
    "info", epilog="\b\nExample:\n  barnabas storage info --config server.properties\n"
)
@config_option
@override_option
@json_option
def info_command(properties: str, overrides: tuple[str, ...], as_json: bool) -> int:
    """Show whether a node's directories are formatted.

    Exit code 5 if something is wrong with them.
    """
    config = load_node_config(properties, overrides)
    disk = LocalDisk()
    try:
        info = storage_info(disk, config)
    finally:
        disk.close()
    value = {
        "directories": info.directories,
        "metadata": info.metadata,
        "problems": info.problems,
    }
    Output(as_json).result(value, "\n".join(info.lines()).rstrip())
    return ExitCode.PROBLEMS if info.problems else ExitCode.DONE


@command.command(
    "format",
    epilog="\b\nExample:\n  barnabas storage format --standalone \\\n"
    "    --cluster-id $(barnabas storage random-uuid) --config server.properties\n",
)
@config_option
@click.option("--cluster-id", "-t", required=True, help="The cluster's id, the same on all nodes.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Leave formatted directories alone.")
@click.option("--release-version", "-r", help="metadata.version to start with, such as 4.3.")
@click.option(
    "--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="A feature's level."
)
@click.option("--standalone", "-s", is_flag=True, help="Make this node a dynamic quorum of one.")
@click.option("--initial-controllers", "-I", help="The dynamic quorum: id@host:port:uuid,...")
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="This node joins an existing quorum."
)
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="SPEC",
    help="An initial SCRAM credential.",
)
@override_option
@json_option
def format_command(
    properties: str,
    cluster_id: str,
    ignore_formatted: bool,
    release_version: str | None,
    features: tuple[str, ...],
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    scram: tuple[str, ...],
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Prepare the directories of a node for its first start."""
    config = load_node_config(properties, overrides)
    options = FormatOptions(
        cluster_id=cluster_id,
        release_version=release_version,
        features=dict(_feature(text) for text in features),
        ignore_formatted=ignore_formatted,
        standalone=standalone,
        initial_controllers=initial_controllers,
        no_initial_controllers=no_initial_controllers,
        scram=scram,
    )
    lines = format_node(config, options)
    Output(as_json).result({"cluster_id": cluster_id, "lines": lines}, "\n".join(lines))


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals or not level.isdecimal():
        raise CliError(f"--feature {text}: must be NAME=LEVEL", ExitCode.USAGE)
    return name, int(level)
