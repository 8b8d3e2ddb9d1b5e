"""Takes secrets out of texts, also where Python, JSON or a URL spells them in its way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "[hidden]"
LENGTH_MIN: Final = 4
"""Shorter values stand in texts by chance: hiding each `a` would hide the text."""


class Hiding:
    """Hides secrets; a call returns a text without them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= LENGTH_MIN
            for spelling in _spellings(secret)
        }
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        return text


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    python = "".join(char if char in "'\"" else repr(char)[1:-1] for char in secret)
    yield python
    yield python.replace("'", "\\'")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    known = secret.encode(errors="surrogatepass")
    yield quote(known)
    yield quote(known, safe="")
    yield quote_plus(known)
