"""`barnabas connect plugins`, `settings`, `validate`, `loggers`."""

from typing import Any

import click

from barnabas.cli.connect.client import Connect, connect_options
from barnabas.cli.connect.files import Wanted, read_file
from barnabas.cli.errors import ExitCode
from barnabas.cli.output import Output, Row


@click.command(
    "plugins",
    epilog="\b\nExamples:\n  barnabas connect plugins\n  barnabas connect plugins --all\n",
)
@click.option("--all", "everything", is_flag=True, help="List transforms and converters too.")
@connect_options
def plugins_command(connect: Connect, everything: bool, as_json: bool) -> None:
    """List the connectors that a worker has."""
    query = {"connectorsOnly": "false"} if everything else {}
    rows = connect.ask("GET", ("connector-plugins",), query=query)
    Output(as_json).rows(rows, ("type", "class", "version"), "There are no plugins.")


@click.command(
    "settings",
    epilog="\b\nExamples:\n  barnabas connect settings JdbcSource\n"
    "  barnabas connect settings org.apache.kafka.connect.transforms.Cast\\$Value\n",
)
@click.argument("plugin")
@connect_options
def settings_command(connect: Connect, plugin: str, as_json: bool) -> None:
    """Show which settings a connector, transform or converter has."""
    definitions = connect.get("connector-plugins", plugin, "config")
    if as_json:
        Output(True).result(definitions, "")
        return
    rows: list[Row] = [
        {
            "setting": one["name"],
            "type": one["type"].lower(),
            "default": "(required)" if one["required"] else one["default_value"],
            "importance": one["importance"].lower(),
            "meaning": one["documentation"],
        }
        for one in definitions
    ]
    columns = ("setting", "type", "default", "importance", "meaning")
    Output(False).rows(rows, columns, f"{plugin} has no settings.")


@click.command(
    "validate",
    epilog="\b\nExample:\n  barnabas connect validate orders.json\n\n"
    "Exit code 5 if the configuration has errors.\n",
)
@click.argument("file", type=click.Path(dir_okay=False))
@connect_options
def validate_command(connect: Connect, file: str, as_json: bool) -> int:
    """Check a connector's configuration without creating it."""
    wanted = read_file(file)
    answer = validation(connect, wanted)
    rows = error_rows(answer)
    output = Output(as_json)
    if as_json:
        output.result(answer, "")
    elif rows:
        output.rows(rows, ("setting", "value", "error"))
    else:
        output.result(None, f"{wanted.name}: no errors")
    return ExitCode.PROBLEMS if answer["error_count"] else ExitCode.DONE


def validation(connect: Connect, wanted: Wanted) -> Any:
    """Return what a worker says of a configuration."""
    name = wanted.config["connector.class"].rpartition(".")[2]
    path = ("connector-plugins", name, "config", "validate")
    return connect.ask("PUT", path, body={**wanted.config, "name": wanted.name})


def error_rows(answer: Any) -> list[Row]:
    """Return each error with its setting."""
    return [
        {"setting": one["value"]["name"], "value": one["value"]["value"], "error": error}
        for one in answer["configs"]
        for error in one["value"]["errors"]
    ]


@click.group("loggers")
def loggers_group() -> None:
    """Show and set what workers log."""


@loggers_group.command(
    "list", epilog="\b\nExample:\n  barnabas connect loggers list --url http://worker-2:8083\n"
)
@connect_options
def list_loggers(connect: Connect, as_json: bool) -> None:
    """Show the loggers of a worker whose levels are set."""
    loggers = connect.get("admin", "loggers")
    rows = [{"logger": name, **level} for name, level in sorted(loggers.items())]
    Output(as_json).rows(rows, ("logger", "level", "last_modified"))


@loggers_group.command(
    "set",
    epilog="\b\nExample:\n  barnabas connect loggers set barnabas.connect debug --cluster\n",
)
@click.argument("logger")
@click.argument("level")
@click.option("--cluster", is_flag=True, help="On all workers; by default on this one.")
@connect_options
def set_logger(connect: Connect, logger: str, level: str, cluster: bool, as_json: bool) -> None:
    """Set the level of a logger and of those below it.

    Levels are trace, debug, info, warn, error and off.
    """
    query = {"scope": "cluster"} if cluster else {}
    changed = connect.ask("PUT", ("admin", "loggers", logger), query, {"level": level.upper()})
    Output(as_json).result(changed, f"{logger} is set to {level.upper()}")
