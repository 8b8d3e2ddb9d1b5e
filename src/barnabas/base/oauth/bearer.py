"""Bearer tokens: what is read of one, and why one is refused.

A JWT is three parts in base64: a header, claims and a signature. Here it is taken apart, nothing
in it is believed. Source: RFC 7519 and 7515; Kafka's SerializedJwt and ClaimValidationUtils.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_SECONDS_MAX: Final = 2**53
"""Beyond it a JSON number is not exact, and no date."""


class InvalidTokenError(Exception):
    """The token is refused. The text is for the log: it quotes nothing of the token's secret."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope
        """The scope that the token lacks."""

    @property
    def status(self) -> str:
        """RFC 6750's word for it, which the client gets."""
        return INVALID_TOKEN if self.scope is None else INSUFFICIENT_SCOPE


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token that was found valid."""

    principal_name: str
    expires_at_ms: int
    scope: frozenset[str] = frozenset()
    issued_at_ms: int | None = None


Validate = Callable[[str, int], BearerToken]
"""(token, now in ms) -> what it says. Raises InvalidTokenError."""


@dataclass(frozen=True, slots=True)
class TokenParts:
    """A JWT in compact form, taken apart."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def take_apart(token: str) -> TokenParts:
    """Decode the three parts. Raises InvalidTokenError."""
    sections = token.strip().split(".")
    if len(sections) != 3:
        raise InvalidTokenError(
            "Malformed JWT provided; expected three sections (header, payload, and signature), "
            f"but {len(sections)} sections provided"
        )
    header, claims, signature = sections
    return TokenParts(
        _object(header, "header"),
        _object(claims, "payload"),
        f"{header}.{claims}".encode("ascii"),
        _decoded(signature, "signature"),
    )


def _decoded(section: str, what: str) -> bytes:
    # Only the alphabet of JWTs, and each value in one way: a lenient decoder skips what it
    # does not know.
    if not _BASE64.fullmatch(section):
        raise InvalidTokenError(f"the {what} of the JWT is not base64")
    try:
        return base64.urlsafe_b64decode(section + "=" * (-len(section) % 4))
    except binascii.Error as error:
        raise InvalidTokenError(f"the {what} of the JWT is not base64") from error


def _object(section: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(
            _decoded(section, what), object_pairs_hook=_without_repetition, parse_constant=_refuse
        )
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError(f"the {what} of the JWT is not JSON") from error
    if not isinstance(value, dict):
        raise InvalidTokenError(f"the {what} of the JWT is not a JSON object")
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands twice is read in two ways by two readers."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError
    return result


def _refuse(constant: str) -> Any:
    raise ValueError


def time_ms(claims: dict[str, Any], name: str) -> int | None:
    """A claim that is a time in seconds, or None. Raises InvalidTokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"the claim {name} is not a number")
    if not 0 <= value <= _SECONDS_MAX:
        raise InvalidTokenError(f"the claim {name} is not a time")
    return round(value * 1000)


def text(claims: dict[str, Any], name: str) -> str:
    """A claim that must be there, and hold text. Raises InvalidTokenError."""
    value = claims.get(name)
    if not isinstance(value, str):
        raise InvalidTokenError(f"the claim {name} is missing, or no text")
    if not value.strip():
        raise InvalidTokenError(f"the claim {name} is empty")
    return value.strip()


def texts(claims: dict[str, Any], name: str) -> list[str]:
    """A claim that is a text or a list of them; empty where it is missing.

    Raises InvalidTokenError.
    """
    value = claims.get(name)
    if isinstance(value, str):
        return [value]
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InvalidTokenError(f"the claim {name} is not a list of texts")
    return value
