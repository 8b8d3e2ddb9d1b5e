"""The sink of Delta Lake, and its tables through `deltalake` (delta-rs): no JVM, the same on either
engine.

Offsets are Delta's own application transactions, one per connector and partition of a topic: a
commit that comes second with the same one is refused by the log itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    SchemaMismatchError,
    TableNotFoundError,
)

from barnabas.connect.allowed_paths import local_paths
from barnabas.connect.config.definition import NO_DEFAULT, ConfigType, Importance, group
from barnabas.connect.config.values import with_prefix
from barnabas.connect.connectors.base import Settings, TaskContext, TopicPartition
from barnabas.connect.connectors.lake.settings import LakeSettings, definition
from barnabas.connect.connectors.lake.sink import Change, LakeSink, Offsets, Tables, is_refused
from barnabas.schemas.data.errors import ConnectError, RetriableError

_NEW, _OLD = "n", "o"
_DELETED = "__barnabas_deleted"
_TRIES_MAX = 15


class DeltaSink(LakeSink):
    """Topics to tables of Delta Lake."""

    prefix = "delta"
    definition = definition(
        prefix,
        group(
            "Delta",
            (
                *("delta.location", ConfigType.STRING, NO_DEFAULT, Importance.HIGH),
                "The directory or bucket above the tables: /data/lake, s3://bucket/lake.",
            ),
        ),
    )

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the location, where it is a directory."""
        return {"delta.location": local_paths(settings.get("delta.location", ""))}

    def tables(
        self, context: TaskContext, values: Mapping[str, Any], settings: LakeSettings
    ) -> Tables:
        """Return the tables below the location."""
        options = with_prefix(context.settings, "delta.storage.")
        return DeltaTables(context.connector, values["delta.location"], options, settings)


class DeltaTables(Tables):
    """Tables below one location: `sales.orders` is `<location>/sales/orders`."""

    def __init__(
        self, connector: str, location: str, options: Mapping[str, str], settings: LakeSettings
    ) -> None:
        self._connector = connector
        self._location = location.rstrip("/")
        self._options = dict(options)
        self._settings = settings

    def offsets(self, table: str, partitions: Sequence[TopicPartition]) -> Offsets:
        """Ask the table's log."""
        delta_table = self._open(table)
        return {} if delta_table is None else self._stored(delta_table, partitions)

    def _stored(self, table: DeltaTable, partitions: Iterable[TopicPartition]) -> Offsets:
        versions = {place: table.transaction_version(self._app(place)) for place in partitions}
        return {place: version for place, version in versions.items() if version is not None}

    def commit(self, change: Change) -> None:
        """Append, or merge by ids."""
        table = self._open(change.table) or self._created(change)
        # From here on the log itself refuses commits with one of our transactions.
        change.check(self._stored(table, change.offsets))
        properties = CommitProperties(
            app_transactions=[
                Transaction(self._app(place), offset) for place, offset in change.offsets.items()
            ],
            max_commit_retries=_TRIES_MAX,
        )
        try:
            if change.ids:
                self._merge(table, change, properties)
            else:
                is_evolved = self._settings.is_evolved
                write_deltalake(
                    table,
                    change.rows if is_evolved else _with_columns_of(table, change.rows),
                    mode="append",
                    schema_mode="merge" if is_evolved else None,
                    commit_properties=properties,
                )
        except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
            raise self._failed(change.table, error) from error

    def _merge(self, table: DeltaTable, change: Change, properties: CommitProperties) -> None:
        rows = change.rows.append_column(_DELETED, pa.array([False] * len(change.rows), pa.bool_()))
        gone = change.deleted.append_column(
            _DELETED, pa.array([True] * len(change.deleted), pa.bool_())
        )
        source = pa.concat_tables([rows, gone], promote_options="permissive")
        same = " AND ".join(f"{_OLD}.`{name}` = {_NEW}.`{name}`" for name in change.ids)
        known = {field.name for field in table.schema().fields}
        names = [
            name for name in change.rows.column_names if self._settings.is_evolved or name in known
        ]
        values = {f"`{name}`": f"{_NEW}.`{name}`" for name in names}
        (
            table.merge(
                source,
                same,
                source_alias=_NEW,
                target_alias=_OLD,
                merge_schema=self._settings.is_evolved,
                commit_properties=properties,
            )
            .when_matched_delete(f"{_NEW}.{_DELETED}")
            .when_matched_update(values)
            .when_not_matched_insert(values, f"NOT {_NEW}.{_DELETED}")
            .execute()
        )

    def _open(self, table: str) -> DeltaTable | None:
        try:
            return DeltaTable(self._uri(table), storage_options=self._options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError, ValueError) as error:
            raise self._failed(table, error) from error

    def _created(self, change: Change) -> DeltaTable:
        if not self._settings.is_created:
            raise ConnectError(
                f"table {change.table} is not at {self._uri(change.table)}, and "
                "delta.tables.auto-create-enabled is false"
            )
        schema = change.rows.schema
        if self._settings.is_optional:
            schema = pa.schema([column.with_nullable(True) for column in schema])
        try:
            return DeltaTable.create(
                self._uri(change.table),
                schema,
                mode="ignore",
                partition_by=list(change.settings.partition_by) or None,
                storage_options=self._options,
            )
        except (DeltaError, OSError, ValueError) as error:
            raise self._failed(change.table, error) from error

    def _uri(self, table: str) -> str:
        return f"{self._location}/{table.replace('.', '/')}"

    def _app(self, place: TopicPartition) -> str:
        return f"barnabas-connect/{self._connector}/{place[0]}-{place[1]}"

    def _failed(self, table: str, error: Exception) -> ConnectError:
        text = f"table {table}: {error}"
        for secret in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            if self._options.get(secret):
                text = text.replace(self._options[secret], "[hidden]")
        is_lasting = isinstance(error, (SchemaMismatchError, ValueError, pa.ArrowException))
        if is_refused(text):
            return ConnectError(text)
        if isinstance(error, (CommitFailedError, OSError)) and not is_lasting:
            return RetriableError(text)
        return ConnectError(text)


def _with_columns_of(table: DeltaTable, rows: pa.Table) -> pa.Table:
    """Columns that records do not have are null, and others than the table's are left out."""
    columns = {
        field.name: rows[field.name]
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in pa.schema(table.schema().to_arrow())
    }
    return pa.table(columns)
