"""Settings that converters have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import one_of

CONVERTER_TYPE: Final = Setting(
    "converter.type",
    ConfigType.STRING,
    importance=Importance.LOW,
    doc="What the converter is for: key, value or header.",
    validator=one_of("key", "value", "header"),
)


def parse(definition: Definition, settings: Mapping[str, Any], use: str) -> dict[str, Any]:
    """The values of a converter's settings; `use` is key, value or header. Raises ConfigError."""
    return definition.parse({**settings, CONVERTER_TYPE.name: use})


def flag(name: str, doc: str, *, default: bool = False, **rest: Any) -> Setting:
    """A setting that is true or false; `rest` are further parts of it."""
    return Setting(name, ConfigType.BOOLEAN, default, doc=doc, **rest)
