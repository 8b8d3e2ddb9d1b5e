"""Connect's schemas as Avro's, and back, for files.

What Avro does not say is kept in properties: `connect.name`, `connect.version`, `connect.type`…, as
Confluent's AvroData has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.connectors.storage.formats.base import is_text_keyed, part
from barnabas.schemas.converters.avro_schemas import (
    DEFAULT_NAME,
    LOGICAL,
    MAP_ENTRY,
    NAMESPACE,
    PRECISION,
    PRECISION_DEFAULT,
    PRIMITIVES,
    default_json,
)
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import decimal_scale
from barnabas.schemas.data.schema import DECIMAL, Schema, Type


def decimal_precision(schema: Schema) -> int:
    """Return how many digits a decimal may have."""
    return int(schema.parameters.get(PRECISION, PRECISION_DEFAULT))


def avro_of(schema: Schema, *, has_meta: bool = True) -> Any:
    """Return a schema as Avro's JSON. Raises DataError."""
    return _Maker(has_meta).made(schema)


class _Maker:
    def __init__(self, has_meta: bool) -> None:
        self._has_meta = has_meta
        self._named: dict[str, Schema] = {}

    def made(self, schema: Schema) -> Any:
        inner = self._bare(schema)
        if not schema.optional:
            return inner
        return [inner, "null"] if schema.default is not None else ["null", inner]

    def _bare(self, schema: Schema) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        if schema.type is Type.ARRAY:
            made: dict[str, Any] = {"type": "array", "items": self.made(part(schema.value_schema))}
        elif schema.type is Type.MAP:
            made = self._map(schema)
        else:
            made = {"type": PRIMITIVES[schema.type]}
            if schema.name == DECIMAL:
                made |= {
                    "scale": decimal_scale(schema),
                    "precision": decimal_precision(schema),
                    "logicalType": "decimal",
                }
            elif schema.name in LOGICAL:
                made["logicalType"] = LOGICAL[schema.name]
            if schema.type in (Type.INT8, Type.INT16):
                made["connect.type"] = schema.type.value
        self._add_meta(made, schema)
        return made["type"] if len(made) == 1 else made

    def _map(self, schema: Schema) -> dict[str, Any]:
        values = self.made(part(schema.value_schema))
        if is_text_keyed(schema):
            return {"type": "map", "values": values}
        keys = self.made(part(schema.key_schema))
        name = self._free_name(f"{NAMESPACE}.{MAP_ENTRY}", schema)
        entry = {
            "type": "record",
            "name": name,
            "fields": [{"name": "key", "type": keys}, {"name": "value", "type": values}],
        }
        return {"type": "array", "items": entry}

    def _record(self, schema: Schema) -> Any:
        wanted = schema.name or f"{NAMESPACE}.{DEFAULT_NAME}"
        if self._named.get(wanted) == schema:
            return wanted
        made: dict[str, Any] = {"type": "record", "name": self._free_name(wanted, schema)}
        if schema.doc is not None:
            made["doc"] = schema.doc
        made["fields"] = [self._field(field.name, field.schema) for field in schema.fields]
        self._add_meta(made, schema)
        return made

    def _field(self, name: str, schema: Schema) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.made(schema)}
        if schema.default is not None:
            made["default"] = default_json(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        if schema.doc is not None and schema.type is not Type.STRUCT:
            made["doc"] = schema.doc
        return made

    def _free_name(self, wanted: str, schema: Schema) -> str:
        name, count = wanted, 1
        while name in self._named:
            count += 1
            name = f"{wanted}{count}"
        self._named[name] = schema
        return name

    def _add_meta(self, made: dict[str, Any], schema: Schema) -> None:
        if not self._has_meta:
            return
        if schema.name is not None:
            made["connect.name"] = schema.name
        if schema.version is not None:
            made["connect.version"] = schema.version
        if schema.parameters:
            made["connect.parameters"] = dict(schema.parameters)


def connect_of(avro: Any) -> Schema:
    """Return Avro's schema, of a file, as Connect's. Raises DataError."""
    return _connect(avro, {})


def _connect(avro: Any, named: dict[str, Schema]) -> Schema:
    if isinstance(avro, str):
        return _named_or_primitive(avro, named)
    if isinstance(avro, list):
        rest = [branch for branch in avro if branch != "null"]
        if len(rest) != 1:
            raise DataError("Unions of several types have no counterpart in Connect's files")
        inner = _connect(rest[0], named)
        return builder.optional(inner) if len(rest) < len(avro) else inner
    if not isinstance(avro, Mapping):
        raise DataError(f"{avro!r} is not a schema of Avro")
    kind = avro["type"]
    if not isinstance(kind, str):
        return _connect(kind, named)
    return _complex(kind, avro, named)


def _complex(kind: str, avro: Mapping[str, Any], named: dict[str, Schema]) -> Schema:
    meta: dict[str, Any] = {}
    if "connect.version" in avro:
        meta["version"] = int(avro["connect.version"])
    if "connect.name" in avro:
        meta["name"] = str(avro["connect.name"])
    if avro.get("connect.parameters"):
        meta["parameters"] = {str(k): str(v) for k, v in avro["connect.parameters"].items()}
    if kind in ("record", "error"):
        fields = [(one["name"], _connect(one["type"], named)) for one in avro["fields"]]
        meta.setdefault("name", str(avro["name"]))
        made = builder.struct_of(fields, doc=avro.get("doc"), **meta)
        named[str(avro["name"])] = made
        return made
    if kind == "array":
        return builder.array_of(_connect(avro["items"], named), **meta)
    if kind == "map":
        return builder.map_of(builder.STRING, _connect(avro["values"], named), **meta)
    if kind in ("enum", "fixed"):
        made = Schema(Type.STRING if kind == "enum" else Type.BYTES, name=str(avro["name"]))
        named[str(avro["name"])] = made
        return made
    logical = avro.get("logicalType")
    if logical == "decimal":
        return builder.decimal(int(avro.get("scale", 0)))
    if logical in _LOGICAL_SCHEMAS:
        return _LOGICAL_SCHEMAS[logical]
    if "connect.type" in avro:
        return Schema(Type(avro["connect.type"]), **meta)
    base = _named_or_primitive(kind, named)
    return Schema(base.type, **meta) if meta else base


def _named_or_primitive(name: str, named: dict[str, Schema]) -> Schema:
    schema = named.get(name) or _BY_AVRO.get(name)
    if schema is None:
        raise DataError(f"Avro's type {name} has no counterpart in Connect")
    return schema


_BY_AVRO: Final = {
    "int": builder.INT32,
    "long": builder.INT64,
    "float": builder.FLOAT32,
    "double": builder.FLOAT64,
    "boolean": builder.BOOLEAN,
    "string": builder.STRING,
    "bytes": builder.BYTES,
}
_LOGICAL_SCHEMAS: Final = {
    "date": builder.DATE_SCHEMA,
    "time-millis": builder.TIME_SCHEMA,
    "time-micros": builder.TIME_SCHEMA,
    "timestamp-millis": builder.TIMESTAMP_SCHEMA,
    "timestamp-micros": builder.TIMESTAMP_SCHEMA,
}
