"""BYTES in text: base64 with padding, as Java's libraries take and write it."""

from __future__ import annotations

import base64
import binascii
import re

_SPACE = re.compile(r"[\x00-\x20]+")


def encode_bytes(value: bytes) -> str:
    """The bytes in base64."""
    return base64.b64encode(value).decode()


def decode_bytes(text: str, *, spaces: bool = False) -> bytes:
    """The bytes of the text. `spaces`: those between digits are skipped. Raises ValueError."""
    try:
        return base64.b64decode(_SPACE.sub("", text) if spaces else text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None
