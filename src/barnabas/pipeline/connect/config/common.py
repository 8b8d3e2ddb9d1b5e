"""The settings that every connector has, those of all sources, and those of all sinks.

Names, types, defaults, order and groups are those of Kafka's ConnectorConfig,
SourceConnectorConfig, SinkConnectorConfig and TopicCreationConfig (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from barnabas.pipeline.connect.config import validators
from barnabas.pipeline.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
    Width,
)
from barnabas.pipeline.connect.config.plugin_classes import plugin_of
from barnabas.pipeline.connect.config.values import invalid
from barnabas.pipeline.connect.errors.kinds import ConfigError

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
TASKS_MAX: Final = "tasks.max"
TASKS_MAX_ENFORCE: Final = "tasks.max.enforce"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
CONVERTERS: Final = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"
EXACTLY_ONCE_SUPPORT: Final = "exactly.once.support"
TRANSACTION_BOUNDARY: Final = "transaction.boundary"
OFFSETS_TOPIC: Final = "offsets.storage.topic"
TOPIC_CREATION: Final = "topic.creation."
TOPIC_CREATION_GROUPS: Final = "topic.creation.groups"
DEFAULT_GROUP: Final = "default"
_COMMON, _ERRORS, _CREATION = "Common", "Error Handling", "Topic Creation"
_EXACTLY_ONCE = "Exactly Once Support"
_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH


def _unique_aliases(name: str, value: Any) -> None:
    validators.non_null(name, value)
    if len(set(value)) != len(value):
        raise invalid(name, value, "Duplicate alias provided.")


def _converter(name: str, order: int, kind: str, display: str, what: str) -> Setting:
    return Setting(
        name,
        ConfigType.CLASS,
        None,
        _LOW,
        f"The class that turns {what} into bytes of Kafka and back; the worker's where none is "
        "named.",
        _COMMON,
        order,
        Width.SHORT,
        display,
        validator=plugin_of(kind),
    )


@cache
def common_definition() -> Definition:
    """Return the settings of all connectors."""
    return Definition(
        (
            Setting(
                NAME,
                ConfigType.STRING,
                importance=_HIGH,
                doc="The connector's name, unique in the cluster.",
                group=_COMMON,
                order=1,
                width=Width.MEDIUM,
                display_name="Connector name",
                validator=validators.non_empty_without_control_characters,
            ),
            Setting(
                CONNECTOR_CLASS,
                ConfigType.STRING,
                importance=_HIGH,
                doc="The connector's class, by its full or its short name.",
                group=_COMMON,
                order=2,
                width=Width.LONG,
                display_name="Connector class",
            ),
            Setting(
                TASKS_MAX,
                ConfigType.INT,
                1,
                _HIGH,
                "How many tasks the connector may have.",
                _COMMON,
                3,
                Width.SHORT,
                "Tasks max",
                validator=validators.at_least(1),
            ),
            Setting(
                TASKS_MAX_ENFORCE,
                ConfigType.BOOLEAN,
                True,
                _LOW,
                "(Deprecated) Whether a connector fails that asks for more tasks than tasks.max.",
                _COMMON,
                4,
                Width.SHORT,
                "Enforce tasks max",
            ),
            _converter(KEY_CONVERTER, 5, "converter", "Key converter class", "keys"),
            _converter(VALUE_CONVERTER, 6, "converter", "Value converter class", "values"),
            _converter(
                HEADER_CONVERTER, 7, "header_converter", "Header converter class", "headers"
            ),
            Setting(
                TRANSFORMS,
                ConfigType.LIST,
                "",
                _LOW,
                "Names for the transforms that records pass, in order.",
                "Transforms",
                8,
                Width.LONG,
                "Transforms",
                validator=_unique_aliases,
            ),
            Setting(
                PREDICATES,
                ConfigType.LIST,
                "",
                _LOW,
                "Names for the predicates that transforms use.",
                "Predicates",
                9,
                Width.LONG,
                "Predicates",
                validator=_unique_aliases,
            ),
            Setting(
                "config.action.reload",
                ConfigType.STRING,
                "restart",
                _LOW,
                "What follows when a value from a config provider changes: none or restart.",
                _COMMON,
                10,
                Width.MEDIUM,
                "Reload Action",
                validator=validators.one_of("none", "restart"),
            ),
            *_error_settings(),
        )
    )


def _error_settings() -> tuple[Setting, ...]:
    return (
        Setting(
            "errors.retry.timeout",
            ConfigType.LONG,
            0,
            _MEDIUM,
            "For how many milliseconds a failed operation is tried again: 0 never, -1 for ever.",
            _ERRORS,
            1,
            Width.MEDIUM,
            "Retry Timeout for Errors",
        ),
        Setting(
            "errors.retry.delay.max.ms",
            ConfigType.LONG,
            60000,
            _MEDIUM,
            "The longest pause between two tries, in milliseconds.",
            _ERRORS,
            2,
            Width.MEDIUM,
            "Maximum Delay Between Retries for Errors",
        ),
        Setting(
            "errors.tolerance",
            ConfigType.STRING,
            "none",
            _MEDIUM,
            "none: any error fails the task; all: records that fail are left out.",
            _ERRORS,
            3,
            Width.SHORT,
            "Error Tolerance",
            validator=validators.one_of("none", "all"),
        ),
        Setting(
            "errors.log.enable",
            ConfigType.BOOLEAN,
            False,
            _MEDIUM,
            "Whether tolerated errors are logged too.",
            _ERRORS,
            4,
            Width.SHORT,
            "Log Errors",
        ),
        Setting(
            "errors.log.include.messages",
            ConfigType.BOOLEAN,
            False,
            _MEDIUM,
            "Whether the log shows the record that failed.",
            _ERRORS,
            5,
            Width.SHORT,
            "Log Error Details",
        ),
    )


@cache
def sink_definition() -> Definition:
    """Return the settings of all sinks."""
    return common_definition().plus(
        (
            Setting(
                TOPICS,
                ConfigType.LIST,
                "",
                _HIGH,
                "The topics to read, separated by commas.",
                _COMMON,
                4,
                Width.LONG,
                "Topics",
            ),
            Setting(
                TOPICS_REGEX,
                ConfigType.STRING,
                "",
                _HIGH,
                "A regular expression for the names of topics to read, instead of topics.",
                _COMMON,
                4,
                Width.LONG,
                "Topics regex",
                validator=validators.regex,
            ),
            Setting(
                DLQ_TOPIC,
                ConfigType.STRING,
                "",
                _MEDIUM,
                "The topic for records that fail; none where it is empty.",
                _ERRORS,
                6,
                Width.MEDIUM,
                "Dead Letter Queue Topic Name",
            ),
            Setting(
                "errors.deadletterqueue.topic.replication.factor",
                ConfigType.SHORT,
                3,
                _MEDIUM,
                "How many replicas that topic gets if it has to be created.",
                _ERRORS,
                7,
                Width.MEDIUM,
                "Dead Letter Queue Topic Replication Factor",
            ),
            Setting(
                "errors.deadletterqueue.context.headers.enable",
                ConfigType.BOOLEAN,
                False,
                _MEDIUM,
                "Whether headers __connect.errors.* tell what failed.",
                _ERRORS,
                8,
                Width.MEDIUM,
                "Enable Error Context Headers",
            ),
        )
    )


@cache
def source_definition() -> Definition:
    """Return the settings of all sources, but for those of their groups of topics."""
    return common_definition().plus(
        (
            Setting(
                TOPIC_CREATION_GROUPS,
                ConfigType.LIST,
                "",
                _LOW,
                "Names for groups of settings of topics that the connector creates.",
                _CREATION,
                1,
                Width.LONG,
                "Topic Creation Groups",
                validator=_unique_aliases,
            ),
            Setting(
                EXACTLY_ONCE_SUPPORT,
                ConfigType.STRING,
                "requested",
                _MEDIUM,
                "requested or required: whether a connector is refused that cannot write each "
                "record exactly once here.",
                _EXACTLY_ONCE,
                2,
                Width.SHORT,
                "Exactly once support",
                validator=validators.one_of_any_case("requested", "required"),
            ),
            Setting(
                TRANSACTION_BOUNDARY,
                ConfigType.STRING,
                "poll",
                _MEDIUM,
                "Where transactions of an exactly-once source end: poll, interval or connector.",
                _EXACTLY_ONCE,
                3,
                Width.SHORT,
                "Transaction Boundary",
                validator=validators.one_of_any_case("poll", "connector", "interval"),
            ),
            Setting(
                "transaction.boundary.interval.ms",
                ConfigType.LONG,
                None,
                _LOW,
                "With transaction.boundary=interval: milliseconds between commits; by default the "
                "worker's offset.flush.interval.ms.",
                _EXACTLY_ONCE,
                4,
                Width.SHORT,
                "Transaction boundary interval",
                validator=validators.optional(validators.at_least(0)),
            ),
            Setting(
                OFFSETS_TOPIC,
                ConfigType.STRING,
                None,
                _LOW,
                "A topic of its own for the connector's offsets (distributed mode only).",
                "offsets.topic",
                1,
                Width.LONG,
                "Offsets topic",
                validator=validators.non_empty,
            ),
        )
    )


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
            re.compile(pattern)
        except re.error as error:
            text = f"Syntax error in regular expression: {error}"
            raise invalid(name, value, text) from None


def creation_definition(
    group: str, replicas: int | None = None, partitions: int | None = None
) -> Definition:
    """Return the settings of a group of topics; the default group's numbers must be given."""
    is_default = group == DEFAULT_GROUP
    label = group if is_default else f"{_CREATION}: {group}"
    regexes = validators.non_null if is_default else _regexes
    numbers: Mapping[str, Any] = {} if replicas is None else {"default": replicas}
    counts: Mapping[str, Any] = {} if partitions is None else {"default": partitions}
    return Definition(
        (
            Setting(
                "include",
                ConfigType.LIST,
                ".*" if is_default else "",
                _LOW,
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
                _LOW,
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
                importance=_LOW,
                doc="How many replicas a created topic gets; -1: as the broker says.",
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
                importance=_LOW,
                doc="How many partitions a created topic gets; -1: as the broker says.",
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

    What a group has beyond the defined settings is the topic's own configuration. Raises
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
    found = {}
    for name in dict.fromkeys(names):
        if name != DEFAULT_GROUP:
            inner = creation_definition(name, default["replication.factor"], default["partitions"])
            found[name] = _group(settings, name, inner)
    return {**found, DEFAULT_GROUP: {**default, "include": [".*"], "exclude": []}}


def _group(settings: Mapping[str, str], name: str, inner: Definition) -> dict[str, Any]:
    prefix = f"{TOPIC_CREATION}{name}."
    given = {
        key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)
    }
    outer = Definition().embed(prefix, name, 0, inner)
    parsed = outer.parse({prefix + key: value for key, value in given.items()})
    values = {key.removeprefix(prefix): value for key, value in parsed.items()}
    return {**given, **values}


def sink_errors(settings: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return what is wrong with a sink's topics, per setting (SinkConnectorConfig.validate)."""
    topics, pattern = settings.get(TOPICS) or "", settings.get(TOPICS_REGEX) or ""
    dlq = (settings.get(DLQ_TOPIC) or "").strip()
    found: dict[str, list[str]] = {}
    if topics.strip() and pattern.strip():
        text = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        found = {TOPICS: [text], TOPICS_REGEX: [text]}
    elif not topics.strip() and not pattern.strip():
        text = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
        found = {TOPICS: [text], TOPICS_REGEX: [text]}
    names = topic_names(settings)
    if dlq and dlq in names:
        found.setdefault(TOPICS, []).append(
            f"The DLQ topic '{dlq}' may not be included in the list of topics "
            f"('{TOPICS}=[{', '.join(names)}]') consumed by the connector"
        )
    if dlq and pattern.strip() and _matches(pattern, dlq):
        found.setdefault(TOPICS_REGEX, []).append(
            f"The DLQ topic '{dlq}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={pattern}') consumed by the connector"
        )
    return found


def topic_names(settings: Mapping[str, str | None]) -> list[str]:
    """Return the topics that a sink names, each once."""
    names = [name.strip() for name in (settings.get(TOPICS) or "").split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error as error:
        raise ConfigError(f"{TOPICS_REGEX}: {error}") from None
