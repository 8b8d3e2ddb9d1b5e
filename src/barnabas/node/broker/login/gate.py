"""The gate of a SASL listener: one connection's way to its login, and to the next one.

Before it, a client may ask ApiVersions once, choose a mechanism (SaslHandshake) and exchange the
mechanism's messages: in SaslAuthenticate requests, or as they are after a handshake of version 0.
Any other request, or a failed login, closes the connection after a delay (KIP-306). After the login
the listener's own service replaces the gate, unless the login expires: then
the client logs in again before it on the same connection (KIP-368), or is closed.

Source: Kafka's SaslServerAuthenticator.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.network import Part
from barnabas.base.peer_lines import peer_logger
from barnabas.node.broker.apis.cluster import refuse_version
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.responses import respond
from barnabas.node.net.connection import Connection, Reply, Service
from barnabas.node.security.principal import ANONYMOUS
from barnabas.node.security.sasl.mechanism import (
    AuthenticationError,
    Exchange,
    InvalidCredentialsError,
    Login,
    Mechanism,
    Refusal,
)
from barnabas.protocol.apis import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import decode_request_header
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.credentials import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

REQUESTS_BEFORE_LOGIN_MAX: Final = 32
"""Frames that one login may take; no mechanism needs a third of them."""
REPEAT_MIN_MS: Final = 1000
"""A client may not begin to log in again more often."""
_HANDSHAKE_KEY: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")

FIGURES: Final = (
    "successful-authentication-total",
    "successful-reauthentication-total",
    "failed-authentication-total",
    "failed-reauthentication-total",
    "expired-connections-killed-count",
)
"""The counters, by the names of Kafka's metrics."""

telemetry = peer_logger(__name__)

AnswerVersions = Callable[[RequestContext, ApiVersionsRequest], ApiVersionsResponse]


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    """ApiVersions was answered."""
    MESSAGES = auto()
    """The mechanism's, in SaslAuthenticate requests."""
    RAW_MESSAGES = auto()
    INSIDE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class ListenerLogins:
    """The logins at one listener. It is a `net.connection.Service` for first requests."""

    listener_name: str
    clock: Clock
    mechanisms: dict[str, Mechanism]
    """By name, in the order in which clients see them."""
    service: Service
    """Answers those who are in."""
    answer_versions: AnswerVersions
    failure_delay_ms: int = 100
    """`connection.failed.authentication.delay.ms`."""
    reauthentication_ms: dict[str, int] = field(default_factory=dict)
    """`connections.max.reauth.ms` by mechanism; 0: logins do not end."""
    counts: Counter[str] = field(default_factory=Counter)
    """The counts of the events that `FIGURES` names."""

    def __call__(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        gate = LoginGate(self)
        connection.serve_by(gate)
        return gate(connection, frame)


def session_lifetime_ms(maximum_ms: int, expires_at_ms: int | None, now_ms: int) -> int | None:
    """The time for which a login is valid; None: without limit. A maximum of 0 sets none."""
    ends = [maximum_ms] if maximum_ms > 0 else []
    if expires_at_ms is not None:
        ends.append(expires_at_ms - now_ms)
    return max(0, min(ends)) if ends else None


class LoginGate:
    """A `net.connection.Service`, for one connection until it is in, or until its login ends."""

    __slots__ = (
        "_began_ms",
        "_exchange",
        "_expires_ms",
        "_is_noted",
        "_login",
        "_logins",
        "_mechanism",
        "_refusal",
        "_requests",
        "_state",
    )

    def __init__(self, logins: ListenerLogins) -> None:
        self._logins = logins
        self._state = _State.VERSIONS_OR_HANDSHAKE
        self._requests = 0
        self._is_noted = False
        """True if a failure was."""
        self._mechanism: str | None = None
        self._exchange: Exchange | None = None
        self._refusal: str | None = None
        """The reason why the exchange will fail, regardless of what the client sends."""
        self._login: Login | None = None
        """The last one that succeeded."""
        self._expires_ms = 0
        """When it ends, in monotonic time."""
        self._began_ms: int | None = None
        """When the client last began to log in again."""

    def __call__(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        """Answer one request, or begin a delay. Raises DecodeError for what makes no sense."""
        if self._state is _State.INSIDE:
            if frame[:2] != _HANDSHAKE_KEY or not self._begins_again():
                return self._serve(connection, frame)
        elif self._state is _State.FAILED:
            return Reply()  # the connection will be closed
        self._requests += 1
        if self._requests > REQUESTS_BEFORE_LOGIN_MAX:
            raise DecodeError(f"no login after {REQUESTS_BEFORE_LOGIN_MAX} requests")
        try:
            if self._state is _State.RAW_MESSAGES:
                return self._raw_message(connection, frame)
            return self._request(connection, frame)
        except AuthenticationError as error:
            return self._fail(connection, error)

    # -- inside

    def _serve(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        if self._logins.clock.monotonic_ms() > self._expires_ms:
            telemetry.debug("closing %s: its login has expired", connection.peer_host)
            self._logins.counts["expired-connections-killed-count"] += 1
            connection.close()
            return ()
        return self._logins.service(connection, frame)

    def _begins_again(self) -> bool:
        now_ms = self._logins.clock.monotonic_ms()
        if self._began_ms is not None and now_ms - self._began_ms < REPEAT_MIN_MS:
            return False
        self._began_ms = now_ms
        self._requests = 0
        self._state = _State.HANDSHAKE
        return True

    # -- requests before the login

    def _request(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        header, position = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        context = RequestContext(
            key, version, header.correlation_id, header.client_id, connection, ANONYMOUS
        )
        before_messages = self._state is not _State.MESSAGES
        if key == ApiKey.API_VERSIONS and self._state is _State.VERSIONS_OR_HANDSHAKE:
            return self._versions(context, frame, position)
        if key == ApiKey.SASL_HANDSHAKE and before_messages:
            _check_version(context)
            handshake, _ = decode_at(SaslHandshakeRequest, version, frame, position)
            return self._handshake(context, handshake)
        if key == ApiKey.SASL_AUTHENTICATE and not before_messages:
            _check_version(context)
            step, _ = decode_at(SaslAuthenticateRequest, version, frame, position)
            return self._message(context, step)
        during = "SASL handshake" if before_messages else "SASL authentication"
        raise AuthenticationError(
            f"Unexpected Kafka request of type {APIS[key].key.name} during {during}."
        )

    def _versions(self, context: RequestContext, frame: bytearray, position: int) -> Sequence[Part]:
        version = context.api_version
        if not API_VERSIONS.min_version <= version <= API_VERSIONS.max_stable_version:
            return refuse_version(context.correlation_id)
        request, _ = decode_at(ApiVersionsRequest, version, frame, position)
        response = self._logins.answer_versions(context, request)
        if response.error_code == ErrorCode.NONE:
            self._state = _State.HANDSHAKE
        return respond(context, response)

    def _handshake(
        self, context: RequestContext, request: SaslHandshakeRequest
    ) -> Sequence[Part] | Reply:
        mechanisms = self._logins.mechanisms
        name = request.mechanism
        mechanism = mechanisms.get(name)
        if mechanism is None:
            answer = respond(
                context,
                SaslHandshakeResponse(
                    error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(mechanisms)
                ),
            )
            error = AuthenticationError(f"Unsupported SASL mechanism {_shown(name)}")
            return self._fail(context.connection, error, answer)
        self._state = _State.MESSAGES if context.api_version >= 1 else _State.RAW_MESSAGES
        self._refusal = None
        if self._login is None:
            self._mechanism = name
        elif name != self._mechanism:
            self._refusal = (
                f"SASL mechanism '{name}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism}'"
            )
        self._exchange = mechanism.begin()
        return respond(context, SaslHandshakeResponse(mechanisms=list(mechanisms)))

    # -- messages of the mechanism

    def _message(
        self, context: RequestContext, request: SaslAuthenticateRequest
    ) -> Sequence[Part] | Reply:
        connection = context.connection
        try:
            answer, lifetime_ms = self._respond(connection, request.auth_bytes)
        except AuthenticationError as error:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=self._told(error),
            )
            return self._fail(connection, error, respond(context, response))
        return respond(
            context,
            SaslAuthenticateResponse(
                error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms
            ),
        )

    def _raw_message(self, connection: Connection, frame: bytearray) -> Sequence[Part]:
        answer, _ = self._respond(connection, bytes(frame))
        return (len(answer).to_bytes(4, "big") + answer,)

    def _respond(self, connection: Connection, message: bytes) -> tuple[bytes, int]:
        """The answer to a message, and for how long the login holds that it ends with, or 0."""
        if self._refusal is not None:
            raise AuthenticationError(self._refusal)
        exchange = self._exchange
        assert exchange is not None, "a handshake comes first"
        answer = exchange.respond(message)
        if isinstance(answer, Refusal):
            self._note_failure(connection, answer.reason)
        if exchange.login is None:
            return answer, 0
        return answer, self._let_in(connection, exchange.login)

    def _let_in(self, connection: Connection, login: Login) -> int:
        before = self._login
        if before is not None and before.principal != login.principal:
            raise AuthenticationError(
                "Cannot change principals during re-authentication from "
                f"{before.principal.kind}.{before.principal.name}: "
                f"{login.principal.kind}.{login.principal.name}"
            )
        assert self._mechanism is not None, "a handshake comes first"
        logins = self._logins
        logins.counts[f"successful-{self._which.replace('-', '')}-total"] += 1
        self._exchange = None
        self._login = login
        if before is None:
            client_state(connection).authenticated(login.principal, is_token=login.is_token)
        else:
            client_state(connection).is_token = login.is_token
        lifetime_ms = session_lifetime_ms(
            logins.reauthentication_ms.get(self._mechanism, 0),
            login.expires_at_ms,
            logins.clock.now_ms(),
        )
        self._state = _State.INSIDE
        if lifetime_ms is None:
            connection.admit(logins.service)
            return 0
        self._expires_ms = logins.clock.monotonic_ms() + lifetime_ms
        connection.admit(self)
        return lifetime_ms

    # -- failure

    def _told(self, error: AuthenticationError) -> str:
        """The error text that the client gets."""
        if not isinstance(error, InvalidCredentialsError):
            return str(error)
        return (
            f"Authentication failed during {self._which} due to invalid credentials with SASL "
            f"mechanism {self._mechanism}"
        )

    @property
    def _which(self) -> str:
        return "authentication" if self._login is None else "re-authentication"

    def _fail(
        self, connection: Connection, error: AuthenticationError, answer: Sequence[Part] = ()
    ) -> Reply:
        """Answer, if there is one, and close, both after the delay; nothing is read until then."""
        logins = self._logins
        self._note_failure(connection, error)
        self._state = _State.FAILED
        self._exchange = None
        reply = Reply()

        def end() -> None:
            reply.complete(answer)
            connection.close_when_sent()

        timer = logins.clock.call_later(logins.failure_delay_ms, end)
        reply.on_abandon = timer.cancel
        return reply

    def _note_failure(self, connection: Connection, reason: object) -> None:
        """Log and count a failure, once."""
        if self._is_noted:
            return
        self._is_noted = True
        logins = self._logins
        telemetry.warning(
            "%s of %s on listener %s failed: %s",
            self._which,
            connection.peer_host,
            logins.listener_name,
            reason,
        )
        logins.counts[f"failed-{self._which.replace('-', '')}-total"] += 1


def _check_version(context: RequestContext) -> None:
    api = SASL_HANDSHAKE if context.api_key == ApiKey.SASL_HANDSHAKE else SASL_AUTHENTICATE
    if not api.min_version <= context.api_version <= api.max_stable_version:
        raise DecodeError(f"{api.key.name} is not served in version {context.api_version}")


def _shown(name: str) -> str:
    """A client's word as a log line may have it."""
    return name if name.isascii() and name.isprintable() and len(name) <= 40 else repr(name[:40])
