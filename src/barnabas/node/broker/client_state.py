"""Broker state of one connection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.base.network import Part
from barnabas.node.broker.grants import Grants
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.security.certificate_names import NoRuleError
from barnabas.node.security.principal import ANONYMOUS, USER, Principal
from barnabas.protocol.errors import DecodeError


@dataclass(frozen=True, slots=True)
class ClientSoftware:
    """A client's software name and version (KIP-511)."""

    name: str
    version: str


class RepeatedRequests(Protocol):
    """A fast path for requests that repeat an earlier one of their connection.

    A handler that knows one registers it as `ClientState.repeated`; it is asked before a frame's
    header is read.
    """

    def answer(
        self, connection: Connection, frame: bytearray, /, *, alone: bool = False
    ) -> Sequence[Part] | Reply | None:
        """Answer a whole frame that repeats an earlier one; None: it does not.

        `alone`: without those behind it.
        """


class ClientState:
    """Lives as long as the connection."""

    __slots__ = (
        "checked_produce",
        "fetch_throttle_ms",
        "grants",
        "is_token",
        "principal",
        "repeated",
        "software",
        "transactional_produce",
    )

    def __init__(self) -> None:
        self.principal: Principal = ANONYMOUS
        """The sender of the requests."""
        self.is_token = False
        """True if a delegation token showed who it is."""
        self.grants: Grants | None = None
        """The principal's rights, as far as they have been checked."""
        self.repeated: RepeatedRequests | None = None
        self.software: ClientSoftware | None = None
        self.transactional_produce: asyncio.Future[None] | None = None
        """The last produce request that waits for a transaction's coordinator."""
        self.checked_produce: asyncio.Future[None] | None = None
        """The last produce request that waits for a schema registry, or for one that does."""
        self.fetch_throttle_ms: int | None = 0
        """For how long the fetch that is being answered must wait; None for one of a follower."""

    def authenticated(self, principal: Principal, *, is_token: bool = False) -> None:
        """Note who the client is. State from another principal's requests is dropped."""
        self.principal = principal
        self.is_token = is_token
        self.repeated = None
        self.grants = None


def client_state(connection: Connection) -> ClientState:
    """The connection's state, which is made at its first use.

    Raises DecodeError for a certificate that names nobody.
    """
    state = connection.state
    if not isinstance(state, ClientState):
        state = connection.state = ClientState()
        if connection.listener.security_protocol == "SSL":
            state.principal = _principal_of(connection)
    return state


def _principal_of(connection: Connection) -> Principal:
    """Whom a certificate names, where it is the only proof. Raises DecodeError."""
    session = connection.tls
    if session is None or session.peer_subject is None:
        return ANONYMOUS
    try:
        return Principal(USER, connection.listener.name_of(session.peer_subject))
    except NoRuleError as error:
        raise DecodeError(str(error)) from None
