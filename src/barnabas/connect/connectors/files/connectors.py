"""Directories' connectors: what S3's do, with files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Importance,
    group,
)
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.files.local_store import LocalStore
from barnabas.connect.connectors.storage.settings import (
    SINK,
    SOURCE,
    errors_of,
    parsed,
    routes_of,
)
from barnabas.connect.connectors.storage.sink import FileSettings, FileSinkWriter
from barnabas.connect.connectors.storage.source import (
    FileSourceReader,
    source_settings,
    split_tasks,
)
from barnabas.schemas.data.errors import ConfigError

_T = ConfigType
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_DIRECTORY: Final = (
    *("files.directory", _T.STRING, NO_DEFAULT, _HIGH),
    "The directory. Workers on several machines must all have it.",
    validators.non_empty,
)


class FilesSink(SinkConnector):
    """Topics to files of a directory."""

    definition = SINK.plus(group("Files",
        _DIRECTORY,
        ("files.compression.type", _T.STRING, "none", _LOW, "none or gzip, of JSON and bytes.",
         validators.one_of_any_case("none", "gzip")),
    ))  # fmt: skip

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        return errors_of(values)

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        values = parsed(self.definition, context.settings)
        is_packed = str(values["files.compression.type"]).lower() == "gzip"
        settings = FileSettings.of(values, -1 if is_packed else None)
        return FileSinkWriter(LocalStore(str(values["files.directory"])), settings)


class FilesSource(SourceConnector):
    """Files of a directory to topics."""

    definition = SOURCE.without("topics.dir", "mode").plus(group("Files",
        _DIRECTORY,
        ("topics.dir", _T.STRING, "", _LOW, "A directory below it that alone is read."),
        ("topic", _T.STRING, None, _HIGH, "The topic of all files, in mode GENERIC."),
        ("mode", _T.STRING, "GENERIC", _MEDIUM,
         "GENERIC reads any files, RESTORE_BACKUP what the sink wrote.",
         validators.one_of_any_case("RESTORE_BACKUP", "GENERIC")),
        ("files.glob", _T.STRING, "*", _MEDIUM,
         "Which files are read: *.json of any directory, in/*.json of one."),
        ("files.poll.interval.ms", _T.LONG, 1000, _MEDIUM,
         "Interval between polls of the directory for new files.", validators.at_least(1)),
        ("files.settle.ms", _T.LONG, 0, _MEDIUM,
         "Time that a file must stay unchanged before it is read; 0 if files appear whole.",
         validators.at_least(0)),
        ("files.delete", _T.BOOLEAN, False, _LOW,
         "Delete files once their records are in the topic."),
    ))  # fmt: skip

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            routes_of(_routed(values))
        except ConfigError as error:
            return {"topic": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the files."""
        return split_tasks(tasks_max)

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task. Raises ConfigError, ConnectError."""
        values = parsed(self.definition, context.settings)
        directory = str(values["files.directory"])
        store = LocalStore(directory)
        store.check()
        settings = source_settings(
            _routed(values),
            directory,
            int(values["files.poll.interval.ms"]),
            context.settings,
            glob=str(values["files.glob"]),
            settle_ms=int(values["files.settle.ms"]),
            deletes=bool(values["files.delete"]),
        )
        return FileSourceReader(store, settings, context.offsets)


def _routed(values: Mapping[str, object]) -> Mapping[str, object]:
    """One topic for all files is a route that all take."""
    if values["topic"] and not values["topic.regex.list"]:
        return {**values, "topic.regex.list": [f"{values['topic']}:"]}
    return values
