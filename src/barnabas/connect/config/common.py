"""The settings that every connector has, those of all sources, and those of all sinks.

Names, types, defaults, order and groups are those of Kafka's ConnectorConfig,
SourceConnectorConfig and SinkConnectorConfig (Kafka 4.3).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.config.plugin_classes import plugin_of
from barnabas.connect.config.values import invalid
from barnabas.connect.plugins import Kind

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
TASKS_MAX: Final = "tasks.max"
TASKS_MAX_ENFORCE: Final = "tasks.max.enforce"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
VERSION: Final = ".plugin.version"
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
_COMMON, _ERRORS, CREATION = "Common", "Error Handling", "Topic Creation"
_EXACTLY_ONCE = "Exactly Once Support"
_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH


def _unique_aliases(name: str, value: Any) -> None:
    validators.non_null(name, value)
    if len(set(value)) != len(value):
        raise invalid(name, value, "Duplicate alias provided.")


def _converter(name: str, order: int, kind: Kind, label: str, what: str) -> tuple[Setting, Setting]:
    """The class and its version (KIP-891). There is one version of each class: any is taken."""
    return (
        Setting(
            name,
            ConfigType.CLASS,
            None,
            _LOW,
            f"The class that turns {what} into bytes of Kafka and back; by default the worker's.",
            _COMMON,
            order,
            Width.SHORT,
            f"{label} converter class",
            validator=plugin_of(kind),
        ),
        Setting(
            name + VERSION,
            ConfigType.STRING,
            None,
            _LOW,
            "Which version of that class; there is one of each.",
            _COMMON,
            order + 1,
            Width.SHORT,
            f"{label} converter version",
        ),
    )


@cache
def common_definition() -> Definition:
    """Return the settings of all connectors."""
    return Definition((
        Setting(NAME, ConfigType.STRING, importance=_HIGH,
                doc="The connector's name, unique in the cluster.", group=_COMMON, order=1,
                width=Width.MEDIUM, display_name="Connector name",
                validator=validators.non_empty_without_control_characters),
        Setting(CONNECTOR_CLASS, ConfigType.STRING, importance=_HIGH,
                doc="The connector's class, by its full or its short name.", group=_COMMON, order=2,
                width=Width.LONG, display_name="Connector class"),
        Setting("connector" + VERSION, ConfigType.STRING, None, _MEDIUM,
                "Which version of that class; there is one of each.", _COMMON, 3, Width.MEDIUM,
                "Connector version"),
        Setting(TASKS_MAX, ConfigType.INT, 1, _HIGH, "Maximum number of tasks of the connector.",
                _COMMON, 4, Width.SHORT, "Tasks max", validator=validators.at_least(1)),
        Setting(TASKS_MAX_ENFORCE, ConfigType.BOOLEAN, True, _LOW,
                "(Deprecated) Whether a connector fails that asks for more tasks than tasks.max.",
                _COMMON, 5, Width.SHORT, "Enforce tasks max"),
        *_converter(KEY_CONVERTER, 6, "converter", "Key", "keys"),
        *_converter(VALUE_CONVERTER, 8, "converter", "Value", "values"),
        *_converter(HEADER_CONVERTER, 10, "header_converter", "Header", "headers"),
        Setting(TRANSFORMS, ConfigType.LIST, "", _LOW,
                "Names for the transforms that records pass, in order.", "Transforms", 12,
                Width.LONG, "Transforms", validator=_unique_aliases),
        Setting(PREDICATES, ConfigType.LIST, "", _LOW,
                "Names for the predicates that transforms use.", "Predicates", 13, Width.LONG,
                "Predicates", validator=_unique_aliases),
        Setting("config.action.reload", ConfigType.STRING, "restart", _LOW,
                "Action when a config provider's value changes: none or restart.", _COMMON, 14,
                Width.MEDIUM, "Reload Action", validator=validators.one_of("none", "restart")),
        *_error_settings(),
    ))  # fmt: skip


def _error_settings() -> tuple[Setting, ...]:
    return (
        Setting("errors.retry.timeout", ConfigType.LONG, 0, _MEDIUM,
                "For how many milliseconds a failed operation is tried again: 0 never, -1 for "
                "ever.", _ERRORS, 1, Width.MEDIUM, "Retry Timeout for Errors"),
        Setting("errors.retry.delay.max.ms", ConfigType.LONG, 60000, _MEDIUM,
                "The longest pause between two tries, in milliseconds.", _ERRORS, 2, Width.MEDIUM,
                "Maximum Delay Between Retries for Errors"),
        Setting("errors.tolerance", ConfigType.STRING, "none", _MEDIUM,
                "none: any error fails the task; all: records that fail are left out.", _ERRORS, 3,
                Width.SHORT, "Error Tolerance", validator=validators.one_of("none", "all")),
        Setting("errors.log.enable", ConfigType.BOOLEAN, False, _MEDIUM,
                "Log tolerated errors too.", _ERRORS, 4, Width.SHORT, "Log Errors"),
        Setting("errors.log.include.messages", ConfigType.BOOLEAN, False, _MEDIUM,
                "Include the failed record in the log.", _ERRORS, 5, Width.SHORT,
                "Log Error Details"),
    )  # fmt: skip


@cache
def sink_definition() -> Definition:
    """Return the settings of all sinks."""
    return common_definition().plus((
        Setting(TOPICS, ConfigType.LIST, "", _HIGH, "The topics to read, separated by commas.",
                _COMMON, 4, Width.LONG, "Topics", validator=validators.list_of()),
        Setting(TOPICS_REGEX, ConfigType.STRING, "", _HIGH,
                "A regular expression for the names of topics to read, instead of topics.", _COMMON,
                4, Width.LONG, "Topics regex", validator=validators.regex),
        Setting(DLQ_TOPIC, ConfigType.STRING, "", _MEDIUM,
                "The topic for records that fail; none where it is empty.", _ERRORS, 6,
                Width.MEDIUM, "Dead Letter Queue Topic Name"),
        Setting("errors.deadletterqueue.topic.replication.factor", ConfigType.SHORT, 3, _MEDIUM,
                "Replication factor of that topic if it has to be created.", _ERRORS, 7,
                Width.MEDIUM, "Dead Letter Queue Topic Replication Factor"),
        Setting("errors.deadletterqueue.context.headers.enable", ConfigType.BOOLEAN, False, _MEDIUM,
                "Add headers __connect.errors.* that describe the failure.", _ERRORS, 8,
                Width.MEDIUM, "Enable Error Context Headers"),
    ))  # fmt: skip


@cache
def source_definition() -> Definition:
    """Return the settings of all sources, but for those of their groups of topics."""
    return common_definition().plus((
        Setting(TOPIC_CREATION_GROUPS, ConfigType.LIST, "", _LOW,
                "Names for groups of settings of topics that the connector creates.", CREATION, 1,
                Width.LONG, "Topic Creation Groups", validator=_unique_aliases),
        Setting(EXACTLY_ONCE_SUPPORT, ConfigType.STRING, "requested", _MEDIUM,
                "requested or required: whether a connector is refused that cannot write each "
                "record exactly once here.", _EXACTLY_ONCE, 2, Width.SHORT, "Exactly once support",
                validator=validators.one_of_any_case("requested", "required")),
        Setting(TRANSACTION_BOUNDARY, ConfigType.STRING, "poll", _MEDIUM,
                "Transaction boundaries of an exactly-once source: poll, interval or connector.",
                _EXACTLY_ONCE, 3, Width.SHORT, "Transaction Boundary",
                validator=validators.one_of_any_case("poll", "connector", "interval")),
        Setting("transaction.boundary.interval.ms", ConfigType.LONG, None, _LOW,
                "With transaction.boundary=interval: milliseconds between commits; by default the "
                "worker's offset.flush.interval.ms.", _EXACTLY_ONCE, 4, Width.SHORT,
                "Transaction boundary interval",
                validator=validators.optional(validators.at_least(0))),
        Setting(OFFSETS_TOPIC, ConfigType.STRING, None, _LOW,
                "A separate topic for the connector's offsets (distributed mode only).",
                "offsets.topic", 1, Width.LONG, "Offsets topic", validator=validators.non_empty),
    ))  # fmt: skip
