"""What a node listens with: its limits, and the refusal where an address cannot be had."""

from barnabas.base.config.listeners import ListenerConfig
from barnabas.base.config.node import NodeConfig
from barnabas.net.server import ServerLimits


class CannotListenError(OSError):
    """A listener's address cannot be had: another process listens there, or it is not ours."""

    def __init__(self, listener: ListenerConfig, cause: OSError) -> None:
        super().__init__(cause.errno, f"cannot listen on {listener}: {cause.strerror}")

    def __str__(self) -> str:
        return str(self.strerror)


def server_limits(config: NodeConfig) -> ServerLimits:
    """What a node's listeners accept."""
    overrides = {}
    for entry in config.string("max.connections.per.ip.overrides").split(","):
        if entry.strip():
            host, _, count = entry.rpartition(":")
            overrides[host.strip()] = int(count)
    return ServerLimits(
        frame_size_max_bytes=config.int("socket.request.max.bytes"),
        connections_max=config.int("max.connections"),
        connections_per_ip_max=config.int("max.connections.per.ip"),
        connections_per_ip_overrides=overrides,
        idle_max_ms=config.long("connections.max.idle.ms"),
    )
