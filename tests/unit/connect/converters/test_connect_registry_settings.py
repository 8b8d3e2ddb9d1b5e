"""Settings of the converters with a registry: defaults for nulls, and what is refused."""

from __future__ import annotations

import pytest

from barnabas.connect.data.builder import INT32, OPTIONAL_STRING, struct_of, with_default
from barnabas.connect.data.schema import Struct
from barnabas.connect.errors.kinds import ConfigError
from support.connect.registry import registry_converter

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = "io.confluent.connect.json.JsonSchemaConverter"
PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
ROW = struct_of({"id": INT32, "city": with_default(OPTIONAL_STRING, "nowhere")}, name="Row")


@pytest.mark.parametrize("class_name", [AVRO, JSON, PROTOBUF])
@pytest.mark.parametrize("ignores", [False, True])
def test_nulls_stay_where_defaults_are_ignored(url: str, class_name: str, *, ignores: bool) -> None:
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
        ("normalize.schemas", "true"),
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
    [("normalize.schemas", "false"), ("wrapper.for.raw.primitives", "true"), ("proxy.host", "")],
)
def test_their_defaults_are_not(name: str, text: str) -> None:
    registry_converter(AVRO, "http://127.0.0.1:1", **{name: text})
