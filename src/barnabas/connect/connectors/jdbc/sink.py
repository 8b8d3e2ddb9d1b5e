"""Writes records to tables, each batch in one transaction; makes and widens tables on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import groupby
from typing import Any, Final

from barnabas.connect.connectors.base import SinkRange, SinkWriter
from barnabas.connect.connectors.jdbc.definition import SINK
from barnabas.connect.connectors.jdbc.dialects import (
    DRIVER_ERRORS,
    VARIABLE_DECIMAL,
    ColumnSpec,
    dialect_of,
)
from barnabas.connect.record import SinkRecord
from barnabas.connect.transforms.debezium.envelope import AFTER, OPERATION, is_envelope, typed
from barnabas.schemas.data.builder import INT32, INT64, STRING
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct, Type

# Events of change capture as the sink accepts them: rows, deletes, truncations, decimals.
#
# So no transform is needed between change capture and the sink. `ExtractNewRecordState` drops
# truncations: leave it out to keep them.

TRUNCATE: Final = "t"
_WIDE: Final = Context(prec=20_000)


def is_truncation(record: SinkRecord) -> bool:
    """Return whether the record says that all of its table's rows are gone."""
    return (
        record.value is not None
        and is_envelope(record)
        and typed(record.value, OPERATION, Type.STRING) == TRUNCATE
    )


def unwrapped(record: SinkRecord) -> SinkRecord:
    """Return the record with the row after the change, none for a delete, in the envelope's place.

    Raises DataError for an envelope without `op` or `after`.
    """
    if record.value is None or not is_envelope(record):
        return record
    row = typed(record.value, AFTER, Type.STRUCT)
    return record.with_value(None if row is None else row.schema, row)


def plain(schema: Schema, value: Any) -> Any:
    """Return a decimal for Debezium's struct of one, and other values as they are."""
    if schema.name != VARIABLE_DECIMAL:
        return value
    unscaled = int.from_bytes(value.get("value"), "big", signed=True)
    return Decimal(unscaled).scaleb(-value.get("scale"), _WIDE)


# The source of a sink's rows: the place of each column's value in structs of one schema.

Bind = Callable[[Schema, Any], Any]
"""Makes what the driver takes of a value."""
_BOUND: Final = frozenset((DATE, DECIMAL, TIME, TIMESTAMP, VARIABLE_DECIMAL))
"""Names of schemas whose values drivers may take in another form; the others are as they are."""


class ColumnValues:
    """Takes the values of columns out of structs, or the only column's of a plain value."""

    def __init__(self, specs: Sequence[ColumnSpec], bind: Bind, *, replaces_null: bool) -> None:
        self._specs = specs
        self._bind = bind
        self._replaces_null = replaces_null
        self._schema: Schema | None = None
        self._parts: list[tuple[int, Any, ColumnSpec | None]] = []

    def of(self, source: Any) -> tuple[Any, ...]:
        """Return them, in the columns' order. Raises DataError where a struct has no such field."""
        if not isinstance(source, Struct):
            return tuple([self._bound(spec, source) for spec in self._specs])
        if source.schema is not self._schema:  # that of the record before, mostly
            self._schema = source.schema
            self._parts = [self._part(spec, source.schema) for spec in self._specs]
        values = source.values
        return tuple(
            [
                (default if (value := values[index]) is None else value)
                if spec is None
                else self._bound(spec, default if (value := values[index]) is None else value)
                for index, default, spec in self._parts
            ]
        )

    def _part(self, spec: ColumnSpec, schema: Schema) -> tuple[int, Any, ColumnSpec | None]:
        field = schema.field(spec.name)
        if field is None:
            raise DataError(f"{spec.name} is not a valid field name")
        default = field.schema.default if self._replaces_null else None
        return field.index, default, spec if spec.schema.name in _BOUND else None

    def _bound(self, spec: ColumnSpec, value: Any) -> Any:
        return None if value is None else self._bind(spec.schema, plain(spec.schema, value))


KAFKA_KEY: Final = {
    "__connect_topic": STRING,
    "__connect_partition": INT32,
    "__connect_offset": INT64,
}
TRIES_TO_MAKE: Final = 2
"""Another task may make the same table or column: what is there is looked at once more."""


@dataclass(slots=True, frozen=True)
class Shape:
    """Which columns records of one schema have, keys first."""

    table: str
    specs: tuple[ColumnSpec, ...]

    @property
    def keys(self) -> list[str]:
        return [spec.name for spec in self.specs if spec.is_key]

    @property
    def others(self) -> list[str]:
        return [spec.name for spec in self.specs if not spec.is_key]


class JdbcSinkWriter(SinkWriter):
    """Writes for one task."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = SINK.parse(settings)
        self._mode = self._settings["insert.mode"].lower()
        self._pk_mode = self._settings["pk.mode"].lower()
        self._pk_fields: list[str] = self._settings["pk.fields"]
        self._replaces_null: bool = self._settings["replace.null.with.default"]
        check(self._settings)
        self._dialect = dialect_of(self._settings)

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> int:
        count = 0
        with contextlib.closing(self._dialect.connect()) as connection:
            try:
                for batch in _batches(records, self._settings["batch.size"]):
                    self._write(connection, batch)
                    connection.commit()
                    count += len(batch)
            except DRIVER_ERRORS as error:
                raise self._dialect.error(error) from error
        return count

    def _write(self, connection: Any, batch: Sequence[SinkRecord]) -> None:
        """Rows and truncations in the records' order."""
        for empties, records in groupby(batch, is_truncation):
            if not empties:
                self._write_rows(connection, [unwrapped(record) for record in records])
            elif self._settings["truncate.enabled"]:
                for topic in {record.topic for record in records}:
                    self._empty(connection, self._table(topic))

    def _empty(self, connection: Any, table: str) -> None:
        if self._dialect.columns(connection, table) is not None:
            connection.execute(self._dialect.truncate(table))

    def _write_rows(self, connection: Any, rest: list[SinkRecord]) -> None:
        """Records of one schema after another: tables follow schemas in the records' order."""
        while rest:
            like, same = rest[0], 1
            while same < len(rest) and _is_alike(like, rest[same]):
                like = rest[same] if like.value is None else like
                same += 1
            self._write_alike(connection, rest[:same])
            rest = rest[same:]

    def _write_alike(self, connection: Any, records: Sequence[SinkRecord]) -> None:
        values = [record for record in records if record.value is not None]
        if len(values) < len(records) and not self._settings["delete.enabled"]:
            record = next(record for record in records if record.value is None)
            raise ConnectError(
                f"Sink connector is configured with 'delete.enabled=false' and therefore requires "
                f"records with a non-null Struct value, but found record at (topic='{record.topic}'"
                f",partition={record.partition},offset={record.offset}) with a null value"
            )
        shape = self._shape(values[0] if values else records[0])
        known = self._prepared(connection, shape, is_deleting=not values)
        if known is None:
            return  # deletes from a table that is not there
        key_of = self._keys(shape)
        others_of = self._columns(spec for spec in shape.specs if not spec.is_key).of
        if self._mode == "insert" and len(values) == len(records):
            made = [(*key_of(one), *others_of(one.value)) for one in values]
            self._insert(connection, shape, made, "")
            return
        final: dict[Any, SinkRecord] = {}
        for record in records:
            key = key_of(record)
            final.pop(key, None)
            final[key] = record
        deleted = [key for key, record in final.items() if record.value is None]
        rows = [
            (*key, *others_of(record.value))
            for key, record in final.items()
            if record.value is not None
        ]
        if deleted:
            statement = self._dialect.delete(shape.table, shape.keys)
            self._dialect.run_many(connection, statement, deleted)
        if self._mode == "update" and shape.others:
            count = len(shape.keys)
            statement = self._dialect.update(shape.table, shape.keys, shape.others)
            turned = [(*row[count:], *row[:count]) for row in rows]
            self._dialect.run_many(connection, statement, turned)
        elif rows:
            end = ""
            if self._mode == "upsert":
                end = self._dialect.on_conflict(shape.keys, shape.others)
            self._insert(connection, shape, rows, end)

    def _insert(self, connection: Any, shape: Shape, rows: Sequence[Any], end: str) -> None:
        columns = [*shape.keys, *shape.others]
        self._dialect.insert_many(connection, shape.table, columns, end, rows)

    # The shape of records.

    def _shape(self, record: SinkRecord) -> Shape:
        keys = self._key_specs(record)
        taken = {spec.name for spec in keys}
        others = []
        if record.value is not None:
            schema = record.value_schema
            if schema is None or schema.type is not Type.STRUCT:
                raise ConnectError(
                    f"Sink connector requires records with a Struct value and schema: topic "
                    f"{record.topic} has others; use a converter with schemas"
                )
            wanted = self._settings["fields.whitelist"]
            others = [
                ColumnSpec(field.name, field.schema)
                for field in schema.fields
                if field.name not in taken and (not wanted or field.name in wanted)
            ]
        return Shape(self._table(record.topic), (*keys, *others))

    def _table(self, topic: str) -> str:
        return str(self._settings["table.name.format"]).replace("${topic}", topic)

    def _key_specs(self, record: SinkRecord) -> list[ColumnSpec]:
        if self._pk_mode == "none":
            return []
        if self._pk_mode == "kafka":
            names = self._pk_fields or list(KAFKA_KEY)
            return [
                ColumnSpec(name, schema, is_key=True)
                for name, schema in zip(names, KAFKA_KEY.values(), strict=True)
            ]
        is_key = self._pk_mode == "record_key"
        schema = record.key_schema if is_key else record.value_schema
        part = "key" if is_key else "value"
        if schema is None:
            raise ConnectError(
                f"PK mode for table '{self._table(record.topic)}' is {self._pk_mode.upper()}, but"
                f" record {part} schema is missing: topic {record.topic} needs keys with a schema,"
                " which change capture gives to tables with a primary key or message.key.columns"
            )
        if schema.type is not Type.STRUCT:
            if len(self._pk_fields) != 1:
                raise ConnectError("A primitive record key needs exactly one name in pk.fields")
            return [ColumnSpec(self._pk_fields[0], schema, is_key=True)]
        fields = {field.name: field.schema for field in schema.fields}
        names = self._pk_fields or list(fields)
        if missing := [name for name in names if name not in fields]:
            raise ConnectError(f"pk.fields: the record {part} has no field {', '.join(missing)}")
        return [ColumnSpec(name, fields[name], is_key=True) for name in names]

    def _keys(self, shape: Shape) -> Callable[[SinkRecord], tuple[Any, ...]]:
        if self._pk_mode == "kafka":
            return lambda record: (
                record.original_topic,
                record.original_partition,
                record.original_offset,
            )
        columns = self._columns(spec for spec in shape.specs if spec.is_key)
        if self._pk_mode == "record_key":
            return lambda record: columns.of(record.key)
        return lambda record: columns.of(record.value)

    def _columns(self, specs: Iterable[ColumnSpec]) -> ColumnValues:
        return ColumnValues(tuple(specs), self._dialect.bind, replaces_null=self._replaces_null)

    # The shape of tables.

    def _prepared(
        self, connection: Any, shape: Shape, *, is_deleting: bool
    ) -> dict[str, bool] | None:
        """Make the table, or add its columns, where that is allowed. Raises ConnectError."""
        for _ in range(TRIES_TO_MAKE):
            columns = self._dialect.columns(connection, shape.table)
            if columns is None and is_deleting:
                return None
            statements = self._missing(shape, columns)
            if not statements:
                return columns
            connection.commit()
            try:
                for statement in statements:
                    connection.execute(statement)
                connection.commit()
            except DRIVER_ERRORS as error:
                connection.rollback()
                last = error
                continue
            return self._dialect.columns(connection, shape.table)
        raise self._dialect.error(last) from last

    def _missing(self, shape: Shape, columns: Mapping[str, bool] | None) -> list[str]:
        if columns is None:
            if not self._settings["auto.create"]:
                raise ConnectError(
                    f"Table {self._dialect.table(shape.table)} is missing and auto-creation is "
                    "disabled"
                )
            return [self._dialect.create(shape.table, shape.specs)]
        table = self._dialect.table(shape.table)
        missing = [spec for spec in shape.specs if spec.name not in columns]
        for spec in missing:
            if not spec.schema.optional and spec.schema.default is None:
                raise ConnectError(
                    f"Cannot ALTER TABLE {self._dialect.table(shape.table)} to add missing field "
                    f"{spec.name}, as the field is not optional and does not have a default value"
                )
        if missing and not self._settings["auto.evolve"]:
            raise ConnectError(
                f"Table {self._dialect.table(shape.table)} is missing fields "
                f"({', '.join(spec.name for spec in missing)}) and auto-evolution is disabled"
            )
        return [f"ALTER TABLE {table} ADD COLUMN {self._dialect.column(spec)}" for spec in missing]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_dialect"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._dialect = dialect_of(self._settings)


def check(settings: Mapping[str, Any]) -> None:
    """Raises ConfigError for what does not go together."""
    mode, pk_mode = settings["insert.mode"].lower(), settings["pk.mode"].lower()
    if mode in ("upsert", "update") and pk_mode == "none":
        raise ConfigError(
            f"Primary key mode must be set to one of kafka, record_key, record_value when "
            f"insert.mode is '{mode}'"
        )
    if settings["delete.enabled"] and pk_mode != "record_key":
        raise ConfigError("Primary key mode must be 'record_key' when delete support is enabled")
    if pk_mode == "kafka" and len(settings["pk.fields"]) not in (0, len(KAFKA_KEY)):
        raise ConfigError("pk.fields has three names, or none, when pk.mode is 'kafka'")


def _batches(records: Iterator[SinkRecord], size: int) -> Iterator[list[SinkRecord]]:
    batch: list[SinkRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _is_alike(one: SinkRecord, other: SinkRecord) -> bool:
    """Return whether two records go to the same columns; a tombstone goes with any."""
    return (
        one.topic == other.topic
        and _same(one.key_schema, other.key_schema)
        and (
            one.value is None or other.value is None or _same(one.value_schema, other.value_schema)
        )
    )


def _same(one: Schema | None, other: Schema | None) -> bool:
    return one is other or one == other
