"""Configuration of the share coordinator."""

from dataclasses import dataclass

from barnabas.node.config.node_config import NodeConfig


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """Kafka's settings under their meaning; the defaults are Kafka's."""

    state_partitions: int = 50
    write_timeout_ms: int = 5_000
    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000

    @classmethod
    def from_node(cls, config: NodeConfig) -> "ShareCoordinatorConfig":
        """Read `share.coordinator.*`."""
        return cls(
            state_partitions=config.get_int("share.coordinator.state.topic.num.partitions"),
            write_timeout_ms=config.get_int("share.coordinator.write.timeout.ms"),
            updates_per_snapshot=config.get_int(
                "share.coordinator.snapshot.update.records.per.snapshot"
            ),
            cold_snapshot_interval_ms=config.get_int(
                "share.coordinator.cold.partition.snapshot.interval.ms"
            ),
            prune_interval_ms=config.get_int("share.coordinator.state.topic.prune.interval.ms"),
        )
