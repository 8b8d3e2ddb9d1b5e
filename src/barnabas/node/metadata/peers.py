"""Connections to the controller listeners of other nodes, made when they are needed.

What may wait long at the other side (a fetch of the metadata log) and what must not wait behind
it (a vote, a heartbeat) travel on connections of their own, since answers come in order.
"""

from collections.abc import Callable
from typing import Any

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.client import Peer
from barnabas.node.net.dialer import Dialer
from barnabas.node.net.own_login import Toward
from barnabas.protocol.messages.connections import EnvelopeRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest, BrokerRegistrationRequest
from barnabas.protocol.messages.partitions import AlterPartitionRequest
from barnabas.protocol.messages.quorum import FetchSnapshotRequest
from barnabas.protocol.schema import Message

_LANES: dict[type, str] = {
    FetchRequest: "fetch",
    FetchSnapshotRequest: "fetch",
    BrokerHeartbeatRequest: "lifecycle",
    BrokerRegistrationRequest: "lifecycle",
    EnvelopeRequest: "forwarding",
    AlterPartitionRequest: "partitions",
}
QUORUM_LANE = "quorum"
QUORUM_LANES = ("fetch", QUORUM_LANE)
CONNECT_TIMEOUT_MS = 2000
"""The upper bound of the configured value: who does not answer may have a successor by then.

One for all requests: a connection outlives the one that it is made for.
"""


class ControllerPeers:
    """Implements `raft.node.RaftTransport`, and carries a broker's requests too.

    `on_response` sees each response, with the address that it came from.
    """

    def __init__(
        self,
        config: NodeConfig,
        network: Network,
        clock: Clock,
        random: RandomSource,
        on_response: Callable[[str, int, Any], None],
    ) -> None:
        self._client_id = f"node-{config.node_id}"
        common = config, network, clock, random
        self._quorum_dialer = Dialer(  # its machine rests after a failure
            *common,
            reconnect_backoff_ms=0,
            connect_timeout_ms=CONNECT_TIMEOUT_MS,
            toward=Toward.CONTROLLERS,
        )
        self._dialer = Dialer(
            *common,
            receive_buffer_key=None,
            connect_timeout_ms=CONNECT_TIMEOUT_MS,
            toward=Toward.CONTROLLERS,
        )
        self._on_response = on_response
        self._peers: dict[tuple[str, int, str], Peer] = {}

    async def send(self, host: str, port: int, request: Message, timeout_ms: int) -> Any:
        """The response of the node that listens there. Raises OSError as `Peer.send` does."""
        lane = _LANES.get(type(request), QUORUM_LANE)
        peer = self._peers.get((host, port, lane))
        if peer is None:
            dialer = self._quorum_dialer if lane in QUORUM_LANES else self._dialer
            peer = self._peers[host, port, lane] = dialer.peer(host, port, self._client_id)
        response = await peer.send(request, timeout_ms=timeout_ms)
        self._on_response(host, port, response)
        return response

    def follow(self, config: NodeConfig) -> None:
        """Open new connections as another configuration says."""
        self._quorum_dialer.follow(config)
        self._dialer.follow(config)

    def close(self) -> None:
        """End every connection."""
        for peer in self._peers.values():
            peer.close()
