"""`barnabas feature`: feature levels of a cluster, such as metadata.version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from barnabas import __version__
from barnabas.cli.admin import Admin
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.cli.option_sets import option_set
from barnabas.cli.output import Output, Row, json_option
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import controller_option, reached
from barnabas.kafka.wire_routing import ask_broker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_from_text,
)
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest


@click.group()
def command() -> None:
    """Show, upgrade and downgrade feature levels."""


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas feature describe\n"
    "  barnabas feature describe --bootstrap-controller localhost:9093\n",
)
@controller_option
@connection_options
def describe_command(connection: Connection, controllers: str | None, as_json: bool) -> None:
    """Show supported and finalized levels."""
    with reached(connection, controllers) as admin:
        levels = read_levels(admin)
    rows: list[Row] = [
        {
            "feature": item.name,
            "min": item.supported_min,
            "max": item.supported_max,
            "finalized": item.finalized,
            "epoch": levels.epoch,
        }
        for item in levels.features
    ]
    if not as_json:
        for row in rows:
            for column in ("min", "max", "finalized"):
                row[column] = level_text(row["feature"], row[column])
    Output(as_json).rows(rows, ("feature", "min", "max", "finalized", "epoch"), "No features.")


_change_options = option_set(
    click.option("--dry-run", is_flag=True, help="Only check whether it could be done."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    controller_option,
)
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
    help="Set all features to the levels of this release, such as 4.3; kraft.version stays.",
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
    if not pairs:
        raise CliError("give --feature NAME=LEVEL", ExitCode.USAGE)
    rows: list[Row] = []
    for name, level in parse_levels(pairs).items():
        required = requirements(name, level)
        needs = [f"{other}={level_text(other, least)}" for other, least in required.items()]
        rows.append({"feature": name, "level": level, "requires": needs})
    Output(as_json).rows(rows, ("feature", "level", "requires"))


# Feature levels of a cluster: read from ApiVersions, changed by UpdateFeatures (KIP-584).


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""Kinds of updates, as UpdateFeatures numbers them."""
LEVEL_MAX = 2**15 - 1


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A feature: what the node that answered supports, and what the cluster runs at."""

    name: str
    supported_min: int
    supported_max: int
    finalized: int


@dataclass(frozen=True, slots=True)
class Levels:
    """All features; `epoch` is None if nothing is finalized."""

    epoch: int | None
    features: tuple[FeatureLevel, ...]


def downgrade_kind(*, unsafe: bool) -> int:
    """The kind of update for a downgrade."""
    return UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE


def read_levels(admin: Admin) -> Levels:
    """The features that a node tells. Raises CliError."""
    answer = admin.run(
        ask_broker,
        ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__),
    )
    if answer.error_code != ErrorCode.NONE:
        raise from_code(answer.error_code, None, "features")
    finalized = {item.name: item.max_version_level for item in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    return Levels(
        epoch if epoch >= 0 else None,
        tuple(
            FeatureLevel(item.name, item.min_version, item.max_version, finalized.get(item.name, 0))
            for item in sorted(answer.supported_features, key=lambda item: item.name)
        ),
    )


def level_text(name: str, level: int) -> str:
    """A level as Kafka's tools show it: 4.3-IV0 for one of metadata.version."""
    if name == METADATA_VERSION and level in MetadataVersion._value2member_map_:
        return MetadataVersion(level).text
    return str(level)


def parse_levels(pairs: Sequence[str]) -> dict[str, int]:
    """NAME=LEVEL by name; a level of metadata.version may be a release. Raises CliError."""
    levels: dict[str, int] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise CliError(f"--feature {pair}: must be NAME=LEVEL", ExitCode.USAGE)
        if name in levels:
            raise CliError(f"--feature {name}: given twice", ExitCode.USAGE)
        levels[name] = _level(name, text)
    return levels


def _level(name: str, text: str) -> int:
    if text.isdecimal() and int(text) <= LEVEL_MAX:
        return int(text)
    if name == METADATA_VERSION:
        return int(_release(text, "--feature metadata.version"))
    raise CliError(f"--feature {name}: {text!r} is not a level", ExitCode.USAGE)


def _release(text: str, option: str) -> MetadataVersion:
    try:
        return metadata_version_from_text(text)
    except ValueError as error:
        raise CliError(f"{option}: {error}", ExitCode.USAGE) from error


def levels_of_release(text: str | None) -> dict[str, int]:
    """The levels of a new cluster of a release, by default of the newest. Raises CliError."""
    release = LATEST_METADATA_VERSION if text is None else _release(text, "--release-version")
    levels = {name: feature.default_level(release) for name, feature in FEATURES.items()}
    return {METADATA_VERSION: int(release), **dict(sorted(levels.items()))}


def wanted_levels(
    admin: Admin, release: str | None, pairs: Sequence[str], *, is_upgrade: bool
) -> dict[str, int]:
    """Return what is to change: features as named, and those that a release has higher or lower.

    Raises CliError.
    """
    if release is None and not pairs:
        raise CliError("give --release-version or --feature NAME=LEVEL", ExitCode.USAGE)
    wanted = parse_levels(pairs)
    if release is not None:
        target = levels_of_release(release)
        for item in read_levels(admin).features:
            level = target.get(item.name, item.finalized)
            moves = level > item.finalized if is_upgrade else level < item.finalized
            if moves and item.name != KRAFT_VERSION:
                wanted.setdefault(item.name, level)
    return wanted


def requirements(name: str, level: int) -> Mapping[str, int]:
    """The least levels of other features that a level needs. Raises CliError."""
    if name == METADATA_VERSION:
        return {}
    feature = FEATURES.get(name)
    if feature is None or level > feature.maximum:
        raise CliError(f"there is no feature {name}={level}", ExitCode.NOT_FOUND)
    needed = [int(least) for from_level, least in feature.requires if level >= from_level]
    return {METADATA_VERSION: max(needed)} if needed else {}


def update(admin: Admin, levels: Mapping[str, int], kind: int, *, validate_only: bool) -> None:
    """Have the cluster run at these levels. Raises CliError for the first that is refused."""
    request = UpdateFeaturesRequest(
        timeout_ms=int(admin.timeout_s * 1000),
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )
    answer = admin.decide(request, "features")
    for result in answer.results:  # of brokers before Kafka 4.0
        if result.error_code != ErrorCode.NONE:
            raise from_code(result.error_code, result.error_message, result.feature)
