"""Avro's JSON encoding of values, checked by reading it back with fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import json_writer, parse_schema, schemaless_reader, schemaless_writer

from barnabas.cli.serdes.encoding import AvroJsonError, from_json


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


A = record("a.A", ("n", "int"))
B = record("a.B", ("n", "int"))
COLOUR = {"type": "enum", "name": "a.Colour", "symbols": ["RED", "BLUE"]}
TREE = record("Tree", ("n", "int"), ("next", ["null", "Tree"]))
TWICE = record("Twice", ("first", A), ("second", ["null", "a.A"]))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", True),
        ("long", 1 << 62),
        ("double", 1.5),
        ("string", "é"),
        ("bytes", "\u0000\u00ff"),
        ({"type": "fixed", "name": "F", "size": 2}, "\u00e9\u0001"),
        (COLOUR, "BLUE"),
        ({"type": "array", "items": ["null", "long"]}, [None, {"long": 3}]),
        ({"type": "map", "values": {"type": "array", "items": "string"}}, {"k": ["v"]}),
        ([A, B], {"a.B": {"n": 1}}),
        ([A, B], {"a.A": {"n": 1}}),
        ([COLOUR, "null"], {"a.Colour": "RED"}),
        (["int", "double"], {"double": 5.0}),
        (["null", {"type": "map", "values": "int"}], {"map": {"int": 3}}),
        (TREE, {"n": 1, "next": {"Tree": {"n": 2, "next": None}}}),
        (TWICE, {"first": {"n": 1}, "second": {"a.A": {"n": 2}}}),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1760000000123456),
        ({"type": "int", "logicalType": "date"}, 20000),
        ({"type": "string", "logicalType": "uuid"}, "b17eef3e-e589-4310-9cf4-ba1c52b97ac4"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000"),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], {"long": 7}),
    ],
)
def test_a_value_that_is_written_is_shown_as_it_was(schema: Any, value: Any) -> None:
    parsed = parse_schema(schema)
    written = io.BytesIO()
    schemaless_writer(written, parsed, from_json(parsed, value))
    written.seek(0)
    back = schemaless_reader(written, parsed, None, return_record_name=True)
    shown = io.StringIO()
    json_writer(shown, parsed, [back])
    assert json.loads(shown.getvalue()) == value


@pytest.mark.parametrize(
    ("schema", "value", "made"),
    [
        (["null", "string"], "x", "x"),
        (["null", {"type": "map", "values": "int"}], {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (["null", A], {"n": 1}, {"n": 1}),
        ("double", 1, 1.0),
    ],
)
def test_what_can_mean_one_thing_only_needs_no_tag(schema: Any, value: Any, made: Any) -> None:
    assert from_json(parse_schema(schema), value) == made


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ("int", True, "it must be a whole number"),
        ("int", 1.5, "it must be a whole number"),
        ("string", 1, "it must be a text"),
        ("null", 0, "it must be null"),
        ("bytes", "€", "it has a character that is not a byte"),
        (COLOUR, "GREEN", "it must be one of RED, BLUE"),
        (A, [], "it must be an object"),
        (A, {}, "n is missing"),
        (A, {"n": 1, "m": 2}, "it has no field 'm' in the schema"),
        ({"type": "array", "items": A}, [{"n": 1}, {"n": ""}], "[1].n must be a whole number"),
        ({"type": "map", "values": "int"}, {"k": "v"}, "k must be a whole number"),
        ([A, B], {"n": 1}, 'it must be {"type": value} with a type of a.A, a.B'),
        (TREE, {"n": 1, "next": {"n": 2, "next": ""}}, "next.next must be an object"),
    ],
)
def test_the_place_of_a_fault_is_told(schema: Any, value: Any, said: str) -> None:
    with pytest.raises(AvroJsonError) as caught:
        from_json(parse_schema(schema), value)
    assert str(caught.value) == said
