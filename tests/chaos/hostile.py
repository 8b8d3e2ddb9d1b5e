"""Those who do not wish a node well: threads that send it what no client would.

Some stay outside (no login, or a wrong one), some come in as users who may do little or nothing.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from struct import pack
from types import TracebackType

from barnabas.base.scram import ScramClient
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.envelope import seal
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.acls import CreateAclsRequest
from barnabas.protocol.messages.connections import EnvelopeResponse
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from support.random_requests import RequestMaker
from support.raw_client import RawClient
from support.secured_settings import password

ANSWER_S = 0.3
"""The time for which an attacker waits for an answer, which may never come."""
FRAMES_MAX = 8
HELD_OPEN_MAX = 100
"""Connections that a thread leaves open without a word."""
TLS_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@dataclass(frozen=True)
class Target:
    """A node's listeners, and users who may log in and little else."""

    plain: Sequence[int]
    """Ports that speak without TLS, with or without a login."""
    tls: Sequence[int]
    tls_login: int
    """The one of `tls` that wants PLAIN or SCRAM."""
    tls_controller: int
    """The one of `tls` where controllers listen; it wants PLAIN."""
    ca: str
    users: Sequence[str]
    """The users that may log in on every listener."""
    names: Sequence[str]
    """Of topics, groups and users that exist."""
    ids: Sequence[bytes] = ()
    """Of topics that exist."""
    powerful: str = ""
    """A user who may do everything, whose name is used in vain."""


def plain_token(user: str) -> bytes:
    return b"\x00".join((b"", user.encode(), password(user).encode()))


def connect(port: int, tls: ssl.SSLContext) -> RawClient:
    """A connection over TLS."""
    client = RawClient(f"127.0.0.1:{port}")
    client.socket = tls.wrap_socket(client.socket, server_hostname="127.0.0.1")
    return client


def log_in(client: RawClient, user: str) -> None:
    """Log in by PLAIN."""
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
    login = SaslAuthenticateRequest(auth_bytes=plain_token(user))
    answer = client.call(login, SaslAuthenticateResponse)
    if answer.error_code:
        raise RuntimeError(f"{user} cannot log in: {answer.error_message}")


class Attackers:
    """Threads that attack a node until the block ends."""

    def __init__(self, target: Target, seed: int, count: int = 2) -> None:
        self._stop = threading.Event()
        self._attackers = [_Attacker(target, seed + number, self._stop) for number in range(count)]

    @property
    def attacks(self) -> Counter[str]:
        """Number of attacks of each kind."""
        return sum((attacker.attacks for attacker in self._attackers), Counter())

    def __enter__(self) -> Attackers:
        for attacker in self._attackers:
            attacker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for attacker in self._attackers:
            attacker.join()
        if kind is None:
            for attacker in self._attackers:
                assert attacker.failure is None, attacker.failure


class _Attacker(threading.Thread):
    """One attacker. Anything but the end of the node counts as success, even a refusal."""

    def __init__(self, target: Target, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"attacker-{seed}")
        self.attacks: Counter[str] = Counter()
        self.failure: Exception | None = None
        self._target = target
        self._random = Random(seed)
        self._requests = RequestMaker(self._random, list(target.names), target.ids)
        self._stop_asked = stop
        self._tls = ssl.create_default_context(cafile=target.ca)
        self._held: list[socket.socket] = []
        self._ways: dict[str, Callable[[], None]] = {
            "noise": self._noise,
            "requests without a login": self._without_login,
            "requests over TLS without a login": self._over_tls,
            "damaged logins": self._damaged_login,
            "requests of users without rights": self._as_user,
            "requests of users without rights to the controller": self._as_user_of_controller,
            "requests in one piece with a login": self._in_one_piece,
            "logins on top of a login": self._again,
            "forged envelopes": self._forged_envelope,
            "requests by a delegation token": self._by_token,
            "damaged TLS records": self._damaged_tls,
            "half a handshake": self._half_open,
        }

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                way = self._random.choice(list(self._ways))
                self.attacks[way] += 1
                try:
                    self._ways[way]()
                except (ConnectionRefusedError, ssl.SSLCertVerificationError):
                    raise  # the node is gone, or another answers
                except (OSError, AssertionError, DecodeError):
                    pass  # it has closed the connection, said nothing, or what was not asked
        except Exception as error:  # noqa: BLE001  # the test that ends the block tells it
            self.failure = error
        finally:
            for held in self._held:
                held.close()

    def _connect(self, port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout=10)

    def _any_port(self) -> int:
        return self._random.choice([*self._target.plain, *self._target.tls])

    def _noise(self) -> None:
        with self._connect(self._any_port()) as connection:
            connection.sendall(self._random.randbytes(self._random.randint(1, 500)))
            self._await_answer(connection)

    def _without_login(self) -> None:
        with self._connect(self._random.choice(self._target.plain)) as connection:
            self._send_requests(connection)

    def _over_tls(self) -> None:
        with (
            self._connect(self._random.choice(self._target.tls)) as connection,
            self._tls.wrap_socket(connection, server_hostname="127.0.0.1") as secured,
        ):
            self._send_requests(secured)

    def _damaged_login(self) -> None:
        with self._client() as client:
            mechanism = self._random.choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "X"))
            if self._random.random() < 0.9:
                handshake = SaslHandshakeRequest(mechanism=mechanism)
                version = self._random.choice((0, 1))
                client.call(handshake, SaslHandshakeResponse, version)
            user = self._user()
            token = bytearray(
                plain_token(user) if mechanism == "PLAIN" else f"n,,n={user},r=abcdefgh".encode()
            )
            for _ in range(self._random.randint(1, 3)):
                token[self._random.randrange(len(token))] = self._random.randrange(256)
            for _ in range(self._random.randint(1, 3)):
                if self._random.random() < 0.3:
                    client.send_frame(bytes(token))
                else:
                    request = SaslAuthenticateRequest(auth_bytes=bytes(token))
                    client.call(request, SaslAuthenticateResponse)
            client.socket.settimeout(ANSWER_S)
            self._send_requests(client.socket)

    def _as_user(self) -> None:
        with self._client() as client:
            log_in(client, self._user())
            self._send_requests(client.socket)

    def _as_user_of_controller(self) -> None:
        with connect(self._target.tls_controller, self._tls) as client:
            log_in(client, self._user())
            self._send_requests(client.socket)

    def _in_one_piece(self) -> None:
        """Send a login and the request after it in one write."""
        port = self._random.choice((self._target.tls_login, self._target.tls_controller))
        version = self._random.choice((0, 1))
        token = plain_token(self._user())
        if self._random.random() < 0.3:
            token = token[:-1]
        frames = [
            encode_request(
                ApiKey.SASL_HANDSHAKE, version, 1, "fuzz", SaslHandshakeRequest(mechanism="PLAIN")
            ),
            token
            if version == 0
            else encode_request(
                ApiKey.SASL_AUTHENTICATE, 2, 2, "fuzz", SaslAuthenticateRequest(auth_bytes=token)
            ),
        ]
        for _ in range(self._random.randint(1, FRAMES_MAX)):
            frames.insert(self._random.choice((0, 1, 2, len(frames))), self._requests.frame())
        with connect(port, self._tls) as client:
            client.send_bytes(b"".join(pack(">i", len(frame)) + frame for frame in frames))
            while self._await_answer(client.socket):
                pass

    def _again(self) -> None:
        """Log in again between requests, perhaps as another user."""
        with self._client() as client:
            log_in(client, self._user())
            for _ in range(3):
                mechanism = self._random.choice(("PLAIN", "PLAIN", "SCRAM-SHA-512", "X"))
                version = self._random.choice((0, 1))
                client.call(
                    SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version
                )
                if self._random.random() < 0.3:
                    self._send_requests(client.socket)
                login = SaslAuthenticateRequest(auth_bytes=plain_token(self._user()))
                client.call(login, SaslAuthenticateResponse)
                self._send_requests(client.socket)

    def _forged_envelope(self) -> None:
        """Ask the controller in a powerful user's name."""
        asker = Asker(f"User:{self._target.powerful}", "127.0.0.1")
        with connect(self._target.tls_controller, self._tls) as client:
            log_in(client, self._user())
            forged = seal(CreateAclsRequest(creations=[]), 3, asker, "fuzz")
            if self._random.random() < 0.5:
                forged.request_data = self._requests.frame()
            answer = client.call(forged, EnvelopeResponse)
            if answer.error_code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise RuntimeError(f"a forged envelope is answered {answer.error_code}")

    def _by_token(self) -> None:
        """Log in as the owner of a token, which gives no right to another one."""
        user = self._user()
        with self._client() as client:
            log_in(client, user)
            asked = CreateDelegationTokenRequest(max_lifetime_ms=60_000)
            token = client.call(asked, CreateDelegationTokenResponse)
        with self._client() as client:
            name = "SCRAM-SHA-512"
            secret = base64.b64encode(token.hmac).decode()
            scram = ScramClient(name, token.token_id, secret, "abcdefgh", {"tokenauth": "true"})
            client.call(SaslHandshakeRequest(mechanism=name), SaslHandshakeResponse, 1)
            first = client.call(
                SaslAuthenticateRequest(auth_bytes=scram.first()), SaslAuthenticateResponse
            )
            final = SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes))
            if client.call(final, SaslAuthenticateResponse).error_code:
                return  # it has expired, or its owner has ended it
            answer = client.call(asked, CreateDelegationTokenResponse)
            if answer.error_code != ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
                raise RuntimeError(f"a token begets another: {answer.error_code}")
            self._send_requests(client.socket)

    def _user(self) -> str:
        return self._random.choice(self._target.users)

    def _damaged_tls(self) -> None:
        with self._connect(self._random.choice(self._target.tls)) as connection:
            raw = connection.dup()
            with raw, self._tls.wrap_socket(connection, server_hostname="127.0.0.1"):
                size = self._random.randint(1, 300)
                kind = bytes([self._random.choice((20, 21, 22, 23, 24, 255))])
                noise = self._random.randbytes(size)
                raw.sendall(kind + b"\x03\x03" + pack(">H", size) + noise)
                self._await_answer(raw)

    def _half_open(self) -> None:
        connection = self._connect(self._any_port())
        sent = self._random.randint(0, len(TLS_HANDSHAKE))
        connection.sendall(TLS_HANDSHAKE[:sent])
        self._held.append(connection)
        if len(self._held) > HELD_OPEN_MAX:
            self._held.pop(0).close()

    def _client(self) -> RawClient:
        """A connection over TLS to the listener that wants a login."""
        return connect(self._target.tls_login, self._tls)

    def _send_requests(self, connection: socket.socket) -> None:
        for _ in range(self._random.randint(1, FRAMES_MAX)):
            frame = self._requests.frame()
            connection.sendall(pack(">i", len(frame)) + frame)
            if not self._await_answer(connection):
                return

    def _await_answer(self, connection: socket.socket) -> bool:
        """Look for an answer; False when the node has closed the connection, or says nothing."""
        connection.settimeout(ANSWER_S)
        return bool(connection.recv(65536))
