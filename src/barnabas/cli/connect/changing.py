"""`barnabas connect create`, `patch`, `delete`, `pause`, `resume`, `stop`, `restart`, `offsets`.

`offsets` says how far a connector has come, and sets it back.
"""

import json
import sys
from typing import Any

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli.connect.client import Connect, connect_options
from barnabas.cli.connect.files import Wanted, read_file
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, counted
from barnabas.cli.prompts import confirm

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


@click.command(
    "create",
    epilog="\b\nExamples:\n  barnabas connect create orders.json\n"
    "  barnabas connect create pages connector.class=DatagenConnector \\\n"
    "    quickstart=pageviews kafka.topic=pages --state stopped\n",
)
@click.argument("what")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--state",
    type=click.Choice(["running", "paused", "stopped"]),
    help="Initial state; by default that of the file, then running.",
)
@connect_options
def create_command(
    connect: Connect, what: str, settings: tuple[str, ...], state: str | None, as_json: bool
) -> None:
    """Create a connector.

    WHAT is a file, or a name followed by settings.
    """
    wanted = Wanted(what, from_flags(settings)) if settings else read_file(what)
    info = create(connect, wanted, state)
    text = f"{wanted.name} is created, with {counted(len(info['tasks']), 'task')}"
    Output(as_json).result(info, text)


def create(connect: Connect, wanted: Wanted, state: str | None = None) -> Any:
    """Create a connector; returns its info."""
    body: dict[str, Any] = {"name": wanted.name, "config": {**wanted.config, "name": wanted.name}}
    initial = state.upper() if state else wanted.state
    if initial is not None:
        body["initial_state"] = initial
    return connect.ask("POST", ("connectors",), body=body)


@click.command(
    "patch",
    epilog="\b\nExamples:\n  barnabas connect patch orders tasks.max=4\n"
    "  barnabas connect patch orders --remove transforms\n",
)
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--remove", "-r", "removed", multiple=True, metavar="KEY", help="Remove a setting.")
@connect_options
def patch_command(
    connect: Connect, name: str, settings: tuple[str, ...], removed: tuple[str, ...], as_json: bool
) -> None:
    """Change single settings of a connector."""
    changes: dict[str, str | None] = {**from_flags(settings), **dict.fromkeys(removed)}
    if not changes:
        raise CliError("nothing is to be changed", ExitCode.USAGE, "give KEY=VALUE or --remove")
    info = connect.ask("PATCH", ("connectors", name, "config"), body=changes)
    Output(as_json).result(info, f"{name} is changed")


@click.command("delete", epilog="\b\nExample:\n  barnabas connect delete orders --yes\n")
@click.argument("names", nargs=-1, required=True)
@yes_option
@connect_options
def delete_command(connect: Connect, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete connectors. The offsets of sources and the topics stay."""
    confirm(f"Delete {', '.join(names)}?", yes)
    for name in names:
        connect.ask("DELETE", ("connectors", name))
    Output(as_json).result({"deleted": list(names)}, f"{', '.join(names)}: deleted")


def _state_command(verb: str, done: str, text: str) -> click.Command:
    @click.command(verb, help=text, epilog=f"\b\nExample:\n  barnabas connect {verb} orders\n")
    @click.argument("names", nargs=-1, required=True)
    @connect_options
    def run(connect: Connect, names: tuple[str, ...], as_json: bool) -> None:
        for name in names:
            connect.ask("PUT", ("connectors", name, verb))
        Output(as_json).result({done: list(names)}, f"{', '.join(names)}: {done}")

    return run


pause_command = _state_command("pause", "paused", "Pause connectors and their tasks.")
resume_command = _state_command("resume", "resumed", "Resume connectors and their tasks.")
stop_command = _state_command("stop", "stopped", "Stop connectors and end their tasks.")


@click.command(
    "restart",
    epilog="\b\nExamples:\n  barnabas connect restart orders\n"
    "  barnabas connect restart orders --tasks --failed\n"
    "  barnabas connect restart orders --task 2\n",
)
@click.argument("name")
@click.option("--tasks", is_flag=True, help="Restart the tasks too.")
@click.option("--failed", is_flag=True, help="Restart only what has failed.")
@click.option("--task", type=click.IntRange(0), help="Restart only this task.")
@connect_options
def restart_command(
    connect: Connect, name: str, tasks: bool, failed: bool, task: int | None, as_json: bool
) -> None:
    """Restart a connector, or tasks of it."""
    output = Output(as_json)
    if task is not None:
        connect.ask("POST", ("connectors", name, "tasks", str(task), "restart"))
        output.result({"connector": name, "task": task}, f"task {name}-{task} is restarted")
        return
    query = {"includeTasks": tasks, "onlyFailed": failed}
    status = connect.ask("POST", ("connectors", name, "restart"), query=query)
    states = [status["connector"], *status["tasks"]] if status else [{"state": "RESTARTING"}]
    count = sum(one["state"] == "RESTARTING" for one in states)
    output.result(status or {"connector": name}, f"{name}: {count} of {len(states)} restarted")


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
@connect_options
def alter_command(connect: Connect, name: str, file: str, as_json: bool) -> None:
    """Set the offsets that FILE holds.

    FILE has the form that `get --json` prints; - is standard input.
    """
    body = _read(file)
    answer = connect.ask("PATCH", ("connectors", name, "offsets"), body=body)
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
@connect_options
def reset_command(connect: Connect, name: str, yes: bool, as_json: bool) -> None:
    """Delete all offsets: the connector starts from the beginning."""
    confirm(f"Reset the offsets of {name}?", yes)
    answer = connect.ask("DELETE", ("connectors", name, "offsets"))
    Output(as_json).result(answer, answer["message"])
