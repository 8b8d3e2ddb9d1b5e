"""The OAUTHBEARER mechanism of a listener (RFC 7628; KIP-255, KIP-768).

The client shows its token in one message. If it is refused, the answer says why in JSON, the
client says that it has read it, and only then does the login fail. Source: Kafka's
OAuthBearerSaslServer.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import (
    BearerToken,
    InvalidTokenError,
    Validate,
    take_apart,
    text,
    texts,
    time_ms,
)
from barnabas.node.net.oauth.message import BearerMessageError, parse_message
from barnabas.node.security.principal import USER, Principal
from barnabas.node.security.sasl.mechanism import (
    AuthenticationError,
    InvalidCredentialsError,
    Login,
    Refusal,
)

NAME: Final = "OAUTHBEARER"


class OAuthBearer:
    """The mechanism: begins exchanges."""

    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._now_ms = now_ms

    @property
    def name(self) -> str:
        return NAME

    def begin(self) -> "OAuthBearerExchange":
        """A new exchange."""
        return OAuthBearerExchange(self._validate, self._now_ms)


class OAuthBearerExchange:
    """One login."""

    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._now_ms = now_ms
        self._refusal: str | None = None
        self._login: Login | None = None

    @property
    def login(self) -> Login | None:
        """Set once a token was found valid."""
        return self._login

    def respond(self, message: bytes) -> bytes:
        """Empty for a token that is valid, otherwise what is wrong. Raises AuthenticationError."""
        if self._refusal is not None:
            # The client says that it has read why: a single byte of 1.
            raise AuthenticationError(self._refusal)
        try:
            shown = parse_message(message)
        except BearerMessageError as error:
            raise InvalidCredentialsError(str(error)) from None
        try:
            token = self._validate(shown.token, self._now_ms())
        except InvalidTokenError as error:
            answer = {"status": error.status}
            if error.scope is not None:
                answer["scope"] = error.scope
            self._refusal = json.dumps(answer, separators=(",", ":"))
            return Refusal(self._refusal.encode(), str(error))
        if shown.authorization_id and shown.authorization_id != token.principal_name:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id "
                f"({shown.authorization_id}) that is different from the token's principal name "
                f"({token.principal_name})"
            )
        self._login = Login(Principal(USER, token.principal_name), token.expires_at_ms)
        return b""


# -- unsecured tokens (`alg: none`): anyone can claim any name
#
# Kafka checks tokens so unless another callback handler is configured, for development only. The
# options are those of the listener's JAAS line. Source: RFC 7515, appendix A.5; Kafka's
# OAuthBearerUnsecuredValidatorCallbackHandler and OAuthBearerValidationUtils.


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
