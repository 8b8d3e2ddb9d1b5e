"""The mechanisms that are served, by name, and what each is made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.base.clock import Clock
from barnabas.base.scram import MECHANISM_NUMBERS
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import enabled_mechanisms, jaas_options
from barnabas.node.security.sasl.mechanism import Mechanism
from barnabas.node.security.sasl.plain import PlainMechanism, users_of
from barnabas.node.security.sasl.scram import Credential, ScramMechanism, TokenCredential

if TYPE_CHECKING:
    from barnabas.base.oauth.bearer import Validate


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The inputs of one listener's mechanisms."""

    config: NodeConfig
    listener_name: str
    clock: Clock
    randbytes: Callable[[int], bytes]
    credential: Callable[[int, str], Credential | None]
    """The SCRAM credential by mechanism number and user that holds now."""
    token: Callable[[int, str], TokenCredential | None] = lambda number, token_id: None
    """The delegation token of an id, with its credential for a SCRAM mechanism."""
    any_credential: Callable[[int], Credential | None] = lambda number: None
    """The credential of one user by mechanism number, on all nodes the same."""
    bearer: "Callable[[str], Validate] | None" = None
    """Returns the function that checks the bearer tokens of a listener."""


def make_mechanisms(ingredients: Ingredients) -> dict[str, Mechanism]:
    """The mechanisms of a listener's clients. Raises ConfigError."""
    return {
        name: MAKE[name](name, ingredients)
        for name in enabled_mechanisms(ingredients.config, ingredients.listener_name)
    }


def options(name: str, ingredients: Ingredients) -> Mapping[str, str]:
    """The listener's JAAS line of a mechanism."""
    return jaas_options(ingredients.config, ingredients.listener_name, name) or {}


def _plain(name: str, ingredients: Ingredients) -> Mechanism:
    return PlainMechanism(users_of(options(name, ingredients)))


def _scram(name: str, ingredients: Ingredients) -> Mechanism:
    number = MECHANISM_NUMBERS[name]
    return ScramMechanism(
        name,
        lambda user: ingredients.credential(number, user),
        ingredients.randbytes,
        lambda token_id: ingredients.token(number, token_id),
        lambda: ingredients.any_credential(number),
    )


def _oauthbearer(_: str, ingredients: Ingredients) -> Mechanism:
    from barnabas.node.security.sasl.oauthbearer import OAuthBearer  # rarely needed

    assert ingredients.bearer is not None, "who offers OAUTHBEARER says what checks tokens"
    return OAuthBearer(ingredients.bearer(ingredients.listener_name), ingredients.clock.now_ms)


MAKE: Final[dict[str, Callable[[str, Ingredients], Mechanism]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
}
