"""One SASL exchange: what every mechanism of the accepting side offers."""

from dataclasses import dataclass
from typing import Protocol

from barnabas.node.security.principal import Principal


class AuthenticationError(Exception):
    """The login failed. Its text goes to the client and to the log, so it holds no secret."""


class InvalidCredentialsError(AuthenticationError):
    """The login failed, and the client is not told why: that would say which users there are.

    The text goes to the log. The client gets Kafka's, which is the same for every reason.
    """


class Refusal(bytes):
    """An answer by which the login has failed, though the exchange ends with the next message."""

    def __new__(cls, answer: bytes, reason: str) -> "Refusal":
        """`reason` goes to the log, so it holds no secret."""
        refusal = super().__new__(cls, answer)
        refusal.reason = reason
        return refusal

    reason: str


@dataclass(frozen=True, slots=True)
class Login:
    """The principal that has logged in."""

    principal: Principal
    expires_at_ms: int | None = None
    """When what was shown (a token) ends, in wall-clock time; None: it does not."""
    is_token: bool = False
    """True if it was a delegation token, with which no further token may be made."""


class Exchange(Protocol):
    """A login under way."""

    def respond(self, message: bytes) -> bytes:
        """The answer to the client's next message. Raises AuthenticationError."""

    @property
    def login(self) -> Login | None:
        """Set once the client has shown who it is."""


class Mechanism(Protocol):
    """A way to log in, with all that a listener says about it. It begins exchanges."""

    @property
    def name(self) -> str:
        """`PLAIN`, `SCRAM-SHA-512`, `OAUTHBEARER`, …"""

    def begin(self) -> Exchange:
        """A new exchange."""
