"""The settings that Debezium's connectors share: tables, columns, topics, signals.

Their definitions (names, defaults, documentation) are rows, of which a connector's definition is
made.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from barnabas.connect.allowed_plugins import check_on
from barnabas.connect.cdc.database import ColumnTypes
from barnabas.connect.config.client_overrides import check_overrides
from barnabas.connect.config.common import TRANSFORMS
from barnabas.connect.config.definition import ConfigType, Importance, SettingRow
from barnabas.connect.config.validators import at_least, one_of_any_case
from barnabas.connect.config.values import with_prefix
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.data.schema import Schema

FILE_CHANNEL: Final = "io.debezium.pipeline.signal.channels.FileSignalChannel"
SIGNAL_CONSUMER: Final = "signal.consumer."
SELECT_OVERRIDES: Final = "snapshot.select.statement.overrides"
_BAD_IN_TOPIC: Final = re.compile(r"[^a-zA-Z0-9._-]")
_SIGNALS: Final = ("source", "kafka", "file")
_NOTIFICATIONS: Final = ("sink", "log")
BOOLEAN, INT, LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
PASSWORD, STRING = ConfigType.PASSWORD, ConfigType.STRING
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


class Patterns:
    """Java's regular expressions, separated by commas, that match whole names in any case."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._all = [
                compile_java(f"(?i){pattern.strip()}")
                for pattern in re.split(r"(?<!\\),", text)
                if pattern.strip()
            ]
        except PatternError as error:
            raise ConfigError(f"{text!r} is not a list of regular expressions: {error}") from None

    def __bool__(self) -> bool:
        return bool(self._all)

    def matches(self, name: str) -> bool:
        """Return whether one of them matches."""
        return any(pattern.matches(name) for pattern in self._all)


@dataclass(frozen=True, eq=False)
class CaptureSettings:
    """The settings in use; compared by identity of what they were read from.

    A database's subclass names the connector, and says how its columns are represented.
    """

    connector_name: ClassVar[str]
    """In records: `source.connector`."""
    source_schema: ClassVar[Schema]
    """Of the `source` of its events."""
    namespace: ClassVar[str] = "schema"
    """The namespace of tables; its lists are `<namespace>.include.list` and so on."""

    values: Mapping[str, Any] = field(repr=False)

    @property
    @abstractmethod
    def types(self) -> ColumnTypes:
        """The representation of columns."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.values),)

    @property
    def listed_kinds(self) -> tuple[str, ...]:
        """The kinds with an include and an exclude list; only one of the two may be set."""
        return ("table", self.namespace, "column")

    def check(self) -> None:
        """Raises ConfigError for what does not go together."""
        for kind in self.listed_kinds:
            if self[f"{kind}.include.list"] and self[f"{kind}.exclude.list"]:
                raise ConfigError(
                    f'"{kind}.include.list" and "{kind}.exclude.list" cannot both be set'
                )
        check_adhoc(self)
        for kind in self.listed_kinds:
            Patterns(self[f"{kind}.include.list"])
            Patterns(self[f"{kind}.exclude.list"])

    @property
    def topic_prefix(self) -> str:
        return str(self["topic.prefix"])

    @property
    def database(self) -> str:
        """The database that schemas are in; empty where a table's name is unique without it."""
        return ""

    @property
    def placeholder(self) -> str:
        text = str(self["unavailable.value.placeholder"])
        return bytes.fromhex(text[4:]).decode() if text.startswith("hex:") else text

    @property
    def failure_handling(self) -> str:
        return str(self["event.converting.failure.handling.mode"])

    @property
    def has_transforms(self) -> bool:
        """True if transforms change the records; they may mask fields."""
        return bool(self.values.get(TRANSFORMS))

    @property
    def has_extended_headers(self) -> bool:
        return bool(self["extended.headers.enabled"])

    @property
    def has_tombstones(self) -> bool:
        return bool(self["tombstones.on.delete"])

    @property
    def heartbeat_prefix(self) -> str:
        return str(self["topic.heartbeat.prefix"])

    @property
    def transaction_topic(self) -> str:
        return self._named(self["topic.transaction"])

    @property
    def skipped_operations(self) -> frozenset[str]:
        return frozenset(part.strip() for part in self["skipped.operations"].split(","))

    def topic(self, schema: str, table: str) -> str:
        """Return where a table's records go."""
        return self._named(schema, table)

    def _named(self, *parts: str) -> str:
        name = self["topic.delimiter"].join((self.topic_prefix, *parts))
        return _BAD_IN_TOPIC.sub("_", name)

    def wants_table(self, schema: str, table: str) -> bool:
        """Return whether a table's changes are captured: the signal table always is."""
        full = f"{schema}.{table}"
        is_listed = _wants(self, self.namespace, schema) and _wants(self, "table", full)
        return is_listed or (schema, table) == self.signal_table

    @property
    def signal_table(self) -> tuple[str, str] | None:
        """Schema and name of the table that signals and marks are written to."""
        parts = str(self["signal.data.collection"]).replace('"', "").split(".")
        return (parts[-2], parts[-1]) if len(parts) > 1 else None

    @property
    def signal_channels(self) -> frozenset[str]:
        return _listed(self["signal.enabled.channels"])

    @property
    def notification_channels(self) -> frozenset[str]:
        return _listed(self["notification.enabled.channels"])

    @property
    def marks_are_deleted(self) -> bool:
        """True if the second mark of a chunk is the end of the first."""
        return str(self["incremental.snapshot.watermarking.strategy"]).lower() == "insert_delete"

    @property
    def signal_consumer(self) -> dict[str, str]:
        """The client settings of the consumer of signals."""
        given = with_prefix(self.values, SIGNAL_CONSUMER)
        return {f"consumer.override.{name}": text for name, text in given.items()}

    def wants_column(self, schema: str, table: str, column: str) -> bool:
        """Return whether records have a column."""
        return _wants(self, "column", f"{schema}.{table}.{column}")

    def wants_message(self, prefix: str) -> bool:
        """Return whether logical messages with a prefix become records."""
        return _wants(self, "message.prefix", prefix)

    def wants_rows(self, schema: str, table: str) -> bool:
        """Return whether a snapshot has a table's rows."""
        if (schema, table) == self.signal_table:
            return False
        patterns = Patterns(self["snapshot.include.collection.list"])
        return not patterns or patterns.matches(f"{schema}.{table}")

    def key_columns(self, schema: str, table: str) -> tuple[str, ...] | None:
        """The key that `message.key.columns` gives a table."""
        for entry in filter(None, (e.strip() for e in self["message.key.columns"].split(";"))):
            pattern, _, columns = entry.rpartition(":")
            if Patterns(pattern).matches(f"{schema}.{table}"):
                return tuple(column.strip() for column in columns.split(","))
        return None

    def select_override(self, schema: str, table: str) -> str | None:
        """The SELECT that a snapshot reads a table by instead."""
        prefix = SELECT_OVERRIDES
        names = [name.strip() for name in self[prefix].split(",")]
        for name in (f"{schema}.{table}", f"{self.database}.{schema}.{table}"):
            if name in names:
                return str(self.values.get(f"{prefix}.{name}") or "") or None
        return None


def check_adhoc(settings: CaptureSettings) -> None:
    """Raises ConfigError for channels that there are not, or that lack something."""
    check_overrides(with_prefix(settings.values, SIGNAL_CONSUMER), prefix=SIGNAL_CONSUMER)
    if settings["signal.data.collection"] and settings.signal_table is None:
        raise ConfigError('"signal.data.collection" needs a schema and a table: schema.table')
    for kind, known in (("signal", _SIGNALS), ("notification", _NOTIFICATIONS)):
        for name in sorted(_listed(settings[f"{kind}.enabled.channels"]) - set(known)):
            raise ConfigError(
                f'"{kind}.enabled.channels" names {name}, which this connector does not have:'
                f" there are {', '.join(known)}"
            )
    if "file" in settings.signal_channels:
        check_on(FILE_CHANNEL)
    if "kafka" in settings.signal_channels and not settings["signal.kafka.bootstrap.servers"]:
        raise ConfigError('The channel kafka needs "signal.kafka.bootstrap.servers"')
    if "sink" in settings.notification_channels and not settings["notification.sink.topic.name"]:
        raise ConfigError('The channel sink needs a "notification.sink.topic.name"')


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


def _wants(settings: CaptureSettings, kind: str, name: str) -> bool:
    included, excluded = _patterns(settings, kind)
    if included:
        return included.matches(name)
    return not (excluded and excluded.matches(name))


def _patterns(settings: CaptureSettings, kind: str) -> tuple[Patterns, Patterns]:
    cache: dict[str, tuple[Patterns, Patterns]] = settings.__dict__.setdefault("_patterns", {})
    if kind not in cache:
        included, excluded = settings[f"{kind}.include.list"], settings[f"{kind}.exclude.list"]
        cache[kind] = Patterns(included), Patterns(excluded)
    return cache[kind]


def tables_and_columns(*lists: tuple[str, str, Importance]) -> tuple[SettingRow, ...]:
    """Return the settings of what is captured.

    `lists` are the kinds that have an include and an exclude list: name, plural, importance.
    """
    return (
        *(
            (f"{kind}.{which}.list", STRING, "", importance,
             f"Regular expressions of {what} that {verb}, separated by commas.")
            for kind, what, importance in lists
            for which, verb in (("include", "alone are captured"), ("exclude", "are not captured"))
        ),
        ("message.key.columns", STRING, "", MEDIUM,
         "Keys of tables: schema.table:column,column;schema.table:column."),
        ("skipped.operations", STRING, "t", LOW,
         "Kinds of changes without records: c, u, d, t (truncate), m (message); none."),
        ("tombstones.on.delete", BOOLEAN, True, MEDIUM,
         "Write a tombstone, a record without a value, after each delete."),
    )  # fmt: skip


SNAPSHOT_THREADS: Final[SettingRow] = (
    "snapshot.max.threads", INT, 1, LOW, "Pieces of a snapshot in one micro-batch, at least.",
    at_least(1),
)  # fmt: skip
SNAPSHOT_TABLES: Final[tuple[SettingRow, ...]] = (
    ("snapshot.include.collection.list", STRING, "", MEDIUM,
     "Regular expressions of captured tables that a snapshot reads; empty means all."),
    ("snapshot.select.statement.overrides", STRING, "", MEDIUM,
     "Tables whose rows are read by the SELECT in snapshot.select.statement.overrides.<table>."),
)  # fmt: skip
PLACEHOLDER: Final[SettingRow] = (
    "unavailable.value.placeholder", STRING, "__debezium_unavailable_value", MEDIUM,
    "Stands for a large value that a change did not touch; hex: begins one in hexadecimal.",
)  # fmt: skip
BAD_VALUES: Final[SettingRow] = (
    "event.converting.failure.handling.mode", STRING, "warn", MEDIUM,
    "Handling of values that cannot be represented.", one_of_any_case("warn", "fail", "skip"),
)  # fmt: skip
HEADERS: Final[SettingRow] = (
    "extended.headers.enabled", BOOLEAN, True, LOW, "Add headers that identify the connector.",
)  # fmt: skip
SIGNALS: Final[tuple[SettingRow, ...]] = (
    ("signal.data.collection", STRING, "", MEDIUM,
     "The table (schema.table) that signals are written to, and the marks of snapshots."),
    ("signal.enabled.channels", STRING, "source", MEDIUM,
     "Channels of signals: source (the table), kafka, file."),
    ("signal.kafka.topic", STRING, "", LOW,
     "The topic of the channel kafka, first partition; empty means <topic.prefix>-signal."),
    ("signal.kafka.bootstrap.servers", STRING, "", LOW, "The brokers of that topic."),
    ("signal.kafka.groupId", STRING, "kafka-signal", LOW, "The consumer group of that topic."),
    ("signal.kafka.poll.timeout.ms", INT, 0, LOW, "Time to wait for records of that topic.",
     at_least(0)),
    ("signal.file", STRING, "file-signals.txt", LOW,
     "The file of the channel file: a JSON object a line; what is read is taken out."),
    ("signal.poll.interval.ms", LONG, 5000, LOW, "Interval between polls of the other channels.",
     at_least(1)),
    ("incremental.snapshot.chunk.size", INT, 1024, MEDIUM,
     "Rows that an incremental snapshot reads at once.", at_least(1)),
    ("incremental.snapshot.watermarking.strategy", STRING, "insert_insert", LOW,
     "The marks of a chunk: two rows in the table of signals, or one that is deleted.",
     one_of_any_case("insert_insert", "insert_delete")),
    ("read.only", BOOLEAN, False, LOW,
     "Make incremental snapshots read-only: use positions of the log, not marks in a table."),
    ("notification.enabled.channels", STRING, "", LOW,
     "Recipients of snapshot notifications: sink (a topic), log."),
    ("notification.sink.topic.name", STRING, "", LOW, "The topic of the channel sink."),
)  # fmt: skip
TOPICS: Final[tuple[SettingRow, ...]] = (
    ("topic.delimiter", STRING, ".", MEDIUM, "Between prefix, schema and table."),
    ("topic.heartbeat.prefix", STRING, "__debezium-heartbeat", LOW,
     "Begins the name of the topic of heartbeats."),
    ("heartbeat.interval.ms", INT, 0, MEDIUM, "Interval between heartbeats; 0 disables them.",
     at_least(0)),
    ("heartbeat.action.query", STRING, None, LOW, "A statement to run with each heartbeat."),
    ("provide.transaction.metadata", BOOLEAN, False, LOW,
     "Add transaction metadata to events, and write records at each begin and end."),
    ("topic.transaction", STRING, "transaction", LOW,
     "Ends the name of the topic with transactions' begins and ends."),
)  # fmt: skip
MICRO_BATCHES: Final[tuple[SettingRow, ...]] = (
    ("max.batch.size", INT, 2048, MEDIUM, "Messages of the log in one micro-batch.", at_least(1)),
    ("max.queue.size", INT, 8192, MEDIUM, "Messages of the log that are read ahead.", at_least(1)),
    ("max.queue.size.in.bytes", LONG, 67_108_864, LOW, "Bytes of the log that are read ahead.",
     at_least(0)),
    ("poll.interval.ms", LONG, 500, MEDIUM, "Accepted; changes are read as they come.",
     at_least(0)),
    ("retriable.restart.connector.wait.ms", LONG, 10_000, LOW,
     "Accepted; the worker says when it tries again.", at_least(0)),
)  # fmt: skip
