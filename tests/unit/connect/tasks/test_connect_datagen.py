"""Records that Datagen makes up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from barnabas.connect.connectors.datagen.connector import Datagen
from barnabas.connect.connectors.datagen.generator import compile_schema
from barnabas.connect.connectors.datagen.quickstarts import KEYS, quickstart
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.errors import ConfigError, ConnectError
from barnabas.schemas.data.schema import Schema, Struct, Type

DATAGEN = {
    "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
    "kafka.topic": "made",
    "max.interval": "0",
    "iterations": "50",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.mark.parametrize("name", KEYS)
def test_quickstarts_fit_their_schemas(name: str) -> None:
    schema, make = compile_schema(quickstart(name))
    random = Random(1)
    for number in range(20):
        _check(schema, make(random, number))
    assert KEYS[name] in [field.name for field in schema.fields]


def _check(schema: Schema, value: object) -> None:
    if schema.type is Type.STRUCT:
        assert isinstance(value, Struct)
        for field, one in zip(schema.fields, value.values, strict=True):
            _check(field.schema, one)
        return
    kinds = {
        Type.INT32: int,
        Type.INT64: int,
        Type.FLOAT32: float,
        Type.FLOAT64: float,
        Type.STRING: str,
        Type.ARRAY: list,
        Type.MAP: dict,
    }
    assert isinstance(value, kinds[schema.type])


def made(kind: str, **hints: object) -> list[object]:
    _, make = compile_schema({"type": kind, "arg.properties": hints})
    random = Random(7)
    return [make(random, number) for number in range(12)]


def test_hints() -> None:
    assert made("int", iteration={"start": 3, "step": 2, "restart": 9})[:5] == [3, 5, 7, 3, 5]
    assert all(
        isinstance(one, int) and 5 <= one < 7 for one in made("long", range={"min": 5, "max": 7})
    )
    assert set(made("string", options=["a", "b"])) == {"a", "b"}
    assert all(len(str(one)) == 4 for one in made("string", length=4))
    pattern = r"User_(a|b)[1-9]{2}x?"
    assert all(re.fullmatch(pattern, str(one)) for one in made("string", regex=pattern))
    assert set(made("boolean", odds=1.0)) == {True}


@pytest.mark.parametrize(
    "node",
    [{"type": "fixed"}, ["int", "string"], {}, {"type": "int", "arg.properties": {"options": 1}}],
)
def test_schemas_that_nothing_can_be_made_of(node: object) -> None:
    with pytest.raises(ConfigError):
        compile_schema(node)


def test_task_ends_after_its_iterations_and_goes_on_with_its_own() -> None:
    with ConnectKit() as kit:
        first = kit.start("gen", {**DATAGEN, "quickstart": "pageviews", "random.seed": "5"})
        with pytest.raises(ConnectError, match="generated the configured 50 number of messages"):
            raise kit.wait_for_failure(first)
        records = kit.records("made")
        views = [json.loads(record.value or b"") for record in records]
        assert [view["viewtime"] for view in views] == [1 + 10 * number for number in range(50)]
        assert [record.key for record in records[:2]] == [b"1", b"11"]
        assert dict(records[3].headers)["current.iteration"] == b"3"
        ((partition, offset),) = kit.offsets("gen")
        assert (partition, offset["task.generation"], offset["current.iteration"]) == (
            {"task.id": 0},
            1,
            50,
        )
    with ConnectKit() as again:
        settings = {**DATAGEN, "quickstart": "pageviews", "random.seed": "5"}
        again.topics.store("gen", [({"task.id": 0}, {**offset, "current.iteration": 40})])
        again.wait_for_failure(again.start("gen", settings))
        assert again.values("made") == [record.value for record in records[40:]]


def test_schema_of_ones_own(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    path = tmp_path / "r.avsc"
    path.write_text(json.dumps(schema))
    for given in ({"schema.string": json.dumps(schema)}, {"schema.filename": str(path)}):
        with ConnectKit() as kit:
            endless = {"iterations": "-1", "max.interval": "1", "tasks.max": "2"}
            kit.start("gen", {**DATAGEN, **given, **endless, "schema.keyfield": "n"})
            records = kit.wait_for_records("made", 20)
            assert records[0].key == str(json.loads(records[0].value or b"")["n"]).encode()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "Set exactly one of"),
        ({"quickstart": "nothing"}, "there is no quickstart nothing"),
        ({"schema.string": "{"}, "is not JSON"),
        ({"schema.filename": "/no/such"}, "Unable to read the '/no/such' schema file"),
        ({"quickstart": "users", "schema.keyfield": "x"}, "no field x"),
    ],
)
def test_wrong_settings(given: dict[str, str], text: str) -> None:
    with ConnectKit() as kit, pytest.raises(ConfigError, match=text):
        kit.start("gen", {**DATAGEN, **given})


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "record", "name": "r"}',
        '{"type": "record", "name": "r", "fields": [{"name": "a"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "enum"}}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array"}}]}',
        '{"type": "int", "arg.properties": {"range": {"min": "low"}}}',
        '{"type": "record", "name": "r", "fields": 7}',
    ],
)
def test_a_schema_that_lacks_a_part_is_refused_in_words(schema: str) -> None:
    settings = {key: value for key, value in DATAGEN.items() if key != "quickstart"}
    [[text]] = Datagen().validate({**settings, "schema.string": schema}).values()
    assert "the Avro schema or its arg.properties are wrong" in text
