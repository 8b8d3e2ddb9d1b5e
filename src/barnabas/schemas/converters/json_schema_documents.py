"""Connect's schemas as JSON Schema and back, as Confluent's JsonSchemaData has them.

Source: io.confluent.connect.json.JsonSchemaData (Confluent 8). Left out: Confluent's variants,
additional properties.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from barnabas.schemas.converters.base import Parts
from barnabas.schemas.data.builder import (
    STRING,
    array_of,
    map_of,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import SchemaReference, reference
from barnabas.schemas.data.schema import DECIMAL, Schema, Type
from barnabas.schemas.registry_client import StoredSchema

PLACE: Final = "io.confluent.connect.json"
ENUM: Final = f"{PLACE}.Enum"
ONE_OF: Final = f"{PLACE}.OneOf"
ID: Final = f"{PLACE}.Id"
"""Names a schema that contains itself."""
_NULL: Final = {"type": "null"}
_DEPTH_MAX: Final = 200
_NUMBERS: Final = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
}
_TYPES: Final = {name: kind for kind, (_, name) in _NUMBERS.items()}


def is_union(schema: Schema) -> bool:
    """Return whether a struct stands for a choice: one of its fields has a value."""
    return schema.type is Type.STRUCT and schema.name == ONE_OF


def has_text_keys(schema: Schema) -> bool:
    """Return whether a map is an object; otherwise it is an array of entries."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional


class JsonSchemaWriter:
    """Writes JSON Schema; `default` makes the JSON of a default."""

    def __init__(
        self,
        default: Callable[[Schema], Any],
        *,
        is_decimal_numeric: bool,
        allows_more: bool,
    ) -> None:
        self._default = default
        self._is_decimal_numeric = is_decimal_numeric
        self._allows_more = allows_more
        self._open: list[tuple[Schema, list[str]]] = []
        """The structs that are being written, each with the place that refers to it."""
        self._definitions: dict[str, Any] = {}
        self._named = 0
        self._root: Schema | None = None

    def whole(self, schema: Schema) -> Any:
        """The JSON Schema of a schema, with parts that contain themselves. Raises DataError."""
        self._root = schema
        node = self.of(schema)
        return {**node, "definitions": self._definitions} if self._definitions else node

    def of(self, schema: Schema, index: int | None = None, *, is_branch: bool = False) -> Any:
        """The JSON Schema of a schema, a field at `index`. Raises DataError."""
        at = {} if index is None else {"connect.index": index}
        if is_union(schema):
            branches = [self.of(f.schema, f.index, is_branch=True) for f in schema.fields]
            return {"oneOf": [_NULL, *branches] if schema.optional else branches, **at}
        node = self._struct(schema) if schema.type is Type.STRUCT else self._described(schema)
        if schema.optional and not is_branch:
            return {"oneOf": [_NULL, node], **at}
        return {**node, **at}

    def _struct(self, schema: Schema) -> dict[str, Any]:
        if type(schema) is SchemaReference:
            for outer, known in self._open:
                if schema.refers_to(outer):
                    if not known:
                        known.append(self._place(outer))
                    return {"$ref": known[0]}
        places: list[str] = []
        self._open.append((schema, places))
        node = self._described(schema)
        self._open.pop()
        if not places or places[0] == "#":
            return node
        name = places[0].rpartition("/")[2]
        self._definitions[name] = node
        return {"$ref": places[0]}

    def _place(self, schema: Schema) -> str:
        if schema is self._root:
            return "#"
        self._named += 1
        return f"#/definitions/part{self._named}"

    def _described(self, schema: Schema) -> dict[str, Any]:
        node: dict[str, Any] = self._base(schema)
        if schema.name is not None:
            node["title"] = schema.name
        if schema.version is not None:
            node["connect.version"] = schema.version
        if schema.doc is not None:
            node["description"] = schema.doc
        parameters = {k: v for k, v in schema.parameters.items() if not k.startswith(PLACE)}
        if parameters:
            node["connect.parameters"] = parameters
        if schema.default is not None:
            node["default"] = self._default(schema)
        return node

    def _base(self, schema: Schema) -> dict[str, Any]:
        number = _NUMBERS.get(schema.type)
        if number is not None:
            return {"type": number[0], "connect.type": number[1]}
        match schema.type:
            case Type.BOOLEAN:
                return {"type": "boolean"}
            case Type.STRING:
                return self._text(schema)
            case Type.BYTES:
                is_number = schema.name == DECIMAL and self._is_decimal_numeric
                return {"type": "number" if is_number else "string", "connect.type": "bytes"}
            case Type.ARRAY:
                assert schema.value_schema is not None
                return {"type": "array", "items": self.of(schema.value_schema)}
            case Type.MAP:
                return self._map(schema)
        properties = {f.name: self.of(f.schema, f.index) for f in schema.fields}
        node: dict[str, Any] = {"type": "object", "properties": properties}
        return node if self._allows_more else {**node, "additionalProperties": False}

    def _text(self, schema: Schema) -> dict[str, Any]:
        if ENUM not in schema.parameters:
            return {"type": "string"}
        prefix = f"{ENUM}."
        return {"enum": [k.removeprefix(prefix) for k in schema.parameters if k.startswith(prefix)]}

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if has_text_keys(schema):
            values = self.of(schema.value_schema)
            return {"type": "object", "connect.type": "map", "additionalProperties": values}
        entry = {"key": self.of(schema.key_schema, 0), "value": self.of(schema.value_schema, 1)}
        items = {"type": "object", "properties": entry}
        return {"type": "array", "connect.type": "map", "items": items}


class JsonSchemaReader:
    """Reads JSON Schema; `default` gives the value of a default's JSON."""

    def __init__(
        self,
        stored: StoredSchema,
        default: Callable[[Schema, Any], Any],
        *,
        makes_optional: bool,
        takes_first: bool = False,
    ) -> None:
        """`takes_first`: of the types in an `allOf` the first counts, not the last."""
        self._default = default
        self._takes_first = takes_first
        self._makes_optional = makes_optional
        self._parts = Parts()
        self._open: dict[int, list[SchemaReference]] = {}
        """The parts that are being read, each with what refers to it from within."""
        self._ids = 0
        try:
            self._root = json.loads(stored.text)
            self._documents = {name: json.loads(text) for name, text in stored.references}
        except ValueError as error:
            raise DataError(f"Schema {stored.id} is not a JSON Schema: {error}") from error

    def schema(self) -> Schema:
        """The schema of all. Raises DataError."""
        return self._whole(self._root, self._root, 0)

    def _whole(self, node: Any, root: Any, depth: int, *, is_optional: bool = False) -> Schema:
        """Schemas that may be referenced from within."""
        within: list[SchemaReference] = []
        self._open[id(node)] = within
        schema = self._of(node, root, depth)
        del self._open[id(node)]
        if within:
            is_plain = schema.type is Type.STRUCT and not is_union(schema)
            if not is_plain or type(schema) is SchemaReference:
                raise DataError("Schemas that contain themselves are supported of objects alone")
            parameters = {**schema.parameters, ID: f"#id{self._ids}"}
            schema = replace(schema, parameters=parameters)
            for inner in within:
                inner.bind(schema, is_optional=inner.optional or schema.optional)
        return optional(schema) if is_optional else schema

    def _of(self, node: Any, root: Any, depth: int, *, is_optional: bool = False) -> Schema:
        _check_depth(depth)
        self._parts.add()
        if not isinstance(node, Mapping):
            raise DataError(f"Unsupported JSON Schema: {node}")
        if "$ref" in node:
            referred, root = self._referred(str(node["$ref"]), root)
            within = self._open.get(id(referred))
            if within is None:
                return self._whole(referred, root, depth + 1, is_optional=is_optional)
            self._ids += 1
            within.append(reference(is_optional=is_optional))
            return within[-1]
        branches = _branches(node)
        if branches is not None:
            others = [branch for branch in branches if not _is_null(branch)]
            has_null = len(others) < len(branches)
            if len(others) == 1:
                return self._of(others[0], root, depth + 1, is_optional=is_optional or has_null)
            fields = [
                (f"{ONE_OF}.field.{i}", self._of(branch, root, depth + 1, is_optional=True))
                for i, branch in enumerate(others)
            ]
            return struct_of(fields, name=ONE_OF, optional=has_null or is_optional)
        if "allOf" in node:
            node = self._merged(node, root, depth)
        schema = self._with_rest(self._base(node, root, depth), node)
        return optional(schema) if is_optional else schema

    def _merged(self, node: Mapping[str, Any], root: Any, depth: int) -> dict[str, Any]:
        """All parts of an `allOf` in one."""
        _check_depth(depth)
        self._parts.add()
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        has_type = False
        for part in node["allOf"]:
            inner_root = root
            if "$ref" in part:
                part, inner_root = self._referred(str(part["$ref"]), root)
            if inner_root is not root and '"$ref"' in json.dumps(part):
                raise DataError("Unsupported criterion allOf with references to other schemas")
            if "allOf" in part:
                part = self._merged(part, root, depth + 1)
            properties = {**merged.get("properties", {}), **part.get("properties", {})}
            required = [*merged.get("required", []), *part.get("required", [])]
            if self._takes_first and has_type:
                part = {k: v for k, v in part.items() if k not in ("type", "connect.type")}
            has_type = has_type or "type" in part
            merged = {**merged, **part}
            if properties:
                merged |= {"properties": properties, "required": required, "type": "object"}
        return merged

    def _base(self, node: Mapping[str, Any], root: Any, depth: int) -> Schema:
        kind, own = node.get("type"), node.get("connect.type")
        if "enum" in node or "const" in node:
            values = node.get("enum", [node.get("const")])
            texts = [str(value) for value in values]
            return Schema(Type.STRING, parameters={ENUM: "", **{f"{ENUM}.{t}": t for t in texts}})
        match kind:
            case "boolean":
                return Schema(Type.BOOLEAN)
            case "integer" | "number":
                if own == "bytes":
                    return Schema(Type.BYTES)
                default = Type.INT64 if kind == "integer" else Type.FLOAT64
                return Schema(_TYPES.get(own, default) if own else default)
            case "string":
                return Schema(Type.BYTES if own == "bytes" else Type.STRING)
            case "array":
                return self._array(node, root, depth)
        if kind == "object" or "properties" in node:
            return self._object(node, root, depth)
        raise DataError(f"Unsupported schema type {kind}")

    def _array(self, node: Mapping[str, Any], root: Any, depth: int) -> Schema:
        items = node.get("items")
        if items is None:
            raise DataError("Array schema did not specify the items type")
        if node.get("connect.type") == "map" and "properties" in items:
            parts = items["properties"]
            keys = self._of(parts["key"], root, depth + 1)
            return map_of(keys, self._of(parts["value"], root, depth + 1))
        return array_of(self._of(items, root, depth + 1))

    def _object(self, node: Mapping[str, Any], root: Any, depth: int) -> Schema:
        if node.get("connect.type") == "map":
            values = node.get("additionalProperties")
            return map_of(STRING, self._of(values, root, depth + 1))
        required = node.get("required", ())
        # Without an order of their own, properties stand as they are written.
        properties = [
            (part.get("connect.index", index) if isinstance(part, Mapping) else index, name, part)
            for index, (name, part) in enumerate(node.get("properties", {}).items())
        ]
        fields = [
            (
                name,
                self._of(
                    part,
                    root,
                    depth + 1,
                    is_optional=self._makes_optional and name not in required,
                ),
            )
            for _, name, part in sorted(properties, key=itemgetter(0))
        ]
        return struct_of(fields)

    def _with_rest(self, schema: Schema, node: Mapping[str, Any]) -> Schema:
        parameters = {**schema.parameters, **node.get("connect.parameters", {})}
        schema = replace(
            schema,
            name=node.get("title"),
            version=node.get("connect.version"),
            doc=node.get("description"),
            parameters=parameters,
        )
        if "default" not in node:
            return schema
        return with_default(schema, self._default(schema, node["default"]))

    def _referred(self, place: str, root: Any) -> tuple[Any, Any]:
        """The target of a `$ref`, and its document."""
        document, _, pointer = place.partition("#")
        if document:
            if document not in self._documents:
                raise DataError(f"The schema refers to {document}, which is not there")
            root = self._documents[document]
        target = root
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or step not in target:
                raise DataError(f"The schema refers to {place}, which is not there")
            target = target[step]
        return target, root


def _check_depth(depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise DataError("Schemas that contain themselves are not supported")


def _is_null(branch: Any) -> bool:
    return isinstance(branch, Mapping) and branch.get("type") == "null"


def _branches(node: Mapping[str, Any]) -> list[Any] | None:
    for name in ("oneOf", "anyOf"):
        if name in node:
            return list(node[name])
    kinds = node.get("type")
    if isinstance(kinds, list):
        return [_NULL if kind == "null" else {**node, "type": kind} for kind in kinds]
    return None
