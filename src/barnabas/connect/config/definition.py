"""Settings of connectors, transforms and converters, and the checks of their texts.

`Definition.parse` is for who uses the settings, `Definition.validate` for who asks whether they are
right. Validators are in `config.validators`, the JSON of `PUT
/connector-plugins/{plugin}/config/validate` in `config.answers`. Names and texts of errors are
those of Kafka's ConfigDef (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from barnabas.connect.config.values import ConfigType, missing, parse_value, with_prefix
from barnabas.schemas.data.errors import ConfigError

__all__ = [
    "NO_DEFAULT",
    "ConfigType",
    "ConfigValue",
    "Definition",
    "Importance",
    "NoDefault",
    "Recommender",
    "Setting",
    "SettingRow",
    "Validator",
    "Visibility",
    "Width",
    "group",
]


class Importance(StrEnum):
    """The importance of a setting."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """The width of a field for the value."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class NoDefault:
    """The default of a setting that must be given."""


NO_DEFAULT: Final = NoDefault()
Validator = Callable[[str, Any], None]
"""Takes name and parsed value, None where it did not parse; raises ConfigError."""
Recommender = Callable[[str, Mapping[str, Any]], list[Any]]
"""Takes name and all parsed values; returns what the value may be."""
Visibility = Callable[[str, Mapping[str, Any]], bool]
"""Takes name and all parsed values; whether the setting matters beside them."""


@dataclass(slots=True, frozen=True)
class Setting:
    """One setting. `default` may be written as users write it."""

    name: str
    type: ConfigType
    default: Any = NO_DEFAULT
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    validator: Validator | None = field(default=None, compare=False)
    recommender: Recommender | None = field(default=None, compare=False)
    visible: Visibility | None = field(default=None, compare=False)
    is_distinct: bool = False
    """True if a list loses its duplicates before it is checked."""

    @property
    def is_required(self) -> bool:
        """True if it must be given."""
        return isinstance(self.default, NoDefault)

    def parse(self, text: Any, *, is_given: bool) -> Any:
        """Return the value that is meant. Raises ConfigError."""
        value = self.read(text, is_given=is_given)
        self.check(value)
        return value

    def read(self, text: Any, *, is_given: bool) -> Any:
        """Return the value without asking the validator. Raises ConfigError."""
        if is_given:
            value = parse_value(self.name, text, self.type)
            if self.is_distinct and isinstance(value, list):
                return list(dict.fromkeys(value))
            return value
        if self.is_required:
            raise missing(self.name)
        return self.default

    def check(self, value: Any) -> None:
        """Ask the validator. Raises ConfigError."""
        if self.validator is not None:
            self.validator(self.name, value)


SettingRow = tuple[Any, ...]
"""Name, type, default, importance, documentation, and perhaps a validator."""


def group(name: str, *rows: SettingRow, first: int = 1) -> tuple[Setting, ...]:
    """Return a group of settings, each with its place in it, from `first` on."""
    return tuple(
        Setting(
            setting, kind, default, importance, doc, name, order, validator=next(iter(check), None)
        )
        for order, (setting, kind, default, importance, doc, *check) in enumerate(rows, first)
    )


@dataclass(slots=True)
class ConfigValue:
    """The value given for a setting, and its errors."""

    name: str
    value: Any = None
    recommended: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class Definition:
    """The settings of one connector, transform or converter, in order."""

    def __init__(self, settings: Iterable[Setting] = ()) -> None:
        self.settings: dict[str, Setting] = {}
        self.groups: list[str] = []
        for setting in settings:
            self._add(setting)

    def _add(self, setting: Setting) -> None:
        if setting.name in self.settings:
            raise ConfigError(f"Configuration {setting.name} is defined twice.")
        if not setting.is_required and isinstance(setting.default, str):
            default = (
                setting.default
                if setting.type is ConfigType.CLASS  # not loaded before somebody uses it
                else parse_value(setting.name, setting.default, setting.type)
            )
            setting = replace(setting, default=default)
        if setting.group is not None and setting.group not in self.groups:
            self.groups.append(setting.group)
        self.settings[setting.name] = setting

    def plus(self, settings: Iterable[Setting]) -> Definition:
        """Return a definition with further settings. Raises ConfigError if a name is taken."""
        return Definition((*self.settings.values(), *settings))

    def without(self, *names: str) -> Definition:
        """Return a definition that lacks some settings."""
        return Definition(s for s in self.settings.values() if s.name not in names)

    def embed(self, prefix: str, group: str, order: int, inner: Definition) -> Definition:
        """Return a definition that has `inner`'s settings too, under a prefix and in a group."""
        return self.plus(
            replace(
                setting,
                name=prefix + setting.name,
                group=group if setting.group is None else f"{group}: {setting.group}",
                order=order + place,
                display_name=setting.display_name or setting.name,
                dependents=tuple(prefix + name for name in setting.dependents),
                validator=_unprefixed_validator(prefix, setting.validator),
                recommender=_unprefixed(prefix, setting.recommender),
                visible=_unprefixed(prefix, setting.visible),
            )
            for place, setting in enumerate(inner.sorted())
        )

    def sorted(self) -> list[Setting]:
        """Return the settings by group, order, and in doubt the needed and important first."""
        places = {group: place for place, group in enumerate(self.groups)}
        ranks = list(Importance)
        return sorted(
            self.settings.values(),
            key=lambda setting: (
                -1 if setting.group is None else places[setting.group],
                setting.order,
                not setting.is_required,
                ranks.index(setting.importance),
                setting.name,
            ),
        )

    def parse(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all defined settings. Raises ConfigError at the first wrong one."""
        undefined = self._undefined_dependents()
        if undefined:
            raise ConfigError(
                "Some configurations in are referred in the dependents, but not defined: "
                + ",".join(undefined)
            )
        return {
            name: setting.parse(settings.get(name), is_given=name in settings)
            for name, setting in self.settings.items()
        }

    def validate(self, settings: Mapping[str, Any]) -> dict[str, ConfigValue]:
        """Return the values of all defined settings with all that is wrong with them."""
        values = {name: ConfigValue(name) for name in self.settings}
        for name in self._undefined_dependents():
            text = f"{name} is referred in the dependents, but not defined."
            values[name] = ConfigValue(name, errors=[text], visible=False)
        parsed: dict[str, Any] = {}
        for name, setting in self.settings.items():
            parsed[name] = _read(setting, settings, values[name])
        for name, setting in self.settings.items():
            _recommend(setting, parsed, values[name])
        return values

    def _undefined_dependents(self) -> list[str]:
        return sorted(
            {
                name
                for setting in self.settings.values()
                for name in setting.dependents
                if name not in self.settings
            }
        )


def _read(setting: Setting, settings: Mapping[str, Any], result: ConfigValue) -> Any:
    """The validator is asked even where there is no value, as ConfigDef does."""
    try:
        result.value = setting.read(settings.get(setting.name), is_given=setting.name in settings)
    except ConfigError as error:
        result.errors.append(str(error))
    try:
        setting.check(result.value)
    except ConfigError as error:
        result.errors.append(str(error))
    return result.value


def _recommend(setting: Setting, parsed: Mapping[str, Any], result: ConfigValue) -> None:
    try:
        if setting.recommender is not None:
            result.recommended = list(setting.recommender(setting.name, parsed))
        if setting.visible is not None:
            result.visible = setting.visible(setting.name, parsed)
    except ConfigError as error:
        result.errors.append(str(error))


def _unprefixed_validator(prefix: str, validator: Validator | None) -> Validator | None:
    if validator is None:
        return None
    check = validator
    return lambda name, value: check(name.removeprefix(prefix), value)


def _unprefixed(prefix: str, asked: Callable[[str, Mapping[str, Any]], Any] | None) -> Any:
    """Recommenders of an embedded definition see its own names."""
    if asked is None:
        return None

    def ask(name: str, parsed: Mapping[str, Any]) -> Any:
        return asked(name.removeprefix(prefix), with_prefix(parsed, prefix))

    return ask


# Settings that a connector of that name has elsewhere, and that would have no effect here.
#
# Settings that nobody knows are ignored, as Connect does. Users expect an effect of these, such as
# masked columns, and learn that they have none.


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
