"""The settings that Debezium's connectors share: names, defaults, documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.connect.config.definition import ConfigType, Importance, Setting, Validator
from barnabas.connect.config.validators import at_least, one_of_any_case

BOOLEAN, INT, LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
PASSWORD, STRING = ConfigType.PASSWORD, ConfigType.STRING
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SettingRow = tuple[Any, ...]
"""Name, type, default, importance, documentation, and perhaps a validator."""


def group(name: str, rows: Iterable[SettingRow]) -> list[Setting]:
    """Return a group of settings, each with its place in it."""
    made = []
    for order, (setting, kind, default, importance, doc, *rest) in enumerate(rows):
        validator: Validator | None = rest[0] if rest else None
        made.append(
            Setting(
                *(setting, kind, default, importance, doc),
                group=name,
                order=order,
                validator=validator,
            )
        )
    return made


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
    "snapshot.max.threads",
    INT,
    1,
    LOW,
    "Pieces of a snapshot in one micro-batch, at least.",
    at_least(1),
)
SNAPSHOT_TABLES: Final[tuple[SettingRow, ...]] = (
    ("snapshot.include.collection.list", STRING, "", MEDIUM,
     "Regular expressions of captured tables that a snapshot reads; empty means all."),
    ("snapshot.select.statement.overrides", STRING, "", MEDIUM,
     "Tables whose rows are read by the SELECT in snapshot.select.statement.overrides.<table>."),
)  # fmt: skip
PLACEHOLDER: Final[SettingRow] = (
    "unavailable.value.placeholder",
    STRING,
    "__debezium_unavailable_value",
    MEDIUM,
    "Stands for a large value that a change did not touch; hex: begins one in hexadecimal.",
)
BAD_VALUES: Final[SettingRow] = (
    "event.converting.failure.handling.mode",
    STRING,
    "warn",
    MEDIUM,
    "Handling of values that cannot be represented.",
    one_of_any_case("warn", "fail", "skip"),
)
HEADERS: Final[SettingRow] = (
    "extended.headers.enabled",
    BOOLEAN,
    True,
    LOW,
    "Add headers that identify the connector.",
)
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
