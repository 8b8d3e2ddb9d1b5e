"""Avro in the schema registry's framing: `avro()`."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from barnabas.schemas.wire_format import PREFIX_BYTES, prefix_of, schema_id_of
from barnabas.streams.errors import PipelineError
from barnabas.streams.formats import Binding, Format, Reader, Schemas, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

_READABLE: Final = "_readable"
"""A field that the reader's schema has in addition, true by default.

Spark makes a row of nulls of a value that it cannot read, and so does a value all of whose fields
are null; only the latter has this field.
"""


def avro(schema: str | None = None) -> Format:
    """Avro in the registry's framing.

    Read: with `schema`, or the subject's latest when the pipeline starts first. Written: with
    `schema`, or one made of the rows' columns; it is registered.
    """
    return Avro(schema)


@dataclass(frozen=True)
class Avro(Format):
    """Avro of a subject in the registry."""

    schema: str | None = None

    def reader(self, binding: Binding) -> Reader:
        registry = binding.registry()
        writers = registry.resolved_avro_of(binding.subject)

        def first() -> str:
            if self.schema is not None:
                return self.schema
            ids = registry.version_ids(binding.subject)
            text = registry.resolved_avro(ids[-1]) if ids else None
            if text is None:
                raise PipelineError(
                    f"the registry has no Avro schema {binding.subject}: register one, "
                    "or give it with avro('{…}')"
                )
            return text

        schema = self.schema or binding.pinned(f"{binding.subject}.avsc", first)
        return AvroReader(schema, {**writers, **binding.learned}, binding.subject, registry)

    def writer(self, binding: Binding, row: StructType | None) -> Writer:
        registry = binding.registry()
        if self.schema is not None:
            schema = self.schema
        elif row is not None:
            schema = json.dumps(avro_schema_of(row, _record_name(binding.subject)))
        else:
            raise PipelineError(
                f"{binding.subject}: a value that is not a row needs a schema: avro('\"string\"')"
            )
        return AvroWriter(schema, registry.register(binding.subject, "AVRO", schema), registry)


class AvroReader(Reader):
    """Rows, or scalars, of Avro."""

    def __init__(
        self, schema: str, writers: Mapping[int, str | None], subject: str, registry: Schemas
    ) -> None:
        declared = json.loads(schema)
        self._schema = schema
        self._writers = writers
        self._subject = subject
        self._registry = registry
        self.is_row = isinstance(declared, dict) and declared.get("type") == "record"
        if self.is_row:
            sign = {"name": _READABLE, "type": "boolean", "default": True}
            declared = {**declared, "fields": [*declared["fields"], sign]}
        self._reader_schema = json.dumps(declared)

    def parsed(self, data: Column) -> Column:
        from pyspark.sql import functions as f

        from barnabas.spark.avro_topic import decoded

        if not self._writers:
            # Nothing has been written yet: the type is known all the same.
            return decoded(data, {-1 % 2**31: self._schema}, self._reader_schema)
        return f.when(data.isNotNull(), decoded(data, self._writers, self._reader_schema))

    def problem(self, data: Column, parsed: Column) -> Column:
        from pyspark.sql import functions as f

        sign = parsed[_READABLE] if self.is_row else parsed
        return f.when(sign.isNull(), f.lit("not Avro in the registry's framing, or unreadable"))

    def content(self, parsed: Column) -> Column:
        return parsed.dropFields(_READABLE) if self.is_row else parsed

    def to_bytes(self, value: Any) -> bytes:
        """Write with the reader's schema, registered under the topic's subject."""
        if isinstance(value, bytes) and self.is_row:
            return value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        schema_id = self._registry.register(self._subject, "AVRO", self._schema)
        return prefix_of(schema_id) + avro_bytes(self._schema, value)


class AvroWriter(Writer):
    """Avro of one schema, framed with its id."""

    def __init__(self, schema: str, schema_id: int, registry: Schemas) -> None:
        self._schema = schema
        self._id = schema_id
        self._registry = registry

    def encoded(self, row: Column) -> Column:
        from pyspark.sql import functions as f
        from pyspark.sql.avro.functions import to_avro

        return f.when(
            row.isNotNull(),
            f.concat(f.lit(bytearray(prefix_of(self._id))), to_avro(row, self._schema)),
        )

    def to_python(self, data: bytes) -> Any:
        schema_id = schema_id_of(data)
        text = None if schema_id is None else self._registry.resolved_avro(schema_id)
        if text is None:
            raise PipelineError(f"{data!r} is not Avro in the registry's framing")
        return avro_value(text, data[PREFIX_BYTES:])


def avro_bytes(schema: str, value: Any) -> bytes:
    """Return a Python value in Avro, without framing."""
    from fastavro import schemaless_writer

    out = io.BytesIO()
    schemaless_writer(out, _parsed(schema), value)
    return out.getvalue()


def avro_value(schema: str, data: bytes) -> Any:
    """Return the Python value of Avro, without framing: timestamps are datetimes in UTC."""
    from fastavro import schemaless_reader

    return schemaless_reader(io.BytesIO(data), _parsed(schema), None)


@lru_cache(maxsize=1024)
def _parsed(schema: str) -> Any:
    from fastavro import parse_schema

    return parse_schema(json.loads(schema))


_SIMPLE: Final = {
    "string": "string",
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
    "date": {"type": "int", "logicalType": "date"},
}


def avro_schema_of(row: StructType, name: str) -> dict[str, Any]:
    """Return the Avro schema of rows; `name` is the record's, and the prefix of nested ones.

    Raises PipelineError for a type that Avro lacks.
    """
    fields = []
    for field in row.fields:
        avro_type = _avro_type(field.dataType, f"{name}_{field.name}")
        if field.nullable:
            fields.append({"name": field.name, "type": ["null", avro_type], "default": None})
        else:
            fields.append({"name": field.name, "type": avro_type})
    return {"type": "record", "name": name, "fields": fields}


def _avro_type(kind: DataType, name: str) -> Any:
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        return avro_schema_of(kind, name)
    if isinstance(kind, ArrayType):
        items = _avro_type(kind.elementType, f"{name}_item")
        return {"type": "array", "items": ["null", items] if kind.containsNull else items}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        values = _avro_type(kind.valueType, f"{name}_value")
        return {"type": "map", "values": ["null", values] if kind.valueContainsNull else values}
    if isinstance(kind, DecimalType):
        size = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **size}
    simple = _SIMPLE.get(kind.simpleString())
    if simple is None:
        raise PipelineError(f"{name}: Avro has no type for {kind.simpleString()}: cast it")
    return simple


def _record_name(subject: str) -> str:
    """A record's name after its subject: `energy-per-minute-value` is `EnergyPerMinute`."""
    words = re.split(r"[^A-Za-z0-9]+", re.sub(r"-(value|key)$", "", subject))
    name = "".join(word[:1].upper() + word[1:] for word in words if word) or "Record"
    suffix = "Key" if subject.endswith("-key") else ""
    return ("_" + name if name[0].isdigit() else name) + suffix


# --- rows as bytes, on their way through Python or to rest in state ------------------------------
#
# Spark hands Python rows as pandas frames, in which integers with nulls become floats and nested
# rows lose their types. Packed in Avro they keep them, and what Python only passes on is not
# touched. Python reads and writes them with `avro_value` and `avro_bytes`.


def packed_schema(row: StructType) -> str:
    """Return the Avro schema that rows of a type are packed with."""
    return json.dumps(avro_schema_of(row, "Row"))


def packed(row: Column, schema: str) -> Column:
    """Return a struct as bytes; null stays null."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import to_avro

    return f.when(row.isNotNull(), to_avro(row, schema))


def unpacked(data: Column, schema: str) -> Column:
    """Return bytes as the struct that they were."""
    from pyspark.sql.avro.functions import from_avro

    return from_avro(data, schema, {"mode": "FAILFAST"})


def nullable(row: Any) -> StructType:
    """Return a type of rows with all of its columns nullable.

    One that is declared NOT NULL is null where an outer join found nothing.
    """
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(one.name, one.dataType) for one in row.fields])
