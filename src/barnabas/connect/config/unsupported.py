"""Settings that a connector of that name has elsewhere, and that would have no effect here.

Settings that nobody knows are ignored, as Connect does. Of these somebody expects something, masked
columns say, and is told that nothing comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.schemas.data.errors import ConfigError


@dataclass(slots=True, frozen=True)
class Unsupported:
    """Settings whose names match, the values that ask for nothing, and what to do instead."""

    pattern: str
    allowed: tuple[str, ...] = ("",)
    instead: str = ""


def refuse(
    settings: Mapping[str, str], unsupported: Iterable[Unsupported], what: str = "connector"
) -> None:
    """Raises ConfigError for a setting that would have no effect; `what` is what has them."""
    for one in unsupported:
        for name, value in settings.items():
            if re.fullmatch(one.pattern, name) and str(value).strip() not in one.allowed:
                instead = one.instead and f"; {one.instead}"
                raise ConfigError(f"{name} is not supported by this {what}: remove it{instead}")
