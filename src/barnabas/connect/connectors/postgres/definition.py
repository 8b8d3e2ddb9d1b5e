"""The settings: the names of Debezium's PostgreSQL connector."""

from __future__ import annotations

from typing import Final

from barnabas.connect.cdc.definition import (
    BAD_VALUES,
    BOOLEAN,
    HEADERS,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    MICRO_BATCHES,
    PASSWORD,
    PLACEHOLDER,
    SIGNALS,
    SNAPSHOT_TABLES,
    SNAPSHOT_THREADS,
    STRING,
    TOPICS,
    SettingRow,
    group,
    tables_and_columns,
)
from barnabas.connect.config.definition import NO_DEFAULT, Definition
from barnabas.connect.config.validators import at_least, one_of_any_case

_CONNECTION: Final[tuple[SettingRow, ...]] = (
    ("topic.prefix", STRING, NO_DEFAULT, HIGH, "Begins the names of all topics; names the source."),
    ("database.hostname", STRING, NO_DEFAULT, HIGH, "The server's host."),
    ("database.port", INT, 5432, HIGH, "The server's port.", at_least(1)),
    ("database.user", STRING, NO_DEFAULT, HIGH, "A user who may replicate and read the tables."),
    ("database.password", PASSWORD, "", HIGH, "The user's password."),
    ("database.dbname", STRING, NO_DEFAULT, HIGH, "The database."),
    ("database.sslmode", STRING, "prefer", MEDIUM, "Use of TLS, as in libpq.",
     one_of_any_case("disable", "allow", "prefer", "require", "verify-ca", "verify-full")),
    ("database.sslcert", STRING, None, MEDIUM, "A file with the client's certificate."),
    ("database.sslkey", STRING, None, MEDIUM, "A file with the client's key."),
    ("database.sslpassword", PASSWORD, None, MEDIUM, "Opens the file with the client's key."),
    ("database.sslrootcert", STRING, None, MEDIUM, "A file with the authorities to trust."),
    ("database.tcpKeepAlive", BOOLEAN, True, MEDIUM, "Whether TCP looks for lost servers."),
    ("database.initial.statements", STRING, None, LOW,
     "Statements, separated by semicolons, for each connection but that of replication."),
    ("connect.timeout.ms", INT, 10_000, LOW, "Timeout of a new connection.",
     at_least(1)),
)  # fmt: skip
_REPLICATION: Final[tuple[SettingRow, ...]] = (
    ("plugin.name", STRING, "pgoutput", MEDIUM, "The output plugin; pgoutput alone is supported.",
     one_of_any_case("pgoutput")),
    ("slot.name", STRING, "debezium", MEDIUM, "The replication slot; made if it is not there."),
    ("slot.drop.on.stop", BOOLEAN, False, MEDIUM,
     "Drop the slot when the connector stops; later changes are then lost."),
    ("slot.stream.params", STRING, None, LOW, "More options of pgoutput: name=value;name=value."),
    ("slot.max.retries", INT, 6, LOW,
     "Taken; has no effect: a task retries for as long as the slot is in use.", at_least(0)),
    ("slot.retry.delay.ms", LONG, 10_000, LOW,
     "Taken; has no effect: pauses between a task's retries double.", at_least(0)),
    ("publication.name", STRING, "dbz_publication", MEDIUM, "The publication to read."),
    ("publication.autocreate.mode", STRING, "all_tables", MEDIUM,
     ("Tables of a publication that is missing: all tables, those that the lists name "
      "(filtered; it then follows the lists), none; or an error (disabled)."),
     one_of_any_case("all_tables", "filtered", "disabled", "no_tables")),
    ("publish.via.partition.root", BOOLEAN, False, LOW,
     "Publish changes of partitions as changes of the partitioned table."),
    ("status.update.interval.ms", INT, 10_000, MEDIUM,
     "Interval between confirmations of the log position to the server.", at_least(1)),
    ("xmin.fetch.interval.ms", LONG, 0, LOW,
     "Interval between reads of the slot's xmin for source.xmin; 0 disables them.", at_least(0)),
    ("flush.lsn.source", BOOLEAN, True, LOW,
     "Advance the slot as records are stored; otherwise advance it yourself."),
)  # fmt: skip
_TABLES: Final = tables_and_columns(
    ("schema", "schemas", MEDIUM),
    ("table", "tables (schema.table)", HIGH),
    ("column", "columns (schema.table.column)", MEDIUM),
    ("message.prefix", "logical messages' prefixes", LOW),
)
_SNAPSHOT: Final[tuple[SettingRow, ...]] = (
    ("snapshot.mode", STRING, "initial", MEDIUM,
     ("When tables are read as a whole: where no offsets are stored (initial), at each start "
      "(always), once and then nothing else (initial_only), never (no_data, never), or where the "
      "log no longer has what follows the offsets (when_needed)."),
     one_of_any_case("initial", "always", "initial_only", "no_data", "never", "when_needed")),
    ("snapshot.locking.mode", STRING, "none", LOW, "Accepted; no snapshot takes locks.",
     one_of_any_case("none", "shared", "custom")),
    ("snapshot.isolation.mode", STRING, "repeatable_read", LOW,
     "Accepted; a snapshot is of one point of the log.",
     one_of_any_case("serializable", "repeatable_read", "read_committed", "read_uncommitted")),
    ("snapshot.fetch.size", INT, 10_240, LOW, "Accepted; rows are streamed.", at_least(1)),
    ("snapshot.delay.ms", LONG, 0, LOW, "Time to wait before a snapshot.", at_least(0)),
    SNAPSHOT_THREADS,
    ("snapshot.split.pages", INT, 2048, LOW,
     "Tables with more pages of 8 KB are read in several pieces.", at_least(1)),
    *SNAPSHOT_TABLES,
)  # fmt: skip
_VALUES: Final[tuple[SettingRow, ...]] = (
    ("decimal.handling.mode", STRING, "precise", MEDIUM, "Representation of numeric and money.",
     one_of_any_case("precise", "double", "string")),
    ("money.fraction.digits", INT, 2, LOW, "Digits after the point of money.", at_least(0)),
    ("time.precision.mode", STRING, "adaptive", MEDIUM, "Representation of dates and times.",
     one_of_any_case("adaptive", "adaptive_time_microseconds", "connect", "isostring",
                     "microseconds", "nanoseconds")),
    ("interval.handling.mode", STRING, "numeric", MEDIUM, "Representation of intervals.",
     one_of_any_case("numeric", "string")),
    ("hstore.handling.mode", STRING, "json", MEDIUM, "Representation of hstore.",
     one_of_any_case("json", "map")),
    ("binary.handling.mode", STRING, "bytes", LOW, "Representation of bytea.",
     one_of_any_case("bytes", "base64", "base64-url-safe", "hex")),
    PLACEHOLDER,
    ("include.unknown.datatypes", BOOLEAN, False, MEDIUM,
     "Read types without a counterpart as bytes; otherwise omit their columns."),
    BAD_VALUES,
    ("column.propagate.source.type", STRING, "", LOW,
     "Regular expressions of columns whose schemas tell their type in the database."),
    ("datatype.propagate.source.type", STRING, "", LOW,
     "Regular expressions of types (schema.table.type) whose columns' schemas do."),
    HEADERS,
)  # fmt: skip

DEFINITION: Final = Definition(
    [
        *group("Connection", _CONNECTION),
        *group("Replication", _REPLICATION),
        *group("Tables and columns", _TABLES),
        *group("Snapshot", _SNAPSHOT),
        *group("Signals", SIGNALS),
        *group("Values", _VALUES),
        *group("Topics", TOPICS),
        *group("Micro-batches", MICRO_BATCHES),
    ]
)
