"""JSON Schemas from Connect's and back, as Connect's JsonSchemaData translates them.

What is optional is `oneOf` null and the schema; numbers name their type in `connect.type`; a
property's place is its `connect.index`. Maps are arrays of entries `key` and `value`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from barnabas.schemas.converters.json_schema_documents import JsonSchemaWriter
from barnabas.schemas.data.schema import Schema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    ENTRIES,
    MISSING,
    OMITTED,
    UNION,
    ConnectField,
    ConnectSchema,
)

_NUMBERS = ("int8", "int16", "int32", "int64", "float32", "float64", "bytes")


def to_text(schema: Schema) -> str:
    """The JSON Schema as text; decimals are numbers."""
    writer = JsonSchemaWriter(lambda part: part.default, is_decimal_numeric=True, allows_more=True)
    return json.dumps(writer.whole(schema), ensure_ascii=False, separators=(",", ":"))


def from_json(schema: Any, references: Mapping[str, Any]) -> ConnectSchema:
    """The schema of a decoded JSON Schema; `references` are decoded ones by their names.

    Raises AnalysisError for what has no like in SQL.
    """
    return _Reader(schema, references).schema(schema, schema)


class _Reader:
    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self.root = root
        self.references = references
        self.open: list[int] = []

    def schema(self, json_schema: Any, document: Any) -> ConnectSchema:
        if not isinstance(json_schema, Mapping):
            raise AnalysisError("The JSON Schema allows anything; columns need types")
        if "$ref" in json_schema:
            return self.referred(str(json_schema["$ref"]), document)
        for combined in ("oneOf", "anyOf"):
            if combined in json_schema:
                return self.with_facts(self.union(json_schema[combined], document), json_schema)
        if "allOf" in json_schema:
            return self.all_of(json_schema, document)
        types = json_schema.get("type")
        if isinstance(types, list):
            branches = [{**json_schema, "type": json_type} for json_type in types]
            return self.union(branches, document)
        return self.with_facts(self.plain(json_schema, types, document), json_schema)

    def referred(self, reference: str, document: Any) -> ConnectSchema:
        name, _, pointer = reference.partition("#")
        target = self.references.get(name) if name else document
        inner = target
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            inner = inner.get(step) if isinstance(inner, Mapping) else None
        if inner is None:
            raise AnalysisError(f"The JSON Schema refers to nothing: {reference}")
        if id(inner) in self.open:
            raise AnalysisError(f"The JSON Schema is recursive: {reference}")
        self.open.append(id(inner))
        found = self.schema(inner, target)
        self.open.pop()
        return found

    def union(self, branches: Sequence[Any], document: Any) -> ConnectSchema:
        others = [branch for branch in branches if branch != {"type": "null"}]
        others = [b for b in others if not (isinstance(b, Mapping) and b.get("type") == "null")]
        if len(branches) == 1:
            return self.schema(branches[0], document)
        if len(branches) == 2 and len(others) == 1:
            return replace(self.schema(others[0], document), optional=True)
        fields = tuple(
            ConnectField(
                f"io.confluent.connect.json.OneOf.field.{index}",
                replace(self.schema(branch, document), optional=True),
            )
            for index, branch in enumerate(others)
        )
        optional = len(others) < len(branches)
        return ConnectSchema("struct", optional, fields=fields, kind=UNION)

    def all_of(self, json_schema: Mapping[str, Any], document: Any) -> ConnectSchema:
        parts = [self.schema(branch, document) for branch in json_schema["allOf"]]
        if "properties" in json_schema:
            parts.append(self.object(json_schema, document))
        structs = [part for part in parts if part.type == "struct" and part.kind != UNION]
        if not structs:
            return parts[0]
        fields = {field.name: field for part in structs for field in part.fields}
        return ConnectSchema("struct", fields=tuple(fields.values()))

    def plain(self, json_schema: Mapping[str, Any], json_type: Any, document: Any) -> ConnectSchema:
        connect_type = json_schema.get("connect.type")
        if "enum" in json_schema or "const" in json_schema:
            return ConnectSchema("string")
        match json_type:
            case "boolean":
                return ConnectSchema("boolean")
            case "integer" | "number":
                if connect_type in _NUMBERS:
                    return ConnectSchema(str(connect_type))
                return ConnectSchema("int64" if json_type == "integer" else "float64")
            case "string":
                return ConnectSchema("bytes" if connect_type == "bytes" else "string")
            case "array":
                return self.array(json_schema, document)
        if json_type == "object" or "properties" in json_schema:
            if connect_type == "map":
                value = self.schema(json_schema.get("additionalProperties"), document)
                return ConnectSchema("map", key=ConnectSchema("string"), value=value)
            return self.object(json_schema, document)
        raise AnalysisError(f"Unsupported schema type in the JSON Schema: {json_type}")

    def array(self, json_schema: Mapping[str, Any], document: Any) -> ConnectSchema:
        if "items" not in json_schema:
            raise AnalysisError("Array schema did not specify the items type")
        item = self.schema(json_schema["items"], document)
        members = {field.name: field.schema for field in item.fields}
        if json_schema.get("connect.type") == "map" and members.keys() == {"key", "value"}:
            return ConnectSchema("map", key=members["key"], value=members["value"], kind=ENTRIES)
        return ConnectSchema("array", value=item)

    def object(self, json_schema: Mapping[str, Any], document: Any) -> ConnectSchema:
        properties = list(json_schema.get("properties", {}).items())
        places = [
            inner.get("connect.index", index) if isinstance(inner, Mapping) else index
            for index, (_, inner) in enumerate(properties)
        ]
        fields = []
        for _, (name, inner) in sorted(
            zip(places, properties, strict=True), key=lambda pair: pair[0]
        ):
            schema = self.schema(inner, document)
            if schema.default is MISSING and not schema.optional:
                schema = replace(schema, default=OMITTED)
            fields.append(ConnectField(name, schema))
        return ConnectSchema("struct", fields=tuple(fields))

    def with_facts(self, schema: ConnectSchema, json_schema: Mapping[str, Any]) -> ConnectSchema:
        title = json_schema.get("title")
        parameters = json_schema.get("connect.parameters")
        if isinstance(title, str) and schema.name is None:
            schema = replace(schema, name=title)
        if isinstance(parameters, Mapping):
            pairs = tuple((name, str(value)) for name, value in parameters.items())
            schema = replace(schema, parameters=pairs)
        if "default" in json_schema:
            schema = replace(schema, default=json_schema["default"])
        return schema
