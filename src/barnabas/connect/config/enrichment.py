"""A connector's definition, enriched by those of the transforms and predicates that it names.

Source: ConnectorConfig.enrich (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config.common import PREDICATES, TRANSFORMS
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
    Width,
)
from barnabas.connect.config.plugin_classes import BASES, load_of, names_of, version_of
from barnabas.connect.config.values import parse_value
from barnabas.connect.plugins import Kind
from barnabas.schemas.data.errors import ConfigError

PREDICATE: Final = "predicate"
NEGATE: Final = "negate"
_IMPLICIT: Final = (
    Setting(
        PREDICATE,
        ConfigType.STRING,
        None,
        doc="The name of the predicate that says which records are transformed.",
    ),
    Setting(NEGATE, ConfigType.BOOLEAN, False, doc="Apply it to all other records instead."),
)
_NAMED: Final[tuple[tuple[Kind, str, str, tuple[Setting, ...]], ...]] = (
    ("transformation", TRANSFORMS, "Transforms", _IMPLICIT),
    ("predicate", PREDICATES, "Predicates", ()),
)


def enriched(
    definition: Definition, settings: Mapping[str, str | None], *, is_strict: bool = False
) -> Definition:
    """Return the definition with the settings of all named transforms and predicates.

    Classes that cannot be used are left to `validate`; if `is_strict`, they raise ConfigError.
    """
    for kind, prefix, group, implicit in _NAMED:
        aliases = parse_value(prefix, settings.get(prefix), ConfigType.LIST) or []
        for alias in dict.fromkeys(aliases):
            place = f"{prefix}.{alias}."
            type_name, inner_group = f"{place}type", f"{group}: {alias}"
            definition = definition.plus(_type_settings(kind, alias, place, inner_group, settings))
            inner = _definition_of(kind, type_name, settings.get(type_name), is_strict=is_strict)
            if inner is not None:
                own = inner.without(PREDICATE, NEGATE) if implicit else inner
                whole = Definition((*implicit, *own.settings.values()))
                definition = definition.embed(place, inner_group, 2, whole)
    return definition


def _type_settings(
    kind: Kind, alias: str, place: str, group: str, settings: Mapping[str, str | None]
) -> tuple[Setting, Setting]:
    interface = BASES[kind][0]
    version = version_of(settings.get(f"{place}type"), kind)
    return (
        Setting(
            f"{place}type",
            ConfigType.CLASS,
            importance=Importance.HIGH,
            doc=f"Class for the '{alias}' {interface.lower()}.",
            group=group,
            order=0,
            width=Width.LONG,
            display_name=f"{interface} type for {alias}",
            validator=_type_validator(kind, place, settings),
            recommender=names_of(kind),
        ),
        Setting(
            f"{place}plugin.version",
            ConfigType.STRING,
            version,
            Importance.HIGH,
            f"Version of the '{alias}' {interface.lower()}; there is one of each.",
            group,
            1,
            Width.LONG,
            f"{interface} version for {alias}",
            recommender=lambda _name, _parsed: [version] if version else [],
        ),
    )


def _type_validator(kind: Kind, place: str, settings: Mapping[str, str | None]) -> Validator:
    def check(_name: str, value: Any) -> None:
        is_negated = kind == "transformation" and place + NEGATE in settings
        if is_negated and place + PREDICATE not in settings:
            raise ConfigError(
                f"Config '{place}{NEGATE}' was provided but there is no config "
                f"'{place}{PREDICATE}' defining a predicate to be negated."
            )
        if value is not None:
            load_of(kind, value)

    return check


def _definition_of(
    kind: Kind, setting: str, text: str | None, *, is_strict: bool
) -> Definition | None:
    try:
        name = parse_value(setting, text, ConfigType.CLASS)
        if name is None:
            raise ConfigError(
                f"Invalid value null for configuration {setting}: Not a {BASES[kind][0]}"
            )
        plugin = load_of(kind, name)
    except ConfigError:
        if is_strict:
            raise
        return None
    definition = getattr(plugin, "definition", None)
    return definition if isinstance(definition, Definition) else Definition()
