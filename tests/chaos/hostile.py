"""Those who do not wish a node well: threads that send it what no client would.

Some stay outside (no login, or a wrong one), some come in as a user without rights.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from struct import pack
from types import TracebackType

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from support.random_requests import RequestMaker
from support.raw_client import RawClient

ANSWER_S = 0.3
"""How long an attacker looks for an answer, which he may not get."""
FRAMES_MAX = 8
HELD_OPEN_MAX = 100
"""Connections that a thread leaves open without a word."""
TLS_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@dataclass(frozen=True)
class Target:
    """A node's listeners, and a user who may log in and nothing else."""

    plain: Sequence[int]
    """Ports that speak without TLS, with or without a login."""
    tls: Sequence[int]
    tls_login: int
    """The one of `tls` that wants PLAIN or SCRAM."""
    ca: str
    user: str
    password: str
    names: Sequence[str]
    """Of topics, groups and users that exist."""

    def plain_token(self) -> bytes:
        return b"\x00".join((b"", self.user.encode(), self.password.encode()))


class Attackers:
    """Threads that attack a node until the block ends."""

    def __init__(self, target: Target, seed: int, count: int = 2) -> None:
        self._stop = threading.Event()
        self._attackers = [_Attacker(target, seed + number, self._stop) for number in range(count)]

    @property
    def attacks(self) -> Counter[str]:
        """How many there were of each kind."""
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
    """One of them. What the node does to him, short of its end, is no failure."""

    def __init__(self, target: Target, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"attacker-{seed}")
        self.attacks: Counter[str] = Counter()
        self.failure: Exception | None = None
        self._target = target
        self._random = Random(seed)
        self._requests = RequestMaker(self._random, list(target.names))
        self._stop_asked = stop
        self._tls = ssl.create_default_context(cafile=target.ca)
        self._held: list[socket.socket] = []
        self._ways: dict[str, Callable[[], None]] = {
            "noise": self._noise,
            "requests without a login": self._without_login,
            "requests over TLS without a login": self._over_tls,
            "damaged logins": self._damaged_login,
            "requests of a user without rights": self._as_user,
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
            token = bytearray(
                self._target.plain_token()
                if mechanism == "PLAIN"
                else f"n,,n={self._target.user},r=abcdefgh".encode()
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
            client.call(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
            login = SaslAuthenticateRequest(auth_bytes=self._target.plain_token())
            answer = client.call(login, SaslAuthenticateResponse)
            if answer.error_code:
                raise RuntimeError(f"the user cannot log in: {answer.error_message}")
            self._send_requests(client.socket)

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
        port = self._target.tls_login
        client = RawClient(f"127.0.0.1:{port}")
        client.socket = self._tls.wrap_socket(client.socket, server_hostname="127.0.0.1")
        return client

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
