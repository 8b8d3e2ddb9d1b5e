"""`barnabas quota`: how fast users, clients and addresses may be."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.output import Output, Row
from barnabas.cli.reaching import reached
from barnabas.kafka.client_quotas import KEYS, change_quota, entity_text, list_quotas

SUFFIXES = {"k": 2**10, "m": 2**20, "g": 2**30}

_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option("--user", help="A user who logs in with this name."),
    click.option("--user-default", is_flag=True, help="Users without their own quota."),
    click.option("--client-id", help="Clients with this client id."),
    click.option("--client-id-default", is_flag=True, help="Clients without their own quota."),
    click.option("--ip", help="Clients that connect from this address."),
    click.option("--ip-default", is_flag=True, help="Addresses without their own quota."),
)


def _entity(function: Function) -> Function:
    """The options that name an entity, as the argument `entity`."""

    def wrapped(**given: Any) -> Any:
        entity: dict[str, str | None] = {}
        for kind in ("user", "client-id", "ip"):
            name = given.pop(kind.replace("-", "_"))
            is_default = given.pop(f"{kind.replace('-', '_')}_default")
            if name is not None and is_default:
                raise CliError(f"--{kind} and --{kind}-default exclude each other", ExitCode.USAGE)
            if name is not None or is_default:
                entity[kind] = name
        return function(entity=entity, **given)

    return with_options(function, wrapped, _OPTIONS)


@click.group()
def command() -> None:
    """List, set and remove quotas of users, clients and addresses."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas quota list\n  barnabas quota list --user alice\n",
)
@connection_options
@_entity
def list_command(connection: Connection, entity: dict[str, str | None], as_json: bool) -> None:
    """List quotas: all, or those of a user, client or address."""
    with reached(connection) as admin:
        quotas = admin.run(list_quotas, entity)
    output = Output(as_json)
    if as_json:
        output.result([{"entity": item.entity, "quotas": item.values} for item in quotas], "")
        return
    rows: list[Row] = [
        {"entity": entity_text(item.entity), "quota": key, "value": f"{value:g}"}
        if value < 1e6
        else {"entity": entity_text(item.entity), "quota": key, "value": f"{value:.0f}"}
        for item in quotas
        for key, value in item.values.items()
    ]
    output.rows(rows, ("entity", "quota", "value"), "There are no quotas.")


@command.command(
    "set",
    epilog="\b\nExamples:\n"
    "  barnabas quota set --user alice producer_byte_rate=1m consumer_byte_rate=2m\n"
    "  barnabas quota set --user-default request_percentage=50\n"
    "  barnabas quota set --user alice --client-id reports consumer_byte_rate=100k\n"
    "  barnabas quota set --ip 10.0.0.9 connection_creation_rate=5\n\n\b\nQuotas:\n"
    + "".join(f"  {key:25} {words}\n" for key, words in KEYS.items()),
)
@click.argument("pairs", nargs=-1, required=True, metavar="QUOTA=VALUE...")
@connection_options
@_entity
def set_command(
    connection: Connection, entity: dict[str, str | None], pairs: Sequence[str], as_json: bool
) -> None:
    """Set quotas; 1k is 1024, 1m is 1024k, 1g is 1024m."""
    _check_named(entity)
    values = dict(_pair(text) for text in pairs)
    with reached(connection) as admin:
        admin.run(change_quota, entity, values)
    text = "\n".join(f"{entity_text(entity)}: {key}={value:.15g}" for key, value in values.items())
    Output(as_json).result({"entity": entity, "quotas": values}, text)


@command.command(
    "remove",
    epilog="\b\nExamples:\n  barnabas quota remove --user alice\n"
    "  barnabas quota remove --user alice producer_byte_rate\n",
)
@click.argument("keys", nargs=-1, metavar="[QUOTA]...")
@connection_options
@_entity
def remove_command(
    connection: Connection, entity: dict[str, str | None], keys: Sequence[str], as_json: bool
) -> None:
    """Remove quotas of a user, client or address.

    Without QUOTA, it removes all of them.
    """
    _check_named(entity)
    with reached(connection) as admin:
        quotas = admin.run(list_quotas, entity, is_strict=True)
        existing = list(quotas[0].values) if quotas else []
        missing = [key for key in keys if key not in existing]
        if missing or not existing:
            what = f"no {', '.join(missing)}" if missing else "no quotas"
            raise CliError(f"{entity_text(entity)} has {what}", ExitCode.NOT_FOUND)
        removed = list(dict.fromkeys(keys)) or existing
        admin.run(change_quota, entity, {}, removed)
    text = f"{entity_text(entity)}: removed {', '.join(removed)}"
    Output(as_json).result({"entity": entity, "removed": removed}, text)


def _check_named(entity: dict[str, str | None]) -> None:
    if not entity:
        raise CliError("nobody is named", ExitCode.USAGE, "add --user, --client-id or --ip")
    if "ip" in entity and len(entity) > 1:
        raise CliError("--ip goes with neither --user nor --client-id", ExitCode.USAGE)


def _pair(text: str) -> tuple[str, float]:
    """A quota and its value. Raises CliError."""
    key, equals, shown = text.partition("=")
    if not equals:
        raise CliError(f"{text} is not QUOTA=VALUE", ExitCode.USAGE)
    if key not in KEYS:
        raise CliError(f"{key} is not a quota", ExitCode.USAGE, f"there are {', '.join(KEYS)}")
    unit = SUFFIXES.get(shown[-1:].lower(), 1)
    try:
        value = float(shown[:-1] if unit > 1 else shown) * unit
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise CliError(f"{key}: {shown!r} is not a number above 0", ExitCode.USAGE)
    return key, value
