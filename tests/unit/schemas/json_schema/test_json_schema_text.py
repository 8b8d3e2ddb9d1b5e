"""JSON texts: what is kept of them, and what is refused."""

import pytest

from barnabas.schemas.json_schema import JsonSchemaFormat
from barnabas.schemas.json_schema.text import decode, encode
from barnabas.schemas.schema import SchemaFault

FORMAT = JsonSchemaFormat()

# Text, what Confluent's registry keeps of it (by Jackson, with exact BigDecimals).
CANONICAL = [
    ('{"a":1.50}', '{"a":1.50}'),
    ('{"a":1E5}', '{"a":1E+5}'),
    ('{"a":1.0e-5}', '{"a":0.000010}'),
    ('{"a":0.00000001}', '{"a":1E-8}'),
    ('{"a":-0}', '{"a":0}'),
    ('{"a":-0.0}', '{"a":0.0}'),
    ('{"a":0e10}', '{"a":0E+10}'),
    ('{"a":-1.2E-7}', '{"a":-1.2E-7}'),
    ('{"a":1.5E+3}', '{"a":1.5E+3}'),
    ('{"a":100000000000000000000000000}', '{"a":100000000000000000000000000}'),
    ('{"a":123456789.123456789123456789}', '{"a":123456789.123456789123456789}'),
    (
        r'{"a":"\u00e9\u001f\u007f\/\"\\\b\f\n\r\t\ud83d\ude00"}',
        '{"a":"\u00e9\\u001F\u007f/\\"\\\\\\b\\f\\n\\r\\t\U0001f600"}',
    ),
    (
        '{ "b" : [ ] ,\n "a" : { } , "c":[1, {"z":1,"y":[true,null]}]}',
        '{"b":[],"a":{},"c":[1,{"z":1,"y":[true,null]}]}',
    ),
    (" true ", "true"),
]

# Text, its members sorted.
NORMALIZED = [
    ('{"b":1,"a":{"d":[{"z":1,"y":2}],"c":3}}', '{"a":{"c":3,"d":[{"y":2,"z":1}]},"b":1}'),
    ('{"enum":["b","a"],"required":["z","b"]}', '{"enum":["b","a"],"required":["z","b"]}'),
    # Java sorts by UTF-16 units: the half of a pair stands before U+E000.
    (r'{"\ue000":1,"\ud83d\ude00":2,"a":3,"A":4}', '{"A":4,"a":3,"\U0001f600":2,"\ue000":1}'),
]

# Text, what the fault says.
REFUSED = [
    ("", "line 1 column 1"),
    ("{", "line 1 column 2"),
    ('{"a":1,\n"b":}', "line 2 column 5"),
    ('{"a":1} x', "line 1 column 9"),
    ('{"a":1,"a":2}', "member 'a' twice"),
    ('{"a":[{"b":1,"b":1}]}', "member 'b' twice"),
    ("[1]", "must be a schema"),
    ('"x"', "must be a schema"),
    ("null", "must be a schema"),
    ("1", "must be a schema"),
    ('{"a":NaN}', "NaN is not a number"),
    ('{"a":-Infinity}', "-Infinity is not a number"),
    ('{"a":1e999999999999}', "too long or too large"),
    ('{"a":1e-200000}', "too long or too large"),
    ('{"a":' + "9" * 5000 + "}", "too long or too large"),
    ('{"a":1.' + "9" * 5000 + "}", "too long or too large"),
    (r'{"a":"\ud800"}', "surrogate"),
    (r'{"\udfff":1}', "surrogate"),
    ('{"a":"\ud800"}', "surrogate"),
    ('{"a":"\x01"}', "control character"),
    ("[" * 100_000, "nested more than 100 deep at line 1 column 101"),
    ("\n" + '{"not":' * 100_000 + "{}" + "}" * 100_000, "at line 2 column 701"),
    ('{"a":' * 101 + "1" + "}" * 101, "nested"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_text(text: str, canonical: str) -> None:
    schema = FORMAT.parse(text)
    assert schema.canonical_text == canonical
    assert FORMAT.parse(canonical) == schema


@pytest.mark.parametrize(("text", "normalized"), NORMALIZED)
def test_normalized_text(text: str, normalized: str) -> None:
    schema = FORMAT.parse(text).normalized()
    assert schema.canonical_text == normalized
    assert schema.normalized() == schema


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refused_text(text: str, says: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        FORMAT.parse(text, is_new=True)
    assert says.lower() in str(caught.value).lower()
    assert len(str(caught.value)) < 300


def test_brackets_in_strings_are_not_nesting() -> None:
    text = '{"a":"' + "[{" * 500 + r"\"" + '"}'
    assert encode(decode(text)) == text


def test_deep_but_allowed_schemas_are_read_and_compared() -> None:
    deep = FORMAT.parse('{"not":' * 99 + "{}" + "}" * 99, is_new=True)
    assert deep.incompatibilities(deep) == []
    assert deep.tags() == {}
    deep = FORMAT.parse('{"allOf":[' * 49 + "{}" + "]}" * 49, is_new=True)
    assert deep.incompatibilities(deep) == []
    assert FORMAT.parse(deep.formatted("resolved")) == deep


def test_a_text_from_the_topic_may_have_a_member_twice() -> None:
    assert FORMAT.parse('{"a":1,"b":2,"a":3}').canonical_text == '{"a":3,"b":2}'


def test_too_long_a_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(SchemaFault, match="10000000 allowed"):
        FORMAT.parse('{"a":"' + "x" * 10_000_000 + '"}')


def test_equality_name_and_forms() -> None:
    schema = FORMAT.parse('{"title":"Order","type":"object"}')
    assert schema.name == "Order"
    assert FORMAT.parse("true").name is None
    assert FORMAT.parse('{"title":1}').name is None
    assert schema == FORMAT.parse('{ "title": "Order", "type": "object" }')
    assert hash(schema) == hash(FORMAT.parse('{ "title": "Order", "type": "object" }'))
    assert schema != FORMAT.parse('{"type":"object","title":"Order"}')
    assert schema.formatted("") == schema.canonical_text
    with pytest.raises(ValueError, match="serialized"):
        schema.formatted("serialized")
