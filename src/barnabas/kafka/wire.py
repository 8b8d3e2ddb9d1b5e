"""Blocking connections to brokers, for the requests that client libraries do not offer.

`Connection` is one connection, with TLS and SASL (PLAIN, SCRAM and OAUTHBEARER), for one request at
a time. `Brokers` holds the connections to a cluster. `Leaders` and `Coordinators` find the broker
for a request; for administration `wire_admin.py` does.
"""

from __future__ import annotations

import contextlib
import math
import random
import secrets
import select
import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, TypeVar

from barnabas import __version__
from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.config.values import parse_host_port
from barnabas.base.scram import HASHES, ScramClient, ScramError
from barnabas.base.tls.contexts import client_context
from barnabas.base.tls.key_stores import KeyPair
from barnabas.base.tls.words import CLOSED_DURING_HANDSHAKE, reason_of
from barnabas.protocol.api import Api
from barnabas.protocol.apis import (
    API_VERSIONS,
    FIND_COORDINATOR,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ApiKey,
)
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.connections import ApiVersion, ApiVersionsRequest
from barnabas.protocol.messages.credentials import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.protocol.messages.groups import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.schema import Message

OAUTHBEARER: Final = "OAUTHBEARER"
CLIENT_ID: Final = "barnabas-sink"
RESPONSE_SIZE_BYTES_MAX: Final = 64 * 1024 * 1024
_PORT: Final = 9092
_SIZE = Struct(">i")
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_CLOSED: Final = "it closed the connection"
_USED_OF_LOGIN: Final = 0.85
"""The share of a login's time after which a new connection is used."""
_AUTHENTICATE_VERSION: Final = 1
GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
"""Kinds of coordinators (FindCoordinator's key types)."""
_BACKOFF_FIRST_MS: Final = 20
_BACKOFF_MAX_MS: Final = 1_000

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class _ReasonedError(Exception):
    """`reason` is the cause without the broker's address, for messages that name it already."""

    is_final = False
    """True if another broker would answer the same."""

    def __init__(self, text: str, reason: str | None = None) -> None:
        super().__init__(text)
        self.reason = reason or text


class WireError(_ReasonedError):
    """A broker cannot be reached, broke off or sent nonsense: retry, there or elsewhere."""


class BrokenOffError(WireError):
    """The broker closed the connection, or sent nonsense: its port may be of another protocol."""


class NoTlsError(WireError):
    """The broker does not speak TLS on this port."""

    is_final = True


class NoTokenError(WireError):
    """The provider of tokens cannot be reached, or has none now."""


class UnservedError(WireError):
    """The broker does not support an API, or none of the versions that we support."""


class AccessError(_ReasonedError):
    """The brokers deny access, or their certificate is not trusted; retrying does not help."""

    is_final = True


class LoginError(AccessError):
    """The login failed."""


class TokenError(AccessError):
    """The provider of tokens refuses us."""


class UntrustedError(AccessError):
    """The broker's certificate is not accepted."""


@dataclass(slots=True, frozen=True)
class BearerLogin:
    """A login by OAUTHBEARER. `token` gives one, and raises WireError, AccessError."""

    token: Callable[[], str]
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Access:
    """The connection settings of the brokers. `mechanism` is a SASL mechanism."""

    bootstrap_servers: str
    has_tls: bool = False
    ca_path: str | None = None
    """A PEM file, or a directory of them."""
    ca_pem: str | None = None
    own: KeyPair | None = None
    """The key and certificate for brokers that ask for one."""
    checks_host: bool = True
    checks_certificate: bool = True
    mechanism: str | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    is_token: bool = False
    """True if these are the id and the HMAC of a delegation token (KIP-48)."""
    bearer: BearerLogin | None = field(default=None, repr=False, compare=False)
    """The login by OAUTHBEARER."""
    timeout_seconds: float = 10.0
    """The time limit for an answer, and for each step until a connection is ready."""
    opening_seconds_max: float = math.inf
    """The time limit for those steps, if it is shorter."""
    client_id: str = CLIENT_ID
    answer_size_bytes_max: int = RESPONSE_SIZE_BYTES_MAX
    """A longer answer ends the connection."""

    def addresses(self) -> list[tuple[str, int]]:
        """Return the bootstrap servers, as librdkafka reads them. Raises AccessError."""
        addresses = []
        for text in filter(None, map(str.strip, self.bootstrap_servers.split(","))):
            bare = text.rpartition("://")[2]
            address = parse_host_port(bare) or parse_host_port(f"{bare}:{_PORT}")
            if address is None:
                raise AccessError(f"{text!r} is not host:port")
            addresses.append(address)
        return addresses

    def tls(self) -> ssl.SSLContext:
        """Return what TLS connections are made with. Raises AccessError for unfit files."""
        try:
            return client_context(
                self.ca_pem,
                authorities_path=self.ca_path,
                own=self.own,
                checks_names=self.checks_host,
                checks_certificate=self.checks_certificate,
            )
        except (OSError, ValueError) as error:
            raise AccessError(f"cannot read the certificates: {error}") from error


class Connection:
    """One connection to one broker, which knows the versions that the broker speaks."""

    def __init__(self, access: Access, host: str, port: int) -> None:
        self._correlation_id = 0
        self._client_id = access.client_id
        self._where = f"{host}:{port}"
        self._login_ends = math.inf
        self._answer_size_max = access.answer_size_bytes_max
        opening_s = min(access.timeout_seconds, access.opening_seconds_max)
        try:
            self._socket = socket.create_connection((host, port), opening_s)
        except OSError as error:
            text = f"cannot connect to {self._where}: {error}"
            raise WireError(text, _reason(error)) from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if access.has_tls:
                self._socket = _wrap(access, self._socket, host)
            self._versions = self._ask_versions()
            if access.mechanism is not None:
                self._authenticate(access, access.mechanism)
            self._socket.settimeout(access.timeout_seconds)
        except BaseException:
            self._socket.close()
            raise

    def call(self, api: Api[Message, R], request: Message, version_max: int | None = None) -> R:
        """Send a request in the newest version that both know, and return the answer.

        Raises WireError if no answer came or the broker does not know the API, and EncodeError for
        a request that the version cannot express.
        """
        newest = api.max_stable_version if version_max is None else version_max
        theirs = self._versions.get(api.key)
        version = -1 if theirs is None else min(newest, theirs.max_version)
        if theirs is None or version < max(theirs.min_version, api.min_version):
            raise UnservedError(f"{self._where} does not serve {api.key.name}")
        return self._exchange(api, version, request)

    def serves(self, api_key: int) -> bool:
        """Return whether the broker knows an API."""
        return api_key in self._versions

    @property
    def is_over(self) -> bool:
        """True if it cannot be used for a request: the broker has ended it, or the login ends."""
        if time.monotonic() >= self._login_ends:
            return True
        asked = select.poll()
        asked.register(self._socket, select.POLLIN)
        return bool(asked.poll(0))  # nothing is awaited: it is the end, or nonsense

    def wait_at_most(self, seconds: float) -> None:
        """Let answers to the next requests take so long."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def abort(self) -> None:
        """End a waiting call, from another thread: it raises WireError."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _exchange(self, api: Api[Message, R], version: int, request: Message) -> R:
        self._correlation_id += 1
        frame = encode_request(api.key, version, self._correlation_id, self._client_id, request)
        try:
            self._socket.sendall(_SIZE.pack(len(frame)) + frame)
            (size,) = _SIZE.unpack(self._receive(_SIZE.size))
            if not 0 <= size <= self._answer_size_max:
                raise BrokenOffError(f"{self._where} sent a frame of {size} bytes")
            answer = self._receive(size)
            if api.key == ApiKey.API_VERSIONS and answer[4:6] == _UNSUPPORTED_VERSION:
                version = 0  # this error always comes in version 0
            header, position = decode_response_header(api, version, answer)
            if header.correlation_id != self._correlation_id:
                raise BrokenOffError(f"{self._where} answered another request")
            response, _ = decode_at(api.response, version, answer, position)
        except (OSError, DecodeError) as error:
            raise _broken_off(f"{self._where} broke off: {error}", error) from error
        return response

    def _ask_versions(self) -> Mapping[int, ApiVersion]:
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        version = API_VERSIONS.max_stable_version
        answer = self._exchange(API_VERSIONS, version, request)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = [key.max_version for key in answer.api_keys if key.api_key == API_VERSIONS.key]
            answer = self._exchange(
                API_VERSIONS, min([version, *theirs] if theirs else [0]), request
            )
        if answer.error_code != ErrorCode.NONE:
            name = ErrorCode.of(answer.error_code).name
            raise WireError(f"{self._where} refused ApiVersions: {name}")
        return {key.api_key: key for key in answer.api_keys}

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise BrokenOffError(f"{self._where} closed the connection", _CLOSED)
            data += piece
        return bytes(data)

    def _authenticate(self, access: Access, mechanism: str) -> None:
        shaken = self._exchange(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism))
        if shaken.error_code != ErrorCode.NONE:
            offered = ", ".join(shaken.mechanisms) or "none"
            raise LoginError(
                f"{self._where} refused the login by {mechanism}; its mechanisms are: {offered}"
            )
        try:
            self._log_in(access, mechanism)
        except (_RefusedError, ScramError) as error:
            text = f"the login to {self._where} by {mechanism} failed: {error}"
            raise LoginError(text) from error

    def _log_in(self, access: Access, mechanism: str) -> None:
        """Take messages to and fro. Raises _RefusedError, ScramError."""
        if mechanism == OAUTHBEARER:
            assert access.bearer is not None, "there is one where that is the mechanism"
            self._show_token(access.bearer.token(), access.bearer.extensions)
            return
        if mechanism not in HASHES:
            self._prove(f"\0{access.user}\0{access.password}".encode())
            return
        nonce, more = secrets.token_urlsafe(24), {"tokenauth": "true"} if access.is_token else None
        scram = ScramClient(mechanism, access.user, access.password, nonce, more)
        scram.verify(self._prove(scram.final(self._prove(scram.first()))))

    def _show_token(self, token: str, extensions: Mapping[str, str]) -> None:
        """Source: RFC 7628."""
        more = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        refusal = self._prove(f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode())
        if refusal:  # the broker says why, and waits for us to have read it
            self._prove(b"\x01")
            raise _RefusedError(f"our token: {refusal!r}")

    def _prove(self, message: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = self._exchange(SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, request)
        if answer.error_code != ErrorCode.NONE:
            raise _RefusedError(answer.error_message or ErrorCode.of(answer.error_code).name)
        if answer.session_lifetime_ms > 0:
            lasts_s = _USED_OF_LOGIN * answer.session_lifetime_ms / 1000
            self._login_ends = time.monotonic() + lasts_s
        return bytes(answer.auth_bytes)


def _wrap(access: Access, plain: socket.socket, host: str) -> ssl.SSLSocket:
    context = access.tls()
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        text = f"the certificate of {host} is not trusted: {error}"
        raise UntrustedError(text, reason_of(error)) from error
    except ssl.SSLEOFError as error:
        raise NoTlsError(f"no TLS with {host}: {error}", CLOSED_DURING_HANDSHAKE) from error
    except OSError as error:
        raise _broken_off(f"no TLS with {host}: {error}", error) from error


def _broken_off(text: str, error: OSError | DecodeError) -> WireError:
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return NoTlsError(text, reason_of(error))
    if isinstance(error, TimeoutError):
        return WireError(text, _reason(error))
    return BrokenOffError(text, _CLOSED)


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or str(error)).lower()


class _RefusedError(Exception):
    """The broker does not accept our login."""


class Brokers:
    """All brokers of a cluster: the connections to them are kept until one fails."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connections: dict[tuple[str, int], Connection] = {}
        self._silent: set[tuple[str, int]] = set()
        """Bootstrap servers that did not answer last: they are asked after the others."""

    def any(self) -> Connection:
        """Return a connection to the first bootstrap server that answers.

        Raises WireError, AccessError.
        """
        problem = WireError("there are no bootstrap servers")
        for address in sorted(self._access.addresses(), key=self._silent.__contains__):
            try:
                connection = self.at(*address)
            except WireError as error:
                problem = error
                self._silent.add(address)
            else:
                self._silent.discard(address)
                return connection
        raise problem

    def at(self, host: str, port: int) -> Connection:
        """Return the connection to one broker. Raises WireError."""
        at = (host, port)
        if at not in self._connections:
            self._connections[at] = Connection(self._access, host, port)
        return self._connections[at]

    def coordinator(self, name: str, key_type: int) -> tuple[ErrorCode, tuple[str, int]]:
        """Ask for the address of a group's coordinator, or of a transactional id's.

        Raises WireError.
        """
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
        (answer,) = self.any().call(FIND_COORDINATOR, request).coordinators
        return ErrorCode.of(answer.error_code), (answer.host, answer.port)

    def addresses(self) -> Sequence[tuple[str, int]]:
        """Return the addresses of all brokers that live. Raises WireError."""
        answer: Any = self.any().call(METADATA, MetadataRequest(topics=[]))
        return [(broker.host, broker.port) for broker in answer.brokers]

    def close(self) -> None:
        """Close all connections; the next request opens what it needs."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class TryAgainError(Exception):
    """The request may succeed later: a topic or leader is missing, or a broker asks for a retry."""


class Leaders:
    """The leaders of the topics that a client writes or reads.

    Unless it `creates_topics`, brokers that create topics on demand do not create these.
    """

    def __init__(self, brokers: Brokers, *, creates_topics: bool = True) -> None:
        self._brokers = brokers
        self._creates_topics = creates_topics
        self._leaders: dict[str, dict[int, int]] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    def forget(self) -> None:
        """Ask again next time."""
        self._leaders, self._addresses = {}, {}

    def learn(self, topics: Collection[str]) -> dict[str, ErrorCode]:
        """Ask for topics, if one is not known. Returns those that are refused.

        Raises WireError, AccessError.
        """
        if self._leaders.keys() >= set(topics):
            return {}
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=self._creates_topics,
        )
        answer: Any = self._brokers.any().call(METADATA, request)
        self.forget()
        self._addresses = {one.node_id: (one.host, one.port) for one in answer.brokers}
        refused: dict[str, ErrorCode] = {}
        for topic in answer.topics:
            error = ErrorCode.of(topic.error_code)
            if error == ErrorCode.NONE:
                leaders = {one.partition_index: one.leader_id for one in topic.partitions}
                self._leaders[topic.name] = leaders
            elif not error.retriable:
                refused[topic.name] = error
        return refused

    @property
    def topics(self) -> Collection[str]:
        """The topics that are known."""
        return self._leaders.keys()

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has. Raises TryAgainError."""
        if not self._leaders.get(topic):
            raise TryAgainError
        return len(self._leaders[topic])

    def of(self, place: tuple[str, int]) -> int:
        """Return the node that leads a partition. Raises TryAgainError."""
        leader = self._leaders.get(place[0], {}).get(place[1], -1)
        if leader not in self._addresses:
            raise TryAgainError
        return leader

    def connection(self, node_id: int) -> Connection:
        """Return the connection to a node. Raises WireError, AccessError."""
        return self._brokers.at(*self._addresses[node_id])


class CoordinatorError(Exception):
    """The coordinators refuse, or did not answer in time; nothing is known about the outcome."""


class Coordinators:
    """The coordinators of groups and transactional ids, asked until an answer is final.

    Coordinators move and load, and transactions take a while to end: such answers are retried for
    `patience_seconds`.
    """

    def __init__(self, brokers: Brokers, patience_seconds: float) -> None:
        self._brokers = brokers
        self._patience_seconds = patience_seconds
        self._addresses: dict[tuple[int, str], tuple[str, int]] = {}
        self._backoff = ExponentialBackoff(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS, random.Random())

    def ask(
        self,
        name: str,
        ask: Callable[[Connection], tuple[int, T]],
        key_type: int = TRANSACTION_KEY,
        patience_seconds: float | None = None,
    ) -> tuple[int, T]:
        """Ask the coordinator of a transactional id, or of a group.

        Returns what `ask` does, an error code first. Raises CoordinatorError.
        """
        return self.patiently(lambda: ask(self.connection(name, key_type)), patience_seconds)

    def patiently(
        self, ask: Callable[[], tuple[int, T]], patience_seconds: float | None = None
    ) -> tuple[int, T]:
        """Ask until the answer is final. Raises CoordinatorError if no answer came in time."""
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        deadline = time.monotonic() + patience
        failures = 0
        while True:
            try:
                error, answer = ask()
                if not ErrorCode.of(error).retriable:
                    return error, answer
                problem = ErrorCode.of(error).message
                self._addresses.clear()
            except WireError as broken:
                problem = str(broken)
                self.forget()
            if time.monotonic() > deadline:
                raise CoordinatorError(f"gave up after {patience:g} s: {problem}")
            time.sleep(self._backoff.after(failures) / 1000)
            failures += 1

    def connection(self, name: str, key_type: int) -> Connection:
        """Return the connection to a coordinator. Raises WireError, CoordinatorError."""
        place = key_type, name
        if place not in self._addresses:
            error, address = self._brokers.coordinator(name, key_type)
            if error != ErrorCode.NONE:
                if error.retriable:
                    raise WireError(error.message)
                raise CoordinatorError(f"{name} has no coordinator: {error.name}, {error.message}")
            self._addresses[place] = address
        return self._brokers.at(*self._addresses[place])

    def forget(self) -> None:
        """Close the connections; the next request looks for the coordinator again."""
        self._brokers.close()
        self._addresses.clear()
