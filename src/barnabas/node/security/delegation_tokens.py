"""Logins by delegation token: SCRAM, with the token's id and its secret as name and password.

The keys that verify a secret are derived when a token is first shown, and kept. Source: KIP-48;
Kafka's DelegationTokenManager, which derives them for every token beforehand.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.scram import HASHES, ITERATIONS_MIN, MECHANISM_NUMBERS, keys_of, salted_password
from barnabas.node.metadata.delegation_tokens import is_expired, token_hmac
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.security.principal import Principal
from barnabas.node.security.sasl.scram import TokenCredential

KEPT_MAX: Final = 1000
SALT_SIZE_BYTES: Final = 24
_HASH_OF: Final = {number: HASHES[name] for name, number in MECHANISM_NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class Keys:
    """The verifier of a token's secret."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int = ITERATIONS_MIN


class TokenLogins:
    """Finds tokens by the ids that clients show."""

    def __init__(
        self,
        secret: str | None,
        image: Callable[[], MetadataImage],
        clock: Clock,
        randbytes: Callable[[int], bytes],
    ) -> None:
        """Without a `secret` no token is accepted."""
        self._secret = secret
        self._image = image
        self._clock = clock
        self._randbytes = randbytes
        self._kept: OrderedDict[tuple[int, str], Keys] = OrderedDict()

    def credential(self, mechanism: int, token_id: str) -> TokenCredential | None:
        """Whose token it is and what verifies its secret; None where nobody may log in by it."""
        token = self._image().delegation_tokens.get(token_id)
        if self._secret is None or token is None or is_expired(token, self._clock.now_ms()):
            return None
        kind, _, name = token.owner.partition(":")
        keys = self._keys(self._secret, mechanism, token_id)
        return TokenCredential(Principal(kind, name), token.expiration_timestamp, keys)

    def _keys(self, secret: str, mechanism: int, token_id: str) -> Keys:
        known = self._kept.get((mechanism, token_id))
        if known is None:
            algorithm = _HASH_OF[mechanism]
            salt = self._randbytes(SALT_SIZE_BYTES)
            password = base64.b64encode(token_hmac(secret, token_id)).decode()
            made = keys_of(algorithm, salted_password(algorithm, password, salt, ITERATIONS_MIN))
            known = Keys(salt, made.stored_key, made.server_key)
            self._kept[mechanism, token_id] = known
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end((mechanism, token_id))
        return known
