"""The keys of log compaction that a node has, beside those of each topic."""

from dataclasses import dataclass

from barnabas.node.config.node_config import NodeConfig

MAP_BYTES_MAX = 2**31 - 1
MAP_BYTES_KEY = "log.cleaner.dedupe.buffer.size"
LOAD_FACTOR_KEY = "log.cleaner.io.buffer.load.factor"
IO_BUFFER_KEY = "log.cleaner.io.buffer.size"
RATE_KEY = "log.cleaner.io.max.bytes.per.second"
BACKOFF_KEY = "log.cleaner.backoff.ms"
COMPACTION_KEYS = (MAP_BYTES_KEY, LOAD_FACTOR_KEY, IO_BUFFER_KEY, RATE_KEY, BACKOFF_KEY)


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
            map_bytes_max=min(config.get_int(MAP_BYTES_KEY), MAP_BYTES_MAX),
            map_load_factor=config.get_float(LOAD_FACTOR_KEY),
            io_buffer_bytes=config.get_int(IO_BUFFER_KEY),
            bytes_per_second_max=config.get_float(RATE_KEY),
            backoff_ms=config.get_int(BACKOFF_KEY),
        )
