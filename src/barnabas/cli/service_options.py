"""Options of the services beside the brokers, and the line that a service prints when ready."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli.connection import DEFAULT_BOOTSTRAP
from barnabas.cli.node_options import log_options, read_properties
from barnabas.cli.option_sets import Function, option_set
from barnabas.cli.output import Output, json_option

BOOTSTRAP_VARIABLE: Final = "BARNABAS_BOOTSTRAP_SERVERS"


def service_options(whose: str, default_listener: str) -> Callable[[Function], Function]:
    """PROPERTIES, --bootstrap-servers, --listeners, --override, those of logs, and --json."""
    return option_set(
        click.argument("properties", required=False, type=click.Path(dir_okay=False)),
        click.option(
            "--bootstrap-servers",
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            help="Brokers to contact first; by default those of the file, then "
            f"{BOOTSTRAP_VARIABLE}, then {DEFAULT_BOOTSTRAP}.",
        ),
        click.option(
            "--listeners",
            "-l",
            metavar="http://HOST:PORT,...",
            help=f"Addresses to listen on; by default those of the file, then {default_listener}.",
        ),
        click.option(
            "--override",
            "-o",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help=f"Set a key of {whose}; may be repeated. Overrides the file.",
        ),
        log_options,
        json_option,
    )


def say_ready(facts: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print that a service is ready: `text`, or the facts as JSON."""
    Output(as_json).result({"ready": True, **facts}, text)
    sys.stdout.flush()


def service_properties(
    path: str | None,
    overrides: Sequence[str],
    bootstrap_servers: str | None,
    listeners: str | None,
    *,
    bootstrap_key: str,
    bootstrap_default: str | None = None,
) -> dict[str, str]:
    """The file's properties and what flags and the environment say. Raises CliError.

    `bootstrap_default` are the brokers if none of them names any.
    """
    values = read_properties(path) if path is not None else {}
    values |= from_flags(overrides)
    if bootstrap_servers:
        values[bootstrap_key] = bootstrap_servers
    elif not values.get(bootstrap_key):
        values[bootstrap_key] = (
            os.environ.get(BOOTSTRAP_VARIABLE) or bootstrap_default or DEFAULT_BOOTSTRAP
        )
    if listeners:
        values["listeners"] = listeners
    return values
