"""The connector's settings, beyond those that all databases share.

Some of Debezium's settings would have no effect here, and are refused for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from barnabas.connect.cdc.settings import (
    SELECT_OVERRIDES,
    SIGNAL_CONSUMER,
    CaptureSettings,
    Patterns,
)
from barnabas.connect.config.common import TRANSFORMS
from barnabas.connect.config.definition import Unsupported, refuse
from barnabas.connect.connectors.postgres.definition import DEFINITION
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
