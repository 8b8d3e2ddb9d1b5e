"""Feature levels: `metadata.version` and the features that are upgraded beside it (KIP-584).

A level says which records and RPCs every node of the cluster understands. The table below is
what Apache Kafka 4.3 calls stable; the properties say what each level allows to be written.
Source: Kafka's MetadataVersion and Feature, read with `kafka-storage version-mapping`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.base.errors import ShownError

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
"""Its level says whether the voters are static (0) or dynamic (1)."""
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class MetadataVersion(IntEnum):
    """Every `metadata.version` that Kafka 4.3 can run; the value is the feature level."""

    IBP_3_3_IV3 = 7
    IBP_3_4_IV0 = 8
    IBP_3_5_IV0 = 9
    IBP_3_5_IV1 = 10
    IBP_3_5_IV2 = 11
    IBP_3_6_IV0 = 12
    IBP_3_6_IV1 = 13
    IBP_3_6_IV2 = 14
    IBP_3_7_IV0 = 15
    IBP_3_7_IV1 = 16
    IBP_3_7_IV2 = 17
    IBP_3_7_IV3 = 18
    IBP_3_7_IV4 = 19
    IBP_3_8_IV0 = 20
    IBP_3_9_IV0 = 21
    IBP_4_0_IV0 = 22
    IBP_4_0_IV1 = 23
    IBP_4_0_IV2 = 24
    IBP_4_0_IV3 = 25
    IBP_4_1_IV0 = 26
    IBP_4_1_IV1 = 27
    IBP_4_2_IV0 = 28
    IBP_4_2_IV1 = 29
    IBP_4_3_IV0 = 30

    @property
    def text(self) -> str:
        """Kafka's name of the level, such as `4.3-IV0`."""
        _, major, minor, revision = self.name.split("_")
        return f"{major}.{minor}-{revision}"

    @property
    def has_leader_epoch_bump_on_isr_shrink(self) -> bool:
        return self < MetadataVersion.IBP_3_6_IV0

    @property
    def has_zk_migration_record(self) -> bool:
        return self >= MetadataVersion.IBP_3_4_IV0

    @property
    def has_scram(self) -> bool:
        return self >= MetadataVersion.IBP_3_5_IV2

    @property
    def has_transactions(self) -> bool:
        """True if BeginTransaction/EndTransaction records may bracket a change (KIP-868)."""
        return self >= MetadataVersion.IBP_3_6_IV1

    @property
    def has_delegation_tokens(self) -> bool:
        """True if delegation tokens may be kept as records (KIP-900)."""
        return self >= MetadataVersion.IBP_3_6_IV2

    @property
    def has_controller_registration(self) -> bool:
        return self >= MetadataVersion.IBP_3_7_IV0

    @property
    def has_directories(self) -> bool:
        """True if replicas are assigned to log directories (KIP-858)."""
        return self >= MetadataVersion.IBP_3_7_IV2

    @property
    def has_elr(self) -> bool:
        """True if partition records may carry eligible leader replicas (KIP-966)."""
        return self >= MetadataVersion.IBP_4_0_IV1

    @property
    def has_cordoned_log_dirs(self) -> bool:
        """True if log directories may be closed to new replicas (KIP-1066)."""
        return self >= MetadataVersion.IBP_4_3_IV0

    @property
    def register_broker_record_version(self) -> int:
        if self.has_cordoned_log_dirs:
            return 4
        if self.has_directories:
            return 3
        return 2 if self.has_zk_migration_record else 1

    @property
    def partition_record_version(self) -> int:
        """The version of PartitionRecord and of PartitionChangeRecord."""
        if self.has_elr:
            return 2
        return 1 if self.has_directories else 0


MINIMUM_METADATA_VERSION = MetadataVersion.IBP_3_3_IV3
LATEST_METADATA_VERSION = MetadataVersion.IBP_4_3_IV0

_CHANGES_RECORDS = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels that brought new records or fields, so that no one may go back across them."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature other than `metadata.version`.

    `defaults` lists (first metadata.version, level a new cluster gets from there on).
    """

    name: str
    maximum: int
    defaults: tuple[tuple[MetadataVersion, int], ...]
    requires: tuple[tuple[int, MetadataVersion], ...] = ()
    """(level from which it holds, least metadata.version)."""

    def default_level(self, metadata_version: MetadataVersion) -> int:
        """The level that a cluster formatted at `metadata_version` starts with."""
        level = 0
        for first, value in self.defaults:
            if metadata_version >= first:
                level = value
        return level


FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature(KRAFT_VERSION, 1, ((MetadataVersion.IBP_3_9_IV0, 1),)),
        Feature(TRANSACTION_VERSION, 2, ((MetadataVersion.IBP_4_0_IV2, 2),)),
        Feature(GROUP_VERSION, 1, ((MetadataVersion.IBP_4_0_IV0, 1),)),
        Feature(
            ELR_VERSION,
            1,
            ((MetadataVersion.IBP_4_1_IV0, 1),),
            requires=((1, MetadataVersion.IBP_4_0_IV1),),
        ),
        Feature(SHARE_VERSION, 1, ((MetadataVersion.IBP_4_2_IV0, 1),)),
        Feature(STREAMS_VERSION, 1, ((MetadataVersion.IBP_4_2_IV1, 1),)),
    )
}

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION),
    **{feature.name: (0, feature.maximum) for feature in FEATURES.values()},
}
"""What this node registers: the least and greatest level of each feature it can run."""


def metadata_version_from_text(text: str) -> MetadataVersion:
    """Parse a release such as `4.3`, `4.3.1` or `4.3-IV0`; a bare release is its last level.

    Raises ValueError naming the accepted range.
    """
    release, _, revision = text.strip().partition("-")
    wanted = ".".join(release.split(".")[:2])
    matches = [
        version
        for version in MetadataVersion
        if version.text.partition("-")[0] == wanted
        and revision in ("", version.text.partition("-")[2])
    ]
    if not matches:
        raise ValueError(
            f"unknown release version {text!r}: choose one from {MINIMUM_METADATA_VERSION.text}"
            f" to {LATEST_METADATA_VERSION.text}"
        )
    return matches[-1]


def metadata_version_from_level(level: int) -> MetadataVersion:
    """Raises ValueError if this release cannot run `level`."""
    try:
        return MetadataVersion(level)
    except ValueError:
        raise ValueError(
            f"metadata.version {level} is not supported: this node runs "
            f"{int(MINIMUM_METADATA_VERSION)} ({MINIMUM_METADATA_VERSION.text}) to "
            f"{int(LATEST_METADATA_VERSION)} ({LATEST_METADATA_VERSION.text})"
        ) from None


def records_changed_between(lower: MetadataVersion, higher: MetadataVersion) -> bool:
    """Return whether a log written at `higher` may hold records that `lower` cannot read."""
    return any(lower < level <= higher for level in _CHANGES_RECORDS)


def unmet_requirement(name: str, level: int, levels: Mapping[str, int]) -> str | None:
    """Why `name` may not be at `level` beside the other `levels`, or None if it may."""
    for from_level, least in FEATURES[name].requires:
        if level >= from_level and levels.get(METADATA_VERSION, 0) < least:
            return (
                f"{name}={level} requires {METADATA_VERSION} to be at least {int(least)}"
                f" ({least.text})"
            )
    return None


class UnsupportedFeatureError(ShownError, ValueError):
    """The cluster is at a level that this release cannot run; the text says which it can."""


def check_finalized(levels: Mapping[str, int]) -> None:
    """Raises UnsupportedFeatureError if this release cannot run a cluster at these levels."""
    for name, level in levels.items():
        least, greatest = SUPPORTED_FEATURES.get(name, (0, 0))
        if not least <= level <= greatest:
            raise UnsupportedFeatureError(
                f"the cluster's {name} is {level}; this release runs {least} to {greatest}. "
                + (
                    "Start a newer release on this directory."
                    if level > greatest
                    else f"Upgrade the cluster to at least {least} with an older release first."
                )
            )
