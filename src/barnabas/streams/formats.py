"""Formats of keys and values in topics: `json(…)`, `avro(…)`, `string()`, `binary()`.

A format is a description. `bind` joins it to a topic, once per start of a query; what comes of it
makes Spark expressions that decode and encode, and reads and writes single values in Python for the
test kit.
"""

from __future__ import annotations

import dataclasses
import json as json_text
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.streams.ddl import columns_of
from barnabas.streams.errors import PipelineError
from barnabas.streams.schemas import SchemaLike, ddl_of, struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column
    from pyspark.sql.types import StructType

SCALAR_COLUMN = "value"
"""The column of values that are not rows: strings and bytes."""


class Schemas(Protocol):
    """The schema registry, as far as formats ask it: the client, or one in memory."""

    def version_ids(self, subject: str) -> list[int]:
        """The ids of a subject's versions, ascending."""

    def resolved_avro(self, schema_id: int) -> str | None:
        """The text of an Avro schema by its id."""

    def resolved_avro_of(self, subject: str) -> dict[int, str]:
        """A subject's Avro schemas by id."""

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """Register a schema, or find it; returns its id."""


@dataclass(frozen=True)
class Binding:
    """The context of a format. `subject` is `<topic>-value` or `<topic>-key`.

    `pinned(name, make)` returns what `make` did at the pipeline's first start: state that Spark
    keeps has been written with it.
    """

    subject: str
    schemas: Schemas | None
    learned: Mapping[int, str | None]
    pinned: Callable[[str, Callable[[], str]], str]

    def registry(self) -> Schemas:
        """Return the registry. Raises PipelineError if none exists."""
        if self.schemas is None:
            raise PipelineError(
                f"{self.subject} is in the schema registry: name it with schema_registry_url"
            )
        return self.schemas


class Reader(ABC):
    """Reads the keys or the values of one topic."""

    is_row = True
    """True if what is read is a struct, whose fields become columns."""

    @abstractmethod
    def parsed(self, data: Column) -> Column:
        """Return the decoded `data` (binary) for a separate column."""

    @abstractmethod
    def problem(self, data: Column, parsed: Column) -> Column:
        """Return why `data`, which is not null, cannot be read: a text, null where it can."""

    def content(self, parsed: Column) -> Column:
        """Return the struct or scalar of a good record."""
        return parsed

    @abstractmethod
    def to_bytes(self, value: Any) -> bytes:
        """Return a Python value as it lies in a topic."""


class Writer(ABC):
    """Writes the keys or the values of one topic."""

    @abstractmethod
    def encoded(self, row: Column) -> Column:
        """Return a struct or scalar as binary."""

    @abstractmethod
    def to_python(self, data: bytes) -> Any:
        """Return what lies in a topic as a Python value."""


class Format(ABC):
    """A way to write keys or values."""

    def columns(self) -> tuple[str, ...] | None:
        """The columns of what is read, as far as that is known without Spark and a registry."""
        return None

    @abstractmethod
    def reader(self, binding: Binding) -> Reader:
        """Bind to a topic that is read."""

    @abstractmethod
    def writer(self, binding: Binding, row: StructType | None) -> Writer:
        """Bind to a topic that is written with rows of this type; None where it is not a row."""


@dataclass(frozen=True)
class Json(Format):
    """JSON objects of a schema; without one it can only be written."""

    schema: SchemaLike | None = None

    def __post_init__(self) -> None:
        self.columns()  # which refuses what is not a schema

    def columns(self) -> tuple[str, ...] | None:
        return None if self.schema is None else columns_of(ddl_of(self.schema))

    def reader(self, binding: Binding) -> Reader:
        if self.schema is None:
            raise PipelineError(
                f"{binding.subject}: JSON is read with a schema: json('a STRING, b DOUBLE')"
            )
        return JsonReader(ddl_of(self.schema))

    def writer(self, binding: Binding, row: StructType | None) -> Writer:
        return JsonWriter()


class JsonReader(Reader):
    """Rows from JSON objects."""

    _CORRUPT = "_corrupt"

    def __init__(self, ddl: str) -> None:
        from pyspark.sql.types import StringType, StructType

        self._schema = struct_of(ddl)
        self._parsed = StructType([*self._schema.fields]).add(self._CORRUPT, StringType())

    def parsed(self, data: Column) -> Column:
        from pyspark.sql import functions as f

        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": self._CORRUPT}
        return f.from_json(data.cast("string"), self._parsed, options)

    def problem(self, data: Column, parsed: Column) -> Column:
        from pyspark.sql import functions as f

        # Values that are not an array or object ("null", empty text) give no corrupt record.
        reason = f.when(
            parsed.isNull() | parsed[self._CORRUPT].isNotNull(),
            f.lit(f"not a JSON object of {self._schema.simpleString()}"),
        )
        for field in self._schema.fields:
            if not field.nullable:
                absent = parsed[field.name].isNull()
                reason = reason.when(absent, f.lit(f"the field {field.name} is missing"))
        if all(field.nullable for field in self._schema.fields):
            # An empty text is an object of nulls to Spark.
            reason = reason.when(f.trim(data.cast("string")) == "", f.lit("empty"))
        return reason

    def content(self, parsed: Column) -> Column:
        return parsed.dropFields(self._CORRUPT)

    def to_bytes(self, value: Any) -> bytes:
        return json_bytes(value)


class JsonWriter(Writer):
    """Rows as compact JSON objects, without the columns that are null."""

    def encoded(self, row: Column) -> Column:
        from pyspark.sql import functions as f

        return f.encode(f.to_json(row), "UTF-8")

    def to_python(self, data: bytes) -> Any:
        return json_text.loads(data)


def json_bytes(value: Any) -> bytes:
    """Return a Python value as JSON; bytes are passed as they are, for malformed ones."""
    if isinstance(value, bytes):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json_text.dumps(value, default=_json_scalar, separators=(",", ":")).encode()


def _json_scalar(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} is not JSON")


@dataclass(frozen=True)
class Text(Format):
    """UTF-8 text. Written of numbers, it is their digits; of rows, JSON."""

    def columns(self) -> tuple[str, ...]:
        return (SCALAR_COLUMN,)

    def reader(self, binding: Binding) -> Reader:
        return TextReader()

    def writer(self, binding: Binding, row: StructType | None) -> Writer:
        return TextWriter(is_row=row is not None)


class TextReader(Reader):
    """Strings."""

    is_row = False

    def parsed(self, data: Column) -> Column:
        return data.cast("string")

    def problem(self, data: Column, parsed: Column) -> Column:
        from pyspark.sql import functions as f

        return f.when(~f.is_valid_utf8(parsed), f.lit("not UTF-8"))

    def to_bytes(self, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode()


class TextWriter(Writer):
    """Strings, and everything with a text form."""

    def __init__(self, is_row: bool) -> None:
        self._is_row = is_row

    def encoded(self, row: Column) -> Column:
        from pyspark.sql import functions as f

        return f.encode(f.to_json(row) if self._is_row else row.cast("string"), "UTF-8")

    def to_python(self, data: bytes) -> Any:
        return data.decode()


@dataclass(frozen=True)
class Binary(Format):
    """Bytes as they are."""

    def columns(self) -> tuple[str, ...]:
        return (SCALAR_COLUMN,)

    def reader(self, binding: Binding) -> Reader:
        return BinaryReader()

    def writer(self, binding: Binding, row: StructType | None) -> Writer:
        return BinaryWriter()


class BinaryReader(Reader):
    """Bytes."""

    is_row = False

    def parsed(self, data: Column) -> Column:
        return data

    def problem(self, data: Column, parsed: Column) -> Column:
        from pyspark.sql import functions as f

        return f.lit(None).cast("string")

    def to_bytes(self, value: Any) -> bytes:
        return bytes(value)


class BinaryWriter(Writer):
    """Bytes."""

    def encoded(self, row: Column) -> Column:
        return row.cast("binary")

    def to_python(self, data: bytes) -> Any:
        return data


def json(schema: SchemaLike | None = None) -> Format:
    """JSON objects; `schema` is DDL (`"user STRING, amount DOUBLE"`) or a dataclass."""
    return Json(schema)


def string() -> Format:
    """UTF-8 text, in a column `value`."""
    return Text()


def binary() -> Format:
    """Bytes as they are, in a column `value`."""
    return Binary()


def as_format(schema: SchemaLike | Format) -> Format:
    """Return a format as it is, and a schema as JSON's."""
    return schema if isinstance(schema, Format) else json(schema)
