"""`barnabas config`: dynamic configuration of topics, brokers and groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.config.definitions import HIDDEN
from barnabas.base.config.properties import from_flags
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.reaching import reached

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigResource

KINDS = click.Choice(["topic", "broker", "group"])
COLUMNS = ("key", "value", "source")
EVERY_BROKER = "all"


@click.group()
def command() -> None:
    """Describe and change configuration of topics, brokers and groups.

    `broker all` changes each broker of the cluster. `broker defaults` sets a cluster-wide default,
    which applies to all present and future brokers that have no value of their own.
    """


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas config describe topic orders\n"
    "  barnabas config describe broker 1 --all\n",
)
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.option("--all", "show_all", is_flag=True, help="Show defaults too.")
@connection_options
def describe_command(
    connection: Connection, kind: str, name: str, show_all: bool, as_json: bool
) -> None:
    """Show what is configured."""
    rows = []
    for resource in _resources(connection, kind, name):
        entries = describe(connection, kind, resource)
        rows += [{"name": resource, **row} for row in entries]
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
@connection_options
def set_command(
    connection: Connection, kind: str, name: str, pairs: tuple[str, ...], as_json: bool
) -> None:
    """Set keys; the others stay as they are."""
    values = from_flags(pairs)
    for resource in _resources(connection, kind, name):
        alter(connection, kind, resource, values)
    value = {"kind": kind, "name": name, "set": sorted(values)}
    Output(as_json).result(value, f"{kind} {name}: set {', '.join(values)}")


@command.command(
    "delete", epilog="\b\nExample:\n  barnabas config delete topic orders retention.ms\n"
)
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@connection_options
def delete_command(
    connection: Connection, kind: str, name: str, keys: tuple[str, ...], as_json: bool
) -> None:
    """Reset keys to their defaults."""
    for resource in _resources(connection, kind, name):
        alter(connection, kind, resource, {}, keys)
    value = {"kind": kind, "name": name, "deleted": list(keys)}
    Output(as_json).result(value, f"{kind} {name}: deleted {', '.join(keys)}")


def _resources(connection: Connection, kind: str, name: str) -> list[str]:
    if not name:
        known = "id, all or defaults" if kind == "broker" else "name"
        raise CliError(f"give the {kind}'s {known}", ExitCode.USAGE)
    if kind != "broker" or name == BROKER_DEFAULTS:
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


# Reading and changing configuration through the Admin API.


BROKER_DEFAULTS = "defaults"
"""In place of a broker's id: what holds for brokers that have no value of their own."""
SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "broker defaults",
    4: "file",
    5: "default",
    8: "group",
}
"""Sources of a value, by the protocol's number."""


def describe(connection: Connection, kind: str, name: str) -> list[dict[str, Any]]:
    """Every key of a topic, broker or group; of broker `defaults` those set. Raises CliError."""
    if kind == "broker" and name == BROKER_DEFAULTS:
        return _describe_defaults(connection)
    resource = _resource(kind, name)
    futures = connection.admin.describe_configs([resource], request_timeout=connection.timeout_s)
    entries = connection.wait(futures[resource], f"{kind} {name}".strip())
    return [
        _row(entry, int(entry.source), bool(entry.is_read_only), entry.synonyms.values())
        for _, entry in sorted(entries.items())
    ]


def _describe_defaults(connection: Connection) -> list[dict[str, Any]]:
    from barnabas.cli.admin import broker_settings

    with reached(connection) as admin:
        entries = broker_settings(admin, None)
    return [
        _row(entry, entry.config_source, entry.read_only, entry.synonyms)
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]


def _row(entry: Any, source: int, is_read_only: bool, synonyms: Iterable[Any]) -> dict[str, Any]:
    return {
        "key": entry.name,
        "value": HIDDEN if entry.is_sensitive else entry.value,
        "source": SOURCES.get(source, str(source)),
        "read_only": is_read_only,
        "synonyms": [
            f"{synonym.name}={HIDDEN if entry.is_sensitive else synonym.value}"
            for synonym in synonyms
        ],
    }


def overrides(connection: Connection, kind: str, name: str) -> dict[str, str]:
    """The keys that were set on a topic or group itself."""
    rows = describe(connection, kind, name)
    return {row["key"]: row["value"] for row in rows if row["source"] == kind}


def alter(
    connection: Connection,
    kind: str,
    name: str,
    values: Mapping[str, str],
    unset: Sequence[str] = (),
) -> None:
    """Set and unset keys, leaving the others as they are. Raises CliError."""
    if kind == "broker" and name == BROKER_DEFAULTS:
        from barnabas.cli.admin import alter_broker_defaults

        with reached(connection) as admin:
            alter_broker_defaults(admin, {**values, **dict.fromkeys(unset)})
        return
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in values.items()
    ]
    changes += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in unset
    ]
    resource = _resource(kind, name)
    resource.incremental_configs = changes
    futures = connection.admin.incremental_alter_configs(
        [resource], request_timeout=connection.timeout_s
    )
    connection.wait(futures[resource], f"{kind} {name}".strip())


def _resource(kind: str, name: str) -> "ConfigResource":
    from confluent_kafka.admin import ConfigResource, ResourceType

    types = {
        "topic": ResourceType.TOPIC,
        "broker": ResourceType.BROKER,
        "group": ResourceType.GROUP,
    }
    return ConfigResource(types[kind], name)
