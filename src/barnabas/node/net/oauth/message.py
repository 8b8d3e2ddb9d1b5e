"""The first message of an OAUTHBEARER login (RFC 7628, section 3.1), written and read.

    n,a=alice,^Aauth=Bearer <token>^Aname=value^A^A

Source: Kafka's OAuthBearerClientInitialResponse, whose pattern this is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SEPARATOR: Final = "\x01"
ERROR_ACKNOWLEDGED: Final = b"\x01"
"""A client's answer to the reason why its token was refused."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_MESSAGE: Final = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:{_PAIR})*)\x01", re.ASCII)
_AUTHORIZATION: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")


class BearerMessageError(ValueError):
    """The message is none of RFC 7628. Its text holds nothing of the message."""


@dataclass(frozen=True, slots=True)
class BearerMessage:
    """A client's credentials."""

    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


def parse_message(data: bytes) -> BearerMessage:
    """Read a client's message. Raises BearerMessageError."""
    try:
        match = _MESSAGE.fullmatch(data.decode("ascii"))
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise BearerMessageError("Invalid OAUTHBEARER client first message")
    name = (match[1] or "").replace("=2C", ",").replace("=3D", "=")
    pairs = {}
    for pair in match[2].split(SEPARATOR)[:-1]:
        key, _, value = pair.partition("=")
        pairs[key] = value
    authorization = pairs.pop("auth", None)
    if authorization is None:
        raise BearerMessageError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    shown = _AUTHORIZATION.fullmatch(authorization)
    if shown is None:
        raise BearerMessageError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if shown[1].lower() != "bearer":
        raise BearerMessageError("Invalid scheme in OAUTHBEARER client first message")
    return BearerMessage(shown[2], name, pairs)


def format_message(message: BearerMessage) -> bytes:
    """Write it. Raises BearerMessageError where a part of it cannot be said."""
    check_extensions(message.extensions)
    name = message.authorization_id.replace("=", "=3D").replace(",", "=2C")
    parts = [f"n,{f'a={name}' if name else ''},", f"auth=Bearer {message.token}"]
    parts += [f"{key}={value}" for key, value in message.extensions.items()]
    return (SEPARATOR.join(parts) + 2 * SEPARATOR).encode()


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raises BearerMessageError for a name or value that a message cannot hold."""
    for name, value in extensions.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name):
            raise BearerMessageError(f"Extension name {name} is invalid")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise BearerMessageError(f"The value of extension {name} is invalid")
