"""A connection to another node: requests and their answers, and the exchanges that come first.

The first is ApiVersions, the second a login, where the listener at the other side wants one. A
login that ends is repeated before its end, when next something is asked; requests wait for it.
"""

import asyncio
import struct
from typing import Any, Protocol

from barnabas import __version__
from barnabas.base.clock import Clock, Timer
from barnabas.base.network import Transport
from barnabas.base.tls.words import TlsError
from barnabas.node.net.frames import FrameReader
from barnabas.node.net.login import Login, LoginError
from barnabas.protocol.apis import API_OF, APIS, AnyApi, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.credentials import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.protocol.schema import Message

FRAME_SIZE_MAX_BYTES = 256 << 20
"""A response that claims more is not believed."""
LOGIN_STEPS_MAX = 16
"""Messages of one login; no mechanism has as many."""
REPEAT_AFTER = 0.85
"""The share of a login's time after which it is repeated, as in Kafka."""
_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_AND_ERROR = struct.Struct(">ih")


class UnsupportedByPeerError(ConnectionError):
    """The other node knows no version of an API that we know."""


class Owner(Protocol):
    """Whose connection it is; as text it is the address."""

    def lost(self, connection: "PeerConnection", /) -> None:
        """The connection is gone."""

    def login_failed(self, error: LoginError, /) -> None:
        """The login could not be repeated, with which the connection ends."""


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


class PeerConnection:
    """A StreamHandler for the asking side of the protocol."""

    def __init__(self, peer: Owner, clock: Clock, client_id: str) -> None:
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

    def attach(self, transport: Transport) -> "PeerConnection":
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
        """Log in once more; requests are held until then."""
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
            return  # the caller has gone
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
        lost = f"the connection to {self._peer} was lost"
        if isinstance(error, TlsError):
            self._fail(TlsError(f"{lost}: {error}"))
        else:
            self._fail(ConnectionResetError(lost))

    def close(self) -> None:
        """End the connection."""
        self._fail(ConnectionAbortedError(f"the connection to {self._peer} was closed"))

    def _fail(self, error: ConnectionError) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        repeating = self._repeating
        if repeating is not None and repeating is not asyncio.current_task():
            repeating.cancel()  # it may wait for a token for long
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
