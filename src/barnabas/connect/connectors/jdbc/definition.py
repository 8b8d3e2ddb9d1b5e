"""Definitions of the settings, with the names of Confluent's JDBC source and sink."""

from __future__ import annotations

from typing import Final

from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Definition,
    Importance,
    Setting,
    Unsupported,
)
from barnabas.connect.config.validators import at_least, one_of_any_case

BOOLEAN, INT, LIST = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LIST
LONG = ConfigType.LONG
PASSWORD, STRING = ConfigType.PASSWORD, ConfigType.STRING
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

_CONNECTION: Final = (
    Setting("connection.url", STRING, NO_DEFAULT, HIGH, "jdbc:postgresql:… or jdbc:sqlite:file."),
    Setting("connection.user", STRING, None, HIGH, "The user."),
    Setting("connection.password", PASSWORD, None, HIGH, "The user's password."),
    Setting("dialect.name", STRING, "", LOW, "Accepted; the URL says which database it is."),
    Setting("connection.attempts", INT, 3, LOW, "Accepted; the worker tries again.",
            validator=at_least(1)),
    Setting("connection.backoff.ms", INT, 10_000, LOW, "Accepted; the worker tries again."),
)  # fmt: skip
SOURCE: Final = Definition((
    *_CONNECTION,
    Setting("mode", STRING, NO_DEFAULT, HIGH, "Detection of new rows.",
            validator=one_of_any_case("bulk", "timestamp", "incrementing",
                                      "timestamp+incrementing")),
    Setting("topic.prefix", STRING, NO_DEFAULT, HIGH, "Goes before the table in topics' names."),
    Setting("incrementing.column.name", STRING, "", MEDIUM, "A number that only grows."),
    Setting("timestamp.column.name", LIST, "", MEDIUM, "Times of change; the first not null."),
    Setting("timestamp.initial", LONG, None, LOW, "The time to begin after, in milliseconds."),
    Setting("timestamp.delay.interval.ms", LONG, 0, HIGH, "Minimum age of a change."),
    Setting("table.whitelist", LIST, "", MEDIUM, "The tables; empty means all."),
    Setting("table.blacklist", LIST, "", MEDIUM, "Tables to leave out."),
    Setting("query", STRING, "", MEDIUM, "A query in place of tables."),
    Setting("query.suffix", STRING, "", LOW, "Goes to the end of each query."),
    Setting("poll.interval.ms", INT, 5000, HIGH, "Interval between polls of a table.",
            validator=at_least(0)),
    Setting("batch.max.rows", INT, 100, LOW, "Rows of one micro-batch; at least 1000 are read.",
            validator=at_least(1)),
    Setting("numeric.mapping", STRING, "none", LOW, "Mapping of NUMERIC columns to numbers.",
            validator=one_of_any_case("none", "best_fit")),
    Setting("quote.sql.identifiers", STRING, "always", MEDIUM, "Quoting of names in SQL."),
    Setting("db.timezone", STRING, "UTC", MEDIUM, "The time zone of columns without one."),
))  # fmt: skip
SINK: Final = Definition((
    *_CONNECTION,
    Setting("insert.mode", STRING, "insert", HIGH, "Statement that writes a record.",
            validator=one_of_any_case("insert", "upsert", "update")),
    Setting("batch.size", INT, 3000, MEDIUM, "Records of one transaction, at most.",
            validator=at_least(1)),
    Setting("delete.enabled", BOOLEAN, False, MEDIUM, "Delete rows on tombstones."),
    Setting("truncate.enabled", BOOLEAN, False, LOW,
            doc="Apply truncations in Debezium's envelope; otherwise they are ignored."),
    Setting("table.name.format", STRING, "${topic}", MEDIUM, "The table of a topic."),
    Setting("pk.mode", STRING, "none", HIGH, "The source of the primary key.",
            validator=one_of_any_case("none", "kafka", "record_key", "record_value")),
    Setting("replace.null.with.default", BOOLEAN, True, MEDIUM,
            doc="Replace null with the field's default, if it has one."),
    Setting("pk.fields", LIST, "", MEDIUM, "The columns or fields of the primary key."),
    Setting("fields.whitelist", LIST, "", MEDIUM, "Fields of the value; empty means all."),
    Setting("auto.create", BOOLEAN, False, MEDIUM, "Create missing tables."),
    Setting("auto.evolve", BOOLEAN, False, MEDIUM, "Add missing columns."),
    Setting("quote.sql.identifiers", STRING, "always", MEDIUM, "Quoting of names in SQL.",
            validator=one_of_any_case("always", "never")),
    Setting("db.timezone", STRING, "UTC", MEDIUM, "The time zone of columns without one."),
    Setting("max.retries", INT, 10, MEDIUM, "Accepted; see errors.retry.timeout."),
    Setting("retry.backoff.ms", INT, 3000, MEDIUM, "Accepted; see errors.retry.timeout."),
))  # fmt: skip

_TABLE_TYPES: Final = Unsupported(r"table\.types", ("TABLE", "table"))
SOURCE_UNSUPPORTED: Final = (
    _TABLE_TYPES,
    Unsupported(r"(schema|catalog)\.pattern", instead="table.whitelist takes schema.table"),
    Unsupported(r"timestamp\.granularity", ("connect_logical",)),
    Unsupported(r"transaction\.isolation\.mode", ("DEFAULT",)),
)
SINK_UNSUPPORTED: Final = (
    _TABLE_TYPES,
    Unsupported(r"timestamp\.fields\.list", instead="the transform TimestampConverter does it"),
)
"""Of Confluent's, what would have no effect."""
