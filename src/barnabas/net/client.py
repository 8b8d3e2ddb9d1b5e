"""Requests to one other node: over at most one connection, made when it is needed.

Requests are pipelined and matched with their answers by correlation id. The first exchange on a
connection is ApiVersions, so each request leaves in the highest version that both sides know. A
request that takes too long ends its connection: what comes late must not be waited for, and the
answers behind it would be late too.

Where the listener at the other side wants a login, that is the second exchange. A login that ends
is repeated before its end on the same connection, when next something is asked; what is asked
meanwhile waits for it.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Any

from barnabas import __version__
from barnabas.base.clock import Clock, Timer
from barnabas.base.network import Network, Transport
from barnabas.base.pause import pause
from barnabas.net.dialing import PLAIN_DIALING, Dialing
from barnabas.net.frames import FrameReader
from barnabas.net.login import Login, LoginError
from barnabas.protocol.apis import API_OF, APIS, AnyApi, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.schema import Message

FRAME_SIZE_MAX_BYTES = 256 << 20
"""A response that claims more is not believed."""
REQUEST_TIMEOUT_MS = 30_000
"""For an answer, where nothing else is said."""
LOGIN_STEPS_MAX = 16
"""Messages of one login; no mechanism has as many."""
REPEAT_AFTER = 0.85
"""The share of a login's time after which it is repeated, as in Kafka."""
_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_AND_ERROR = struct.Struct(">ih")


telemetry = logging.getLogger(__name__)


class UnsupportedByPeerError(ConnectionError):
    """The other node knows no version of an API that we know."""


class _Pending:
    """A request that awaits its answer."""

    __slots__ = ("api", "future", "timer", "version")

    def __init__(
        self, api: AnyApi, version: int, future: "asyncio.Future[Any]", timer: Timer
    ) -> None:
        self.api = api
        self.version = version
        self.future = future
        self.timer = timer


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
        """Called when an established connection was lost, whoever closed it but `close`."""
        self._network = network
        self._clock = clock
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._dialing = dialing
        self._setup_failures = 0
        """How often in a row no connection came to stand."""
        self._rests_until_ms = 0.0
        """No connection is opened before."""
        self._connection: _PeerConnection | None = None
        self._connecting: asyncio.Task[_PeerConnection] | None = None
        self._login_failure: str | None = None
        """Why the last login failed, which is logged once."""
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        """Whether a connection stands, as far as this side knows."""
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

    async def _connect(self) -> "_PeerConnection":
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

    async def _open(self) -> "_PeerConnection":
        rest_ms = self._rests_until_ms - self._clock.monotonic_ms()
        if rest_ms > 0:
            await pause(self._clock, rest_ms)
        connection = _PeerConnection(self, self._clock, self._client_id)
        timeout_ms = self._dialing.setup_timeout_ms(self._setup_failures)
        if self._connect_timeout_ms is not None:
            timeout_ms = min(timeout_ms, self._connect_timeout_ms)
        self._setup_failures += 1  # until it stands
        options = self._dialing.options
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._network.connect(self.host, self.port, connection.attach, options)
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

    def _connected(self, task: "asyncio.Task[_PeerConnection]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # whoever waits for it has it

    def lost(self, connection: "_PeerConnection") -> None:
        """A connection of this peer is gone."""
        if self._connection is connection:
            self._connection = None
            self._rest()
            if self.on_closed is not None and not self._is_closed:
                self.on_closed()

    def close(self) -> None:
        """End the connection; whoever waits gets ConnectionError. Final."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()


class _PeerConnection:
    """A StreamHandler for the asking side of the protocol."""

    def __init__(self, peer: Peer, clock: Clock, client_id: str) -> None:
        self._peer = peer
        self._clock = clock
        self._client_id = client_id
        self._reader = FrameReader(FRAME_SIZE_MAX_BYTES)
        self._transport: Transport | None = None
        self._pending: dict[int, _Pending] = {}
        self._next_correlation_id = 0
        self._versions: dict[int, int] = {}
        self._login: Login | None = None
        self._login_ends_ms: float | None = None
        """When the login is to be repeated, in monotonic time."""
        self._repeating: asyncio.Task[None] | None = None
        self._held: list[bytes] = []
        """Requests that wait for the repeated login."""
        self.is_closed = False

    def attach(self, transport: Transport) -> "_PeerConnection":
        """Take the connection that was made."""
        self._transport = transport
        if self.is_closed:
            transport.close()
        return self

    async def learn_versions(self, timeout_ms: int) -> None:
        """Ask what the other side serves. Raises ConnectionError."""
        api = APIS[ApiKey.API_VERSIONS]
        version = api.max_stable_version
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        response = await self._exchange(api, version, request, timeout_ms)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = [entry for entry in response.api_keys if entry.api_key == api.key]
            version = min(version, theirs[0].max_version if theirs else 0)
            response = await self._exchange(api, version, request, timeout_ms)
        if response.error_code != ErrorCode.NONE:
            name = ErrorCode.of(response.error_code).name
            raise ConnectionError(f"{self._peer} refused ApiVersions: {name}")
        for entry in response.api_keys:
            known = APIS.get(entry.api_key)
            if known is not None:
                highest = min(known.max_stable_version, entry.max_version)
                if highest >= max(known.min_version, entry.min_version):
                    self._versions[entry.api_key] = highest

    async def log_in(self, login: Login, timeout_ms: int) -> None:
        """Show who we are, and learn how long that holds. Raises LoginError, ConnectionError."""
        self._login = login
        mechanism = login.mechanism
        response = await self._ask(SaslHandshakeRequest(mechanism=mechanism), timeout_ms)
        if response.error_code != ErrorCode.NONE:
            offered = ", ".join(response.mechanisms) or "none"
            raise LoginError(
                f"{self._peer} refused the login by {mechanism}; its mechanisms are: {offered}"
            )
        try:
            exchange = await login.begin()
            message = exchange.respond(b"")
            for _ in range(LOGIN_STEPS_MAX):
                if message is None:
                    break
                response = await self._ask(SaslAuthenticateRequest(auth_bytes=message), timeout_ms)
                if response.error_code != ErrorCode.NONE:
                    reason = response.error_message or ErrorCode.of(response.error_code).name
                    raise LoginError(reason)
                message = exchange.respond(response.auth_bytes)
        except LoginError as error:
            raise LoginError(f"the login to {self._peer} by {mechanism} failed: {error}") from error
        if response.session_lifetime_ms > 0:
            self._login_ends_ms = (
                self._clock.monotonic_ms() + REPEAT_AFTER * response.session_lifetime_ms
            )

    def _ask(self, request: Message, timeout_ms: int) -> "asyncio.Future[Any]":
        """Send a request of the login."""
        api = API_OF[type(request)]
        version = self._versions.get(api.key)
        if version is None:
            raise LoginError(f"{self._peer} does not serve {api.key.name}")
        return self._exchange(api, version, request, timeout_ms, is_login=True)

    def _repeat_login(self, timeout_ms: int) -> None:
        """Log in once more; what is sent meanwhile is held."""
        self._login_ends_ms = None
        self._repeating = asyncio.ensure_future(self._log_in_again(timeout_ms))

    async def _log_in_again(self, timeout_ms: int) -> None:
        assert self._login is not None, "who never logged in does not do it again"
        try:
            await self.log_in(self._login, timeout_ms)
        except LoginError as error:
            self._peer.login_failed(error)
            self._fail(error)
        except OSError as error:
            self._fail(ConnectionResetError(f"no second login to {self._peer}: {error}"))
        finally:
            self._repeating = None
            held, self._held = self._held, []
            if held and not self.is_closed and self._transport is not None:
                self._transport.send(held)

    def send(self, request: Message, version: int | None, timeout_ms: int) -> "asyncio.Future[Any]":
        """Send a request; the future has its response."""
        ends_ms = self._login_ends_ms
        if ends_ms is not None and self._clock.monotonic_ms() >= ends_ms:
            self._repeat_login(timeout_ms)
        api = API_OF[type(request)]
        common = self._versions.get(api.key)
        if common is None:
            raise UnsupportedByPeerError(f"{self._peer} does not serve {api.key.name}")
        if version is not None:
            common = min(common, version)
        return self._exchange(api, common, request, timeout_ms)

    def _exchange(
        self,
        api: AnyApi,
        version: int,
        request: Message,
        timeout_ms: int,
        *,
        is_login: bool = False,
    ) -> "asyncio.Future[Any]":
        if self.is_closed or self._transport is None:
            raise ConnectionResetError(f"the connection to {self._peer} is closed")
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        body = encode_request(api.key, version, correlation_id, self._client_id, request)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(timeout_ms, lambda: self._expire(correlation_id))
        self._pending[correlation_id] = _Pending(api, version, future, timer)
        framed = _LENGTH.pack(len(body)) + body
        if self._repeating is not None and not is_login:
            self._held.append(framed)
        else:
            self._transport.send((framed,))
        return future

    def _expire(self, correlation_id: int) -> None:
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            return
        if not pending.future.done():
            name = pending.api.key.name
            pending.future.set_exception(TimeoutError(f"{self._peer} did not answer {name}"))
        self.close()

    # -- StreamHandler

    def get_buffer(self) -> memoryview:
        return self._reader.buffer()

    def received(self, size_bytes: int) -> None:
        try:
            for frame in self._reader.advance(size_bytes):
                self._take(frame)
        except DecodeError as error:
            self._fail(ConnectionError(f"{self._peer} sent what cannot be read: {error}"))

    def _take(self, frame: bytearray) -> None:
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        except struct.error as error:
            raise DecodeError(f"a response of {len(frame)} bytes has no header") from error
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise DecodeError(f"nobody asked for response {correlation_id}")
        pending.timer.cancel()
        if pending.future.done():
            return  # whoever asked has gone
        try:
            response = _decode(pending.api, pending.version, frame)
        except DecodeError as error:
            pending.future.set_exception(
                ConnectionError(f"{self._peer} sent what cannot be read: {error}")
            )
            raise
        pending.future.set_result(response)

    def drained(self) -> None:
        """Nothing waits for that: requests are small."""

    def closed(self, error: OSError | None) -> None:
        self._fail(ConnectionResetError(f"the connection to {self._peer} was lost"))

    def close(self) -> None:
        """End the connection."""
        self._fail(ConnectionAbortedError(f"the connection to {self._peer} was closed"))

    def _fail(self, error: ConnectionError) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._reader.clear()
        self._held.clear()
        pending, self._pending = self._pending, {}
        for entry in pending.values():
            entry.timer.cancel()
            if not entry.future.done():
                entry.future.set_exception(error)
        if self._transport is not None:
            self._transport.close()
        self._peer.lost(self)


def _decode(api: AnyApi, version: int, frame: bytearray) -> Message:
    if api.key == ApiKey.API_VERSIONS:
        _, error = _CORRELATION_AND_ERROR.unpack_from(frame)
        if error == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
    _, position = decode_response_header(api, version, frame)
    response: Message = decode_at(api.response, version, frame, position)[0]
    return response
