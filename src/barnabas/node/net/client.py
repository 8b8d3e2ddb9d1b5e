"""Requests to one other node: over at most one connection, made when it is needed.

Requests are pipelined and matched with their answers by correlation id. The first exchange on a
connection is ApiVersions, so each request leaves in the highest version that both sides know. A
request that takes too long ends its connection: what comes late must not be waited for, and the
answers behind it would be late too.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.network import Network
from barnabas.base.tls.words import TlsError
from barnabas.node.loop.pauses import pause
from barnabas.node.net.dialing import PLAIN_DIALING, Dialing
from barnabas.node.net.login import LoginError
from barnabas.node.net.peer_connection import PeerConnection, UnsupportedByPeerError
from barnabas.protocol.schema import Message

__all__ = ["REQUEST_TIMEOUT_MS", "Peer", "UnsupportedByPeerError"]

REQUEST_TIMEOUT_MS = 30_000
"""The default time-out of an answer."""

telemetry = logging.getLogger(__name__)


class Peer:
    """One other node. Of no use to more than one event loop."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        host: str,
        port: int,
        *,
        client_id: str,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        connect_timeout_ms: int | None = None,
        dialing: Dialing = PLAIN_DIALING,
    ) -> None:
        """`connect_timeout_ms`: what opening a connection takes at most, if not `dialing`'s time.

        That includes the exchange of ApiVersions.
        """
        self.host = host
        self.port = port
        self.on_closed: Callable[[], None] | None = None
        """Called when an established connection is lost for any reason but `close`."""
        self._network = network
        self._clock = clock
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._dialing = dialing
        self._setup_failures = 0
        """The number of failed connection attempts in a row."""
        self._rests_until_ms = 0.0
        """No connection is opened before."""
        self._connection: PeerConnection | None = None
        self._connecting: asyncio.Task[PeerConnection] | None = None
        self._login_failure: str | None = None
        """Why the last login failed, which is logged once."""
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        """True if a connection stands, as far as this side knows."""
        return self._connection is not None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    async def send(
        self, request: Message, *, version: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """The response to `request`, in the highest version that both sides know.

        `version` caps that. Values of type `records` are views into the response's own frame.
        Raises ConnectionRefusedError where nobody listens, ConnectionError when the connection
        is lost or the answer makes no sense, TimeoutError, UnsupportedByPeerError, and OSError
        for what else keeps a connection from being made; EncodeError for a request that no
        common version can express.
        """
        connection = self._connection
        if connection is None:
            connection = await self._connect()
        if timeout_ms is None:
            timeout_ms = self._request_timeout_ms
        return await connection.send(request, version, timeout_ms)

    async def connect(self) -> None:
        """Have a connection. Raises as `send` does."""
        if self._connection is None:
            await self._connect()

    async def _connect(self) -> "PeerConnection":
        if self._is_closed:
            raise ConnectionAbortedError(f"the client of {self} is closed")
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._open())
            self._connecting.add_done_callback(self._connected)
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if connecting.cancelled() and (caller is None or not caller.cancelling()):
                # It is the client that was closed; nobody cancelled who asks.
                raise ConnectionAbortedError(f"the client of {self} was closed") from None
            raise

    async def _open(self) -> "PeerConnection":
        rest_ms = self._rests_until_ms - self._clock.monotonic_ms()
        if rest_ms > 0:
            await pause(self._clock, rest_ms)
        connection = PeerConnection(self, self._clock, self._client_id)
        timeout_ms = self._dialing.setup_timeout_ms(self._setup_failures)
        if self._connect_timeout_ms is not None:
            timeout_ms = min(timeout_ms, self._connect_timeout_ms)
        self._setup_failures += 1  # until it stands
        options = self._dialing.options
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._network.connect(
                    self.host, self.port, connection.attach, options, self._dialing.tls
                )
                self._setup_failures = 0
                await connection.learn_versions(timeout_ms)
                if self._dialing.login is not None:
                    await connection.log_in(self._dialing.login, timeout_ms)
                    self._login_failure = None
        except LoginError as error:
            self._rest()
            connection.close()
            self.login_failed(error)
            raise
        except TimeoutError as error:
            self._rest()
            connection.close()
            raise TimeoutError(f"{self} did not answer a connection") from error
        except TlsError as error:
            self._rest()
            connection.close()
            raise TlsError(f"no TLS with {self}: {error}") from None
        except BaseException:
            self._rest()
            connection.close()
            raise
        if connection.is_closed:
            self._rest()
            raise ConnectionResetError(f"{self} closed the connection")
        self._connection = connection
        return connection

    def login_failed(self, error: LoginError) -> None:
        """Say so, once for each reason."""
        if str(error) != self._login_failure:
            self._login_failure = str(error)
            telemetry.error("%s", error)

    def _rest(self) -> None:
        backoff_ms = self._dialing.reconnect_backoff_ms(max(self._setup_failures - 1, 0))
        self._rests_until_ms = self._clock.monotonic_ms() + backoff_ms

    def _connected(self, task: "asyncio.Task[PeerConnection]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # its waiter has it

    def lost(self, connection: "PeerConnection") -> None:
        """A connection of this peer is gone."""
        if self._connection is connection:
            self._connection = None
            self._rest()
            if self.on_closed is not None and not self._is_closed:
                self.on_closed()

    def close(self) -> None:
        """End the connection; all waiting calls get ConnectionError. Final."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()
