"""`barnabas feature`: feature levels of a cluster, such as metadata.version."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from barnabas.cli.confirm import confirm
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row, json_option
from barnabas.cli.quorum import controller_option, reached

Function = TypeVar("Function", bound=Callable[..., Any])


@click.group()
def command() -> None:
    """Show, upgrade and downgrade feature levels."""


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas feature describe\n"
    "  barnabas feature describe --bootstrap-controller localhost:9093\n",
)
@controller_option
@json_option
@connection_options
def describe_command(connection: Connection, controllers: str | None, as_json: bool) -> None:
    """Show supported and finalized levels."""
    from barnabas.cli.feature_calls import level_text, read_levels

    with reached(connection, controllers) as admin:
        found = read_levels(admin)
    rows: list[Row] = [
        {
            "feature": item.name,
            "min": item.supported_min,
            "max": item.supported_max,
            "finalized": item.finalized,
            "epoch": found.epoch,
        }
        for item in found.features
    ]
    if not as_json:
        for row in rows:
            for column in ("min", "max", "finalized"):
                row[column] = level_text(row["feature"], row[column])
    Output(as_json).rows(rows, ("feature", "min", "max", "finalized", "epoch"), "No features.")


def _change_options(function: Function) -> Function:
    for option in (
        json_option,
        controller_option,
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only check whether it could be done."),
    ):
        function = option(function)
    return function


feature_option = click.option(
    "--feature",
    "-f",
    "pairs",
    multiple=True,
    metavar="NAME=LEVEL",
    help="A feature and its level; may be repeated.",
)
release_option = click.option(
    "--release-version",
    metavar="RELEASE",
    help="All features as this release has them, such as 4.3; kraft.version stays.",
)
unsafe_option = click.option(
    "--unsafe", is_flag=True, help="Downgrade even if that loses metadata."
)


@command.command(
    "upgrade",
    epilog="\b\nExamples:\n  barnabas feature upgrade --release-version 4.3\n"
    "  barnabas feature upgrade --feature metadata.version=4.3-IV0 --dry-run\n"
    "  barnabas feature upgrade --feature kraft.version=1 --yes\n",
)
@release_option
@feature_option
@_change_options
@connection_options
def upgrade_command(
    connection: Connection,
    release_version: str | None,
    pairs: tuple[str, ...],
    controllers: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Raise feature levels, after all nodes run the release."""
    from barnabas.cli.feature_calls import UPGRADE, wanted_levels

    with reached(connection, controllers) as admin:
        levels = wanted_levels(admin, release_version, pairs, is_upgrade=True)
        _change(admin, levels, UPGRADE, "raise", dry_run=dry_run, yes=yes, as_json=as_json)


@command.command(
    "downgrade",
    epilog="\b\nExamples:\n  barnabas feature downgrade --feature transaction.version=1\n"
    "  barnabas feature downgrade --release-version 4.2 --dry-run\n",
)
@release_option
@feature_option
@unsafe_option
@_change_options
@connection_options
def downgrade_command(
    connection: Connection,
    release_version: str | None,
    pairs: tuple[str, ...],
    unsafe: bool,
    controllers: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Lower feature levels."""
    from barnabas.cli.feature_calls import downgrade_kind, wanted_levels

    with reached(connection, controllers) as admin:
        levels = wanted_levels(admin, release_version, pairs, is_upgrade=False)
        kind = downgrade_kind(unsafe=unsafe)
        _change(admin, levels, kind, "lower", dry_run=dry_run, yes=yes, as_json=as_json)


@command.command(
    "disable", epilog="\b\nExample:\n  barnabas feature disable --feature share.version\n"
)
@click.option(
    "--feature", "-f", "names", multiple=True, required=True, help="A feature; may be repeated."
)
@unsafe_option
@_change_options
@connection_options
def disable_command(
    connection: Connection,
    names: tuple[str, ...],
    unsafe: bool,
    controllers: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Lower features to level 0."""
    from barnabas.cli.feature_calls import downgrade_kind

    with reached(connection, controllers) as admin:
        kind = downgrade_kind(unsafe=unsafe)
        levels = dict.fromkeys(names, 0)
        _change(admin, levels, kind, "disable", dry_run=dry_run, yes=yes, as_json=as_json)


def _change(
    admin: Any,
    levels: Mapping[str, int],
    kind: int,
    verb: str,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    from barnabas.cli.feature_calls import level_text, update

    output = Output(as_json)
    if not levels:
        output.result([], "All features have these levels already.")
        return
    shown = {name: f"{name}={level_text(name, level)}" for name, level in levels.items()}
    if not dry_run:
        confirm(f"{verb.capitalize()} {', '.join(shown.values())}?", yes)
    update(admin, levels, kind, validate_only=dry_run)
    rows = [{"feature": name, "level": levels[name], "changed": not dry_run} for name in levels]
    done = "could be changed" if dry_run else "changed"
    output.result(rows, "\n".join(f"{text}: {done}" for text in shown.values()))


@command.command(
    "version-mapping",
    epilog="\b\nExample:\n  barnabas feature version-mapping --release-version 4.2\n",
)
@click.option("--release-version", metavar="RELEASE", help="By default the newest.")
@json_option
def version_mapping_command(release_version: str | None, as_json: bool) -> None:
    """Show the feature levels of a release."""
    from barnabas.cli.feature_calls import level_text, levels_of_release

    levels = levels_of_release(release_version)
    rows: list[Row] = [{"feature": name, "level": level} for name, level in levels.items()]
    if not as_json:
        rows = [{**row, "level": level_text(row["feature"], row["level"])} for row in rows]
    Output(as_json).rows(rows, ("feature", "level"))


@command.command(
    "dependencies",
    epilog="\b\nExample:\n  barnabas feature dependencies "
    "--feature eligible.leader.replicas.version=1\n",
)
@feature_option
@json_option
def dependencies_command(pairs: tuple[str, ...], as_json: bool) -> None:
    """Show what levels of features require."""
    from barnabas.cli.feature_calls import level_text, parse_levels, requirements

    if not pairs:
        raise CliError("give --feature NAME=LEVEL", ExitCode.USAGE)
    rows: list[Row] = []
    for name, level in parse_levels(pairs).items():
        required = requirements(name, level)
        needs = [f"{other}={level_text(other, least)}" for other, least in required.items()]
        rows.append({"feature": name, "level": level, "requires": needs})
    Output(as_json).rows(rows, ("feature", "level", "requires"))
