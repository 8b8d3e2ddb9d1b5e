"""Configuration of the transaction coordinator."""

from dataclasses import dataclass

from barnabas.node.config.node_config import NodeConfig


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Kafka's settings under their meaning; the defaults are Kafka's."""

    state_partitions: int = 50
    timeout_max_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    write_timeout_ms: int = 30_000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 100
    """How long the broker itself waits for the transaction before to be completed."""

    @classmethod
    def from_node(cls, config: NodeConfig) -> "TransactionConfig":
        """Read `transaction.*` and what belongs to it."""
        return cls(
            state_partitions=config.get_int("transaction.state.log.num.partitions"),
            timeout_max_ms=config.get_int("transaction.max.timeout.ms"),
            id_expiration_ms=config.get_int("transactional.id.expiration.ms"),
            write_timeout_ms=config.get_int("request.timeout.ms"),
            retry_backoff_ms=config.get_int("add.partitions.to.txn.retry.backoff.ms"),
            retry_backoff_max_ms=config.get_int("add.partitions.to.txn.retry.backoff.max.ms"),
        )
