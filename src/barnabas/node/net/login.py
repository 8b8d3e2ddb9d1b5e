"""Logging in to another node by SASL: what a mechanism offers to the side that logs in.

A connection asks ApiVersions first, then SaslHandshake, then takes messages to and fro until the
mechanism has said all. Where the other node says how long the login holds, the connection logs in
again before that (KIP-368).
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from barnabas.base.scram import ScramClient, ScramError


class LoginError(ConnectionError):
    """The other node does not let us in, or is not who it should be. The text holds no secret."""


class Exchange(Protocol):
    """One login under way."""

    def respond(self, challenge: bytes) -> bytes | None:
        """The next message; the first challenge is empty. None: all has been said.

        Raises LoginError.
        """


class Login(Protocol):
    """A login of this node at other nodes."""

    @property
    def mechanism(self) -> str:
        """Its name."""

    async def begin(self) -> Exchange:
        """A new exchange. Raises LoginError where there is nothing to show."""


class PlainLogin:
    """By name and password, as they are."""

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    async def begin(self) -> Exchange:
        return _Plain(self._message)


class _Plain:
    def __init__(self, message: bytes) -> None:
        self._messages = [message]

    def respond(self, challenge: bytes) -> bytes | None:
        return self._messages.pop() if self._messages else None


class ScramLogin:
    """By SCRAM: the password stays here, and the other side proves that it knows of it."""

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        nonce: Callable[[], str],
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        """`nonce` draws a random text without commas; `extensions`: as of a `ScramClient`."""
        self.mechanism = mechanism
        self._user = user
        self._password = password
        self._nonce = nonce
        self._extensions = extensions

    async def begin(self) -> Exchange:
        nonce = self._nonce()
        return _Scram(
            ScramClient(self.mechanism, self._user, self._password, nonce, self._extensions)
        )


class _Scram:
    def __init__(self, client: ScramClient) -> None:
        self._client = client
        self._next: Callable[[bytes], bytes | None] = self._first

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            return self._next(challenge)
        except ScramError as error:
            raise LoginError(str(error)) from error

    def _first(self, _: bytes) -> bytes | None:
        self._next = self._final
        return self._client.first()

    def _final(self, challenge: bytes) -> bytes | None:
        self._next = self._verify
        return self._client.final(challenge)

    def _verify(self, challenge: bytes) -> bytes | None:
        self._client.verify(challenge)
        return None
