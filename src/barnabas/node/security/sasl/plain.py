"""PLAIN: a name and a password, as they are. Fit for TLS only, or a network that is one's own.

Source: RFC 4616, and Kafka's PlainSaslServer for the texts of errors.
"""

import hmac
from collections.abc import Mapping
from typing import Final

from barnabas.node.security.principal import USER, Principal
from barnabas.node.security.sasl.mechanism import AuthenticationError, Exchange, Login

PLAIN: Final = "PLAIN"
USER_PREFIX: Final = "user_"
"""`user_alice="secret"` in a JAAS line is a user of the listener."""


def users_of(options: Mapping[str, str]) -> dict[str, bytes]:
    """The passwords of the users that a JAAS line names."""
    return {
        name.removeprefix(USER_PREFIX): password.encode()
        for name, password in options.items()
        if name.startswith(USER_PREFIX)
    }


class PlainMechanism:
    """A `Mechanism` over the users of one listener."""

    name = PLAIN

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users

    def begin(self) -> Exchange:
        return PlainExchange(self._users)


class PlainExchange:
    """One message says all."""

    __slots__ = ("_users", "login")

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self.login: Login | None = None

    def respond(self, message: bytes) -> bytes:
        tokens = message.split(b"\0", 3)
        if len(tokens) != 3:
            raise AuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            )
        authorization_id, name, password = tokens
        if not name:
            raise AuthenticationError("Authentication failed: username not specified")
        if not password:
            raise AuthenticationError("Authentication failed: password not specified")
        user = name.decode("utf-8", "replace")
        wanted = self._users.get(user)
        # An unknown user costs one comparison too.
        is_right = hmac.compare_digest(password, password + b"!" if wanted is None else wanted)
        if not is_right:
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != name:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.login = Login(Principal(USER, user))
        return b""
