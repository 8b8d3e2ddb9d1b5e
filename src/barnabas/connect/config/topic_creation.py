"""The groups of topics that a source creates, and their settings (KIP-158).

Source: TopicCreationConfig and SourceConnectorConfig (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.common import (
    CREATION,
    DEFAULT_GROUP,
    TOPIC_CREATION,
    TOPIC_CREATION_GROUPS,
    source_definition,
)
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
    Width,
)
from barnabas.connect.config.values import invalid
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError


def _count(text: str) -> Validator:
    def check(name: str, value: Any) -> None:
        if value is None or (value != -1 and value < 1):
            raise invalid(name, value, text)

    return check


_REPLICAS: Final = _count(
    "Replication factor must be positive and not larger than the number of brokers in the Kafka "
    "cluster, or -1 to use the broker's default"
)
_PARTITIONS: Final = _count(
    "Number of partitions must be positive, or -1 to use the broker's default"
)


def _regexes(name: str, value: Any) -> None:
    for pattern in value or ():
        try:
            compile_java(pattern)
        except PatternError as error:
            text = f"Syntax error in regular expression: {error}"
            raise invalid(name, value, text) from None


def creation_definition(
    group: str, replicas: int | None = None, partitions: int | None = None
) -> Definition:
    """Return the settings of a group of topics; the default group's numbers must be given."""
    is_default = group == DEFAULT_GROUP
    label = group if is_default else f"{CREATION}: {group}"
    regexes = validators.non_null if is_default else _regexes
    numbers: Mapping[str, Any] = {} if replicas is None else {"default": replicas}
    counts: Mapping[str, Any] = {} if partitions is None else {"default": partitions}
    return Definition(
        (
            Setting(
                "include",
                ConfigType.LIST,
                ".*" if is_default else "",
                Importance.LOW,
                "Regular expressions for the topics of the group.",
                label,
                1,
                Width.LONG,
                f"Inclusion Topic Pattern for {label}",
                validator=regexes,
            ),
            Setting(
                "exclude",
                ConfigType.LIST,
                "",
                Importance.LOW,
                "Regular expressions for topics that are none of the group; they win.",
                label,
                2,
                Width.LONG,
                f"Exclusion Topic Pattern for {label}",
                validator=regexes,
            ),
            Setting(
                "replication.factor",
                ConfigType.SHORT,
                importance=Importance.LOW,
                doc="Replication factor of created topics; -1 is the broker's default.",
                group=label,
                order=3,
                width=Width.LONG,
                display_name=f"Replication Factor for Topics in {label}",
                validator=_REPLICAS,
                **numbers,
            ),
            Setting(
                "partitions",
                ConfigType.INT,
                importance=Importance.LOW,
                doc="Number of partitions of created topics; -1 is the broker's default.",
                group=label,
                order=4,
                width=Width.LONG,
                display_name=f"Partition Count for Topics in {label}",
                validator=_PARTITIONS,
                **counts,
            ),
        )
    )


def topic_creation(settings: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return each group's parsed settings, the default's last; empty where topics are not created.

    Settings of a group beyond the defined ones are the topic's configuration. Raises
    ConfigError.
    """
    if not any(name.startswith(TOPIC_CREATION) for name in settings):
        return {}
    default = _group(settings, DEFAULT_GROUP, creation_definition(DEFAULT_GROUP))
    names = (
        source_definition()
        .settings[TOPIC_CREATION_GROUPS]
        .parse(settings.get(TOPIC_CREATION_GROUPS), is_given=TOPIC_CREATION_GROUPS in settings)
    )
    rules = {}
    for name in dict.fromkeys(names):
        if name != DEFAULT_GROUP:
            inner = creation_definition(name, default["replication.factor"], default["partitions"])
            rules[name] = _group(settings, name, inner)
    return {**rules, DEFAULT_GROUP: {**default, "include": [".*"], "exclude": []}}


def _group(settings: Mapping[str, str], name: str, inner: Definition) -> dict[str, Any]:
    prefix = f"{TOPIC_CREATION}{name}."
    given = {
        key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)
    }
    outer = Definition().embed(prefix, name, 0, inner)
    parsed = outer.parse({prefix + key: value for key, value in given.items()})
    values = {key.removeprefix(prefix): value for key, value in parsed.items()}
    return {**given, **values}
