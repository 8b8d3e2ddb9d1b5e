"""Translates Connect's schemas to Avro's, as Confluent's AvroData does.

Properties `connect.…` hold what Avro cannot express, so that the schema can be restored.

Source: io.confluent.connect.avro.AvroData (Confluent 8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote_plus

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import (
    date_to_days,
    decimal_scale,
    decimal_to_bytes,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.recursive import SchemaReference
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
MAP_ENTRY: Final = "MapEntry"
ENTRIES: Final = "connect.internal.type"
UNION: Final = "io.confluent.connect.avro.Union"
ENUM: Final = "io.confluent.connect.avro.Enum"
FIXED_SIZE: Final = "connect.fixed.size"
PRECISION: Final = "connect.decimal.precision"
PRECISION_DEFAULT: Final = 64
LOGICAL: Final[dict[str | None, str]] = {
    DATE: "date",
    TIME: "time-millis",
    TIMESTAMP: "timestamp-millis",
}
PRIMITIVES: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(slots=True, frozen=True)
class AvroOptions:
    """Settings of AvroData."""

    is_enhanced: bool = False
    scrubs_names: bool = False
    has_meta_data: bool = True
    allows_optional_map_keys: bool = False
    flattens_singletons: bool = True
    ignores_defaults: bool = False
    tells_apart: bool = False
    """True if branches of a union that have the same short name have their full names, but for the
    first; otherwise there is no schema of such a union."""
    marks_entries: bool = False
    """True if a map that is read has the parameter ENTRIES where Avro has entries and no map."""


@dataclass(slots=True)
class AvroSchemas:
    """Writes one schema; names in it are defined once."""

    options: AvroOptions
    _defined: dict[str, Schema] = field(default_factory=dict)
    _unnamed: int = 0

    def of(self, schema: Schema, namespace: str | None = None, *, is_branch: bool = False) -> Any:
        """The Avro schema of a Connect schema within a namespace. Raises DataError."""
        if is_union(schema):
            branches = [self.of(f.schema, namespace, is_branch=True) for f in schema.fields]
            return ["null", *branches] if schema.optional else branches
        avro = self._base(schema, namespace)
        if isinstance(avro, dict) and not avro.pop("__known", False):
            self._add_properties(schema, avro)
            if set(avro) == {"type"}:
                avro = avro["type"]
        elif isinstance(avro, dict):
            avro = avro["type"]
        if not schema.optional or is_branch:
            return avro
        return ["null", avro] if schema.default is None else [avro, "null"]

    def record_name(self, schema: Schema) -> str | None:
        """The full name of the record that a schema is; None where it is none."""
        if schema.type is not Type.STRUCT or is_union(schema):
            return None
        return schema.name or f"{NAMESPACE}.{DEFAULT_NAME}"

    def _base(self, schema: Schema, namespace: str | None) -> dict[str, Any]:
        match schema.type:
            case Type.ARRAY:
                assert schema.value_schema is not None
                return {"type": "array", "items": self.of(schema.value_schema, namespace)}
            case Type.MAP:
                return self._map(schema, namespace)
            case Type.STRUCT:
                return self._record(schema, namespace)
            case Type.STRING if self.options.is_enhanced and ENUM in schema.parameters:
                return self._enum(schema, namespace)
            case Type.BYTES if FIXED_SIZE in schema.parameters:
                avro, _ = self._named(schema.name, namespace, "fixed", schema)
                avro["size"] = int(schema.parameters[FIXED_SIZE])
                return self._with_decimal(schema, avro)
        return self._with_decimal(schema, {"type": PRIMITIVES[schema.type]})

    def _with_decimal(self, schema: Schema, avro: dict[str, Any]) -> dict[str, Any]:
        if schema.name == DECIMAL:
            avro["scale"] = decimal_scale(schema)
            avro["precision"] = int(schema.parameters.get(PRECISION, PRECISION_DEFAULT))
        return avro

    def _named(
        self, name: str | None, namespace: str | None, kind: str, schema: Schema
    ) -> tuple[dict[str, Any], str | None]:
        """The beginning of a named type, and the namespace within it."""
        if name is None:
            self._unnamed += 1
            number = str(self._unnamed) if self._unnamed > 1 else ""
            name = f"{NAMESPACE}.{DEFAULT_NAME}{number}"
        own, _, short = name.rpartition(".")
        if self.options.scrubs_names:
            own = ".".join(scrubbed(part) for part in own.split(".")) if own else own
            short = scrubbed(short)
        full = f"{own}.{short}" if own else short
        known = self._defined.get(full)
        bare = replace(schema, optional=False, default=None, doc=None)
        if known is not None:
            is_within = SchemaReference in (type(schema), type(known))
            if known != bare and not is_within:
                raise DataError(f"Can't redefine: {full}")
            return {"__known": True, "type": short if own == (namespace or "") else full}, own
        for part in full.split("."):
            _check_name(part)
        self._defined[full] = bare
        avro: dict[str, Any] = {"type": kind, "name": short}
        if own and own != namespace:
            avro["namespace"] = own
        return avro, own

    def _record(self, schema: Schema, namespace: str | None) -> dict[str, Any]:
        avro, inner = self._named(schema.name, namespace, "record", schema)
        if "__known" in avro:
            return avro
        doc = schema.parameters.get("avro.record.doc")
        if doc is not None:
            avro["doc"] = doc
        avro["fields"] = [
            self._field(f.name, f.schema, inner, schema.parameters.get(f"avro.field.doc.{f.name}"))
            for f in schema.fields
        ]
        return avro

    def _field(
        self, name: str, schema: Schema, namespace: str | None, doc: str | None
    ) -> dict[str, Any]:
        if self.options.scrubs_names:
            name = scrubbed(name)
        _check_name(name)
        avro = {"name": name, "type": self.of(schema, namespace)}
        if doc is not None:
            avro["doc"] = doc
        if schema.default is None:
            return avro | {"default": None} if schema.optional else avro
        # Entries of a map are not records in a default: Avro does not take them.
        if not _has_entries(schema, self.options):
            avro["default"] = default_json(schema, schema.default)
        return avro

    def _map(self, schema: Schema, namespace: str | None) -> dict[str, Any]:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if has_text_keys(schema, self.options):
            return {"type": "map", "values": self.of(schema.value_schema, namespace)}
        name = f"{NAMESPACE}.{MAP_ENTRY}" if schema.name is None else schema.name
        entry, inner = self._named(name, namespace, "record", schema)
        if "__known" in entry:
            return {"type": "array", "items": entry["type"]}
        entry["fields"] = [
            self._field("key", schema.key_schema, inner, None),
            self._field("value", schema.value_schema, inner, None),
        ]
        if schema.name is not None:
            entry[ENTRIES] = MAP_ENTRY
        return {"type": "array", "items": entry}

    def _enum(self, schema: Schema, namespace: str | None) -> dict[str, Any]:
        avro, _ = self._named(schema.parameters[ENUM], namespace, "enum", schema)
        if "__known" not in avro:
            prefix = f"{ENUM}."
            names = schema.parameters
            avro["symbols"] = [n.removeprefix(prefix) for n in names if n.startswith(prefix)]
        return avro

    def _add_properties(self, schema: Schema, avro: dict[str, Any]) -> None:
        logical = LOGICAL.get(schema.name)
        if self.options.has_meta_data:
            if schema.doc is not None:
                avro["connect.doc"] = schema.doc
            if schema.version is not None:
                avro["connect.version"] = schema.version
            parameters = {k: v for k, v in schema.parameters.items() if not k.startswith("avro.")}
            if parameters:
                avro["connect.parameters"] = parameters
            if schema.default is not None:
                avro["connect.default"] = default_json(schema, schema.default)
            if schema.name is not None:
                avro["connect.name"] = schema.name
            if schema.type in (Type.INT8, Type.INT16):
                avro["connect.type"] = schema.type.value
        if schema.name == DECIMAL:
            avro["logicalType"] = "decimal"
        elif logical is not None:
            avro["logicalType"] = logical


def _check_name(name: str) -> None:
    """Raise DataError, in Avro's words, for what is not a name of it."""
    if not name:
        raise DataError("Empty name")
    if not (name[0].isalpha() or name[0] == "_"):
        raise DataError(f"Illegal initial character: {name}")
    if not all(character.isalnum() or character == "_" for character in name):
        raise DataError(f"Illegal character in: {name}")


def is_union(schema: Schema) -> bool:
    """Return whether a struct stands for a union of Avro: one of its fields has a value."""
    return schema.type is Type.STRUCT and schema.name == UNION


def has_text_keys(schema: Schema, options: AvroOptions) -> bool:
    """Return whether a map is a map of Avro too; otherwise it is an array of entries."""
    keys = schema.key_schema
    if keys is None or keys.type is not Type.STRING:
        return False
    return not keys.optional or options.allows_optional_map_keys


def scrubbed(name: str) -> str:
    """The name with what Avro's names cannot have replaced."""
    if not name or _NAME.match(name):
        return name
    encoded = quote_plus(name, safe="*")
    if encoded[0].isdigit():
        encoded = f"x{encoded}"
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def encoded(schema: Schema, value: Any) -> Any:
    """A value of a logical type as the number or bytes that it is made of."""
    match value:
        case Decimal():
            return decimal_to_bytes(schema, value)
        case datetime():
            return timestamp_to_ms(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_ms(value)
    return value


def _has_entries(schema: Schema, options: AvroOptions) -> bool:
    """Return whether a map in the schema becomes an array of entries."""
    if schema.type is Type.MAP and not has_text_keys(schema, options):
        return True
    parts = (schema.value_schema, *(field.schema for field in schema.fields))
    return any(_has_entries(part, options) for part in parts if part is not None)


def default_json(schema: Schema, value: Any) -> Any:
    """A default as JSON says it; bytes are characters of ISO 8859-1, entries of maps pairs."""
    if value is None:
        return None
    value = encoded(schema, value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("latin-1")
    match schema.type:
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [default_json(schema.value_schema, item) for item in value]
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            keys, items = schema.key_schema, schema.value_schema
            if keys.type is Type.STRING:
                return {key: default_json(items, item) for key, item in value.items()}
            return [[default_json(keys, k), default_json(items, v)] for k, v in value.items()]
        case Type.STRUCT:
            return {
                f.name: None if (v := value.get(f.name)) is None else default_json(f.schema, v)
                for f in schema.fields
            }
    return value
