"""Unsecured tokens (`alg: none`): anyone can claim any name.

Kafka checks tokens so unless another callback handler is configured, for development only. The
options are those of the listener's JAAS line. Source: RFC 7515, appendix A.5; Kafka's
OAuthBearerUnsecuredValidatorCallbackHandler and OAuthBearerValidationUtils.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import (
    BearerToken,
    InvalidTokenError,
    take_apart,
    text,
    texts,
    time_ms,
)

PREFIX: Final = "unsecuredValidator"


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """Believes what a token says, as long as it is consistent."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "UnsecuredValidator":
        """Read the options of a JAAS line. Raises ConfigError."""
        skew_text = options.get(f"{PREFIX}AllowableClockSkewMs", "").strip() or "0"
        try:
            skew_ms = int(skew_text)
        except ValueError:
            skew_ms = -1
        if skew_ms < 0:
            raise ConfigError(
                "sasl.jaas.config",
                f"{PREFIX}AllowableClockSkewMs must be a whole number that is not negative",
            )
        return cls(
            options.get(f"{PREFIX}PrincipalClaimName", "").strip() or "sub",
            options.get(f"{PREFIX}ScopeClaimName", "").strip() or "scope",
            tuple(options.get(f"{PREFIX}RequiredScope", "").split()),
            skew_ms,
        )

    def __call__(self, token: str, now_ms: int) -> BearerToken:
        """Read an unsecured token. Raises InvalidTokenError."""
        parts = take_apart(token)
        if parts.header.get("alg") != "none":
            raise InvalidTokenError("Unsecured JWS must have 'none' for an algorithm")
        if parts.signature:
            raise InvalidTokenError("Unsecured JWS must not contain a digital signature")
        claims = parts.claims
        principal = text(claims, self.principal_claim)
        expires_at_ms = time_ms(claims, "exp")
        issued_at_ms = time_ms(claims, "iat")
        if expires_at_ms is None:
            raise InvalidTokenError("No expiration time in JWT")
        if issued_at_ms is not None and issued_at_ms > now_ms + self.clock_skew_ms:
            raise InvalidTokenError("the token was issued in the future")
        if now_ms - self.clock_skew_ms >= expires_at_ms:
            raise InvalidTokenError("the token has expired")
        if issued_at_ms is not None and expires_at_ms <= issued_at_ms:
            raise InvalidTokenError("the token expires before it was issued")
        scope = frozenset(
            entry.strip() for entry in texts(claims, self.scope_claim) if entry.strip()
        )
        if not scope.issuperset(self.required_scope):
            wanted = " ".join(self.required_scope)
            raise InvalidTokenError("the token lacks the required scope", wanted)
        return BearerToken(principal, expires_at_ms, scope, issued_at_ms)
