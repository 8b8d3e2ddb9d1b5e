"""The REST interface's settings, from its server."""

import ssl
from dataclasses import dataclass

from barnabas import __version__
from barnabas.base.tls.contexts import configured_client
from barnabas.registry.config import RegistryConfig

BODY_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """Facts that `/v1/metadata` tells, and limits."""

    group_id: str = "schema-registry"
    version: str = __version__
    commit_id: str = ""
    deployment: tuple[str, ...] | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    """A longer body of a request is refused with 413."""
    logs_requests: bool = True
    """True if each request gets a line in the log, in Apache's format."""
    forwarded_headers: tuple[str, ...] = ()
    """Headers that go on to the leader, besides those that always do."""
    write_timeout_ms: int = 500
    """Time that a write looks for a leader that accepts it."""
    leader_connect_timeout_ms: int = 60_000
    leader_read_timeout_ms: int = 60_000
    """The time limit for a connection to the leader, and for its answer; 0 is for ever."""
    leader_tls: ssl.SSLContext | None = None
    """The TLS context for a leader that listens on https; None is the default."""

    @classmethod
    def of(cls, config: RegistryConfig) -> "HttpConfig":
        """The settings of the server's file. Raises ConfigError."""
        is_limited = config.get_bool("size.limit.filter.enabled")
        bytes_max = config.get_int("size.limit.filter.max.request.body.size")
        speaks_tls = config.inter_instance_listener.scheme == "https"
        return cls(
            group_id=config.group_id,
            body_bytes_max=bytes_max if is_limited else BODY_BYTES_MAX,
            forwarded_headers=tuple(config.get_list("inter.instance.headers.whitelist")),
            write_timeout_ms=config.timeout_ms,
            leader_connect_timeout_ms=config.get_int("leader.connect.timeout.ms"),
            leader_read_timeout_ms=config.get_int("leader.read.timeout.ms"),
            leader_tls=configured_client(config, "") if speaks_tls else None,
        )
