"""Logging in to another node by SASL: what a mechanism offers to the side that logs in.

A connection asks ApiVersions first, then SaslHandshake, then takes messages to and fro until the
mechanism has said all. Where the other node says how long the login holds, the connection logs in
again before that (KIP-368). `own_login` makes the login that a node's configuration asks for, by
the kind of listener.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.base.scram import ScramClient, ScramError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import CONTROLLER_KEY, INTER_BROKER_KEY, jaas_options, uses_sasl


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


NONCE_BITS: Final = 192
TOKEN_OPTION: Final = "tokenauth"


class Toward(Enum):
    """The listener of other nodes that a connection goes to."""

    BROKERS = INTER_BROKER_KEY
    CONTROLLERS = CONTROLLER_KEY

    def listener_name(self, config: NodeConfig) -> str | None:
        """The listener by its name; None if absent."""
        if self is Toward.BROKERS:
            return config.inter_broker_listener_name
        names = config.controller_listener_names
        return names[0] if names else None


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The inputs of a login."""

    config: NodeConfig
    listener_name: str
    """The listener that it is for."""
    mechanism: str
    options: dict[str, str]
    """Those of its JAAS line."""
    random: RandomSource
    clock: Clock

    def __repr__(self) -> str:
        return f"Ingredients({self.listener_name}, {self.mechanism})"


def own_login(
    config: NodeConfig, toward: Toward, random: RandomSource, clock: Clock
) -> Login | None:
    """Return this node's login there; None if it needs none. Raises ConfigError."""
    name = toward.listener_name(config)
    if name is None or not uses_sasl(config, name):
        return None
    mechanism = config.get_str(toward.value)
    options = jaas_options(config, name, mechanism) or {}
    return MAKE[mechanism](Ingredients(config, name, mechanism, options, random, clock))


def _plain(given: Ingredients) -> Login:
    return PlainLogin(given.options["username"], given.options["password"])


def _scram(given: Ingredients) -> Login:
    random = given.random
    is_token = given.options.get(TOKEN_OPTION, "").lower() == "true"
    return ScramLogin(
        given.mechanism,
        given.options["username"],
        given.options["password"],
        lambda: f"{random.randrange(1 << NONCE_BITS):048x}",
        {TOKEN_OPTION: "true"} if is_token else None,
    )


def _oauthbearer(given: Ingredients) -> Login:
    from barnabas.node.net.oauth.configured import token_login  # rarely needed

    return token_login(given.config, given.listener_name, given.options, given.clock, given.random)


MAKE: Final[dict[str, Callable[[Ingredients], Login]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
}
