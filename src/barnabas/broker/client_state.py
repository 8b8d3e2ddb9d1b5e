"""What the broker remembers of one connection."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.produce.fast_path import ProduceShapes
from barnabas.net.connection import Connection

if TYPE_CHECKING:
    from barnabas.broker.apis.groups.offset_commit_again import CommitShape


@dataclass(frozen=True, slots=True)
class ClientSoftware:
    """What a client says that it is (KIP-511)."""

    name: str
    version: str


class ClientState:
    """Lives as long as the connection."""

    __slots__ = ("commit_shape", "shapes", "software", "transactional_produce")

    def __init__(self) -> None:
        self.shapes = ProduceShapes()
        self.commit_shape: CommitShape | None = None
        """The last OffsetCommit, if it may be repeated."""
        self.software: ClientSoftware | None = None
        self.transactional_produce: asyncio.Future[None] | None = None
        """The last produce request that waits for a transaction's coordinator."""


def client_state(connection: Connection) -> ClientState:
    """The connection's state, which is made at its first use."""
    state = connection.state
    if not isinstance(state, ClientState):
        state = connection.state = ClientState()
    return state
