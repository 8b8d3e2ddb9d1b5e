"""A worker's settings: connect-distributed.properties and connect-standalone.properties.

Names, defaults and texts of errors are Kafka's, but for `listeners`, which is this machine alone
unless it is set, and `barnabas.connect.*`. What is not named here is not checked: settings of
clients, of converters, of providers.

Source: WorkerConfig, StandaloneConfig (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from barnabas.connect import plugins
from barnabas.connect.allowed_paths import PATHS_SETTING, allow_paths_of_worker
from barnabas.connect.allowed_plugins import PLUGINS_SETTING, allow_of_worker, listed_names
from barnabas.connect.config import validators
from barnabas.connect.config.client_overrides import override_policy
from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting
from barnabas.connect.config.plugin_classes import plugin_of
from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.base import EngineKind
from barnabas.connect.tasks.base import ENGINE
from barnabas.schemas.data.errors import ConfigError

GROUP_ID: Final = "group.id"
OFFSET_FILE: Final = "offset.storage.file.filename"
MASTER: Final = "barnabas.connect.spark.master"

DEFINITION: Final = Definition((
    Setting("bootstrap.servers", ConfigType.LIST, "localhost:9092", Importance.HIGH,
            "Brokers to contact first."),
    Setting("key.converter", ConfigType.CLASS, importance=Importance.HIGH,
            doc="The converter of keys, where a connector names none.",
            validator=plugin_of("converter")),
    Setting("value.converter", ConfigType.CLASS, importance=Importance.HIGH,
            doc="The converter of values, where a connector names none.",
            validator=plugin_of("converter")),
    Setting("header.converter", ConfigType.CLASS,
            "org.apache.kafka.connect.storage.SimpleHeaderConverter", Importance.LOW,
            "The converter of headers, where a connector names none.",
            validator=plugin_of("header_converter")),
    Setting("task.shutdown.graceful.timeout.ms", ConfigType.LONG, 5000, Importance.LOW,
            "Time for all tasks together to stop."),
    Setting("offset.flush.interval.ms", ConfigType.LONG, 60000, Importance.LOW,
            "Interval between offset commits."),
    Setting("offset.flush.timeout.ms", ConfigType.LONG, 5000, Importance.LOW,
            "Timeout of an offset commit."),
    Setting("topic.tracking.enable", ConfigType.BOOLEAN, True, Importance.LOW,
            "Track the topics that a connector uses."),
    Setting("topic.tracking.allow.reset", ConfigType.BOOLEAN, True, Importance.LOW,
            "Allow users to reset the tracked topics."),
    Setting("topic.creation.enable", ConfigType.BOOLEAN, True, Importance.LOW,
            "Allow sources to create topics by topic.creation.* settings."),
    Setting(PLUGINS_SETTING, ConfigType.LIST, "", Importance.MEDIUM,
            "Plugins that configurations may name beside the built-in ones: classes of your own "
            "(package.module:Class, or package.module for all classes in it), and built-in "
            "plugins that are off by default."),
    Setting(PATHS_SETTING, ConfigType.LIST, "", Importance.MEDIUM,
            "Directories of this machine whose files connectors of databases, lakes and Spark's "
            "formats may read and write; / is every file, and none without it."),
    Setting(ENGINE, ConfigType.STRING, "spark", Importance.MEDIUM,
            "Engine of tasks: spark, or local, which uses threads of the worker.",
            validator=validators.one_of_any_case("spark", "local")),
    Setting(MASTER, ConfigType.STRING, "local[2]", Importance.MEDIUM,
            "Spark's master: local[2], spark://host:7077."),
))  # fmt: skip
_FILE: Final = Setting(
    OFFSET_FILE,
    ConfigType.STRING,
    importance=Importance.HIGH,
    doc="The file of the offsets of sources.",
)


def is_distributed(settings: Mapping[str, str]) -> bool:
    """Return whether a file is of distributed mode: only such a one names a group."""
    return GROUP_ID in settings


def engine_kind(settings: Mapping[str, str]) -> EngineKind:
    """Return what runs a worker's tasks."""
    if settings.get(ENGINE, "spark").strip().lower() == "local":
        return "local"
    return "spark connect" if settings.get(MASTER, "").startswith("sc://") else "spark"


def check_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the settings named here. Raises ConfigError."""
    definition = DEFINITION if is_distributed(settings) else DEFINITION.plus([_FILE])
    override_policy(settings)
    allow_of_worker(settings)
    allow_paths_of_worker(settings)
    for name in listed_names(settings):
        _check_plugin(name)
    return definition.parse(settings)


def _check_plugin(name: str) -> None:
    """Report a wrong name when the worker starts, not when a connector uses it."""
    try:
        if ":" in name or plugins.is_built_in(name):
            plugins.load(name)
        else:
            import_module(name)
    except (ConfigError, ImportError, ValueError, SystemExit) as error:
        text = f"{error}; it takes package.module:Class, package.module and built-in plugins"
        raise invalid(PLUGINS_SETTING, name, text) from error
