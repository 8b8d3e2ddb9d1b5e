"""Sources of a node's configuration: a file, the environment, and flags, in that order."""

import os
import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.base import telemetry
from barnabas.base.config.properties import from_flags, parse_properties
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options
from barnabas.node.config.definitions import from_environment
from barnabas.node.config.node_config import NodeConfig

if TYPE_CHECKING:
    from barnabas.node.metadata.storage_format import FormatOptions


override_option = click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a broker property; may be repeated. Overrides file and environment.",
)
"""--override, as the argument `overrides`."""


def log_options(function: Function) -> Function:
    """--log-level and --log-format, as the argument `logs`."""

    def command(*arguments: Any, log_level: str, log_format: str, **others: Any) -> Any:
        return function(*arguments, logs=telemetry.Logs(log_level, log_format), **others)

    options = (
        click.option(
            "--log-level",
            type=click.Choice(telemetry.LEVELS),
            default="info",
            show_default=True,
            help="Lowest severity of log messages to print.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(telemetry.FORMATS),
            default=telemetry.TEXT,
            show_default=True,
            help="Print log messages as lines of text, or as a JSON object each.",
        ),
    )
    return with_options(function, command, options)


def format_node(config: NodeConfig, options: "FormatOptions") -> list[str]:
    """Format a node's directories; returns a line about each."""
    from barnabas.base.local_disk import LocalDisk
    from barnabas.node.metadata.storage_format import format_directories

    disk = LocalDisk()
    try:
        return format_directories(
            disk,
            config,
            options,
            random=random.SystemRandom(),
            now_ms=time.time_ns() // 1_000_000,
        )
    finally:
        disk.close()


def read_properties(path: str) -> dict[str, str]:
    """A properties file, UTF-8. Raises CliError where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.REFUSED
        raise CliError(f"{path}: {error.strerror}", code) from error
    except ValueError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error


def load_node_config(path: str, overrides: Sequence[str]) -> NodeConfig:
    """File, environment and flags as one configuration. Raises CliError and ConfigError."""
    values = read_properties(path)
    return NodeConfig.from_properties(
        {**values, **from_environment(os.environ), **from_flags(overrides)}
    )
