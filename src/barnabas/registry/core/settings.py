"""Configuration: who says what for a subject, and how it is changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from barnabas.registry import errors, subjects
from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.modes import check_writable, scope, settings_name
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.encoding import CONFIG_FIELDS
from barnabas.registry.store.encoding import config_json as stored_json
from barnabas.registry.store.records import (
    COMPATIBILITY_LEVELS,
    COMPATIBILITY_POLICIES,
    ConfigKey,
    ConfigValue,
    Record,
)

_INHERITED = (
    "normalize",
    "validate_fields",
    "validate_new_schemas",
    "validate_rules",
    "compatibility_level",
    "compatibility_policy",
    "compatibility_group",
)
"""The members that a configuration inherits from wider ones if it does not set them."""


@dataclass(frozen=True, slots=True)
class ConfigUpdate:
    """The fields of ConfigValue that a request names; None takes one away."""

    changes: Mapping[str, Any]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "ConfigUpdate":
        """Read the body of PUT /config; unknown fields are skipped.

        Raises RegistryError 42203 for a level, 42210 for rules, 422 for the rest.
        """
        changes: dict[str, Any] = {}
        for attribute, name in CONFIG_FIELDS.items():
            if attribute != "subject" and name in body:
                changes[attribute] = _read_field(attribute, name, body[name])
        for name in ("compatibilityLevel", "compatibility"):
            if name in body:
                changes["compatibility_level"] = _read_level(body[name])
        return cls(changes)


def _read_level(value: Any) -> str | None:
    if value is None:
        return None
    level = value.upper() if isinstance(value, str) else None
    if level not in COMPATIBILITY_LEVELS:
        raise RegistryError(
            errors.INVALID_COMPATIBILITY_LEVEL,
            f"{value!r} is not a compatibility level: give one of "
            f"{', '.join(COMPATIBILITY_LEVELS)}",
        )
    return level


def _read_field(attribute: str, name: str, value: Any) -> Any:
    if value is None or attribute == "compatibility_level":
        return None
    try:
        if attribute.endswith("metadata"):
            return Metadata.from_json(value, name)
        if attribute.endswith("rule_set"):
            return _read_rules(name, value)
    except ValueError as fault:
        raise RegistryError(errors.UNPROCESSABLE, str(fault)) from fault
    is_switch = attribute == "normalize" or attribute.startswith("validate_")
    if not isinstance(value, bool if is_switch else str):
        kind = "true or false" if is_switch else "a text"
        raise RegistryError(errors.UNPROCESSABLE, f"{name} is not {kind}")
    if attribute == "compatibility_policy":
        value = str(value).upper()
        if value not in COMPATIBILITY_POLICIES:
            raise RegistryError(
                errors.UNPROCESSABLE,
                f"{name} is {value!r}, not one of {', '.join(COMPATIBILITY_POLICIES)}",
            )
    return value


def _read_rules(name: str, value: Any) -> RuleSet:
    rules = RuleSet.from_json(value, name)
    fault = rules.fault()
    if fault:
        raise RegistryError(errors.INVALID_RULE_SET, f"{name}: {fault}")
    return rules


def config_json(config: ConfigValue, *, as_update: bool = False) -> dict[str, Any]:
    """Configuration as JSON; the level is `compatibility` in the answer to an update."""
    body = stored_json(replace(config, subject=None))
    if as_update and "compatibilityLevel" in body:
        body = {("compatibility" if k == "compatibilityLevel" else k): v for k, v in body.items()}
    return body


def config_in_scope(view: View, subject: str | None) -> ConfigValue:
    """The configuration that holds for a subject.

    The narrowest one there is (the subject's, its context's, the default context's for subjects
    in it, the global one), with what it does not say of levels and checks taken from the wider
    ones, at last from the server's.
    """
    name = settings_name(subject)
    configs = [config for place in scope(name) if (config := view.state.config(place)) is not None]
    if not configs:
        return ConfigValue(subject=name, compatibility_level=_default_level(view))
    wider = [view.state.config(None), ConfigValue(compatibility_level=_default_level(view))]
    changes: dict[str, Any] = {"subject": name}
    for attribute in _INHERITED:
        values = (getattr(config, attribute) for config in [*configs, *wider] if config is not None)
        changes[attribute] = next((value for value in values if value is not None), None)
    return replace(configs[0], **changes)


def _default_level(view: View) -> str:
    return view.defaults.compatibility_level.upper()


def has_contracts(config: ConfigValue) -> bool:
    """Return whether configuration puts metadata or rules into schemas."""
    return any(
        contract is not None
        for contract in (
            config.default_metadata,
            config.override_metadata,
            config.default_rule_set,
            config.override_rule_set,
        )
    )


def get_config(
    view: View, subject: str | None = None, *, default_to_global: bool = False
) -> ConfigValue:
    """Configuration of a subject or context, None for the default one.

    Raises RegistryError 40408 if nothing is configured for it.
    """
    name = settings_name(subject)
    if default_to_global:
        return config_in_scope(view, name)
    own = view.state.config(name)
    if own is None:
        if name is None or name == subjects.GLOBAL_SETTINGS:
            return ConfigValue(subject=name, compatibility_level=_default_level(view))
        raise RegistryError(
            errors.CONFIG_NOT_FOUND,
            f"Subject '{name}' does not have subject-level compatibility configured",
        )
    if own.compatibility_level is None:
        level = config_in_scope(view, name).compatibility_level
        return replace(own, compatibility_level=level)
    return own


def update_config(view: View, subject: str | None, update: ConfigUpdate) -> Decision[ConfigValue]:
    """Change configuration; the answer is all of it. Raises RegistryError 42205, 42208."""
    if subject is not None and not subjects.is_valid(subject, settings=True):
        raise errors.invalid_subject(subject)
    name = settings_name(subject)
    check_writable(view, name)
    old = view.state.config(name) or ConfigValue()
    new = replace(old, **(dict(update.changes) | {"subject": name}))
    return Decision((Record(ConfigKey(name), new),), new)


def delete_config(view: View, subject: str | None) -> Decision[ConfigValue]:
    """Take configuration away; the answer is what was there. Raises RegistryError 40401, 42205."""
    name = settings_name(subject)
    try:
        old = get_config(view, name)
    except RegistryError as fault:
        raise errors.subject_not_found(name or "") from fault
    check_writable(view, name)
    return Decision((Record(ConfigKey(name), None),), old)


def resolve_alias(view: View, subject: str) -> str:
    """The subject that a subject stands for, itself if it has no alias."""
    config = view.state.config(settings_name(subject))
    if config is None or not config.alias or not subject:
        return subject
    return subjects.qualified_from(subject, config.alias)
