"""Avro schemas from Connect's and back, as Connect's AvroData translates them.

Every named type of a row bears the row's full name and the path to it
(`io.confluent.ksql.avro_schemas.KsqlDataSourceSchema_FIELD`). Maps are arrays of records `key` and
`value`, as ksqlDB's keys of maps may be null, which Avro's cannot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from barnabas.schemas.converters.avro_schemas import (
    MAP_ENTRY,
    PRECISION,
    PRECISION_DEFAULT,
    AvroOptions,
    AvroSchemas,
)
from barnabas.schemas.converters.avro_schemas import NAMESPACE as CONNECT_NAMESPACE
from barnabas.schemas.data.builder import struct_of
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Type
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import ENTRIES, UNION, ConnectField, ConnectSchema

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"


_PRIMITIVES = {
    "boolean": "boolean",
    "int32": "int",
    "int64": "long",
    "float64": "double",
    "string": "string",
    "bytes": "bytes",
}


def to_text(schema: Schema, full_name: str) -> str:
    """The Avro schema of a row, as text. Raises AnalysisError for names that Avro forbids."""
    row = _named(schema, full_name)
    if row.optional:
        # A bare row keeps its logical type's name, but loses the version.
        row = replace(row, optional=False, version=None)
    try:
        avro = AvroSchemas(AvroOptions()).of(row)
    except DataError as error:
        raise AnalysisError(f"Schema is not compatible with Avro: {error}") from error
    return json.dumps(avro, ensure_ascii=False, separators=(",", ":"))


def _named(schema: Schema, name: str) -> Schema:
    """The schema with names for all that must have one."""
    key, value = schema.key_schema, schema.value_schema
    match schema.type:
        case Type.STRUCT:
            fields = [
                (field.name.replace(".", "_"), _named(field.schema, f"{name}_{field.name}"))
                for field in schema.fields
            ]
            made = struct_of(fields, name=schema.name or name)
            return replace(made, optional=schema.optional)
        case Type.ARRAY:
            assert value is not None
            return replace(schema, value_schema=_named(value, name))
        case Type.MAP:
            assert key is not None
            assert value is not None
            return replace(
                schema,
                name=name,
                key_schema=_named(key, f"{name}_MapKey"),
                value_schema=_named(value, f"{name}_MapValue"),
            )
    return schema


Named = dict[str, Mapping[str, Any]]
"""Named types by full name."""


def from_json(avro: Any, types: Named, namespace: str = "") -> ConnectSchema:
    """The schema of decoded JSON; `types` holds what references define, and takes what it defines.

    Raises AnalysisError for what is not an Avro schema or has no like in SQL.
    """
    return _Reader(types).schema(avro, namespace)


class _Reader:
    def __init__(self, types: Named) -> None:
        self.types = types
        self.open: set[str] = set()

    def schema(self, avro: Any, namespace: str) -> ConnectSchema:
        if isinstance(avro, list):
            return self.union(avro, namespace)
        if isinstance(avro, str):
            if avro in _OF_AVRO:
                return _OF_AVRO[avro]
            full_name = avro if "." in avro or not namespace else f"{namespace}.{avro}"
            found = self.types.get(full_name) or self.types.get(avro)
            if found is None:
                raise AnalysisError(f"Undefined name in the Avro schema: {avro}")
            if found["full name"] in self.open:
                raise AnalysisError(f"The Avro schema is recursive: {avro}")
            return self.schema(found["schema"], found["namespace"])
        if not isinstance(avro, Mapping) or "type" not in avro:
            raise AnalysisError("The schema is not an Avro schema")
        match avro["type"]:
            case "record" | "error":
                return self.record(avro, namespace)
            case "enum":
                self.define(avro, namespace)
                return ConnectSchema("string", kind="enum")
            case "fixed":
                self.define(avro, namespace)
                return _with_logical(ConnectSchema("bytes", kind="fixed"), avro)
            case "array":
                return self.array(avro, namespace)
            case "map":
                value = self.schema(avro["values"], namespace)
                return ConnectSchema("map", key=ConnectSchema("string"), value=value)
        return _with_logical(self.schema(avro["type"], namespace), avro)

    def define(self, avro: Mapping[str, Any], namespace: str) -> tuple[str, str]:
        name = str(avro["name"])
        if "." in name:
            own = name.rpartition(".")[0]
        else:
            own = str(avro.get("namespace", namespace) or "")
            name = f"{own}.{name}" if own else name
        self.types[name] = {"schema": avro, "namespace": own, "full name": name}
        return name, own

    def record(self, avro: Mapping[str, Any], namespace: str) -> ConnectSchema:
        name, own = self.define(avro, namespace)
        self.open.add(name)
        fields = []
        for field in avro["fields"]:
            schema = self.schema(field["type"], own)
            if "default" in field:
                schema = replace(schema, default=field["default"])
            fields.append(ConnectField(field["name"], schema))
        self.open.discard(name)
        return ConnectSchema("struct", name=name, fields=tuple(fields))

    def array(self, avro: Mapping[str, Any], namespace: str) -> ConnectSchema:
        items = avro["items"]
        schema = self.schema(items, namespace)
        if isinstance(items, Mapping) and (
            items.get("connect.internal.type") == MAP_ENTRY
            or schema.name == f"{CONNECT_NAMESPACE}.{MAP_ENTRY}"
        ):
            members = {field.name: field.schema for field in schema.fields}
            if members.keys() == {"key", "value"}:
                return ConnectSchema(
                    "map", key=members["key"], value=members["value"], kind=ENTRIES
                )
        return ConnectSchema("array", value=schema)

    def union(self, avro: Sequence[Any], namespace: str) -> ConnectSchema:
        others = [branch for branch in avro if branch not in ("null", {"type": "null"})]
        if len(avro) == 2 and len(others) == 1:
            return replace(self.schema(others[0], namespace), optional=True)
        fields = []
        for branch in others:
            schema = self.schema(branch, namespace)
            kind = branch if isinstance(branch, str) else branch["type"]
            name = schema.name if schema.type == "struct" and schema.name else str(kind)
            name = name.rpartition(".")[2]
            if isinstance(branch, Mapping) and kind in ("enum", "fixed"):
                name = str(branch["name"]).rpartition(".")[2]
            fields.append(ConnectField(name, replace(schema, optional=True)))
        return ConnectSchema(
            "struct", optional=len(others) < len(avro), fields=tuple(fields), kind=UNION
        )


_OF_AVRO = {avro: ConnectSchema(connect) for connect, avro in _PRIMITIVES.items()} | {
    "float": ConnectSchema("float32")
}
_OF_LOGICAL = {
    ("int32", "date"): DATE,
    ("int32", "time-millis"): TIME,
    ("int64", "timestamp-millis"): TIMESTAMP,
}


def _with_logical(schema: ConnectSchema, avro: Mapping[str, Any]) -> ConnectSchema:
    logical = str(avro.get("logicalType", "")).lower()
    if schema.type == "bytes" and logical == "decimal":
        scale = avro.get("scale", 0)
        precision = avro.get("precision", PRECISION_DEFAULT)
        parameters = ((SCALE, str(scale)), (PRECISION, str(precision)))
        return replace(schema, name=DECIMAL, version=1, parameters=parameters)
    name = _OF_LOGICAL.get((schema.type, logical))
    if name:
        return replace(schema, name=name, version=1)
    connect = avro.get("connect.type")
    if schema.type == "int32" and connect in ("int8", "int16"):
        return replace(schema, type=str(connect))
    return schema
