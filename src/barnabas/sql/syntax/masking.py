"""Texts of statements without the secrets that settings of connectors may be.

Of a connector's settings only `connector.class` is shown. Source: ksqlDB's QueryMask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SHOWN: Final = "connector.class"
MASK: Final = "'[string]'"
_STRING: Final = r"'(?:[^']|'')*'"
_PROPERTY: Final = re.compile(
    rf"(?P<key>{_STRING}|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|[\w.@$-]+)\s*=\s*"
    rf"(?P<value>{_STRING}|'.*\Z|[^\s,;)]+)",
    re.DOTALL,
)
_CONNECTOR: Final = re.compile(r"\bCREATE\s+(?:SOURCE|SINK)\s+CONNECTOR\b", re.IGNORECASE)


def masked(text: str) -> str:
    """The text, with what each property from the first CREATE CONNECTOR on says left out."""
    match = _CONNECTOR.search(text)
    if match is None:
        return text
    return text[: match.end()] + _PROPERTY.sub(_masked_property, text[match.end() :])


def masked_settings(settings: Mapping[str, str | None]) -> dict[str, str | None]:
    """A connector's settings by their names alone."""
    return {name: text if name == SHOWN else MASK for name, text in settings.items()}


def _masked_property(match: re.Match[str]) -> str:
    key = match["key"]
    if key.strip("'\"`").lower() == SHOWN:
        return match[0]
    return f"{key}={MASK}"
