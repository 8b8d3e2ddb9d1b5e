"""The names after which RecordNameStrategy names subjects."""

import pytest

from barnabas.node.broker.schemas.http_registry import record_name


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("AVRO", '{"type":"record","name":"Order","namespace":"shop","fields":[]}', "shop.Order"),
        ("AVRO", '{"type":"record","name":"Order","fields":[]}', "Order"),
        ("AVRO", '{"type":"record","name":"Order","namespace":"","fields":[]}', "Order"),
        ("AVRO", '{"type":"record","name":"a.Order","namespace":"b","fields":[]}', "a.Order"),
        ("AVRO", '{"type":{"type":"record","name":"Order","namespace":"b"}}', "b.Order"),
        ("AVRO", '{"type":"enum","name":"Colour","symbols":["RED"]}', None),
        ("AVRO", '"string"', None),
        ("AVRO", '[{"type":"record","name":"Order"},"null"]', None),
        ("AVRO", '{"type":"record","name":7}', None),
        ("AVRO", "no json", None),
        ("AVRO", "[" * 100_000, None),
        ("JSON", '{"title":"Order","type":"object"}', "Order"),
        ("JSON", '{"type":"object"}', None),
        ("JSON", "true", None),
        ("PROTOBUF", 'syntax = "proto3"; package shop.v1; message Order {}', "shop.v1.Order"),
        ("PROTOBUF", "message Order { message Line {} } message Other {}", "Order"),
        (
            "PROTOBUF",
            """
            // package a;
            /* message B {} */ option x = "message C {}"; enum E { Z = 0; }
            message D { string package = 1; }
            package late;
            """,
            "late.D",
        ),
        ("PROTOBUF", "package p; enum E { Z = 0; }", "p.E"),
        ("PROTOBUF", "package p;", None),
        ("XML", "<order/>", None),
    ],
)
def test_names(kind: str, text: str, name: str | None) -> None:
    assert record_name(kind, text) == name
