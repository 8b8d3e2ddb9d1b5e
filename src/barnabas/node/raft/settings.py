"""The quorum's settings: `controller.quorum.*`, all in milliseconds and bytes."""

from dataclasses import dataclass

from barnabas.node.config.node_config import NodeConfig


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """Kafka's defaults; source: QuorumConfig."""

    election_timeout_ms: int = 1000
    """The time limit without a leader, and for gathering votes, before the next attempt."""
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    """The time without a successful fetch after which a follower looks for another leader."""
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    """Time that a leader may hold a fetch that has no new records (Kafka's constant)."""
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    auto_join: bool = False
    """True if a controller that is not a voter asks to become one (KIP-853)."""

    @classmethod
    def from_config(cls, config: NodeConfig) -> "RaftSettings":
        """The settings of a node."""
        return cls(
            election_timeout_ms=config.get_int("controller.quorum.election.timeout.ms"),
            election_backoff_max_ms=config.get_int("controller.quorum.election.backoff.max.ms"),
            fetch_timeout_ms=config.get_int("controller.quorum.fetch.timeout.ms"),
            request_timeout_ms=config.get_int("controller.quorum.request.timeout.ms"),
            retry_backoff_ms=config.get_int("controller.quorum.retry.backoff.ms"),
            fetch_max_bytes=config.get_int("controller.quorum.fetch.max.bytes"),
            fetch_snapshot_max_bytes=config.get_int("controller.quorum.fetch.snapshot.max.bytes"),
            auto_join=config.get_bool("controller.quorum.auto.join.enable"),
        )
