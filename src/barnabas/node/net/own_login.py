"""The logins of a node at other nodes, by its configuration and the kind of listener."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import CONTROLLER_KEY, INTER_BROKER_KEY, jaas_options, uses_sasl
from barnabas.node.net.login import Login, PlainLogin, ScramLogin

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
