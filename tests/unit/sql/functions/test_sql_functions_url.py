"""Functions of URLs: cases of ksqlDB's own tests, and edges of java.net.URI."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.errors import EvaluationError
from support.sql_calls import call

DOCS = "https://docs.confluent.io:8080/current/ksql/docs/a.html?a=b&foo%20bar=baz%20z&c&d=1=2#x%20y"
DEEP = "http://test@confluent.io:8080/nested/path?q1&q2"

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("URL_ENCODE_PARAM", ("?foo $bar",), "%3Ffoo+%24bar"),
    ("URL_ENCODE_PARAM", ("hello&world",), "hello%26world"),
    ("URL_ENCODE_PARAM", ("foo.-*_bar~ü+",), "foo.-*_bar%7E%C3%BC%2B"),
    ("URL_ENCODE_PARAM", ("",), ""),
    ("URL_ENCODE_PARAM", (None,), None),
    ("URL_DECODE_PARAM", ("%3Ffoo+%24bar",), "?foo $bar"),
    ("URL_DECODE_PARAM", ("foo.-*_bar%C3%bc%2B",), "foo.-*_barü+"),
    ("URL_DECODE_PARAM", ("%C3x",), "\ufffdx"),
    ("URL_DECODE_PARAM", ("%ED%A0%80%ED%A0x",), "\ufffd\ufffdx"),
    ("URL_DECODE_PARAM", ("",), ""),
    ("URL_DECODE_PARAM", (None,), None),
    ("URL_DECODE_PARAM", ("100%",), EvaluationError),
    ("URL_DECODE_PARAM", ("%zz",), EvaluationError),
    ("URL_EXTRACT_FRAGMENT", (DOCS,), "x y"),
    ("URL_EXTRACT_FRAGMENT", (DEEP,), None),
    ("URL_EXTRACT_FRAGMENT", ("http://h#",), ""),
    ("URL_EXTRACT_HOST", (DOCS,), "docs.confluent.io"),
    ("URL_EXTRACT_HOST", (DEEP,), "confluent.io"),
    ("URL_EXTRACT_HOST", ("https:///current/x.html",), None),
    ("URL_EXTRACT_HOST", ("http://my_host/x",), None),
    ("URL_EXTRACT_HOST", ("http://192.168.0.1:80/x",), "192.168.0.1"),
    ("URL_EXTRACT_HOST", ("http://257.1/x",), None),
    ("URL_EXTRACT_HOST", ("http://[2001:db8::1]:80/",), "[2001:db8::1]"),
    ("URL_EXTRACT_HOST", ("http://[fe80::1%eth0]/",), "[fe80::1%eth0]"),
    ("URL_EXTRACT_HOST", ("http://[::zz]/",), EvaluationError),
    ("URL_EXTRACT_HOST", ("mailto:a@b.c",), None),
    ("URL_EXTRACT_HOST", ("//host/path",), "host"),
    ("URL_EXTRACT_HOST", ("http://a-.b/",), None),
    ("URL_EXTRACT_HOST", ("http://1a/",), "1a"),
    ("URL_EXTRACT_HOST", ("http://99999999999/",), "99999999999"),
    ("URL_EXTRACT_HOST", ("http://b.1a/",), None),
    ("URL_EXTRACT_HOST", ("http://a.b:99999999999/",), None),
    ("URL_EXTRACT_PATH", (DOCS,), "/current/ksql/docs/a.html"),
    ("URL_EXTRACT_PATH", ("http://www.test.com?query#fragment",), ""),
    ("URL_EXTRACT_PATH", ("https://docs.confluent.io/",), "/"),
    ("URL_EXTRACT_PATH", ("http://h/a%C3%BC/ü",), "/aü/ü"),
    ("URL_EXTRACT_PATH", ("mailto:a@b.c",), None),
    ("URL_EXTRACT_PATH", ("",), ""),
    ("URL_EXTRACT_PORT", (DEEP,), 8080),
    ("URL_EXTRACT_PORT", ("http://test@confluent.io",), None),
    ("URL_EXTRACT_PORT", ("http://h:/",), None),
    ("URL_EXTRACT_PROTOCOL", (DOCS,), "https"),
    ("URL_EXTRACT_PROTOCOL", ("www.confluent.io",), None),
    ("URL_EXTRACT_PROTOCOL", ("urn:isbn:1",), "urn"),
    ("URL_EXTRACT_QUERY", (DOCS,), "a=b&foo bar=baz z&c&d=1=2"),
    ("URL_EXTRACT_QUERY", ("http://h/path",), None),
    ("URL_EXTRACT_QUERY", ("http://h?",), ""),
    ("URL_EXTRACT_PARAMETER", (DOCS, "foo bar"), "baz z"),
    ("URL_EXTRACT_PARAMETER", (DOCS, "foo Bar"), None),
    ("URL_EXTRACT_PARAMETER", (DOCS, "c"), ""),
    ("URL_EXTRACT_PARAMETER", (DOCS, "d"), "1=2"),
    ("URL_EXTRACT_PARAMETER", (DOCS, None), None),
    ("URL_EXTRACT_PARAMETER", (None, "a"), None),
    (
        "URL_EXTRACT_PARAMETER",
        ("http://h/?one=a&two=url%20encoded", "two"),
        "url encoded",
    ),
    *[
        ("URL_EXTRACT_PATH", (text,), EvaluationError)
        for text in (
            "http://257.1/bogus/[url",
            "http://a b/",
            "http://h/a b",
            "http://h/%zz",
            "http://h/\u2028",
            "http://",
            ":path",
            "1a:path",
            "a:",
            "http://h/#a#b",
            "http://h/\\",
        )
    ],
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    if expected is EvaluationError:
        with pytest.raises(EvaluationError):
            call(name, *arguments)
    else:
        assert call(name, *arguments) == expected
