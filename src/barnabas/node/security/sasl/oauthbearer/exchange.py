"""The OAUTHBEARER mechanism of a listener (RFC 7628; KIP-255, KIP-768).

The client shows its token in one message. If it is refused, the answer says why in JSON, the
client says that it has read it, and only then does the login fail. Source: Kafka's
OAuthBearerSaslServer.
"""

import json
from collections.abc import Callable
from typing import Final

from barnabas.base.oauth.bearer import InvalidTokenError, Validate
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
