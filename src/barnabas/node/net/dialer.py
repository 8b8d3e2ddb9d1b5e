"""The dialer: every connection from this node to another one is opened through it.

How connections between nodes are made (socket buffers, time limits, back-off, logins, and TLS where
the listener that they go to speaks it) is settled here and in `Dialing`, which a `Peer` follows.
Requests to brokers by id go through `metadata.broker_peers`, which uses it.
"""

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import dialling_tls
from barnabas.node.net.client import REQUEST_TIMEOUT_MS, Peer
from barnabas.node.net.dialing import RECEIVE_BUFFER_KEY, RECONNECT_BACKOFF_MS, dialing_of
from barnabas.node.net.own_login import Toward, own_login


class Dialer:
    """Makes peers: one for each connection that is to be kept."""

    def __init__(
        self,
        config: NodeConfig,
        network: Network,
        clock: Clock,
        random: RandomSource,
        *,
        receive_buffer_key: str | None = RECEIVE_BUFFER_KEY,
        reconnect_backoff_ms: int = RECONNECT_BACKOFF_MS,
        connect_timeout_ms: int | None = None,
        toward: Toward = Toward.BROKERS,
    ) -> None:
        """`toward` says which listener of other nodes is connected to.

        `reconnect_backoff_ms` is 0 for those who rest after a failure themselves.

        `receive_buffer_key` and `connect_timeout_ms`: see `dialing_of` and `Peer`.
        """
        self._network = network
        self._clock = clock
        self._connect_timeout_ms = connect_timeout_ms
        listener_name = toward.listener_name(config)
        self._tls = None if listener_name is None else dialling_tls(config, listener_name)
        self._dialing = dialing_of(
            config,
            random,
            receive_buffer_key,
            reconnect_backoff_ms=reconnect_backoff_ms,
            login=own_login(config, toward, random, clock),
            tls=self._tls,
        )

    def follow(self, config: NodeConfig) -> None:
        """Open new connections with the certificates of another configuration."""
        if self._tls is not None:
            self._tls.follow(config)

    def peer(
        self, host: str, port: int, client_id: str, request_timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Peer:
        """A peer at that address. It connects when it is first asked."""
        return Peer(
            self._network,
            self._clock,
            host,
            port,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            connect_timeout_ms=self._connect_timeout_ms,
            dialing=self._dialing,
        )
