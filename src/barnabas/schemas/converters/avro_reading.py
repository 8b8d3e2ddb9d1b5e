"""Translates Avro's schemas to Connect's, and the codec's values to Connect's values.

Source: io.confluent.connect.avro.AvroData (Confluent 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from barnabas.java.numbers import low_bits
from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_schemas import (
    DEFAULT_NAME,
    ENTRIES,
    ENUM,
    FIXED_SIZE,
    MAP_ENTRY,
    NAMESPACE,
    PRECISION,
    PRECISION_DEFAULT,
    UNION,
    AvroOptions,
)
from barnabas.schemas.converters.base import Parts
from barnabas.schemas.data.builder import STRING, array_of, map_of, struct_of, with_default
from barnabas.schemas.data.errors import DataError, SchemaBuilderError
from barnabas.schemas.data.logical import (
    bytes_to_decimal,
    days_to_date,
    ms_to_time,
    ms_to_timestamp,
)
from barnabas.schemas.data.recursive import SchemaReference, reference
from barnabas.schemas.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Struct, Type

Convert = Callable[[Any], Any]
Made = tuple[Schema, Convert]
_PRIMITIVES: Final = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
}
_LOGICAL: Final[dict[tuple[str, str | None], tuple[str, Convert]]] = {
    ("int", "date"): (DATE, days_to_date),
    ("int", "time-millis"): (TIME, ms_to_time),
    ("long", "timestamp-millis"): (TIMESTAMP, ms_to_timestamp),
}
_BITS: Final = {"int8": 8, "int16": 16}
"""Numbers that Avro has as int; what does not fit is cut, as in Java."""
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "boolean": (bool,),
    "string": (str,),
    "bytes": (bytes,),
    "array": (list,),
    "map": (dict,),
}


def same(value: Any) -> Any:
    """The codec's values are Connect's already."""
    return value


class AvroReading:
    """Translates one Avro schema, and makes conversions for its values."""

    def __init__(self, names: AvroNames, options: AvroOptions) -> None:
        self._names = names
        self._options = options
        self._parts = Parts()
        self._open: dict[str, list[_RecordReader]] = {}
        """The records that are being read, each with what refers to it from within."""

    def of(self, avro: Any, *, is_optional: bool = False, default: Any = None) -> Made:
        """The Connect schema and conversion of an Avro schema. Raises DataError."""
        self._parts.add()
        if isinstance(avro, list):
            return self._union(avro, default)
        name, definition = self._names.definition(avro)
        if name is not None and name in self._open:
            inner = _RecordReader(reference(is_optional=is_optional), [])
            self._open[name].append(inner)
            return inner.schema, inner
        properties = definition if isinstance(definition, dict) else {"type": definition}
        within: list[_RecordReader] = []
        if name is not None and "fields" in properties:
            self._open[name] = within
        schema, convert = self._base(properties, name)
        self._open.pop(name or "", None)
        schema = self._with_properties(schema, properties, name)
        for inner in within:
            inner.become(schema, convert)
        if isinstance(convert, _RecordReader):
            convert.schema = schema
        given = properties.get("connect.default") if default is None else default
        if given is not None:
            schema = _with_default(schema, convert, given)
        if is_optional:
            schema = replace(schema, optional=True)
        if isinstance(convert, _RecordReader):
            convert.schema = schema
        return schema, convert

    def _base(self, avro: dict[str, Any], name: str | None) -> Made:
        kind = avro["type"]
        match kind:
            case "array":
                return self._array(avro)
            case "map":
                schema, convert = self.of(avro["values"])
                made = map_of(STRING, schema)
                if convert is same:
                    return made, same
                return made, lambda value: {k: convert(item) for k, item in value.items()}
            case "record" | "error":
                return self._record(avro)
            case "enum":
                assert name is not None
                parameters = {ENUM: name, **{f"{ENUM}.{s}": s for s in avro["symbols"]}}
                return Schema(Type.STRING, parameters=parameters), same
            case "null":
                raise DataError("Standalone null schemas are not supported by this converter")
        return self._primitive(kind, avro)

    def _primitive(self, kind: str, avro: dict[str, Any]) -> Made:
        logical = avro.get("logicalType")
        logical = logical.lower() if isinstance(logical, str) else None
        if kind not in _PRIMITIVES:
            raise DataError(f"Couldn't translate unsupported schema type {kind}.")
        if kind in ("bytes", "fixed"):
            return _bytes(kind, avro, logical)
        known = _LOGICAL.get((kind, logical))
        if known is not None:
            return Schema(_PRIMITIVES[kind], name=known[0], version=1), known[1]
        bits = _BITS.get(avro.get("connect.type", ""))
        if kind == "int" and bits is not None:
            return Schema(Type(avro["connect.type"])), lambda value: low_bits(value, bits)
        return Schema(_PRIMITIVES[kind]), same

    def _array(self, avro: dict[str, Any]) -> Made:
        name, entry = self._names.definition(avro["items"])
        is_entry = name == f"{NAMESPACE}.{MAP_ENTRY}" or (
            isinstance(entry, dict) and entry.get(ENTRIES) == MAP_ENTRY
        )
        if is_entry:
            parts = {field["name"]: field["type"] for field in entry["fields"]}
            (keys, of_key), (values, of_value) = self.of(parts["key"]), self.of(parts["value"])
            made = map_of(keys, values)
            if self._options.marks_entries:
                made = replace(made, parameters={ENTRIES: MAP_ENTRY})
            return made, lambda value: {
                of_key(key): of_value(item) for key, item in map(_entry, value)
            }
        schema, convert = self.of(avro["items"])
        if convert is same:
            return array_of(schema), same
        return array_of(schema), lambda value: [convert(item) for item in value]

    def _record(self, avro: dict[str, Any]) -> Made:
        fields: list[tuple[str, Schema]] = []
        parts: list[tuple[str, Convert]] = []
        parameters = {}
        if "doc" in avro and self._options.has_meta_data:
            parameters["avro.record.doc"] = avro["doc"]
        for field in avro["fields"]:
            name = field["name"]
            schema, convert = self.of(field["type"], default=field.get("default"))
            if "doc" in field and self._options.has_meta_data:
                parameters[f"avro.field.doc.{name}"] = field["doc"]
            fields.append((name, schema))
            parts.append((name, convert))
        made = struct_of(fields, parameters=parameters)
        return made, _RecordReader(made, parts)

    def _union(self, branches: list[Any], default: Any) -> Made:
        others = [branch for branch in branches if branch != "null"]
        has_null = len(others) < len(branches)
        if len(others) == 1 and (has_null or self._options.flattens_singletons):
            schema, convert = self.of(others[0], is_optional=has_null, default=default)
            if self._names.definition(others[0])[0] is not None:
                return schema, lambda value: None if value is None else convert(_untagged(value))
            if convert is same or not has_null:
                return schema, convert
            return schema, lambda value: None if value is None else convert(value)
        made = [(self._branch_name(b), b, *self.of(b, is_optional=True)) for b in others]
        fields: list[tuple[str, Schema]] = []
        taken: set[str] = set()
        for name, branch, schema, _ in made:
            is_taken = self._options.tells_apart and name in taken
            full = self._names.definition(branch)[0] if is_taken else None
            fields.append((full or name, schema))
            taken.add(name)
        union = struct_of(fields, name=UNION, optional=has_null)
        tests = [(self._tests(branch), convert) for _, branch, _, convert in made]

        def read(value: Any) -> Struct | None:
            if value is None:
                return None
            name, item = value if type(value) is tuple else (None, value)
            for index, (fits, convert) in enumerate(tests):
                if fits(name, item):
                    values: list[Any] = [None] * len(tests)
                    values[index] = convert(item)
                    return Struct(union, values)
            raise DataError("The value is of no branch of its union")

        return union, read

    def _branch_name(self, branch: Any) -> str:
        name, definition = self._names.definition(branch)
        if name is not None:
            return name if self._options.is_enhanced else name.rpartition(".")[2]
        kind = definition["type"] if isinstance(definition, dict) else definition
        return str(kind)

    def _tests(self, branch: Any) -> Callable[[str | None, Any], bool]:
        name, definition = self._names.definition(branch)
        if name is not None:
            kinds: tuple[type, ...] = (bytes,) if definition["type"] == "fixed" else (str,)
            if "fields" in definition:
                kinds = (dict,)
            return lambda given, item: given == name or (given is None and type(item) in kinds)
        kind = definition["type"] if isinstance(definition, dict) else definition
        if kind == "int":  # beside a long
            return lambda given, item: type(item) is int and -(2**31) <= item < 2**31
        kinds = _PYTHON[kind]
        return lambda given, item: given is None and type(item) in kinds

    def _with_properties(self, schema: Schema, avro: dict[str, Any], name: str | None) -> Schema:
        has_meta_data = self._options.has_meta_data
        doc, version = avro.get("connect.doc"), avro.get("connect.version")
        parameters = avro.get("connect.parameters")
        own = avro.get("connect.name")
        if own is None and name is not None and schema.name is None:
            own = name
        if own is not None and own.startswith(f"{NAMESPACE}.{DEFAULT_NAME}"):
            own = None
        if own is not None and schema.name is not None and own != schema.name:
            raise DataError(
                f"Mismatched names: name already added to SchemaBuilder ({schema.name}) "
                f"differs from name in source schema ({own})"
            )
        changes: dict[str, Any] = {}
        if doc is not None and has_meta_data:
            changes["doc"] = doc
        if version is not None:
            changes["version"] = version
        if own is not None:
            changes["name"] = own
        if parameters and has_meta_data:
            changes["parameters"] = {**schema.parameters, **parameters}
        return replace(schema, **changes) if changes else schema


def _entry(entry: Any) -> tuple[Any, Any]:
    """Key and value; in a default they are a pair."""
    return (entry["key"], entry["value"]) if type(entry) is dict else tuple(entry)


def _untagged(value: Any) -> Any:
    """The codec tells the names of a union's named types beside their values."""
    return value[1] if type(value) is tuple else value


class _RecordReader:
    """Makes structs of records."""

    def __init__(self, schema: Schema, parts: list[tuple[str, Convert]]) -> None:
        self.schema = schema
        self._parts = parts

    def become(self, schema: Schema, outer: Convert) -> None:
        """Read as what reads the record that this one refers to."""
        assert isinstance(self.schema, SchemaReference)
        assert isinstance(outer, _RecordReader)
        self.schema.bind(schema)
        self._parts = outer._parts

    def __call__(self, record: dict[str, Any]) -> Struct:
        values = [convert(record[name]) for name, convert in self._parts]
        return Struct(self.schema, values)


def _bytes(kind: str, avro: dict[str, Any], logical: str | None) -> Made:
    parameters = {FIXED_SIZE: str(avro["size"])} if kind == "fixed" else {}
    if logical != "decimal":
        return Schema(Type.BYTES, parameters=parameters), same
    parameters = {SCALE: str(avro.get("scale", 0)), **parameters}
    precision = avro.get("precision")
    if precision is not None and precision != PRECISION_DEFAULT:
        parameters[PRECISION] = str(precision)
    schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
    return schema, lambda value: bytes_to_decimal(schema, value)


def _with_default(schema: Schema, convert: Convert, given: Any) -> Schema:
    """The schema with a default from JSON; one that does not fit is left out, as in Java."""
    try:
        return with_default(schema, convert(_as_coded(schema, given)))
    except (SchemaBuilderError, DataError, ValueError, TypeError, KeyError, AttributeError):
        return schema


def _as_coded(schema: Schema, given: Any) -> Any:
    """Return the value that the codec would return for the JSON of a default."""
    if given is None:
        return None
    match schema.type:
        case Type.BYTES if isinstance(given, str):
            return given.encode("latin-1")
        case Type.FLOAT32 | Type.FLOAT64 if type(given) is int:
            return float(given)
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [_as_coded(schema.value_schema, item) for item in given]
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            keys, items = schema.key_schema, schema.value_schema
            if isinstance(given, dict):
                return {key: _as_coded(items, item) for key, item in given.items()}
            return [(_as_coded(keys, key), _as_coded(items, item)) for key, item in given]
        case Type.STRUCT if isinstance(given, dict):
            return {f.name: _as_coded(f.schema, given.get(f.name)) for f in schema.fields}
    return given
