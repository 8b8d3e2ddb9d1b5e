"""What can be configured: the names of Debezium's PostgreSQL connector."""

from __future__ import annotations

from typing import Any, Final

from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
)
from barnabas.connect.config.validators import at_least, one_of_any_case

BOOLEAN, INT, LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
PASSWORD, STRING = ConfigType.PASSWORD, ConfigType.STRING
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


class _Settings:
    """Collects settings, each with its place in its group."""

    def __init__(self) -> None:
        self.all: list[Setting] = []

    def group(self, group: str, *rows: tuple[Any, ...]) -> None:
        for order, (name, kind, default, importance, doc, *rest) in enumerate(rows):
            validator: Validator | None = rest[0] if rest else None
            self.all.append(
                Setting(
                    *(name, kind, default, importance, doc),
                    group=group,
                    order=order,
                    validator=validator,
                )
            )


_ALL: Final = _Settings()
_ALL.group(
    "Connection",
    ("topic.prefix", STRING, NO_DEFAULT, HIGH, "Begins the names of all topics; names the source."),
    ("database.hostname", STRING, NO_DEFAULT, HIGH, "The server's host."),
    ("database.port", INT, 5432, HIGH, "The server's port.", at_least(1)),
    ("database.user", STRING, NO_DEFAULT, HIGH, "A user who may replicate and read the tables."),
    ("database.password", PASSWORD, "", HIGH, "The user's password."),
    ("database.dbname", STRING, NO_DEFAULT, HIGH, "The database."),
    ("database.sslmode", STRING, "prefer", MEDIUM, "Whether and how TLS is used, as libpq has it.",
     one_of_any_case("disable", "allow", "prefer", "require", "verify-ca", "verify-full")),
    ("database.sslcert", STRING, None, MEDIUM, "A file with the client's certificate."),
    ("database.sslkey", STRING, None, MEDIUM, "A file with the client's key."),
    ("database.sslpassword", PASSWORD, None, MEDIUM, "Opens the file with the client's key."),
    ("database.sslrootcert", STRING, None, MEDIUM, "A file with the authorities to trust."),
    ("database.tcpKeepAlive", BOOLEAN, True, MEDIUM, "Whether TCP looks for lost servers."),
    ("database.initial.statements", STRING, None, LOW,
     "Statements, separated by semicolons, for each connection but that of replication."),
    ("connect.timeout.ms", INT, 10_000, LOW, "How long a connection may take to begin.",
     at_least(1)),
)  # fmt: skip
_ALL.group(
    "Replication",
    ("plugin.name", STRING, "pgoutput", MEDIUM, "The output plugin; pgoutput alone is supported.",
     one_of_any_case("pgoutput")),
    ("slot.name", STRING, "debezium", MEDIUM, "The replication slot; made if it is not there."),
    ("slot.drop.on.stop", BOOLEAN, False, MEDIUM,
     "Whether the slot is dropped when the connector stops; what happens then is lost."),
    ("slot.stream.params", STRING, None, LOW, "More options of pgoutput: name=value;name=value."),
    ("slot.max.retries", INT, 6, LOW, "How often a slot that another uses is tried again at once.",
     at_least(0)),
    ("slot.retry.delay.ms", LONG, 10_000, LOW, "How long to wait for a slot that another uses.",
     at_least(0)),
    ("publication.name", STRING, "dbz_publication", MEDIUM, "The publication to read."),
    ("publication.autocreate.mode", STRING, "all_tables", MEDIUM,
     ("What the publication has if it is not there: all tables, those that the lists name "
      "(filtered; it then follows the lists), none; or an error (disabled)."),
     one_of_any_case("all_tables", "filtered", "disabled", "no_tables")),
    ("publish.via.partition.root", BOOLEAN, False, LOW,
     "Whether changes of partitions count as those of the partitioned table."),
    ("status.update.interval.ms", INT, 10_000, MEDIUM,
     "How often the server is told how far its log is read.", at_least(1)),
    ("xmin.fetch.interval.ms", LONG, 0, LOW,
     "How often source.xmin is asked of the slot; 0: never.", at_least(0)),
    ("flush.lsn.source", BOOLEAN, True, LOW,
     "Whether the slot follows what is stored; without it somebody else must advance the slot."),
)  # fmt: skip
_ALL.group(
    "Tables and columns",
    *(
        (f"{kind}.{which}.list", STRING, "", importance,
         f"Regular expressions of {what} that {verb}, separated by commas.")
        for kind, what, importance in (
            ("schema", "schemas", MEDIUM),
            ("table", "tables (schema.table)", HIGH),
            ("column", "columns (schema.table.column)", MEDIUM),
            ("message.prefix", "logical messages' prefixes", LOW),
        )
        for which, verb in (("include", "alone are captured"), ("exclude", "are not captured"))
    ),
    ("message.key.columns", STRING, "", MEDIUM,
     "Keys of tables: schema.table:column,column;schema.table:column."),
    ("skipped.operations", STRING, "t", LOW,
     "Kinds of changes without records: c, u, d, t (truncate), m (message); none."),
    ("tombstones.on.delete", BOOLEAN, True, MEDIUM,
     "Whether a delete is followed by a record without a value."),
)  # fmt: skip
_ALL.group(
    "Snapshot",
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
    ("snapshot.delay.ms", LONG, 0, LOW, "How long to wait before a snapshot.", at_least(0)),
    ("snapshot.max.threads", INT, 1, LOW, "Pieces of a snapshot in one micro-batch, at least.",
     at_least(1)),
    ("snapshot.split.pages", INT, 2048, LOW,
     "Tables with more pages of 8 KB are read in several pieces.", at_least(1)),
    ("snapshot.include.collection.list", STRING, "", MEDIUM,
     "Regular expressions of captured tables that a snapshot reads; empty means all."),
    ("snapshot.select.statement.overrides", STRING, "", MEDIUM,
     "Tables whose rows are read by the SELECT in snapshot.select.statement.overrides.<table>."),
)  # fmt: skip
_ALL.group(
    "Signals",
    ("signal.data.collection", STRING, "", MEDIUM,
     "The table (schema.table) that signals are written to, and the marks of snapshots."),
    ("signal.enabled.channels", STRING, "source", MEDIUM,
     "Where signals come from: source (the table), kafka, file."),
    ("signal.kafka.topic", STRING, "", LOW,
     "The topic of the channel kafka, first partition; empty means <topic.prefix>-signal."),
    ("signal.kafka.bootstrap.servers", STRING, "", LOW, "The brokers of that topic."),
    ("signal.kafka.groupId", STRING, "kafka-signal", LOW, "The consumer group of that topic."),
    ("signal.kafka.poll.timeout.ms", INT, 0, LOW, "How long that topic is waited for.",
     at_least(0)),
    ("signal.file", STRING, "file-signals.txt", LOW,
     "The file of the channel file: a JSON object a line; what is read is taken out."),
    ("signal.poll.interval.ms", LONG, 5000, LOW, "How often other channels are asked.",
     at_least(1)),
    ("incremental.snapshot.chunk.size", INT, 1024, MEDIUM,
     "Rows that an incremental snapshot reads at once.", at_least(1)),
    ("incremental.snapshot.watermarking.strategy", STRING, "insert_insert", LOW,
     "The marks of a chunk: two rows in the table of signals, or one that is deleted.",
     one_of_any_case("insert_insert", "insert_delete")),
    ("read.only", BOOLEAN, False, LOW,
     "Whether incremental snapshots write no marks, and go by the log's places alone."),
    ("notification.enabled.channels", STRING, "", LOW,
     "Who is told of snapshots: sink (a topic), log."),
    ("notification.sink.topic.name", STRING, "", LOW, "The topic of the channel sink."),
)  # fmt: skip
_ALL.group(
    "Values",
    ("decimal.handling.mode", STRING, "precise", MEDIUM, "How numeric and money are represented.",
     one_of_any_case("precise", "double", "string")),
    ("money.fraction.digits", INT, 2, LOW, "Digits after the point of money.", at_least(0)),
    ("time.precision.mode", STRING, "adaptive", MEDIUM, "How dates and times are represented.",
     one_of_any_case("adaptive", "adaptive_time_microseconds", "connect", "isostring",
                     "microseconds", "nanoseconds")),
    ("interval.handling.mode", STRING, "numeric", MEDIUM, "How intervals are represented.",
     one_of_any_case("numeric", "string")),
    ("hstore.handling.mode", STRING, "json", MEDIUM, "How hstore is represented.",
     one_of_any_case("json", "map")),
    ("binary.handling.mode", STRING, "bytes", LOW, "How bytea is represented.",
     one_of_any_case("bytes", "base64", "base64-url-safe", "hex")),
    ("unavailable.value.placeholder", STRING, "__debezium_unavailable_value", MEDIUM,
     "Stands for a large value that a change did not touch; hex: begins one in hexadecimal."),
    ("include.unknown.datatypes", BOOLEAN, False, MEDIUM,
     "Whether types without a counterpart become bytes; else their columns are left out."),
    ("event.converting.failure.handling.mode", STRING, "warn", MEDIUM,
     "What happens with values that cannot be represented.",
     one_of_any_case("warn", "fail", "skip")),
    ("column.propagate.source.type", STRING, "", LOW,
     "Regular expressions of columns whose schemas tell their type in the database."),
    ("datatype.propagate.source.type", STRING, "", LOW,
     "Regular expressions of types (schema.table.type) whose columns' schemas do."),
    ("extended.headers.enabled", BOOLEAN, True, LOW,
     "Whether records have headers that tell the connector."),
)  # fmt: skip
_ALL.group(
    "Topics",
    ("topic.delimiter", STRING, ".", MEDIUM, "Between prefix, schema and table."),
    ("topic.heartbeat.prefix", STRING, "__debezium-heartbeat", LOW,
     "Begins the name of the topic of heartbeats."),
    ("heartbeat.interval.ms", INT, 0, MEDIUM, "How often a heartbeat is written; 0: never.",
     at_least(0)),
    ("heartbeat.action.query", STRING, None, LOW, "A statement to run with each heartbeat."),
    ("provide.transaction.metadata", BOOLEAN, False, LOW,
     "Whether events tell their place in their transaction, and its begin and end are records."),
    ("topic.transaction", STRING, "transaction", LOW,
     "Ends the name of the topic with transactions' begins and ends."),
)  # fmt: skip
_ALL.group(
    "Micro-batches",
    ("max.batch.size", INT, 2048, MEDIUM, "Messages of the log in one micro-batch.", at_least(1)),
    ("max.queue.size", INT, 8192, MEDIUM, "Messages of the log that are read ahead.", at_least(1)),
    ("max.queue.size.in.bytes", LONG, 67_108_864, LOW, "Bytes of the log that are read ahead.",
     at_least(0)),
    ("poll.interval.ms", LONG, 500, MEDIUM, "Accepted; changes are read as they come.",
     at_least(0)),
    ("retriable.restart.connector.wait.ms", LONG, 10_000, LOW,
     "Accepted; the worker says when it tries again.", at_least(0)),
)  # fmt: skip

DEFINITION: Final = Definition(_ALL.all)
