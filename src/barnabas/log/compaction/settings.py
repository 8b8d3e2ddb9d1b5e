"""The keys of log compaction that a node has, beside those of each topic."""

from dataclasses import dataclass

from barnabas.base.config.node import NodeConfig

MAP_BYTES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """`log.cleaner.*`, with Kafka's defaults."""

    map_bytes_max: int = 134_217_728
    map_load_factor: float = 0.9
    io_buffer_bytes: int = 524_288
    """For reading and writing together."""
    bytes_per_second_max: float = float("inf")
    backoff_ms: int = 15_000

    @classmethod
    def from_config(cls, config: NodeConfig) -> "CompactionSettings":
        """As a node's configuration says now."""
        return cls(
            map_bytes_max=min(config.long("log.cleaner.dedupe.buffer.size"), MAP_BYTES_MAX),
            map_load_factor=config.double("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes=config.int("log.cleaner.io.buffer.size"),
            bytes_per_second_max=config.double("log.cleaner.io.max.bytes.per.second"),
            backoff_ms=config.long("log.cleaner.backoff.ms"),
        )
