"""Delegation tokens: what is derived from their records (KIP-48, KIP-900).

A record holds all of a token but its secret, an HMAC of the token's id under
`delegation.token.secret.key`, which every node computes for itself. So the metadata log betrays
nothing, and a node with another key (or none) accepts no token.
"""

import hmac
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Final

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

SECRET_KEY: Final = "delegation.token.secret.key"
HMACS_KEPT_MAX: Final = 10_000
"""The number of tokens whose secrets are cached; others are computed at each use."""
INDEXES_KEPT_MAX: Final = 4
"""A process has one secret, or few in tests."""


def token_secret(config: NodeConfig) -> str | None:
    """The key that signs tokens; None where tokens are not enabled."""
    return config.get_str_or_none(SECRET_KEY) or None


@lru_cache(HMACS_KEPT_MAX)
def token_hmac(secret: str, token_id: str) -> bytes:
    """The secret of the token itself. In base64 it is the password of a login by token."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


class _Index:
    """Tokens by their secrets, so that one that is shown costs the same however many there are.

    Anybody who is logged in may make tokens, and show what is none.
    """

    __slots__ = ("_by_hmac", "_hmacs", "_lock", "_secret", "_tokens")

    def __init__(self, secret: str) -> None:
        self._lock = Lock()
        """Nodes of one process may run in several threads."""
        self._secret = secret
        self._tokens: Mapping[str, DelegationTokenRecord] = {}
        """The indexed tokens."""
        self._hmacs: dict[str, bytes] = {}
        self._by_hmac: dict[bytes, str] = {}

    def find(
        self, tokens: Mapping[str, DelegationTokenRecord], shown: bytes
    ) -> DelegationTokenRecord | None:
        with self._lock:
            if tokens is not self._tokens:
                self._follow(tokens)
            token_id = self._by_hmac.get(bytes(shown))
        return None if token_id is None else tokens[token_id]

    def _follow(self, tokens: Mapping[str, DelegationTokenRecord]) -> None:
        for token_id in self._hmacs.keys() - tokens.keys():
            del self._by_hmac[self._hmacs.pop(token_id)]
        for token_id in tokens.keys() - self._hmacs.keys():
            shown = self._hmacs[token_id] = token_hmac(self._secret, token_id)
            self._by_hmac[shown] = token_id
        self._tokens = tokens


_index = lru_cache(INDEXES_KEPT_MAX)(_Index)


def find_token(image: MetadataImage, secret: str, shown: bytes) -> DelegationTokenRecord | None:
    """The token whose secret is `shown`."""
    return _index(secret).find(image.delegation_tokens, shown)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Return whether it may no longer be used."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms
