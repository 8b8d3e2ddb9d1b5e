"""Settings of the converters with a registry: defaults for nulls, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from barnabas.schemas.data.builder import INT32, OPTIONAL_STRING, decimal, struct_of, with_default
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.schema import Struct
from support.connect.registry import registry_converter

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = "io.confluent.connect.json.JsonSchemaConverter"
PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
ROW = struct_of({"id": INT32, "city": with_default(OPTIONAL_STRING, "nowhere")}, name="Row")


@pytest.mark.parametrize("class_name", [AVRO, JSON, PROTOBUF])
@pytest.mark.parametrize("ignores", [False, True])
def test_nulls_are_kept_if_defaults_are_ignored(
    url: str, class_name: str, *, ignores: bool
) -> None:
    converter = registry_converter(
        class_name,
        url,
        **{"ignore.default.for.nullables": str(ignores).lower(), "optional.for.nullables": "true"},
    )
    data = converter.from_connect(class_name, ROW, Struct(ROW, [1, None]))
    _, value = converter.to_connect(class_name, data)
    if class_name == JSON:  # its reader puts the default of the schema in the place of null
        assert data.endswith(b'"city":null}' if ignores else b'"city":"nowhere"}')
    else:
        assert value.values == [1, None if ignores else "nowhere"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rule.executors", "encrypt"),
        (
            "value.schema.id.serializer",
            "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer",
        ),
        ("wrapper.for.raw.primitives", "false"),
        ("proxy.host", "proxy.example"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not supported by this converter"):
        registry_converter(AVRO, "http://127.0.0.1:1", **{name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("generate.struct.for.nulls", "false"),
        ("wrapper.for.raw.primitives", "true"),
        ("proxy.host", ""),
    ],
)
def test_defaults_of_refused_settings_are_accepted(name: str, text: str) -> None:
    registry_converter(AVRO, "http://127.0.0.1:1", **{name: text})


def test_normalized_schemas_are_compared_in_normal_form(url: str) -> None:
    row = struct_of({"price": decimal(2)}, name="Price")
    value = Struct(row, [Decimal("1.50")])
    with SchemaRegistryClient({"url": url}) as client:
        first = registry_converter(AVRO, url).from_connect("first", row, value)
        text = client.get_schema(int.from_bytes(first[1:5])).schema_str
        turned = json.dumps(_turned(json.loads(text)))
        number = client.register_schema(
            "normal-value", Schema(turned, "AVRO"), normalize_schemas=True
        )
    strict = registry_converter(AVRO, url, **{"auto.register.schemas": "false"})
    with pytest.raises(DataError, match="is not registered under normal-value"):
        strict.from_connect("normal", row, value)
    for registers in ("false", "true"):
        settings = {"auto.register.schemas": registers, "normalize.schemas": "true"}
        data = registry_converter(AVRO, url, **settings).from_connect("normal", row, value)
        assert int.from_bytes(data[1:5]) == number


def _turned(node: Any) -> Any:
    """The same JSON, with the members of objects in the other order."""
    if isinstance(node, dict):
        return {name: _turned(node[name]) for name in reversed(node)}
    return [_turned(one) for one in node] if isinstance(node, list) else node
