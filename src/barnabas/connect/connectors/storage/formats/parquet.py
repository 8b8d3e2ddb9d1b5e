"""Parquet files, through Arrow; and Connect's schemas as Arrow's, also for tables of lakes."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, BinaryIO, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.connectors.storage.formats.avro_schema import decimal_precision
from barnabas.connect.connectors.storage.formats.base import (
    FileFormat,
    FileOutput,
    FileWriter,
    Plain,
    maker,
    part,
    plain,
)
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConnectError, DataError
from barnabas.schemas.data.logical import decimal_scale
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
)

ROWS_PER_GROUP: Final = 65_536
_CHUNK_ROWS: Final = 2048
CODECS: Final = ("none", "gzip", "snappy", "lz4", "brotli", "zstd")
_EXTENSIONS: Final = {
    "none": "",
    "gzip": ".gz",
    "snappy": ".snappy",
    "lz4": ".lz4",
    "brotli": ".br",
    "zstd": ".zstd",
}
_DECIMAL128_DIGITS: Final = 38
_PRIMITIVES: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


class ParquetFormat(FileFormat):
    """Files of columns. The codec shows in their names: `.snappy.parquet`."""

    wraps_keys: ClassVar[bool] = True
    wraps_headers: ClassVar[bool] = True

    def __init__(self, codec: str = "snappy") -> None:
        self._codec = codec

    @property
    def extension(self) -> str:
        """`.parquet` behind what the codec adds."""
        return f"{_EXTENSIONS[self._codec]}.parquet"

    def open(self, output: FileOutput, schema: Schema | None) -> FileWriter:
        """Begin a file."""
        if schema is None:
            raise DataError("Parquet files need records with schemas; these have none")
        return _ParquetFile(output, schema, self._codec)

    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield the records; `source` must be one that can seek."""
        try:
            file = pq.ParquetFile(source)
            schema = connect_struct(file.schema_arrow)
            make = maker(schema)
            for batch in file.iter_batches(_CHUNK_ROWS):
                for row in batch.to_pylist():
                    yield schema, make(row)
        except ConnectError:
            raise
        except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
            # Of damage Arrow speaks as an OSError, too; stores' own errors are not OSErrors.
            raise DataError(f"The file is not Parquet, or is damaged: {error}") from error


class ArrowColumns:
    """Collects values of a struct's schema as batches of Arrow."""

    def __init__(self, schema: Schema) -> None:
        self.schema = arrow_schema(schema)
        self._names = [field.name for field in schema.fields]
        self._plain: list[Plain | None] = [
            plain(field.schema, maps_as_pairs=True) for field in schema.fields
        ]
        self._kinds = tuple(_kind(field.schema) for field in schema.fields)
        self._rows: list[list[Any]] = []
        self._checked: list[Any] = []
        self.count = 0

    def add(self, value: Any) -> None:
        """Add a struct. Raises DataError for one that does not fit."""
        if not isinstance(value, Struct):
            raise DataError("A struct was expected: Parquet stores nothing else")
        values = value.values
        # A row that is refused must be refused here: a chunk cannot say which of its rows it was.
        if len(values) != len(self._kinds) or not all(map(isinstance, values, self._kinds)):
            value.validate()
        self._rows.append(values)
        self.count += 1
        if len(self._rows) >= _CHUNK_ROWS:
            self._convert()

    def take(self) -> Any:
        """Return everything added so far as a table, and start again. Raises ConnectError."""
        self._convert()
        table = pa.Table.from_batches(self._checked, self.schema)
        self._checked = []
        self.count = 0
        return table

    def _convert(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        try:
            arrays = [
                pa.array(
                    list(column) if change is None else [change(value) for value in column],
                    field.type,
                )
                for column, change, field in zip(
                    zip(*rows, strict=True), self._plain, self.schema, strict=True
                )
            ]
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            # Which of them it is, is not known: none may be taken for it and left out.
            raise ConnectError(f"Records do not fit their schema in Parquet: {error}") from error
        self._checked.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


def _kind(schema: Schema) -> type | tuple[type, ...]:
    """The class that a value is of where it surely fits; none where that takes a closer look."""
    kind = _KINDS.get(schema.type) if schema.name not in _LOGICAL_NAMES else None
    if kind is None:
        return ()
    return (kind, NoneType) if schema.optional or schema.default is not None else kind


_LOGICAL_NAMES: Final = (DATE, DECIMAL, TIME, TIMESTAMP)
_KINDS: Final[dict[Type, type]] = {
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
}


class _ParquetFile(FileWriter):
    def __init__(self, output: FileOutput, schema: Schema, codec: str) -> None:
        self._columns = ArrowColumns(schema)
        self._output = output
        self._writer: Any = pq.ParquetWriter(
            pa.PythonFile(_Kept(output), mode="w"),
            self._columns.schema,
            compression=codec,
        )

    def write(self, value: Any) -> None:
        self._columns.add(value)
        if self._columns.count >= ROWS_PER_GROUP:
            self._writer.write_table(self._columns.take())

    def finish(self) -> None:
        if self._columns.count:
            self._writer.write_table(self._columns.take())
        self._writer.close()

    def discard(self) -> None:
        # Its footer goes to an output that is thrown away.
        self._writer.close()


class _Kept:
    """An output as Arrow wants files to be. Arrow's close does not close it."""

    closed = False

    def __init__(self, output: FileOutput) -> None:
        self._output = output
        self._position = 0

    def write(self, data: Any) -> int:
        self._position += self._output.write(memoryview(data))
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def arrow_type(schema: Schema) -> Any:
    """Return the type of a schema's values. Raises DataError."""
    refuse_recursion(schema, "Parquet")
    match schema.type:
        case Type.STRUCT:
            if not schema.fields:
                raise DataError("A struct without fields has no counterpart in Parquet")
            return pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
        case Type.ARRAY:
            return pa.list_(arrow_field("element", part(schema.value_schema)))
        case Type.MAP:
            keys = arrow_field("key", builder.required(part(schema.key_schema)))
            return pa.map_(keys, arrow_field("value", part(schema.value_schema)))
    if schema.name == DECIMAL:
        digits = min(decimal_precision(schema), _DECIMAL128_DIGITS)
        return pa.decimal128(digits, decimal_scale(schema))
    return _LOGICAL.get(schema.name or "", _PRIMITIVES[schema.type])


def arrow_field(name: str, schema: Schema) -> Any:
    """Return a named column of a schema's values. Raises DataError."""
    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def arrow_schema(schema: Schema) -> Any:
    """Return the columns of a struct's schema. Raises DataError."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Parquet stores structs only, not {schema.type.name}")
    arrow_type(schema)
    return pa.schema([arrow_field(field.name, field.schema) for field in schema.fields])


def connect_of(type_: Any, *, optional: bool = False) -> Schema:
    """Return Arrow's type as Connect's schema. Raises DataError."""
    made = _connect(type_)
    return builder.optional(made) if optional else made


def connect_struct(columns: Any) -> Schema:
    """Return Arrow's columns as the schema of a struct. Raises DataError."""
    return builder.struct_of(
        [(one.name, connect_of(one.type, optional=one.nullable)) for one in columns]
    )


def _connect(type_: Any) -> Schema:
    types = pa.types
    if types.is_struct(type_):
        return connect_struct([type_.field(i) for i in range(type_.num_fields)])
    if types.is_list(type_) or types.is_large_list(type_):
        return builder.array_of(connect_of(type_.value_type, optional=type_.value_field.nullable))
    if types.is_map(type_):
        values = connect_of(type_.item_type, optional=type_.item_field.nullable)
        return builder.map_of(connect_of(type_.key_type), values)
    if types.is_dictionary(type_):
        return _connect(type_.value_type)
    if types.is_decimal(type_):
        return builder.decimal(type_.scale)
    if types.is_date(type_):
        return builder.DATE_SCHEMA
    if types.is_time(type_):
        return builder.TIME_SCHEMA
    if types.is_timestamp(type_):
        return builder.TIMESTAMP_SCHEMA
    schema = _BY_ARROW.get(str(type_))
    if schema is None:
        raise DataError(f"Arrow's type {type_} has no counterpart in Connect")
    return schema


_LOGICAL: Final = {
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    TIMESTAMP: pa.timestamp("ms", tz="UTC"),
}
_BY_ARROW: Final = {
    "int8": builder.INT8,
    "int16": builder.INT16,
    "int32": builder.INT32,
    "int64": builder.INT64,
    "uint8": builder.INT16,
    "uint16": builder.INT32,
    "uint32": builder.INT64,
    "uint64": builder.INT64,
    "halffloat": builder.FLOAT32,
    "float": builder.FLOAT32,
    "double": builder.FLOAT64,
    "bool": builder.BOOLEAN,
    "string": builder.STRING,
    "large_string": builder.STRING,
    "binary": builder.BYTES,
    "large_binary": builder.BYTES,
}
