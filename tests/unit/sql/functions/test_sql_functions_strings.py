"""Functions of strings: cases of ksqlDB's own tests, and edges."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from barnabas.sql import types
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions import strings
from support.sql_calls import call

EMOJI = "a😀b"
"""Four UTF-16 units, three characters."""

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("LCASE", ("MiXeD",), "mixed"),
    ("LCASE", (None,), None),
    ("UCASE", ("MiXeD ß",), "MIXED SS"),
    ("UCASE", (None,), None),
    ("TRIM", (" \t with white space \t",), "with white space"),
    ("TRIM", ("\x00\x1f x\u00a0",), "x\u00a0"),
    ("TRIM", (None,), None),
    ("INITCAP", ("some_string",), "Some_string"),
    ("INITCAP", ("the   Quick br0wn fOx",), "The   Quick Br0wn Fox"),
    ("INITCAP", ("  before",), "Before"),
    ("INITCAP", ("",), ""),
    ("INITCAP", (None,), None),
    ("REPLACE", ("anaconda", "a", "o"), "onocondo"),
    ("REPLACE", ("popcorn", "a", "o"), "popcorn"),
    ("REPLACE", ("abc", "", "-"), "-a-b-c-"),
    ("REPLACE", ("x", None, "o"), None),
    ("REPLACE", ("x", "o", None), None),
    ("CONCAT", ("prefix-", "s1", "-postfix"), "prefix-s1-postfix"),
    ("CONCAT", ("a", None, "b"), "ab"),
    ("CONCAT", (b"yes", None, b"no"), b"yesno"),
    ("CONCAT", (b"", b"no"), b"no"),
    ("CONCAT_WS", ("SEP", "foo", "bar", "baz", None, "literal"), "fooSEPbarSEPbazSEPliteral"),
    ("CONCAT_WS", ("SEP", "foo", None, "baz"), "fooSEPbaz"),
    ("CONCAT_WS", ("SEP", None, None), ""),
    ("CONCAT_WS", (None, "foo", "bar"), None),
    ("CONCAT_WS", (b"a", b"b", b"yes", None, b"no"), b"bayesano"),
    ("CONCAT_WS", (b"a", b"b", b"", None, b"no"), b"baano"),
    ("CONCAT_WS", (None, b"foo", b"bar"), None),
    ("SPLIT", ("a.b.c", "."), ["a", "b", "c"]),
    ("SPLIT", (".abc.", "."), ["", "abc", ""]),
    ("SPLIT", ("..a..", "."), ["", "", "a", "", ""]),
    ("SPLIT", ("abc", "."), ["abc"]),
    ("SPLIT", ("", "."), [""]),
    ("SPLIT", ("a$$b.c", "$$"), ["a", "b.c"]),
    ("SPLIT", (".abc", ""), [".", "a", "b", "c"]),
    ("SPLIT", ("", ""), [""]),
    ("SPLIT", (None, "."), None),
    ("SPLIT", ("a", None), None),
    ("SPLIT", (b".abc.", b"."), [b"", b"abc", b""]),
    ("SPLIT", (b"a.b", b""), [b"a", b".", b"b"]),
    ("SPLIT", (b"", b""), [b""]),
    ("SPLIT", (b"", b"."), [b""]),
    (
        "SPLIT_TO_MAP",
        ("apple:green/banana:yellow", "/", ":"),
        {"apple": "green", "banana": "yellow"},
    ),
    ("SPLIT_TO_MAP", ("apple:green/banana:yellow", "&&", ":"), {"apple": "green/banana"}),
    ("SPLIT_TO_MAP", ("apple:green//cherry:red/", "/", ":"), {"apple": "green", "cherry": "red"}),
    ("SPLIT_TO_MAP", ("apple:green/banana", "/", "="), {}),
    ("SPLIT_TO_MAP", ("foo:=apple/foo:=cherry/", "/", ":="), {"foo": "cherry"}),
    (
        "SPLIT_TO_MAP",
        ("foo :=\tapple || bar:=cherry", "||", ":="),
        {"foo ": "\tapple ", " bar": "cherry"},
    ),
    ("SPLIT_TO_MAP", ("a:b", "", ":"), None),
    ("SPLIT_TO_MAP", ("a:b", "/", ""), None),
    ("SPLIT_TO_MAP", ("a:b", "/", "/"), None),
    ("SPLIT_TO_MAP", ("", "/", ":"), {}),
    ("SPLIT_TO_MAP", (None, "/", ":"), None),
    ("ELT", (2, "ignored", "something"), "something"),
    ("ELT", (2, "ignored", None), None),
    ("ELT", (0, "a"), None),
    ("ELT", (3, "a", "b"), None),
    ("ELT", (-1, "a"), None),
    ("FIELD", ("hello", "hello", "world"), 1),
    ("FIELD", ("hello", "world", "hello"), 2),
    ("FIELD", ("hello", None, "world"), 0),
    ("FIELD", (None, None, "world"), 0),
    ("CHR", (75,), "K"),
    ("CHR", (22909,), "好"),
    ("CHR", (99000,), "\U000182b8"),
    ("CHR", (1_114_111,), "\U0010ffff"),
    ("CHR", (1_114_112,), None),
    ("CHR", (9,), "\t"),
    ("CHR", (-1,), None),
    ("CHR", ("\\u004b",), "K"),
    ("CHR", ("\\u597d",), "好"),
    ("CHR", ("\\ud820\\udeb8",), "\U000182b8"),
    ("CHR", ("\\u004b\\n\\101\\x",), "K\nAx"),
    ("CHR", ("\\u065",), None),
    ("CHR", ("75",), None),
    ("CHR", ("",), None),
    ("UUID", (bytes(range(16)),), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("UUID", (b"short",), None),
    ("UUID", (None,), None),
    # positions
    ("LEN", ("ABC",), 3),
    ("LEN", ("",), 0),
    ("LEN", (EMOJI,), 4),
    ("LEN", (b"ABC",), 3),
    ("SUBSTRING", ("some_string", 6), "string"),
    ("SUBSTRING", ("short", 6), ""),
    ("SUBSTRING", ("some_string", 6, 3), "str"),
    ("SUBSTRING", ("another", 6, 3), "er"),
    ("SUBSTRING", ("a test string", -6), "string"),
    ("SUBSTRING", ("a test string", -6, 2), "st"),
    ("SUBSTRING", ("a test string", -1, 1), "g"),
    ("SUBSTRING", ("a test string", 0), "a test string"),
    ("SUBSTRING", ("some string", 0, 2), "so"),
    ("SUBSTRING", ("a test string", 100), ""),
    ("SUBSTRING", ("a test string", -100), "a test string"),
    ("SUBSTRING", ("a test string", 3, 100), "test string"),
    ("SUBSTRING", ("a test string", 3, -100), ""),
    ("SUBSTRING", (EMOJI, 2, 2), "😀"),
    ("SUBSTRING", (EMOJI, 3), "?b"),
    ("SUBSTRING", (b"\1\2\3\4", 3), b"\3\4"),
    ("SUBSTRING", (b"\1\2\3\4", -3, 2), b"\2\3"),
    ("SUBSTRING", (b"\1\2\3\4", 3, -100), b""),
    ("SUBSTRING", (b"\1\2\3\4", None, 1), None),
    ("INSTR", ("corporate floor", "or"), 2),
    ("INSTR", ("should I stay or should I go", "or"), 15),
    ("INSTR", ("no substring", "or"), 0),
    ("INSTR", ("corporate floor", "or", 4), 5),
    ("INSTR", ("corporate floor", "or", 4, 2), 14),
    ("INSTR", ("CORPORATE FLOOR", "OR", 3, 5), 0),
    ("INSTR", ("CORPORATE FLOOR", "OR", -1), 14),
    ("INSTR", ("CORPORATE FLOOR", "OR", -3), 5),
    ("INSTR", ("CORPORATE FLOOR", "OR", -3, 2), 2),
    ("INSTR", ("CORPORATE FLOOR", "OR", -3, 5), 0),
    ("INSTR", ("CORPORATE FLOOR", "ATE", -3), 7),
    ("INSTR", ("CORPORATE FLOOR", "OR", 100), 0),
    ("INSTR", ("CORPORATE FLOOR", "OR", -100), 0),
    ("INSTR", ("CORPORATE FLOOR", "R", 0), 0),
    ("INSTR", ("aaa", "aa", 1, 2), 2),
    ("INSTR", ("a", "a", 1, 0), 0),
    ("INSTR", (EMOJI, "b"), 4),
    ("INSTR", (None, "OR"), 0),
    ("INSTR", ("CORPORATE FLOOR", None, 1), 0),
    ("LPAD", ("foo", 7, "Bar"), "BarBfoo"),
    ("LPAD", ("foo", 5, "Bar"), "Bafoo"),
    ("LPAD", ("foo", 2, "Bar"), "fo"),
    ("LPAD", ("foo", -1, "Bar"), None),
    ("LPAD", ("foo", 7, ""), None),
    ("LPAD", ("", 7, "Bar"), "BarBarB"),
    ("LPAD", ("foo", 5, None), None),
    ("LPAD", (None, 5, "Bar"), None),
    ("LPAD", (b"yes", 8, b"no"), b"nononyes"),
    ("LPAD", (b"yes", 5, b"no"), b"noyes"),
    ("LPAD", (b"yes", 2, b"no"), b"ye"),
    ("LPAD", (b"yes", 0, b"no"), b""),
    ("LPAD", (b"yes", 3, b""), None),
    ("LPAD", (b"yes", -1, b"no"), None),
    ("RPAD", ("foo", 7, "Bar"), "fooBarB"),
    ("RPAD", ("foo", 2, "Bar"), "fo"),
    ("RPAD", ("foo", -1, "Bar"), None),
    ("RPAD", ("foo", 7, ""), None),
    ("RPAD", (b"yes", 8, b"no"), b"yesnonon"),
    ("RPAD", (b"yes", 2, b"no"), b"ye"),
    ("RPAD", (b"yes", -1, b"no"), None),
    # masks
    ("MASK", ("AbCd#$123xy Z",), "XxXx--nnnxx-X"),
    ("MASK", ("AbCd#$123xy Z", "Q", None, "9", "*"), "QbQd**999xy*Q"),
    ("MASK", (None,), None),
    ("MASK", ("😀",), "--"),
    ("MASK_LEFT", ("AbCd#$123xy Z", 5), "XxXx-$123xy Z"),
    ("MASK_LEFT", ("AbCd#$123xy Z", 999), "XxXx--nnnxx-X"),
    ("MASK_LEFT", (None, 5), None),
    ("MASK_LEFT", ("AbCd", 2, None, "Q", "9", "*"), "AQCd"),
    ("MASK_RIGHT", ("AbCd#$123xy Z", 5), "AbCd#$12nxx-X"),
    ("MASK_RIGHT", ("AbCd#$123xy Z", 999), "XxXx--nnnxx-X"),
    ("MASK_RIGHT", (None, 5), None),
    ("MASK_KEEP_LEFT", ("AbCd#$123xy Z", 5), "AbCd#-nnnxx-X"),
    ("MASK_KEEP_LEFT", ("AbCd#$123xy Z", 999), "AbCd#$123xy Z"),
    ("MASK_KEEP_RIGHT", ("AbCd#$123xy Z", 5), "XxXx--nn3xy Z"),
    ("MASK_KEEP_RIGHT", ("AbCd#$123xy Z", 999), "AbCd#$123xy Z"),
    ("MASK_KEEP_RIGHT", ("AbCd#$123xy Z", 0), "XxXx--nnnxx-X"),
]

WRONG: list[tuple[str, tuple[Any, ...], str]] = [
    ("CONCAT_WS", ("SEP",), "expects at least two input arguments"),
    ("ELT", (None, "a"), "not NULL"),
    ("INSTR", ("a", "a", None), "not NULL"),
    ("CHR", ("\\u00zz",), "hexadecimal"),
    ("LPAD", ("a", 2**31 - 1, "b"), "Padding of 2147483646 is longer than 67108864"),
    ("RPAD", (b"a", 2**31 - 1, b"b"), "Padding of 2147483646 is longer than 67108864"),
    ("MASK", ("a", "xx", None, None, None), "Must be only single character, but was 'xx'"),
    ("MASK", (None, "", None, None, None), "Must be only single character, but was ''"),
    ("MASK_LEFT", ("a", -1), "function mask_left requires a non-negative number"),
    ("MASK_RIGHT", ("a", -1), "function mask_right requires a non-negative number"),
    ("MASK_KEEP_LEFT", (None, -1), "function mask_keep_left requires a non-negative number"),
    ("MASK_KEEP_RIGHT", ("a", None), "function mask_keep_right requires a non-negative number"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert call(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
def test_no_value(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        call(name, *arguments)


@pytest.mark.parametrize("sql_type", [types.STRING, types.INTEGER])
def test_character_of_null(sql_type: types.SqlType) -> None:
    assert call("CHR", None, types=[sql_type]) is None


def test_random_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    known = uuid.UUID("1b4e28ba-2fa1-41d2-883f-0016d3cca427")
    monkeypatch.setattr(strings, "make_uuid", lambda: known)
    assert call("UUID") == str(known)


def test_random_uuids_differ() -> None:
    first, second = call("UUID"), call("UUID")
    assert first != second
    assert uuid.UUID(first).version == 4
