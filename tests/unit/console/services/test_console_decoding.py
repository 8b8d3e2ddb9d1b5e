"""Keys and values as people see them."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from barnabas.console.services.decoding import MASK, Decoder, masked, plain, to_json
from barnabas.console.services.searched import hide
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.wire_format import prefix_of

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "email", "type": "string"}],
    }
)
PROTOBUF = 'syntax = "proto3"; package shop; message Order { int32 id = 1; string email = 2; }'
HEADERS = [("__value_schema_id", prefix_of(1))]


@pytest.fixture
def registry() -> Any:
    return MemoryRegistry({"orders-value": AVRO})


def avro(value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(json.loads(AVRO)), value)
    return out.getvalue()


def test_avro_is_read_by_its_schema(registry: Any) -> None:
    decoder = Decoder(registry)
    data = prefix_of(1) + avro({"id": 7, "email": "a@b"})
    found = decoder.decode(data, is_key=False)
    assert (found.form, found.value, found.schema) == ("avro", {"id": 7, "email": "a@b"}, "1")
    assert found.size == len(data)
    assert decoder.value(data, (), is_key=False) == {"id": 7, "email": "a@b"}


def test_a_schema_may_be_named_in_a_header(registry: Any) -> None:
    found = Decoder(registry).decode(avro({"id": 7, "email": ""}), HEADERS, is_key=False)
    assert (found.form, found.value) == ("avro", {"id": 7, "email": ""})


def test_json_schema_and_protobuf(registry: Any) -> None:
    registry.register("j-value", "JSON", '{"type": "object"}')
    registry.register("p-value", "PROTOBUF", PROTOBUF)
    decoder = Decoder(registry)
    found = decoder.decode(prefix_of(2) + b'{"a": [1]}', is_key=False)
    assert (found.form, found.value) == ("json-schema", {"a": [1]})
    found = decoder.decode(prefix_of(3) + b"\0" + b"\x08\x05\x12\x02hi", is_key=False)
    assert (found.form, found.value) == ("protobuf", {"id": 5, "email": "hi"})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (prefix_of(99) + b"\xff\xfe", "Schema 99 not found"),
        (prefix_of(1) + b"\x0e", "the bytes do not fit schema 1"),
        (prefix_of(1) + avro({"id": 7, "email": "a"}) + b"more", "4 bytes are left over"),
    ],
)
def test_what_cannot_be_read_is_shown_as_bytes_with_the_reason(
    registry: Any, data: bytes, reason: str
) -> None:
    found = Decoder(registry).decode(data, is_key=False)
    assert found.form == "bytes"
    assert found.value == data.hex(" ")
    assert found.reason is not None
    assert reason in found.reason


def test_without_a_registry_the_reason_says_so() -> None:
    found = Decoder(None).decode(prefix_of(1) + b"\x02\xff", is_key=False)
    assert found.reason == "it names schema 1, and no schema registry is configured"


@pytest.mark.parametrize(
    ("data", "form", "value"),
    [
        (b'{"a": 1}', "json", {"a": 1}),
        (b"[1, 2]", "json", [1, 2]),
        (b'{"a": ', "text", '{"a": '),
        (b"[" * 100_000, "text", "[" * 100_000),
        ("grüße".encode(), "text", "grüße"),
        (b"", "text", ""),
        (b"12", "text", "12"),
        (b"\xff\x00", "bytes", "ff 00"),
        (b"a\x01b", "bytes", "61 01 62"),
    ],
)
def test_data_without_a_schema(data: bytes, form: str, value: Any) -> None:
    found = plain(data)
    assert (found.form, found.value) == (form, value)
    assert (found.reason is not None) == (form == "bytes")


def test_null_is_null() -> None:
    assert Decoder(None).decode(None, is_key=True).form == "null"


def test_json_of_what_json_lacks() -> None:
    value = {
        "b": b"\xff",
        "t": b"ok",
        "d": Decimal("1.50"),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "large": 2**60,
        "nan": float("nan"),
        "list": [1, None, True],
    }
    assert to_json(value) == {
        "b": "base64:/w==",
        "t": "ok",
        "d": "1.50",
        "at": "2026-01-02T00:00:00+00:00",
        "large": str(2**60),
        "nan": "nan",
        "list": [1, None, True],
    }


def test_fields_are_masked_by_name_and_by_path() -> None:
    value = {"email": "a", "card": {"number": 4, "name": "x"}, "all": [{"email": "b", "n": 1}]}
    assert masked(value, ("email", "card.number")) == {
        "email": MASK,
        "card": {"number": MASK, "name": "x"},
        "all": [{"email": MASK, "n": 1}],
    }
    assert value["email"] == "a"


def test_what_has_no_known_fields_is_masked_whole() -> None:
    for data in (b"\xff\xfe", b'{"email": "a@b", '):
        assert hide(plain(data), ("email",)).value == MASK
    assert hide(plain(b"just text"), ("email",)).value == "just text"
