"""The address at which a node shows its metrics, and who may see them, by keys of our own."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.web.login import BasicLogin

LISTENER_KEY: Final = "barnabas.metrics.listener"
USERS_KEY: Final = "barnabas.metrics.users"
LISTENER_NAME: Final = "METRICS"
"""Keys of TLS may be given for it alone: `listener.name.metrics.ssl.keystore.location`."""


@dataclass(frozen=True, slots=True)
class Access:
    """The values of the keys."""

    host: str
    port: int
    is_encrypted: bool
    passwords: Mapping[str, str]
    """By user; empty: anyone who reaches the address may read them."""

    @property
    def login(self) -> BasicLogin | None:
        """The login with a password; None if absent."""
        return BasicLogin(_Users(self.passwords), "metrics") if self.passwords else None


class _Users:
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def roles(self, name: str, password: str) -> frozenset[str] | None:
        """The roles of a user. Unknown users are compared too, so that both take the same time."""
        expected = self._passwords.get(name)
        is_right = hmac.compare_digest(password.encode(), (expected or "").encode())
        return frozenset({name}) if is_right and expected is not None else None


def metrics_access(config: NodeConfig) -> Access | None:
    """None where no metrics are shown. Raises ConfigError."""
    text = config.get_str_or_none(LISTENER_KEY)
    if not text:
        return None
    url = urlsplit(text)
    try:
        port = url.port
    except ValueError:
        port = None
    is_plain = not (url.path.strip("/") or url.query or url.fragment or url.username)
    if url.scheme not in ("http", "https") or not url.hostname or port is None or not is_plain:
        raise ConfigError(LISTENER_KEY, f"{text!r} is not http://host:port or https://host:port")
    return Access(url.hostname, port, url.scheme == "https", _passwords(config))


def _passwords(config: NodeConfig) -> dict[str, str]:
    passwords: dict[str, str] = {}
    for entry in filter(None, (config.get_str_or_none(USERS_KEY) or "").split(",")):
        user, colon, password = entry.strip().partition(":")
        if not (user and colon and password):
            raise ConfigError(USERS_KEY, "is not user:password, or a list of them with commas")
        passwords[user] = password
    return passwords
