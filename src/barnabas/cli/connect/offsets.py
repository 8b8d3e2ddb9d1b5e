"""`barnabas connect offsets`: how far a connector has come, and how to set it back."""

import json
import sys
from typing import Any

import click

from barnabas.cli.connect.changing import yes_option
from barnabas.cli.connect.client import Connect, connect_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, json_option
from barnabas.cli.prompts import confirm


@click.group("offsets")
def offsets_group() -> None:
    """Show, alter and reset the offsets of a connector.

    Stop the connector before you alter or reset them.
    """


@offsets_group.command(
    "get",
    epilog="\b\nExamples:\n  barnabas connect offsets get orders\n"
    "  barnabas connect offsets get orders --json > offsets.json\n",
)
@click.argument("name")
@json_option
@connect_options
def get_command(connect: Connect, name: str, as_json: bool) -> None:
    """Show how far a connector has read or written."""
    answer = connect.get("connectors", name, "offsets")
    if as_json:
        Output(True).result(answer, "")
        return
    rows = [
        {"partition": json.dumps(one["partition"]), "offset": json.dumps(one["offset"])}
        for one in answer["offsets"]
    ]
    Output(False).rows(rows, ("partition", "offset"), f"{name} has no offsets.")


@offsets_group.command(
    "alter",
    epilog="\b\nExamples:\n  barnabas connect offsets alter orders offsets.json\n"
    '  barnabas connect offsets alter lines - <<< \'{"offsets": [\n'
    '    {"partition": {"filename": "f"}, "offset": {"position": 0}}]}\'\n',
)
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@json_option
@connect_options
def alter_command(connect: Connect, name: str, file: str, as_json: bool) -> None:
    """Set the offsets that FILE holds.

    FILE has the form that `get --json` prints; - is standard input.
    """
    body = _read(file)
    answer = connect.ask("PATCH", ("connectors", name, "offsets"), body)
    Output(as_json).result(answer, answer["message"])


def _read(path: str) -> Any:
    try:
        if path == "-":
            return json.load(sys.stdin)
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except ValueError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error


@offsets_group.command(
    "reset", epilog="\b\nExample:\n  barnabas connect offsets reset orders --yes\n"
)
@click.argument("name")
@yes_option
@json_option
@connect_options
def reset_command(connect: Connect, name: str, yes: bool, as_json: bool) -> None:
    """Delete all offsets: the connector starts from the beginning."""
    confirm(f"Reset the offsets of {name}?", yes)
    answer = connect.ask("DELETE", ("connectors", name, "offsets"))
    Output(as_json).result(answer, answer["message"])
