"""Delegation tokens: what is derived from their records (KIP-48, KIP-900).

A record holds all of a token but its secret, an HMAC of the token's id under
`delegation.token.secret.key`, which every node computes for itself. So the metadata log betrays
nothing, and a node with another key (or none) accepts no token.
"""

import hmac
from functools import lru_cache
from typing import Final

from barnabas.base.config.node import NodeConfig
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

SECRET_KEY: Final = "delegation.token.secret.key"
HMACS_KEPT_MAX: Final = 10_000
"""How many tokens' secrets are remembered; one beyond is computed anew at each use."""


def token_secret(config: NodeConfig) -> str | None:
    """The key that signs tokens; None where tokens are not enabled."""
    return config.get_str_or_none(SECRET_KEY) or None


@lru_cache(HMACS_KEPT_MAX)
def token_hmac(secret: str, token_id: str) -> bytes:
    """The secret of the token itself. In base64 it is the password of a login by token."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def find_token(image: MetadataImage, secret: str, shown: bytes) -> DelegationTokenRecord | None:
    """The token whose secret is `shown`."""
    for token in image.delegation_tokens.values():
        if hmac.compare_digest(token_hmac(secret, token.token_id), shown):
            return token
    return None


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether it may no longer be used."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms
