"""What the REST interface is told by the server that it is part of."""

import ssl
from dataclasses import dataclass

BODY_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """Facts that `/v1/metadata` tells, and limits."""

    kafka_cluster_id: str = ""
    group_id: str = "schema-registry"
    version: str = ""
    commit_id: str = ""
    deployment: tuple[str, ...] | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    """A longer body of a request is refused with 413."""
    logs_requests: bool = True
    """Whether each request gets a line in the log, in Apache's format."""
    forwarded_headers: tuple[str, ...] = ()
    """Headers that go on to the leader, besides those that always do."""
    allowed_origins: tuple[str, ...] = ()
    """Origins whose web pages may use the interface, or `*`."""
    allowed_methods: tuple[str, ...] = ()
    """Methods that those pages may use; all of them if empty."""
    allowed_headers: tuple[str, ...] = ()
    """Headers that those pages may send, besides what browsers always send."""
    leader_connect_timeout_ms: int = 60_000
    leader_read_timeout_ms: int = 60_000
    leader_tls: ssl.SSLContext | None = None
    """How the leader's certificate is checked where it listens on https; None is the default."""
