"""Which classes a configuration may name beside the built-in ones.

A request to a worker never decides what is imported. Three sources do:

- the worker's setting `barnabas.connect.plugins`: classes (`package.module:Class`) and modules
  (`package.module`: the classes that it defines), and built-in plugins that are off by default;
- the worker's own class settings, such as `key.converter` and `config.providers.x.class`;
- entry points of installed packages in the group `barnabas.connect`.

The table belongs to the process: tasks on Spark's executors fill theirs from the worker's settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from barnabas.connect.config.client_overrides import allow_clients_of_worker
from barnabas.schemas.data.errors import ConfigError

PLUGINS_SETTING: Final = "barnabas.connect.plugins"
PLUGIN_PATH: Final = "plugin.path"
ENTRY_POINTS: Final = "barnabas.connect"
OFF_BY_DEFAULT: Final = frozenset(
    {
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "barnabas.connect.FilesSource",
        "barnabas.connect.FilesSink",
        "io.debezium.pipeline.signal.channels.FileSignalChannel",  # it empties its file
    }
)
"""They read and write any file that the worker may. Kafka's workers lack its two by default
(KAFKA-13748)."""
_KAFKAS_FILE_JAR: Final = "connect-file-"
_WORKERS_CLASSES: Final = ("key.converter", "value.converter", "header.converter")
_names: set[str] = set()


class NotAllowedError(ConfigError):
    """The worker's own settings do not allow this plugin."""


def allow(names: Iterable[str]) -> None:
    """Let configurations name these: `module:Class`, `module.Class`, a module, a built-in name."""
    _names.update(name.strip() for name in names if name.strip())


def listed_names(settings: Mapping[str, str]) -> list[str]:
    """Return the entries of a worker's `barnabas.connect.plugins`."""
    return [name.strip() for name in settings.get(PLUGINS_SETTING, "").split(",") if name.strip()]


def allow_of_worker(settings: Mapping[str, str]) -> None:
    """Let configurations name what the worker's own settings name, and set what they allow."""
    allow_clients_of_worker(settings)
    allow(listed_names(settings))
    allow(settings.get(name, "") for name in _WORKERS_CLASSES)
    # As Kafka's quick start turns them on: plugin.path=libs/connect-file-4.3.0.jar
    jars = (path.strip().rpartition("/")[2] for path in settings.get(PLUGIN_PATH, "").split(","))
    if any(jar.startswith(_KAFKAS_FILE_JAR) for jar in jars):
        allow(name for name in OFF_BY_DEFAULT if name.startswith("org.apache.kafka."))


def check_own(class_name: str, module: str, name: str) -> None:
    """Check that a class that is not built in may be imported. Raises ConfigError."""
    spellings = {module, f"{module}:{name}", f"{module}.{name}"}
    if not spellings.isdisjoint(_names) or not spellings.isdisjoint(_installed()):
        return
    if ":" not in class_name:  # perhaps Java's
        raise ConfigError(not_found(class_name))
    raise NotAllowedError(
        f"{not_found(class_name)}: to use a class of your own, name it in {PLUGINS_SETTING} of the "
        "worker's settings"
    )


def check_on(class_name: str) -> None:
    """Check that a built-in plugin may be used. Raises NotAllowedError."""
    if not is_on(class_name):
        raise NotAllowedError(
            f"{class_name} is disabled on this worker, because it can read or write any file "
            f"that the worker can; to enable it, name it in {PLUGINS_SETTING} of the "
            "worker's settings"
        )


def is_on(class_name: str) -> bool:
    """Whether a built-in plugin may be used: most may, those that touch files if they are named."""
    short = class_name.rpartition(".")[2]
    names = {class_name, short, short.removesuffix("Connector")}
    return class_name not in OFF_BY_DEFAULT or not names.isdisjoint(_names)


def own_classes() -> list[str]:
    """Return the names `module:Class` that were given, for lists of plugins."""
    return sorted(name for name in _names | _installed() if ":" in name)


@cache
def _installed() -> frozenset[str]:
    return frozenset(entry.value for entry in entry_points(group=ENTRY_POINTS))


# Plugins of others that are not here: why, and what takes their place.


def why_absent(class_name: str) -> str | None:
    """Why a plugin that users may know is not here; None of one that nobody knows."""
    why = _REFUSED.get(class_name)
    return None if why is None else f"Class {class_name} {why}"


def not_found(class_name: str) -> str:
    """Return Kafka's text for a class that nobody finds, or why it is not here."""
    return why_absent(class_name) or f"Failed to find any class that matches {class_name}"


_SCRIPTS: Final = (
    "runs scripts in a Java VM, and none is here. A predicate, or a transform of one's own in "
    "Python, takes its place."
)
_DOCUMENTS: Final = (
    "reads changes of Debezium's MongoDB connector, which is not here. MongoDB's own connector, "
    "com.mongodb.kafka.connect.MongoSourceConnector, publishes documents by itself with "
    "publish.full.document.only=true."
)
_REFUSED: Final = {
    "io.debezium.transforms.Filter": _SCRIPTS,
    "io.debezium.transforms.ContentBasedRouter": _SCRIPTS,
    "io.debezium.transforms.openlineage.OpenLineage": (
        "tells an OpenLineage server of a connector's data, and no client of it is here."
    ),
    "io.debezium.transforms.tracing.ActivateTracingSpan": (
        "needs OpenTelemetry's agent in a Java VM, and none is here."
    ),
    "io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb": (
        "asks a TimescaleDB database what its chunks are, which is not done here."
    ),
    "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState": _DOCUMENTS,
    "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter": _DOCUMENTS,
}
