"""What the broker remembers of one connection."""

import asyncio
from dataclasses import dataclass

from barnabas.broker.produce_again import ProduceShapes
from barnabas.net.connection import Connection


@dataclass(frozen=True, slots=True)
class ClientSoftware:
    """What a client says that it is (KIP-511)."""

    name: str
    version: str


class ClientState:
    """Lives as long as the connection."""

    __slots__ = ("shapes", "software", "transactional_produce")

    def __init__(self) -> None:
        self.shapes = ProduceShapes()
        self.software: ClientSoftware | None = None
        self.transactional_produce: asyncio.Future[None] | None = None
        """The last produce request that waits for a transaction's coordinator."""


def client_state(connection: Connection) -> ClientState:
    """The connection's state, which is made at its first use."""
    state = connection.state
    if not isinstance(state, ClientState):
        state = connection.state = ClientState()
    return state
