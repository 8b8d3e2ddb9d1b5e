"""JSON, with the schema in an envelope or without.

Source: org.apache.kafka.connect.json.JsonConverter (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.converters.base import (
    CONVERTER_TYPE,
    Converter,
    RawHeaders,
    SchemaAndValue,
    flag,
    parse,
)
from barnabas.schemas.converters.json import JsonFormat, JsonOptions
from barnabas.schemas.data.cache import ENTRIES_MAX
from barnabas.schemas.data.schema import Schema

_IN_SCHEMAS: Final[dict[str, Any]] = {
    "importance": Importance.HIGH,
    "group": "Schemas",
    "width": Width.MEDIUM,
}
_IN_VALUES: Final[dict[str, Any]] = {
    "importance": Importance.LOW,
    "group": "Serialization",
    "width": Width.MEDIUM,
}
DEFINITION: Final = Definition([
    CONVERTER_TYPE,
    flag("schemas.enable", "Include the schema in each message.", default=True, order=0,
         display_name="Enable Schemas", **_IN_SCHEMAS),
    Setting("schemas.cache.size", ConfigType.INT, ENTRIES_MAX,
            doc="Number of schemas in the converter's cache.", order=1,
            display_name="Schema Cache Size", **_IN_SCHEMAS),
    Setting("schema.content", ConfigType.STRING, None,
            doc="The schema of all messages, in JSON; messages then carry none.", order=2,
            display_name="Schema Content", **_IN_SCHEMAS),
    Setting("decimal.format", ConfigType.STRING, "BASE64",
            doc="Format of decimals: BASE64, the bytes of their digits, or NUMERIC.", order=0,
            display_name="Decimal Format", validator=one_of_any_case("NUMERIC", "BASE64"),
            **_IN_VALUES),
    flag("replace.null.with.default", "Replace a null with its field's default.", default=True,
         order=1, display_name="Replace null with default", **_IN_VALUES),
])  # fmt: skip


def plain_json(decimal_format: str) -> JsonConverter:
    """Return a converter of values to JSON without schemas."""
    converter = JsonConverter()
    settings = {"schemas.enable": "false", "decimal.format": decimal_format}
    converter.configure(settings, is_key=False)
    return converter


class JsonConverter(Converter):
    """JSON, with or without schemas."""

    definition: ClassVar[Definition] = DEFINITION

    def configure(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        parsed = parse(self.definition, settings, "key" if is_key else "value")
        self._format = JsonFormat(
            JsonOptions(
                has_schemas=parsed["schemas.enable"],
                replaces_null=parsed["replace.null.with.default"],
                is_decimal_numeric=parsed["decimal.format"].upper() == "NUMERIC",
                entries_max=max(parsed["schemas.cache.size"], 1),
                fixed_schema=parsed["schema.content"],
            )
        )

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the JSON of a value. Raises DataError."""
        return self._format.write(schema, value)

    def from_column(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Return the JSON of many values. Raises DataError."""
        return self._format.write_all(schema, values)

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return the value that JSON stands for. Raises DataError."""
        return self._format.read(data)
