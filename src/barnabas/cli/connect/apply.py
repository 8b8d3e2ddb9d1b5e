"""`barnabas connect diff` and `apply`: connectors as files say, like a declaration of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from barnabas.cli.connect.changing import create, yes_option
from barnabas.cli.connect.client import Connect, connect_options
from barnabas.cli.connect.files import Wanted, read_folder
from barnabas.cli.connect.plugins import error_rows, validation
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes that make a connector equal to its file. `settings`: (key, now, wanted)."""

    name: str
    action: str
    """create, change or delete."""
    settings: Sequence[tuple[str, str | None, str | None]] = ()


def differences(
    wanted: list[Wanted], now: dict[str, dict[str, str]], *, prune: bool
) -> list[Difference]:
    """Return what is to be done, in the order of names."""
    found = []
    for one in wanted:
        if one.name not in now:
            settings = [(key, None, value) for key, value in sorted(one.config.items())]
            found.append(Difference(one.name, "create", settings))
            continue
        held = now[one.name]
        changed = [
            (key, held.get(key), one.config.get(key))
            for key in sorted(held.keys() | one.config.keys())
            if held.get(key) != one.config.get(key)
        ]
        if changed:
            found.append(Difference(one.name, "change", changed))
    if prune:
        names = {one.name for one in wanted}
        found += [Difference(name, "delete") for name in sorted(now) if name not in names]
    return sorted(found, key=lambda one: one.name)


def _compare(connect: Connect, folder: str, prune: bool) -> tuple[list[Wanted], list[Difference]]:
    wanted = read_folder(folder)
    expanded = connect.get("connectors", expand="info")
    now = {name: found["info"]["config"] for name, found in expanded.items()}
    return wanted, differences(wanted, now, prune=prune)


def _show(found: list[Difference], output: Output) -> None:
    rows: list[Row] = [
        {"connector": one.name, "action": one.action, "setting": key, "now": now, "wanted": then}
        for one in found
        for key, now, then in one.settings or [("", None, None)]
    ]
    for row in rows:
        for side in ("now", "wanted"):
            if row[side] is not None and _is_secret(row["setting"]):
                row[side] = "***"
    output.rows(rows, ("connector", "action", "setting", "now", "wanted"), "Nothing differs.")


def _is_secret(key: str) -> bool:
    lower = key.lower()
    return any(part in lower for part in ("password", "secret", "jaas", "user.info", "token"))


prune_option = click.option(
    "--prune", is_flag=True, help="Also delete connectors that no file describes."
)


@click.command(
    "diff",
    epilog="\b\nExamples:\n  barnabas connect diff -f connectors/\n"
    "  barnabas connect diff -f orders.json\n\nExit code 5 if something differs.\n",
)
@click.option(
    "--file", "-f", "folder", required=True, type=click.Path(), help="A folder of files, or a file."
)
@prune_option
@connect_options
def diff_command(connect: Connect, folder: str, prune: bool, as_json: bool) -> int:
    """Show how connectors differ from files."""
    _, changes = _compare(connect, folder, prune)
    _show(changes, Output(as_json))
    return ExitCode.PROBLEMS if changes else ExitCode.DONE


@click.command(
    "apply",
    epilog="\b\nExamples:\n  barnabas connect apply -f connectors/\n"
    "  barnabas connect apply -f connectors/ --prune --yes\n\n"
    "All files are validated before anything is changed. Nothing is done if nothing differs.\n",
)
@click.option(
    "--file", "-f", "folder", required=True, type=click.Path(), help="A folder of files, or a file."
)
@prune_option
@yes_option
@connect_options
def apply_command(connect: Connect, folder: str, prune: bool, yes: bool, as_json: bool) -> None:
    """Create and change connectors to match files."""
    wanted, changes = _compare(connect, folder, prune)
    files = {one.name: one for one in wanted}
    output = Output(as_json)
    for one in changes:
        if one.action != "delete":
            errors = error_rows(validation(connect, files[one.name]))
            if errors:
                first = errors[0]
                raise CliError(
                    f"{files[one.name].path}: {len(errors)} errors, the first of "
                    f"{first['setting']}: {first['error']}"
                )
    deleted = [one.name for one in changes if one.action == "delete"]
    if deleted:
        confirm(f"Delete {', '.join(deleted)}?", yes)
    for one in changes:
        if one.action == "delete":
            connect.ask("DELETE", ("connectors", one.name))
        elif one.action == "create":
            create(connect, files[one.name])
        else:
            connect.ask("PUT", ("connectors", one.name, "config"), body=files[one.name].config)
    rows = [{"connector": one.name, "action": f"{one.action}d"} for one in changes]
    output.rows(rows, ("connector", "action"), "Nothing differs.")
