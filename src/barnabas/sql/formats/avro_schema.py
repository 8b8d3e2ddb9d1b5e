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

from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    DATE_NAME,
    DECIMAL_NAME,
    ENTRIES,
    PRECISION,
    PRECISION_DEFAULT,
    SCALE,
    TIME_NAME,
    TIMESTAMP_NAME,
    UNION,
    ConnectField,
    ConnectSchema,
    required,
)

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"


_CONNECT_NAMESPACE = "io.confluent.connect.avro"
_MAP_ENTRY = "MapEntry"
_PRIMITIVES = {
    "boolean": "boolean",
    "int32": "int",
    "int64": "long",
    "float64": "double",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL = {TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis", DATE_NAME: "date"}


def named(schema: ConnectSchema, full_name: str) -> ConnectSchema:
    """The schema of a row with names for all that must have one; the row itself not optional."""
    result = _named(schema, full_name)
    if not schema.optional:
        return result
    # A bare row keeps its logical type's name, but loses the version.
    return replace(result, optional=False, version=None)


def _named(schema: ConnectSchema, name: str) -> ConnectSchema:
    match schema.type:
        case "struct":
            fields = tuple(
                ConnectField(
                    field.name.replace(".", "_"), _named(field.schema, f"{name}_{field.name}")
                )
                for field in schema.fields
            )
            return replace(schema, name=schema.name or name, fields=fields)
        case "array":
            return replace(schema, value=_named(schema.item(), name))
        case "map":
            key = _named(schema.map_key(), f"{name}_MapKey")
            value = _named(schema.item(), f"{name}_MapValue")
            return replace(schema, name=name, key=key, value=value, kind=ENTRIES)
    return schema


def to_text(schema: ConnectSchema) -> str:
    """The Avro schema as text. Raises AnalysisError for names that Avro forbids."""
    return json.dumps(_to_avro(schema, ""), ensure_ascii=False, separators=(",", ":"))


def _to_avro(schema: ConnectSchema, namespace: str) -> Any:
    if schema.optional:
        return ["null", _to_avro(required(schema), namespace)]
    match schema.type:
        case "struct":
            result = _record(schema, namespace, schema.name or "ConnectDefault")
        case "array":
            result = {"type": "array", "items": _to_avro(schema.item(), namespace)}
        case "map":
            entry = ConnectSchema(
                "struct",
                fields=(
                    ConnectField("key", schema.map_key()),
                    ConnectField("value", schema.item()),
                ),
            )
            name = schema.name or f"{_CONNECT_NAMESPACE}.{_MAP_ENTRY}"
            items = _record(entry, namespace, name)
            if schema.name:
                items["connect.internal.type"] = _MAP_ENTRY
            result = {"type": "array", "items": items}
        case _:
            result = {"type": _PRIMITIVES[schema.type]}
    if schema.is_decimal:
        result |= {"scale": schema.scale, "precision": schema.precision}
    if schema.version is not None:
        result["connect.version"] = schema.version
    if schema.parameters:
        result["connect.parameters"] = dict(schema.parameters)
    if schema.name:
        result["connect.name"] = schema.name
    logical = "decimal" if schema.is_decimal else _LOGICAL.get(schema.name or "")
    if logical:
        result["logicalType"] = logical
    return result["type"] if len(result) == 1 else result


def _record(schema: ConnectSchema, namespace: str, full_name: str) -> dict[str, Any]:
    own, _, name = full_name.rpartition(".")
    for part in (*own.split("."), name) if own else (name,):
        _check_name(part)
    result: dict[str, Any] = {"type": "record", "name": name}
    if own != namespace:
        result["namespace"] = own
    fields = []
    for field in schema.fields:
        _check_name(field.name)
        member = {"name": field.name, "type": _to_avro(field.schema, own)}
        fields.append(member | {"default": None} if field.schema.optional else member)
    result["fields"] = fields
    return result


def _check_name(name: str) -> None:
    wrong = ""
    if not name:
        wrong = "Empty name"
    elif not (name[0].isalpha() or name[0] == "_"):
        wrong = f"Illegal initial character: {name}"
    elif not all(character.isalnum() or character == "_" for character in name):
        wrong = f"Illegal character in: {name}"
    if wrong:
        raise AnalysisError(f"Schema is not compatible with Avro: {wrong}")


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
            items.get("connect.internal.type") == _MAP_ENTRY
            or schema.name == f"{_CONNECT_NAMESPACE}.{_MAP_ENTRY}"
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
    ("int32", "date"): DATE_NAME,
    ("int32", "time-millis"): TIME_NAME,
    ("int64", "timestamp-millis"): TIMESTAMP_NAME,
}


def _with_logical(schema: ConnectSchema, avro: Mapping[str, Any]) -> ConnectSchema:
    logical = str(avro.get("logicalType", "")).lower()
    if schema.type == "bytes" and logical == "decimal":
        scale = avro.get("scale", 0)
        precision = avro.get("precision", PRECISION_DEFAULT)
        parameters = ((SCALE, str(scale)), (PRECISION, str(precision)))
        return replace(schema, name=DECIMAL_NAME, version=1, parameters=parameters)
    name = _OF_LOGICAL.get((schema.type, logical))
    if name:
        return replace(schema, name=name, version=1)
    connect = avro.get("connect.type")
    if schema.type == "int32" and connect in ("int8", "int16"):
        return replace(schema, type=str(connect))
    return schema
