"""Feature levels of a cluster: read from ApiVersions, changed by UpdateFeatures (KIP-584)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas import __version__
from barnabas.cli.admin import Admin
from barnabas.cli.coordinators import ask_broker
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.node.metadata.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_from_text,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest

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
    """All features; `epoch` is None where nothing is finalized."""

    epoch: int | None
    features: tuple[FeatureLevel, ...]


def downgrade_kind(*, unsafe: bool) -> int:
    """The kind of update for a downgrade."""
    return UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE


def read_levels(admin: Admin) -> Levels:
    """The features that a node tells. Raises CliError."""
    answer = ask_broker(
        admin,
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
    """What is to change: features as named, and those that a release has higher or lower.

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
