"""The connector's settings: their definitions, with Debezium's names, and what they mean.

Those that all databases share are in `cdc/settings`. Some of Debezium's settings would have no
effect here, and are refused for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from barnabas.connect.cdc.settings import (
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
    SELECT_OVERRIDES,
    SIGNAL_CONSUMER,
    SIGNALS,
    SNAPSHOT_TABLES,
    SNAPSHOT_THREADS,
    STRING,
    TOPICS,
    CaptureSettings,
    Patterns,
    tables_and_columns,
)
from barnabas.connect.config.common import TRANSFORMS
from barnabas.connect.config.definition import (
    NO_DEFAULT,
    Definition,
    SettingRow,
    Unsupported,
    group,
    refuse,
)
from barnabas.connect.config.validators import at_least, one_of_any_case
from barnabas.connect.connectors.postgres.events import SOURCE
from barnabas.connect.connectors.postgres.types import Modes, PostgresTypes

_COLUMNS: Final = "Kafka's transforms MaskField and Cast, or a view, can do the like"
UNSUPPORTED: Final = (
    Unsupported(r"column\.mask\.(hash|with)\..*", instead=_COLUMNS),
    Unsupported(r"column\.truncate\.to\..*", instead=_COLUMNS),
    Unsupported(r"incremental\.snapshot\.allow\.schema\.changes", ("false",)),
    Unsupported(r"(schema|field)\.name\.adjustment\.mode", ("none",)),
    Unsupported(r"topic\.naming\.strategy", ("io.debezium.schema.SchemaTopicNamingStrategy",)),
    Unsupported(
        r"transaction\.metadata\.factory",
        ("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",),
    ),
    Unsupported(r"snapshot\.query\.mode", ("select_all",)),
    Unsupported(r"schema\.refresh\.mode", ("columns_diff",)),
    Unsupported(r"slot\.failover|openlineage\.integration\.enabled", ("false",)),
    Unsupported(r"converters|post\.processors|replica\.identity\.autoset\.values"),
)
_TIMES: Final = {"adaptive_time_microseconds": "adaptive_microseconds"}
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
        *group("Connection", *_CONNECTION, first=0),
        *group("Replication", *_REPLICATION, first=0),
        *group("Tables and columns", *_TABLES, first=0),
        *group("Snapshot", *_SNAPSHOT, first=0),
        *group("Signals", *SIGNALS, first=0),
        *group("Values", *_VALUES, first=0),
        *group("Topics", *TOPICS, first=0),
        *group("Micro-batches", *MICRO_BATCHES, first=0),
    ]
)


@dataclass(frozen=True, eq=False)
class PostgresSettings(CaptureSettings):
    """The settings in use."""

    connector_name: ClassVar = "postgresql"
    source_schema: ClassVar = SOURCE

    @staticmethod
    def parse(settings: Mapping[str, str]) -> PostgresSettings:
        """Read a configuration. Raises ConfigError."""
        more = {
            name: text
            for name, text in settings.items()
            if name == TRANSFORMS or name.startswith((f"{SELECT_OVERRIDES}.", SIGNAL_CONSUMER))
        }
        parsed = {
            name: value.lower() if name.endswith((".mode", ".sslmode")) else value
            for name, value in DEFINITION.parse(settings).items()
        }
        refuse(settings, UNSUPPORTED)
        made = PostgresSettings(parsed | more)
        made.check()
        return made

    def check(self) -> None:
        """Raises ConfigError for what does not go together."""
        super().check()
        for which in ("include", "exclude"):
            Patterns(self[f"message.prefix.{which}.list"])
        _described_types(self)

    @property
    def database(self) -> str:
        return str(self["database.dbname"])

    @property
    def modes(self) -> Modes:
        """The representation of types."""
        times = self["time.precision.mode"]
        return Modes(
            decimals=self["decimal.handling.mode"],
            times=_TIMES.get(times, times),
            intervals=self["interval.handling.mode"],
            hstore=self["hstore.handling.mode"],
            binary=self["binary.handling.mode"],
            money_digits=self["money.fraction.digits"],
            includes_unknown=self["include.unknown.datatypes"],
        )

    @property
    def types(self) -> PostgresTypes:
        """The representation of columns."""
        return PostgresTypes(self.modes)

    def describes_type(self, schema: str, table: str, column: str, type_name: str) -> bool:
        """Return whether a column's schema has parameters that describe its database type."""
        columns, types = _described_types(self)
        table = f"{schema}.{table}"
        return columns.matches(f"{table}.{column}") or types.matches(f"{table}.{type_name}")


def _described_types(settings: PostgresSettings) -> tuple[Patterns, Patterns]:
    cache: dict[str, tuple[Patterns, Patterns]] = settings.__dict__.setdefault("_patterns", {})
    name = "propagate.source.type"
    if name not in cache:
        cache[name] = Patterns(settings[f"column.{name}"]), Patterns(settings[f"datatype.{name}"])
    return cache[name]
