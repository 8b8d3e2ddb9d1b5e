"""Texts that are looked for before records are decoded: no record is lost by it."""

from __future__ import annotations

import io
import json
from typing import Any
from unittest import mock

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.services.decoding import Decoder
from barnabas.console.services.expressions import compile_expression, text_of
from barnabas.console.services.needles import Needle, names_of
from barnabas.console.services.searched import Searched, may_match, shown_header
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.wire_format import prefix_of

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "city", "type": "string"},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}
STATE = {
    "type": "record",
    "name": "State",
    "fields": [{"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["Ghent"]}}],
}


class Message:
    """A record as librdkafka gives it."""

    def __init__(self, value: bytes | None, key: bytes | None = None, headers: Any = None) -> None:
        self._value, self._key, self._headers = value, key, headers

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def headers(self) -> Any:
        return self._headers


def avro(schema: Any, value: Any, schema_id: int) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return prefix_of(schema_id) + out.getvalue()


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    registry: Any = MemoryRegistry({"orders-value": json.dumps(ORDER), "states": json.dumps(STATE)})
    found = Decoder(registry)
    found.decode(avro(STATE, {"state": "Ghent"}, 2), is_key=False)
    empty: dict[str, Any] = {"id": 1, "price": None, "city": "", "tags": {}, "next": None}
    found.decode(avro(ORDER, empty, 1), is_key=False)
    return found


def needles(text: str) -> set[tuple[str, str]] | None:
    found = compile_expression(text).needles
    return None if found is None else {(one.root, one.text.decode()) for one in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('value.city == "Ghent"', {("value", "Ghent")}),
        ('(value.city) == "Ghent"', {("value", "Ghent")}),
        ('key startswith "customer"', None),  # `c` may end an escape within an object
        ('key == "customer"', {("key", "customer")}),
        ('key contains "kim"', {("key", "kim")}),
        ('headers.source == "shop"', {("headers", "shop")}),
        ('"Ghent"', {("key", "Ghent"), ("value", "Ghent"), ("headers", "Ghent")}),
        ('value.city in ("Ghent", "Lyon")', {("value", "Ghent"), ("value", "Lyon")}),
        ('value.city in ("Ghent", 1)', None),
        ('value.city == "Ghent" and value.id > 1', {("value", "Ghent")}),
        ('value.city in ("Ghent", "Lyon") and key == "kim"', {("key", "kim")}),
        ('value.city == "Ghent" or key == "kim"', {("value", "Ghent"), ("key", "kim")}),
        ('value.city == "Ghent" or value.id > 1', None),
        ('not value.city == "Ghent"', None),
        ('value.city != "Ghent"', None),
        ('lower(value.city) == "ghent"', None),
        ("value.city == value.name", None),
        ('offset == "Ghent"', None),
        ('value.paid contains "true"', None),
        ('value == "00 ff"', None),
        ('value contains "Infinity"', None),
        ('value contains "\\"city\\": \\"Ghent"', None),
        ('value contains "Ghent, Lyon"', None),
        ('value.city == "Ghent, Lyon"', {("value", "Ghent, Lyon")}),
        ('value.city == "two\\nlines"', None),
        ("value.id == 1 and value.price > 2", None),
    ],
)
def test_needles_of_an_expression(text: str, expected: set[tuple[str, str]] | None) -> None:
    assert needles(text) == expected


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (ORDER, {"id", "price", "city", "tags", "next"}),
        ("string", set()),
        ({"type": "string", "avro.java.string": "String"}, set()),
        ({"type": "array", "items": ORDER}, {"id", "price", "city", "tags", "next"}),
        (STATE, None),
        ({"type": "string", "logicalType": "uuid"}, None),
        ("bytes", None),
        (["null", {"type": "fixed", "name": "F", "size": 2}], None),
        ("Unknown", None),
    ],
)
def test_schemas_whose_texts_stand_in_the_bytes(schema: Any, names: set[str] | None) -> None:
    found = names_of(schema)
    assert (None if found is None else {one.decode() for one in found}) == names


def is_found(decoder: Decoder, text: str, message: Message) -> tuple[bool, bool]:
    """Return whether a record may match by its needles, and whether it matches."""
    expression = compile_expression(text)
    may = may_match(expression.needles, decoder, ())
    assert may is not None, text
    record: Any = message
    return may(record), expression.matches(Searched(decoder, ()).at(record))


@pytest.mark.parametrize(
    ("text", "message", "found"),
    [
        ('value.city == "Ghent"', Message(b'{"city":"Ghent"}'), (True, True)),
        ('value.city == "Ghent"', Message(b'{"city":"Lyon"}'), (False, False)),
        ('value.city == "Ghent"', Message(b'{"city":"\\u0047hent"}'), (True, True)),
        ('value.city == "Ghent"', Message(None), (False, False)),
        ('value.city == "Ghent"', Message(b""), (False, False)),
        ('value.city == "Ghent"', Message(b"{}", headers=[("a", b"b")]), (True, False)),
        ('value.state == "Ghent"', Message(avro(STATE, {"state": "Ghent"}, 2)), (True, True)),
        ('value contains "price"', Message(b'{"cost": 1}'), (False, False)),
        ('"kim"', Message(b"{}", b"kim"), (True, True)),
        ('headers.a == "shop"', Message(b"shop"), (False, False)),
        ('headers.a == "shop"', Message(b"", headers=[("a", b"shop")]), (True, True)),
    ],
)
def test_records_that_are_decoded(
    decoder: Decoder, text: str, message: Message, found: tuple[bool, bool]
) -> None:
    assert is_found(decoder, text, message) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('value.tags contains "nGhent"', {"tags": {"a": "\nGhent"}}),  # `\\nGhent` in JSON
        ('value.tags contains "fGhent"', {"tags": {"a": "\x0fGhent"}}),  # `\\u000fGhent`
        ('value contains "Infinity"', {"price": float("inf")}),
        ('value contains "NaN"', {"price": float("nan")}),
        ('value.price contains "1e-05"', {"price": 0.00001}),
        ('value contains "city\\": \\"Ghent"', b'{"city":"Ghent"}'),
        ('value contains "], 2"', b'{"a":[[1],2]}'),
        ('value contains ": true"', b'{"a":true}'),
        ('value.city == "fäden"', b'{"city":"f\\u00e4den"}'),
        ('value == "ff 00"', b"\xff\x00"),
        ('"ff fe"', b"\xff\xfe"),
    ],
)
def test_what_people_see_otherwise_than_it_is_written_is_found(
    decoder: Decoder, text: str, value: Any
) -> None:
    if not isinstance(value, bytes):
        order: dict[str, Any] = {"id": 1, "price": None, "city": "", "tags": {}, "next": None}
        value = avro(ORDER, order | value, 1)
    expression = compile_expression(text)
    message: Any = Message(value)
    assert expression.matches(Searched(decoder, ()).at(message))
    may = may_match(expression.needles, decoder, ())
    assert may is None or may(message)


def test_names_of_fields_count_as_texts(decoder: Decoder) -> None:
    order: dict[str, Any] = {"id": 1, "price": None, "city": "", "tags": {}, "next": None}
    message = Message(avro(ORDER, order, 1))
    assert is_found(decoder, 'value contains "price"', message) == (True, True)
    assert is_found(decoder, 'value contains "kilo"', message) == (False, False)


def test_a_schema_that_is_not_known_yet_is_asked_for() -> None:
    registry: Any = MemoryRegistry({"states": json.dumps(STATE)})
    fresh = Decoder(registry)
    message = Message(avro(STATE, {"state": "Ghent"}, 1))
    assert is_found(fresh, 'value.state == "Ghent"', message) == (True, True)
    assert is_found(fresh, 'value.state == "Ghent"', message) == (True, True)


def test_masked_fields_are_always_decoded(decoder: Decoder) -> None:
    assert may_match(frozenset({Needle("value", b"Ghent")}), decoder, ("city",)) is None


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("__connect.errors.exception.message", b"no number: ann@b.example", "ann@"),
        ("__connect.errors.exception.stacktrace", b"ValueError: ann@b.example\n", "ann@"),
        ("origin", b'{"email": "ann@b.example"}', "ann@"),
        ("origin", b'{"email": "ann@b.example"', "ann@"),
        ("origin", b"\xffann@b.example", "61 6e 6e"),
        ("email", b"ann@b.example", "ann@"),
    ],
)
def test_headers_that_may_have_a_masked_field_are_masked_for_people_and_searches(
    decoder: Decoder, name: str, data: bytes, text: str
) -> None:
    expression = compile_expression(f'headers["{name}"] contains "{text}"')
    message: Any = Message(None, headers=[(name, data)])
    for hidden, is_seen in (((), True), (("email",), False)):
        assert (text in text_of(shown_header(name, data, hidden).value)) is is_seen
        assert expression.matches(Searched(decoder, hidden).at(message)) is is_seen


def test_what_cannot_match_is_not_decoded(decoder: Decoder) -> None:
    message = Message(b'{"city": "Lyon"}')
    with mock.patch.object(Decoder, "value", side_effect=AssertionError):
        may = may_match(compile_expression('"Ghent"').needles, decoder, ())
        assert may is not None
        assert not may(message)


TEXTS = st.text('Gghentruc \n\t"\\/\x0c\x010ß-', max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ORDERS = st.recursive(
    st.none(),
    lambda inner: st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "price": st.none() | st.floats(),
            "city": TEXTS,
            "tags": st.dictionaries(TEXTS, TEXTS, max_size=2),
            "next": inner,
        }
    ),
    max_leaves=3,
).filter(lambda order: order is not None)
VALUES = st.one_of(
    JSON.map(lambda value: json.dumps(value).encode()),
    JSON.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()),
    ORDERS.map(lambda order: avro(ORDER, order, 1)),
    st.binary(max_size=12),
    st.binary(max_size=12).map(lambda data: prefix_of(1) + data),
    TEXTS.map(str.encode),
)
PARTS = ("value", "value.city", "value.tags", "value.next")


@given(
    value=VALUES,
    part=st.sampled_from(PARTS),
    how=st.sampled_from(("==", "contains", "startswith", "endswith", "in", "alone")),
    wanted=TEXTS | st.text("0123456789abcdef ", max_size=5) | st.sampled_from(("city", "next")),
)
def test_no_record_that_matches_is_left_out(
    decoder: Decoder, value: bytes, part: str, how: str, wanted: str
) -> None:
    quoted = json.dumps(wanted, ensure_ascii=False)
    texts = {"in": f"{part} in ({quoted})", "alone": quoted}
    expression = compile_expression(texts.get(how, f"{part} {how} {quoted}"))
    may = may_match(expression.needles, decoder, ())
    message: Any = Message(value)
    if may is not None and not may(message):
        assert not expression.matches(Searched(decoder, ()).at(message))
