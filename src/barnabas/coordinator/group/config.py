"""What the group coordinator reads of the node's configuration."""

from dataclasses import dataclass

from barnabas.base.config.node import NodeConfig

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a member without an id may wait for its first generation (Kafka's constant)."""
PENDING_JOINS_MAX = 10_000
"""Ids given out and not yet used, per group; at the limit joins get GROUP_MAX_SIZE_REACHED."""


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
    consumer_session_timeout_ms: int = 45_000

    @classmethod
    def from_node(cls, config: NodeConfig) -> "GroupConfig":
        """Read `group.*` and `offsets.*`."""
        return cls(
            offsets_partitions=config.int("offsets.topic.num.partitions"),
            min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            size_max=config.int("group.max.size"),
            offset_metadata_size_max=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
            write_timeout_ms=config.int("offsets.commit.timeout.ms"),
            consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
        )
