"""Configurations as DescribeConfigs shows them: value, source, and what it overrides.

Source: Kafka's ConfigHelper and DynamicBrokerConfig.brokerConfigSynonyms (KIP-226, KIP-569).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from itertools import dropwhile
from math import isfinite
from typing import Any, NamedTuple

from barnabas.base.config.definitions import ConfigKey, Scope
from barnabas.base.config.values import ConfigType
from barnabas.node.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    DYNAMIC_ONLY,
    GROUP_KEYS,
    TOPIC_KEYS,
)
from barnabas.node.config.node_values import LISTENER_KEY, is_secret
from barnabas.node.config.topic import BROKER_SYNONYMS
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage


class ConfigSource(IntEnum):
    """The source of a value; the numbers of the protocol."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


TYPE_NUMBERS = {
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.SHORT: 4,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
    ConfigType.CLASS: 8,
    ConfigType.PASSWORD: 9,
}
UNKNOWN_TYPE = 0

_SYNONYM_GROUPS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)


class Synonym(NamedTuple):
    """A place that gives the value, or would if those before it did not."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(slots=True)
class ConfigEntry:
    """One configuration of a resource. Secrets have no value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool = False
    is_sensitive: bool = False
    type_number: int = UNKNOWN_TYPE
    documentation: str | None = None
    synonyms: list[Synonym] = field(default_factory=list)


def config_text(value: Any) -> str | None:
    """A typed value as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(value: float) -> str:
    """As Java's Double.toString: an exponent below a thousandth and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not isfinite(value):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{exponent + len(digits) - 1}"


def topic_entries(
    effective: EffectiveConfig, configs: ConfigsImage, overrides: Mapping[str, str]
) -> list[ConfigEntry]:
    """Every configuration of a topic with these overrides, sorted by name."""
    values = effective.topic_with(configs, overrides)
    entries = []
    for name, key in sorted(TOPIC_KEYS.items()):
        if key.internal and name not in overrides:
            continue
        value = None if key.is_secret else config_text(values[name])
        synonyms = []
        if name in overrides:
            synonyms.append(Synonym(name, value, ConfigSource.TOPIC))
        if name in BROKER_SYNONYMS:
            broker_key = BROKER_SYNONYMS[name][0][0]
            synonyms += _broker_synonyms(effective, configs, broker_key)
        entries.append(_entry(key, value, synonyms))
    return entries


def broker_entries(effective: EffectiveConfig, configs: ConfigsImage) -> list[ConfigEntry]:
    """Every configuration of this broker, sorted by name."""
    current = effective.broker(configs)
    names = {name for name, key in BROKER_KEYS.items() if not key.internal} - DYNAMIC_ONLY
    entries = []
    for name in sorted(names | current.originals.keys()):
        key = BROKER_KEYS.get(name)
        known = key is not None or LISTENER_KEY.fullmatch(name) is not None
        value = config_text(current.get(name)) if key is not None else current.originals.get(name)
        synonyms = _broker_synonyms(effective, configs, name) if known else []
        if not known:
            synonyms = [Synonym(name, None, ConfigSource.STATIC_BROKER)]
        entries.append(_broker_entry(name, value, synonyms))
    return entries


def default_broker_entries(effective: EffectiveConfig, configs: ConfigsImage) -> list[ConfigEntry]:
    """The values that are set for all brokers, sorted by name."""
    return [
        _broker_entry(
            name,
            value,
            [
                Synonym(
                    name,
                    None if is_secret(name) else value,
                    ConfigSource.DYNAMIC_DEFAULT_BROKER,
                )
            ],
        )
        for name, value in sorted(effective.dynamic_default(configs).items())
    ]


def group_entries(
    effective: EffectiveConfig, configs: ConfigsImage, group: str
) -> list[ConfigEntry]:
    """Every configuration of a group, sorted by name."""
    overrides = configs.for_resource(ConfigResourceType.GROUP, group)
    current = effective.broker(configs)
    entries = []
    for name, key in sorted(GROUP_KEYS.items()):
        broker_key = "group." + name
        if broker_key in BROKER_KEYS:
            value = config_text(current.get(broker_key))
            synonyms = _broker_synonyms(effective, configs, broker_key)
        else:
            value = config_text(key.default)
            synonyms = [Synonym(name, value, ConfigSource.DEFAULT)]
        if name in overrides:
            value = overrides[name]
            synonyms.insert(0, Synonym(name, value, ConfigSource.GROUP))
        entries.append(_entry(key, value, synonyms))
    return entries


def client_metrics_entries(configs: ConfigsImage, name: str) -> list[ConfigEntry]:
    """Every configuration of a metrics subscription, sorted by name (KIP-714)."""
    overrides = configs.for_resource(ConfigResourceType.CLIENT_METRICS, name)
    entries = []
    for key_name, key in sorted(CLIENT_METRICS_KEYS.items()):
        value = overrides.get(key_name)
        synonyms = []
        if value is None:
            value = config_text(key.default)
        else:
            synonyms.append(Synonym(key_name, value, ConfigSource.CLIENT_METRICS))
        entries.append(_entry(key, value, synonyms))
    return entries


def broker_key_synonyms(name: str) -> tuple[str, ...]:
    """The keys that may give the value of a broker key, the strongest first."""
    for group in _SYNONYM_GROUPS:
        if name in group:
            return group
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    match = LISTENER_KEY.fullmatch(name)
    return (name,) if match is None else (name, match[2])


def _broker_synonyms(effective: EffectiveConfig, configs: ConfigsImage, name: str) -> list[Synonym]:
    keys = broker_key_synonyms(name)
    layers: Iterable[tuple[Mapping[str, str], ConfigSource]] = (
        (effective.dynamic_broker(configs), ConfigSource.DYNAMIC_BROKER),
        (effective.dynamic_default(configs), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (_static_values(effective), ConfigSource.STATIC_BROKER),
        (_defaults(keys), ConfigSource.DEFAULT),
    )
    synonyms = [
        Synonym(key, None if is_secret(key) else layer[key], source)
        for layer, source in layers
        for key in keys
        if key in layer
    ]
    # A unit that is not the key's own counts only below the key itself.
    return list(dropwhile(lambda synonym: synonym.name != name, synonyms))


def _static_values(effective: EffectiveConfig) -> Mapping[str, str]:
    """The node's file, in which node.id and broker.id stand for each other."""
    given = effective.static.originals
    node_id = given.get("node.id") or given.get("broker.id")
    return given if node_id is None else {**given, "node.id": node_id, "broker.id": node_id}


def _defaults(keys: Iterable[str]) -> dict[str, str]:
    defaults = {}
    for name in keys:
        key = BROKER_KEYS.get(name)
        if key is not None and key.default_text is not None:
            defaults[name] = key.default_text
    return defaults


def _broker_entry(name: str, value: str | None, synonyms: list[Synonym]) -> ConfigEntry:
    key = BROKER_KEYS.get(name)
    match = LISTENER_KEY.fullmatch(name)
    if key is None and match is not None:
        key = BROKER_KEYS.get(match[2])
    entry = _entry(key, None if is_secret(name) else value, synonyms)
    entry.name = name
    entry.is_sensitive = is_secret(name)
    entry.read_only = key is None or key.scope is Scope.READ_ONLY
    return entry


def _entry(key: ConfigKey | None, value: str | None, synonyms: list[Synonym]) -> ConfigEntry:
    return ConfigEntry(
        name=synonyms[0].name if key is None else key.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=key is not None and key.is_secret,
        type_number=UNKNOWN_TYPE if key is None else TYPE_NUMBERS[key.type],
        documentation=None if key is None else key.doc,
        synonyms=synonyms,
    )
