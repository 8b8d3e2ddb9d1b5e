"""Functions of JSON: cases of ksqlDB's own tests, and edges."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from barnabas.sql import types
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.json import parse_path
from support.sql_calls import call

DOCUMENT = '{"thing1":{"thing2":"hello"},"array":[101,102],"a b":1,"n":null,"t":{"x":1.0,"y":[]}}'

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.thing1.thing2"), "hello"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$['thing1']"), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, '$["thing1"].thing2'), "hello"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$[thing1]"), '{"thing2":"hello"}'),
    ("EXTRACTJSONFIELD", (DOCUMENT, '$["a b"]'), "1"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$"), DOCUMENT),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array.1"), "102"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array[1]"), "102"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array[2]"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array[-1]"), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array.x"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.thing1.none"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.thing1.thing2.deeper"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.n"), "null"),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.n.x"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.t"), '{"x":1.0,"y":[]}'),
    ("EXTRACTJSONFIELD", (DOCUMENT, "thing1"), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, ""), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$thing1"), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$."), EvaluationError),
    ("EXTRACTJSONFIELD", (DOCUMENT, "$.array[1"), EvaluationError),
    ("EXTRACTJSONFIELD", ('{"@type": "VAL"}}', "$.@type"), "VAL"),
    ("EXTRACTJSONFIELD", ('{"a": [1.23450]}', "$.a[0]"), "1.23450"),
    ("EXTRACTJSONFIELD", ('{"a": 1e2}', "$.a"), "1E+2"),
    ("EXTRACTJSONFIELD", ('{"a": -0.0}', "$.a"), "0.0"),
    ("EXTRACTJSONFIELD", ('{"a": "\\u00e9 \\\\ \\ud83d\\ude00"}', "$.a"), "é \\ 😀"),
    ("EXTRACTJSONFIELD", ('{"a": ["\\u00e9\\u0001\\n/"]}', "$.a"), '["é\\u0001\\n/"]'),
    ("EXTRACTJSONFIELD", ('{"a": ["\\u001b"]}', "$.a"), '["\\u001B"]'),
    ("EXTRACTJSONFIELD", ('{"a": "\\ud83d"}', "$.a"), "?"),
    ("EXTRACTJSONFIELD", ('{"a": 1, "a": 2}', "$.a"), "2"),
    ("EXTRACTJSONFIELD", ("[" * 900 + "]" * 900, "$"), EvaluationError),
    ("EXTRACTJSONFIELD", ("", "$"), ""),
    ("EXTRACTJSONFIELD", ("", "$.a"), None),
    ("EXTRACTJSONFIELD", ("{bad", "$.a"), EvaluationError),
    ("EXTRACTJSONFIELD", (None, "$.a"), None),
    ("EXTRACTJSONFIELD", (DOCUMENT, None), None),
    *[
        ("IS_JSON_STRING", (text,), expected)
        for text, expected in [
            ("1", True),
            ("-0.5e3", True),
            ("abc", False),
            ("[1, 2, 3]", True),
            ('"abc"', True),
            ("null", True),
            (" true ", True),
            ('{"1": 2}', True),
            ("{1:2]", False),
            ("", False),
            ("  \n", False),
            (None, False),
            ("NaN", False),
            ("-Infinity", False),
            ("01", False),
            ("1.", False),
            ("'a'", False),
            ("[1,]", False),
            ('"a\nb"', False),
            ("truex", False),
            ("true$", True),
            ("1x", False),
            ("1 x", True),  # what follows the first value does not count
            ("[1]x", True),
            ("[" * 100_000, False),
            ("9" * 5000, False),
            ("1e99999999999999999999", False),
        ]
    ],
    *[
        ("JSON_ARRAY_CONTAINS", arguments, expected)
        for arguments, expected in [
            (("[]", True), False),
            (("[]", None), False),
            (("[null]", None), True),
            (("[null]", "null"), False),
            (('[2147483647, {"ab": null}, -2147483648, 1, 2, 3, null, [4], 4]', -2147483648), True),
            (("5", 5), False),
            (("[1111111111111111]", 1111111111111111), True),
            (("[[222222222222222], 33333]", 33333), True),
            (("[[222222222222222], 33333]", 222222222222222), False),
            (('[{}, "abc", null, 1]', 1), True),
            (('[{}, "abc", null, {"1":1}]', 1), False),
            (("[1]", 1.0), False),
            (("[1]", True), False),
            (("[true]", 1), False),
            (("[1.0, 2.0, 1.6E3]", 1600.0), True),
            (("[[2.0], 3.0]", 2.0), False),
            (('["cbda", "abc"]', "abc"), True),
            (('[""]', ""), True),
            (('[""]', None), False),
            (("[1,2,3]", "1"), False),
            (("[false, false, true]", True), True),
            (("[true, true]", False), False),
            (("[1, 2, oops", 2), True),  # read no further than needed
            (("[1, oops", 2), False),
            (("[1 2]", 2), False),
            (("oops", 1), False),
            (("", 1), False),
            ((None, 1), EvaluationError),
        ]
    ],
    *[
        ("JSON_ARRAY_LENGTH", (text,), expected)
        for text, expected in [
            ("[1, [1, [2]], 3]", 3),
            ("[]", 0),
            ("{}", None),
            ("123", None),
            ("null", None),
            ("", None),
            (None, None),
            ("abc", EvaluationError),
        ]
    ],
    *[
        ("JSON_CONCAT", arguments, expected)
        for arguments, expected in [
            (('{"a": 1}', '{"b": 2}'), '{"a":1,"b":2}'),
            (('{"a": 1}', '{"b": 2}', '{"c": 3}'), '{"a":1,"b":2,"c":3}'),
            (("{}", "{}"), "{}"),
            (('{"a": {"5": 6}}', '{"a": {"3": 4}}'), '{"a":{"3":4}}'),
            (("[1, 2]", "[3, 4]"), "[1,2,3,4]"),
            (("null", "null"), "[null,null]"),
            (("[1, 2]", '{"a": 1}', "4"), '[1,2,{"a":1},4]'),
            (("[]", "[]"), "[]"),
            (("[1, [2]]", "[[[3]], [[[4]]]]"), "[1,[2],[[3]],[[[4]]]]"),
            (("1",), "1"),
            (("1e2",), "100"),
            (("1", ""), None),
            (("", "1"), None),
            ((None, "1"), None),
            (("1", None), None),
            (("1", "oops"), EvaluationError),
            (("1e10000",), EvaluationError),
            ((), EvaluationError),
        ]
    ],
    *[
        ("JSON_ITEMS", (text,), expected)
        for text, expected in [
            ('[{"type": "A", "n": 1}, "s", null]', ['{"type":"A","n":1}', '"s"', "null"]),
            ("[]", []),
            (None, None),
            ("abc", EvaluationError),
            ("{}", EvaluationError),
            ("null", EvaluationError),
        ]
    ],
    *[
        ("JSON_KEYS", (text,), expected)
        for text, expected in [
            ('{"Red": 3, "Green": 5}', ["Red", "Green"]),
            ("{}", []),
            ("[]", None),
            ("", None),
            (None, None),
            ("{", EvaluationError),
        ]
    ],
    *[
        ("JSON_RECORDS", (text,), expected)
        for text, expected in [
            (
                '{"a": "abc", "b": { "c": "a" }, "d": 1, "e": null}',
                {"a": "abc", "b": '{"c":"a"}', "d": "1", "e": "null"},
            ),
            ("{}", {}),
            ("null", None),
            ("[1,2,3]", None),
            ("", None),
            (None, None),
            ("abc", EvaluationError),
        ]
    ],
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    if expected is EvaluationError:
        with pytest.raises(EvaluationError):
            call(name, *arguments)
    else:
        assert call(name, *arguments) == expected


@pytest.mark.parametrize(
    ("path", "tokens"),
    [
        ("$", ()),
        ("$.logs[0].cloud.region", ("logs", "0", "cloud", "region")),
        ('$["a\\"b\\\\"].c:d.@e', ('a"b\\', "c:d", "@e")),
        ("$.schlüssel_1", ("schlüssel_1",)),
    ],
)
def test_path(path: str, tokens: tuple[str, ...]) -> None:
    assert parse_path(path) == tokens


@pytest.mark.parametrize("path", ["a", "$a", "$..a", "$.a b", "$[]", '$["a', '$["a\\n"]', "$[a:b]"])
def test_no_path(path: str) -> None:
    with pytest.raises(EvaluationError, match="Invalid JSON path"):
        parse_path(path)


ARRAY_OF_INTEGERS = types.Array(types.INTEGER)
PERSON = types.Struct((types.Field("NAME", types.STRING), types.Field("ID", types.INTEGER)))

WRITTEN: list[tuple[Any, types.SqlType | None, str]] = [
    (1, types.INTEGER, "1"),
    (2**62, types.BIGINT, str(2**62)),
    (True, types.BOOLEAN, "true"),
    ('a"\u0007é', types.STRING, '"a\\"\\u0007é"'),
    (123.456, types.DOUBLE, "123.456"),
    (1e10, types.DOUBLE, "1.0E10"),
    (nan, types.DOUBLE, '"NaN"'),
    (-inf, types.DOUBLE, '"-Infinity"'),
    (Decimal("0.33333"), types.Decimal(6, 5), "0.33333"),
    (Decimal("0.00000001"), types.Decimal(9, 8), "0.00000001"),
    (b"!", types.BYTES, '"IQ=="'),
    (1000, types.DATE, '"1972-09-27"'),
    (60220000, types.TIME, '"16:43:40"'),
    (21740588, types.TIME, '"06:02:20"'),
    (60220000000, types.TIMESTAMP, '"1971-11-28T23:46:40.000"'),
    ([1, None, 3], ARRAY_OF_INTEGERS, "[1,null,3]"),
    ({"d": 4, "c": 2}, types.Map(types.STRING, types.INTEGER), '{"c":2,"d":4}'),
    ({4: "d", 2: "c"}, types.Map(types.INTEGER, types.STRING), '{"2":"c","4":"d"}'),
    ({"NAME": "Alice", "ID": 1}, PERSON, '{"ID":1,"NAME":"Alice"}'),
    ({"id": [1, 2]}, types.Map(types.STRING, ARRAY_OF_INTEGERS), '{"id":[1,2]}'),
    ([1000], types.Array(types.DATE), '["1972-09-27"]'),
    (None, types.STRING, "null"),
    (None, None, "null"),
]


@pytest.mark.parametrize(("value", "sql_type", "text"), WRITTEN)
def test_to_json_string(value: Any, sql_type: types.SqlType | None, text: str) -> None:
    assert call("TO_JSON_STRING", value, types=[sql_type]) == text
