"""Other brokers, to be asked by their ids: the image says where they answer.

Each purpose has a `BrokerChannel` with its own connection to each broker, since answers come
in the order of requests: what waits at the other side would hold up the others. Who asks of one
node what can go into one request does so through a `net.question_queue.QuestionQueue`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import BrokerImage, Endpoint, MetadataImage
from barnabas.node.net.client import Peer
from barnabas.node.net.dialer import Dialer
from barnabas.protocol.schema import Message


class UnknownBrokerError(ConnectionError):
    """The image does not say where a broker can be asked."""


def endpoint_between_brokers(broker: BrokerImage | None, listener_name: str) -> Endpoint | None:
    """A broker's endpoint for other brokers; None if it is unknown or lacks the listener."""
    return None if broker is None else broker.listeners.get(listener_name)


class BrokerPeers:
    """The ways from this node to other brokers."""

    def __init__(
        self,
        config: NodeConfig,
        network: Network,
        clock: Clock,
        random: RandomSource,
        image: Callable[[], MetadataImage],
    ) -> None:
        self.node_id = config.node_id
        self._listener_name = config.inter_broker_listener_name
        self._request_timeout_ms = config.get_int("request.timeout.ms")
        self._dialer = Dialer(config, network, clock, random)
        self._image = image
        self._channels: list[BrokerChannel] = []

    def endpoint(self, broker_id: int) -> Endpoint | None:
        """A broker's endpoint; None if the broker is unknown or fenced."""
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        return endpoint_between_brokers(broker, self._listener_name)

    def follow(self, config: NodeConfig) -> None:
        """Open new connections as another configuration says."""
        self._dialer.follow(config)

    def channel(self, purpose: str) -> "BrokerChannel":
        """Connections for one purpose, which their client id names."""
        client_id = f"broker-{self.node_id}-{purpose}"
        channel = BrokerChannel(
            self.endpoint,
            lambda endpoint: self._dialer.peer(
                endpoint.host, endpoint.port, client_id, self._request_timeout_ms
            ),
        )
        self._channels.append(channel)
        return channel

    def brokers_changed(self, image: MetadataImage) -> None:
        """Drop the connections to brokers that left the image, or lack the listener now.

        A fenced broker may come back, and what it was asked may still be answered.
        """
        addresses = {
            broker.id: endpoint_between_brokers(broker, self._listener_name)
            for broker in image.brokers.values()
        }
        for channel in self._channels:
            channel.forget_all_but(addresses)


class BrokerChannel:
    """One connection to each broker that was asked."""

    def __init__(
        self,
        endpoint: Callable[[int], Endpoint | None],
        dial: Callable[[Endpoint], Peer],
    ) -> None:
        self._endpoint = endpoint
        self._dial = dial
        self._peers: dict[int, Peer] = {}
        self._is_closed = False

    def reaches(self, broker_id: int) -> bool:
        """Return whether there is an address at which the broker can be asked now."""
        return not self._is_closed and self._endpoint(broker_id) is not None

    async def ask(self, broker_id: int, request: Message) -> Any:
        """The broker's response, as `Peer.send` gives it, from the address that it has now.

        Raises UnknownBrokerError where it has none, and what `Peer.send` raises.
        """
        return await self._peer(broker_id).send(request)

    def _peer(self, broker_id: int) -> Peer:
        if self._is_closed:
            raise ConnectionAbortedError(f"cannot ask broker {broker_id}: this node is stopping")
        endpoint = self._endpoint(broker_id)
        if endpoint is None:
            raise UnknownBrokerError(f"broker {broker_id} is not in the cluster")
        peer = self._peers.get(broker_id)
        if peer is not None and (peer.host, peer.port) != (endpoint.host, endpoint.port):
            peer.close()
            peer = None
        if peer is None:
            peer = self._peers[broker_id] = self._dial(endpoint)
        return peer

    def forget_all_but(self, addresses: Mapping[int, Endpoint | None]) -> None:
        """Close the connections to brokers that have no address any more."""
        for broker_id, peer in list(self._peers.items()):
            if addresses.get(broker_id) is None:
                del self._peers[broker_id]
                peer.close()

    def close(self) -> None:
        """End every connection; all waiting calls get ConnectionError. Final."""
        self._is_closed = True
        for peer in self._peers.values():
            peer.close()
