"""The configuration that a follower obeys."""

from dataclasses import dataclass

from barnabas.node.config.node_config import NodeConfig


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """The keys that a follower obeys."""

    max_wait_ms: int
    min_bytes: int
    partition_max_bytes: int
    response_max_bytes: int
    backoff_max_ms: int
    timeout_ms: int

    @classmethod
    def from_config(cls, config: NodeConfig) -> "FetcherSettings":
        """Read them."""
        return cls(
            max_wait_ms=config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=config.get_int("replica.fetch.min.bytes"),
            partition_max_bytes=config.get_int("replica.fetch.max.bytes"),
            response_max_bytes=config.get_int("replica.fetch.response.max.bytes"),
            backoff_max_ms=config.get_int("replica.fetch.backoff.ms"),
            timeout_ms=config.get_int("replica.socket.timeout.ms"),
        )
