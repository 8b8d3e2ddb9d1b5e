"""Signed tokens: a JWT is believed when a key of its issuer signed it and its claims hold.

Signatures are those of private keys alone. A token says itself how it was signed, so what it says
is held against what the key is for: `none` is no signature, and an HMAC would take a public key
for a secret. Source: RFC 7519, 8725; Kafka's BrokerJwtValidator, whose rules of claims are those
of jose4j.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.base.oauth.bearer import (
    BearerToken,
    InvalidTokenError,
    take_apart,
    text,
    texts,
    time_ms,
)
from barnabas.base.oauth.key_set import ALGORITHMS, KeySet

KEY_ID_SIZE_MAX: Final = 1000


class Keys(Protocol):
    """The keys of the issuers, as they are known now."""

    def current(self) -> KeySet:
        """The known keys. Raises InvalidTokenError before any is known."""

    def missed(self, key_id: str) -> None:
        """A token names a key that is not known: there may be a new one."""


@dataclass(frozen=True, slots=True)
class JwtValidator:
    """The requirements for a signed token, of a listener or of a login in a browser."""

    keys: Keys
    audiences: Collection[str] = ()
    """One of these must be named; without any, a token must name no audience."""
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_ms: int = 30_000

    def __call__(self, token: str, now_ms: int) -> BearerToken:
        """Check a token. Raises InvalidTokenError."""
        claims = self.claims(token, now_ms)
        expires_at_ms = time_ms(claims, "exp")
        assert expires_at_ms is not None
        return BearerToken(
            text(claims, self.subject_claim),
            expires_at_ms,
            self._scope(claims),
            time_ms(claims, "iat"),
        )

    def claims(self, token: str, now_ms: int) -> dict[str, object]:
        """Check signature, times, audience and issuer of a token, and return what it claims.

        Raises InvalidTokenError.
        """
        parts = take_apart(token)
        algorithm = parts.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidTokenError("the token is not signed with an algorithm that is allowed")
        if "crit" in parts.header:
            raise InvalidTokenError("the token has a critical header that is not understood")
        key_id = parts.header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidTokenError("the token's key id is not text")
        candidates = self.keys.current().fitting(algorithm, key_id)
        if not candidates:
            if key_id is not None and len(key_id) <= KEY_ID_SIZE_MAX:
                self.keys.missed(key_id)
            raise InvalidTokenError("no key of the issuer fits the token")
        if not any(key.verifies(algorithm, parts.signed, parts.signature) for key in candidates):
            raise InvalidTokenError("the token's signature is wrong")
        self._check(parts.claims, now_ms)
        return parts.claims

    def _check(self, claims: dict[str, object], now_ms: int) -> None:
        expires_at_ms = time_ms(claims, "exp")
        issued_at_ms = time_ms(claims, "iat")
        not_before_ms = time_ms(claims, "nbf")
        if expires_at_ms is None:
            raise InvalidTokenError("the token has no claim exp")
        if issued_at_ms is None:
            raise InvalidTokenError("the token has no claim iat")
        if now_ms - self.clock_skew_ms >= expires_at_ms:
            raise InvalidTokenError("the token has expired")
        if not_before_ms is not None and now_ms + self.clock_skew_ms < not_before_ms:
            raise InvalidTokenError("the token is not valid yet")
        if expires_at_ms < max(issued_at_ms, not_before_ms or 0):
            raise InvalidTokenError("the token expires before it is valid")
        self._check_audience(texts(claims, "aud"))
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidTokenError("the token is of another issuer")

    def _check_audience(self, named: list[str]) -> None:
        if not self.audiences:
            if named:
                raise InvalidTokenError(
                    "the token is for an audience, and sasl.oauthbearer.expected.audience is "
                    "not set"
                )
        elif not set(named) & set(self.audiences):
            raise InvalidTokenError("the token is for another audience")

    def _scope(self, claims: dict[str, object]) -> frozenset[str]:
        named = [entry.strip() for entry in texts(claims, self.scope_claim)]
        if not all(named) or len(set(named)) != len(named):
            raise InvalidTokenError(f"the claim {self.scope_claim} is empty in parts, or repeats")
        return frozenset(named)
