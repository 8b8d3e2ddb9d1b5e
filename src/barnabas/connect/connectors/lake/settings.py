"""The settings of lakes' sinks, as Iceberg's own connector names them below its prefix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    group,
)
from barnabas.connect.config.values import with_prefix
from barnabas.schemas.data.errors import ConfigError

_T = ConfigType
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
COMMIT_INTERVAL_MS: Final = 300_000
_COLUMNS: Final = re.compile(r",(?![^()]*\))")
"""Commas that are not within a partition transform: `bucket(id, 4), day(ts)`."""


def definition(prefix: str, more: tuple[Setting, ...] = ()) -> Definition:
    """Return the settings of a sink whose names begin with `prefix`."""
    tables = f"{prefix}.tables"
    return Definition((
        *group("Tables",
            (tables, _T.LIST, "", _HIGH, "The tables that records go to."),
            (f"{tables}.dynamic-enabled", _T.BOOLEAN, False, _MEDIUM,
             "Use the value of the route field as the table's name."),
            (f"{tables}.route-field", _T.STRING, None, _MEDIUM,
             "The field that says which tables a record goes to; may have dots."),
            (f"{tables}.default-id-columns", _T.LIST, "", _MEDIUM,
             "Columns that identify a row, for upserts and deletes."),
            (f"{tables}.default-partition-by", _T.STRING, "", _MEDIUM,
             "Partitioning of new tables."),
            (f"{tables}.auto-create-enabled", _T.BOOLEAN, False, _MEDIUM, "Create missing tables."),
            (f"{tables}.evolve-schema-enabled", _T.BOOLEAN, False, _MEDIUM,
             "Add, widen and relax columns as records require."),
            (f"{tables}.schema-force-optional", _T.BOOLEAN, False, _MEDIUM,
             "Make all columns of new tables optional."),
            (f"{tables}.upsert-mode-enabled", _T.BOOLEAN, False, _MEDIUM,
             "Replace the row with the record's id."),
            (f"{tables}.cdc-field", _T.STRING, None, _MEDIUM,
             "Its value deletes a row where it begins with D or is true, else replaces it."),
        ),
        *group("Commits",
            (f"{prefix}.control.commit.interval-ms", _T.LONG, COMMIT_INTERVAL_MS, _MEDIUM,
             "Interval between commits.", validators.at_least(0)),
        ),
        *more,
    ))  # fmt: skip


@dataclass(slots=True, frozen=True)
class TableSettings:
    """The settings of one table."""

    id_columns: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    route: re.Pattern[str] | None = None
    branch: str | None = None
    """The branch of Iceberg's that commits go to; None is the main one."""


@dataclass(slots=True, frozen=True)
class LakeSettings:
    """A sink's behaviour, from its settings. Picklable."""

    tables: tuple[str, ...]
    is_dynamic: bool
    route_field: str | None
    is_created: bool
    is_evolved: bool
    is_optional: bool
    is_upserted: bool
    operation_field: str | None
    interval_ms: int
    default: TableSettings
    own: Mapping[str, TableSettings] = field(default_factory=dict)

    @staticmethod
    def of(prefix: str, values: Mapping[str, Any], given: Mapping[str, str]) -> LakeSettings:
        """Take them from parsed settings and from all that were given. Raises ConfigError."""
        tables = f"{prefix}.tables"
        made = LakeSettings(
            tables=tuple(values[tables]),
            is_dynamic=bool(values[f"{tables}.dynamic-enabled"]),
            route_field=values[f"{tables}.route-field"] or None,
            is_created=bool(values[f"{tables}.auto-create-enabled"]),
            is_evolved=bool(values[f"{tables}.evolve-schema-enabled"]),
            is_optional=bool(values[f"{tables}.schema-force-optional"]),
            is_upserted=bool(values[f"{tables}.upsert-mode-enabled"]),
            operation_field=values[f"{tables}.cdc-field"] or None,
            interval_ms=int(values[f"{prefix}.control.commit.interval-ms"]),
            default=TableSettings(
                tuple(values[f"{tables}.default-id-columns"]),
                columns(str(values[f"{tables}.default-partition-by"] or "")),
                branch=values.get(f"{tables}.default-commit-branch"),
            ),
            own=_own(f"{prefix}.table.", given),
        )
        made.check(prefix)
        return made

    def check(self, prefix: str) -> None:
        """Raise ConfigError for what does not go together."""
        tables = f"{prefix}.tables"
        if self.is_dynamic and self.route_field is None:
            raise ConfigError(f"Must specify {tables}.route-field with {tables}.dynamic-enabled")
        if not self.is_dynamic and not self.tables:
            raise ConfigError(f"Must specify {tables} unless {tables}.dynamic-enabled is true")
        if self.has_ids and not self.is_dynamic:
            for table in self.tables:
                if not self.of_table(table).id_columns:
                    raise ConfigError(
                        f"Upserts need {tables}.default-id-columns or "
                        f"{prefix}.table.{table}.id-columns"
                    )

    @property
    def has_ids(self) -> bool:
        """True if records replace and delete rows."""
        return self.is_upserted or self.operation_field is not None

    def of_table(self, table: str) -> TableSettings:
        """Return what holds for a table."""
        own = self.own.get(table, _NOTHING)
        return TableSettings(
            own.id_columns or self.default.id_columns,
            own.partition_by or self.default.partition_by,
            own.route,
            own.branch or self.default.branch,
        )


_NOTHING: Final = TableSettings()


def columns(text: str) -> tuple[str, ...]:
    """Return the parts of a list of columns and of functions of columns."""
    return tuple(part.strip() for part in _COLUMNS.split(text) if part.strip())


def _own(prefix: str, given: Mapping[str, str]) -> dict[str, TableSettings]:
    parts: dict[str, dict[str, str]] = {}
    for name, value in with_prefix(given, prefix).items():
        table, dot, what = name.rpartition(".")
        if dot:
            parts.setdefault(table, {})[what] = value
    made = {}
    for table, own in parts.items():
        try:
            route = re.compile(own["route-regex"]) if "route-regex" in own else None
        except re.error as error:
            raise ConfigError(f"{prefix}{table}.route-regex: {error}") from None
        ids, by = columns(own.get("id-columns", "")), columns(own.get("partition-by", ""))
        made[table] = TableSettings(ids, by, route, own.get("commit-branch"))
    return made
