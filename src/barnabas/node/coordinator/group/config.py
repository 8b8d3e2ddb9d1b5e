"""Configuration of the group coordinator."""

import logging
from dataclasses import dataclass
from enum import StrEnum

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.group.group_type import GroupType

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Time that a member without an id may wait for its first generation (Kafka's constant)."""
ASSIGNOR_NAMES = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""The values that `group.consumer.assignors` accepts."""
SHARE_ASSIGNORS = frozenset(
    {"simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"}
)
"""The values that `group.share.assignors` accepts: one assignor, by its name or its class."""
PENDING_JOINS_MAX = 10_000
"""Ids given out and not yet used, per group; at the limit joins get GROUP_MAX_SIZE_REACHED."""

telemetry = logging.getLogger(__name__)


class MigrationPolicy(StrEnum):
    """The directions in which groups may change between the classic and the consumer protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """True if a classic group may become a consumer group while it has members."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """True if a consumer group may become a classic group while it has members."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)

    @property
    def allows_classic_members(self) -> bool:
        """True if classic members may join a consumer group."""
        return self is not MigrationPolicy.DISABLED


@dataclass(frozen=True, slots=True)
class ModernGroupConfig:
    """Settings that consumer, share and streams groups share; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    session_timeout_limits_ms: tuple[int, int] = (45_000, 60_000)
    heartbeat_interval_ms: int = 5_000
    heartbeat_interval_limits_ms: tuple[int, int] = (5_000, 15_000)
    assignment_interval_ms: int = 1_000
    assignment_interval_limits_ms: tuple[int, int] = (0, 15_000)
    size_max: int = 2**31 - 1

    @classmethod
    def from_node(cls, config: NodeConfig, kind: str) -> "ModernGroupConfig":
        """Read `group.<kind>.*`."""
        number = config.get_int
        return cls(
            session_timeout_ms=number(f"group.{kind}.session.timeout.ms"),
            session_timeout_limits_ms=(
                number(f"group.{kind}.min.session.timeout.ms"),
                number(f"group.{kind}.max.session.timeout.ms"),
            ),
            heartbeat_interval_ms=number(f"group.{kind}.heartbeat.interval.ms"),
            heartbeat_interval_limits_ms=(
                number(f"group.{kind}.min.heartbeat.interval.ms"),
                number(f"group.{kind}.max.heartbeat.interval.ms"),
            ),
            assignment_interval_ms=number(f"group.{kind}.assignment.interval.ms"),
            assignment_interval_limits_ms=(
                number(f"group.{kind}.min.assignment.interval.ms"),
                number(f"group.{kind}.max.assignment.interval.ms"),
            ),
            size_max=number(f"group.{kind}.max.size"),
        )


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Kafka's settings under their meaning; the defaults are Kafka's."""

    offsets_partitions: int = 50
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = 2**31 - 1
    offset_metadata_size_max: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    write_timeout_ms: int = 5_000
    consumer: ModernGroupConfig = ModernGroupConfig()
    consumer_regex_refresh_interval_ms: int = 600_000
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    share: ModernGroupConfig = ModernGroupConfig(size_max=200)
    share_initialize_retry_interval_ms: int = 30_000
    streams: ModernGroupConfig = ModernGroupConfig()
    streams_initial_rebalance_delay_ms: int = 3_000
    streams_standby_replicas: int = 0
    streams_standby_replicas_max: int = 2

    def of(self, group_type: GroupType) -> ModernGroupConfig:
        """Settings of the kinds of groups whose coordinator assigns."""
        match group_type:
            case GroupType.CONSUMER:
                return self.consumer
            case GroupType.SHARE:
                return self.share
            case GroupType.STREAMS:
                return self.streams
            case GroupType.CLASSIC:
                raise AssertionError("members of classic groups assign for themselves")

    @classmethod
    def from_node(cls, config: NodeConfig) -> "GroupConfig":
        """Read `group.*` and `offsets.*`."""
        for name in config.get_list("group.share.assignors"):
            if name not in SHARE_ASSIGNORS:
                telemetry.error("group.share.assignors: %s is not a supported assignor", name)
        return cls(
            offsets_partitions=config.get_int("offsets.topic.num.partitions"),
            min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
            size_max=config.get_int("group.max.size"),
            offset_metadata_size_max=config.get_int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.get_int("offsets.retention.minutes") * 60_000,
            write_timeout_ms=config.get_int("offsets.commit.timeout.ms"),
            consumer=ModernGroupConfig.from_node(config, "consumer"),
            consumer_regex_refresh_interval_ms=config.get_int(
                "group.consumer.regex.refresh.interval.ms"
            ),
            consumer_assignors=_assignors(config.get_list("group.consumer.assignors")),
            migration_policy=MigrationPolicy(
                config.get_str("group.consumer.migration.policy").lower()
            ),
            share=ModernGroupConfig.from_node(config, "share"),
            share_initialize_retry_interval_ms=config.get_int(
                "group.share.initialize.retry.interval.ms"
            ),
            streams=ModernGroupConfig.from_node(config, "streams"),
            streams_initial_rebalance_delay_ms=config.get_int(
                "group.streams.initial.rebalance.delay.ms"
            ),
            streams_standby_replicas=config.get_int("group.streams.num.standby.replicas"),
            streams_standby_replicas_max=config.get_int("group.streams.max.standby.replicas"),
        )


def _assignors(names: list[str]) -> tuple[str, ...]:
    """The assignors by their names; Kafka's classes stand for them, classes of others cannot."""
    known = dict.fromkeys(
        name for entry in names if (name := ASSIGNOR_NAMES.get(entry)) is not None
    )
    for entry in names:
        if entry not in ASSIGNOR_NAMES:
            telemetry.error("group.consumer.assignors: %s is not a supported assignor", entry)
    return tuple(known) or tuple(dict.fromkeys(ASSIGNOR_NAMES.values()))
