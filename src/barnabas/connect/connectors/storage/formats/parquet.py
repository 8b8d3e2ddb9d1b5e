"""Parquet files, through Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, BinaryIO, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.connectors.storage.formats.arrow import arrow_schema, connect_struct
from barnabas.connect.connectors.storage.formats.base import (
    FileFormat,
    FileOutput,
    FileWriter,
    maker,
)
from barnabas.connect.connectors.storage.formats.plain import Plain, plain
from barnabas.schemas.data.errors import ConnectError, DataError
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
    kind = _KINDS.get(schema.type) if schema.name not in _LOGICAL else None
    if kind is None:
        return ()
    return (kind, NoneType) if schema.optional or schema.default is not None else kind


_LOGICAL: Final = (DATE, DECIMAL, TIME, TIMESTAMP)
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
