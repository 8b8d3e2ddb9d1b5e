"""`barnabas config`: dynamic configuration of topics, brokers and groups."""

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli import config_calls
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, json_option

KINDS = click.Choice(["topic", "broker", "group"])
COLUMNS = ("key", "value", "source")
EVERY_BROKER = "all"


@click.group()
def command() -> None:
    """Describe and change configuration of topics, brokers and groups.

    Broker `all` is every broker of the cluster, each changed by itself. Broker `defaults` is the
    cluster-wide default: it applies to all brokers, present and future, without a value of their
    own.
    """


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas config describe topic orders\n"
    "  barnabas config describe broker 1 --all\n",
)
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.option("--all", "show_all", is_flag=True, help="Show defaults too.")
@json_option
@connection_options
def describe_command(
    connection: Connection, kind: str, name: str, show_all: bool, as_json: bool
) -> None:
    """Show what is configured."""
    rows = []
    for resource in _resources(connection, kind, name):
        found = config_calls.describe(connection, kind, resource)
        rows += [{"name": resource, **row} for row in found]
    if not show_all:
        rows = [row for row in rows if row["source"] != "default"]
    columns = ("name", "key", "value", "source") if name == EVERY_BROKER else COLUMNS
    Output(as_json).rows(rows, columns, "All keys have their defaults.")


@command.command(
    "set",
    epilog="\b\nExamples:\n  barnabas config set topic orders retention.ms=86400000\n"
    "  barnabas config set broker 1 num.io.threads=16\n"
    "  barnabas config set broker all log.retention.ms=86400000\n"
    "  barnabas config set broker defaults log.retention.ms=86400000\n",
)
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@json_option
@connection_options
def set_command(
    connection: Connection, kind: str, name: str, pairs: tuple[str, ...], as_json: bool
) -> None:
    """Set keys; the others stay as they are."""
    values = from_flags(pairs)
    for resource in _resources(connection, kind, name):
        config_calls.alter(connection, kind, resource, values)
    value = {"kind": kind, "name": name, "set": sorted(values)}
    Output(as_json).result(value, f"{kind} {name}: set {', '.join(values)}")


@command.command(
    "delete", epilog="\b\nExample:\n  barnabas config delete topic orders retention.ms\n"
)
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@json_option
@connection_options
def delete_command(
    connection: Connection, kind: str, name: str, keys: tuple[str, ...], as_json: bool
) -> None:
    """Reset keys to their defaults."""
    for resource in _resources(connection, kind, name):
        config_calls.alter(connection, kind, resource, {}, keys)
    value = {"kind": kind, "name": name, "deleted": list(keys)}
    Output(as_json).result(value, f"{kind} {name}: deleted {', '.join(keys)}")


def _resources(connection: Connection, kind: str, name: str) -> list[str]:
    if not name:
        known = "id, all or defaults" if kind == "broker" else "name"
        raise CliError(f"give the {kind}'s {known}", ExitCode.USAGE)
    if kind != "broker" or name == config_calls.BROKER_DEFAULTS:
        return [name]
    brokers = [str(number) for number in sorted(connection.metadata().brokers)]
    if name == EVERY_BROKER:
        return brokers
    if not name.isdecimal():
        raise CliError(f"broker {name}: must be an id, all or defaults", ExitCode.USAGE)
    if str(int(name)) not in brokers:
        raise CliError(
            f"there is no broker {name}", ExitCode.NOT_FOUND, f"there are {', '.join(brokers)}"
        )
    return [str(int(name))]
