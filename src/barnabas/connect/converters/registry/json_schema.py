"""JSON with a schema registry: io.confluent.connect.json.JsonSchemaConverter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.converters.registry.base import (
    REGISTRY_SETTINGS,
    Reading,
    RegistryConverter,
    Writing,
)
from barnabas.connect.converters.registry.json_schemas import (
    JsonSchemaReader,
    JsonSchemaWriter,
)
from barnabas.connect.converters.registry.json_values import JsonSchemaText, reader
from barnabas.schemas.data.schema import DECIMAL, Schema, Type
from barnabas.sql.formats.format import StoredSchema


class JsonSchemaConverter(RegistryConverter):
    """JSON whose schemas are JSON Schema."""

    definition: ClassVar[Definition] = Definition(
        (
            *REGISTRY_SETTINGS,
            Setting(
                "decimal.format",
                ConfigType.STRING,
                default="BASE64",
                importance=Importance.LOW,
                doc="How decimals are written: BASE64, the bytes of their digits, or NUMERIC.",
                validator=one_of_any_case("BASE64", "NUMERIC"),
            ),
            Setting(
                "use.optional.for.nonrequired",
                ConfigType.BOOLEAN,
                default=False,
                doc="Whether properties that are not required become optional fields.",
            ),
            Setting(
                "object.additional.properties",
                ConfigType.BOOLEAN,
                default=True,
                doc="Whether written schemas allow properties that they do not name.",
            ),
        )
    )
    schema_type, title = "JSON", "JSON"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._is_numeric = parsed["decimal.format"].upper() == "NUMERIC"
        self._makes_optional: bool = parsed["use.optional.for.nonrequired"]
        self._allows_more: bool = parsed["object.additional.properties"]

    def _writing(self, schema: Schema | None, target: StoredSchema | None) -> Writing:
        assert schema is not None
        text = JsonSchemaText(
            is_decimal_numeric=self._is_numeric, replaces_null=not self._ignores_defaults
        )
        schemas = JsonSchemaWriter(
            lambda part: json.loads(text.writer(part)(part.default)),
            is_decimal_numeric=self._is_numeric,
            allows_more=self._allows_more,
        )
        write = text.writer(schema)
        name = schema.name if schema.type is Type.STRUCT else None
        made = json.dumps(schemas.whole(schema), ensure_ascii=False, separators=(",", ":"))
        return Writing(made, name, lambda value: write(value).encode())

    def _reading(self, stored: StoredSchema) -> Reading:
        schema = JsonSchemaReader(
            stored,
            lambda part, node: reader(part)(node),
            makes_optional=self._makes_optional,
        ).schema()
        read = reader(schema)
        if DECIMAL not in stored.text and not stored.references:
            return Reading(schema, lambda data: read(json.loads(data)))
        return Reading(schema, lambda data: read(json.loads(data, parse_float=Decimal)))
