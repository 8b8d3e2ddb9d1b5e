"""Functions between texts and bytes: cases of ksqlDB's own tests, and edges."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.errors import EvaluationError
from support.sql_calls import call

REPLACED = "\ufffd"

ENCODED: list[tuple[str, str, str, str]] = [
    ("4578616d706C6521", "hex", "ascii", "Example!"),
    ("4578616d706C6521", "HEX", "Utf8", "Example!"),
    ("4578616d706C6521", "hex", "base64", "RXhhbXBsZSE="),
    ("ce95cebbcebbceacceb4ceb1", "hex", "ascii", REPLACED * 12),
    ("ce95cebbcebbceacceb4ceb1", "hex", "utf8", "Ελλάδα"),
    ("c39c6265726d656e736368", "hex", "ascii", REPLACED * 2 + "bermensch"),
    ("c39c6265726d656e736368", "hex", "base64", "w5xiZXJtZW5zY2g="),
    ("0x4578616d706C6521", "hex", "ascii", "Example!"),
    ("X'4578616d706C6521'", "hex", "utf8", "Example!"),
    ("x'4578616d706C6521'", "hex", "base64", "RXhhbXBsZSE="),
    ("0x", "hex", "ascii", ""),
    ("X''", "hex", "utf8", ""),
    ("0x9", "hex", "ascii", "\t"),
    ("0x578616d706C6521", "hex", "ascii", "\x05xample!"),
    ("Example!", "ascii", "hex", "4578616d706c6521"),
    ("Ελλάδα", "ascii", "hex", "3f3f3f3f3f3f"),
    ("Übermensch", "ascii", "utf8", "?bermensch"),
    ("Ελλάδα", "ascii", "base64", "Pz8/Pz8/"),
    ("Ελλάδα", "utf8", "hex", "ce95cebbcebbceacceb4ceb1"),
    ("Ελλάδα", "utf8", "base64", "zpXOu867zqzOtM6x"),
    ("Ελλάδα", "utf8", "ascii", REPLACED * 12),
    ("zpXOu867zqzOtM6x", "base64", "hex", "ce95cebbcebbceacceb4ceb1"),
    ("zpXOu867zqzOtM6x", "base64", "utf8", "Ελλάδα"),
    ("RXhhbXBsZSE", "base64", "ascii", "Example!"),
    ("RX hh\nbXBs-ZSE=", "base64", "hex", "4578616d706cf99484"),
]


@pytest.mark.parametrize(("text", "source", "target", "expected"), ENCODED)
def test_encode(text: str, source: str, target: str, expected: str) -> None:
    assert call("ENCODE", text, source, target) == expected


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        *[(t, "hex", "ascii") for t in ("0x0x", "X'", "x'4578", "x'578'", "578", "ж1")],
        ("RXhh", "base64", "null"),
        ("RXhh", "null", "utf8"),
        ("RXhh", "utf8", "utf8"),
    ],
)
def test_encode_refuses(text: str, source: str, target: str) -> None:
    with pytest.raises(EvaluationError):
        call("ENCODE", text, source, target)


@pytest.mark.parametrize(
    "arguments", [(None, "hex", "ascii"), ("21", None, "hex"), ("2", "hex", None)]
)
def test_encode_null(arguments: tuple[Any, ...]) -> None:
    assert call("ENCODE", *arguments) is None


@pytest.mark.parametrize(
    ("value", "encoding", "text"),
    [
        (b"!", "hex", "21"),
        (b"\x1a\xb2", "hex", "1AB2"),
        (b"", "hex", ""),
        (b"!", "ASCII", "!"),
        ("ж".encode(), "utf8", "ж"),
        (b"!", "base64", "IQ=="),
        (b"", "base64", ""),
    ],
)
def test_bytes_and_text(value: bytes, encoding: str, text: str) -> None:
    assert call("FROM_BYTES", value, encoding) == text
    assert call("TO_BYTES", text, encoding) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"a\xff\xc3b", "a\ufffd\ufffdb"),
        (b"\xed\xa0\x80\xed\xa0!\xed", "\ufffd\ufffd!\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
    ],
)
def test_bytes_that_are_no_utf8(value: bytes, text: str) -> None:
    assert call("FROM_BYTES", value, "utf8") == text


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [("1a2B", "hex", b"\x1a\x2b"), ("IQ", "base64", b"!"), ("ж", "ascii", b"?")],
)
def test_to_bytes(text: str, encoding: str, expected: bytes) -> None:
    assert call("TO_BYTES", text, encoding) == expected


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("abc", "hex"), ("0x21", "hex"), ("I Q==", "base64"), ("IQ=", "base64"), ("I", "base64")],
)
def test_to_bytes_is_strict(text: str, encoding: str) -> None:
    with pytest.raises(EvaluationError):
        call("TO_BYTES", text, encoding)


@pytest.mark.parametrize("name", ["TO_BYTES", "FROM_BYTES"])
def test_unknown_encoding(name: str) -> None:
    value: Any = "AAEC" if name == "TO_BYTES" else b"\0\1\2"
    with pytest.raises(EvaluationError, match="Unknown encoding type 'base5000'"):
        call(name, value, "base5000")
    assert call(name, None, "hex") is None
    assert call(name, value, None) is None


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("r1", "7c92cf1eee8d99cc85f8355a3d6e4b86"),
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("  ", "23b58def11b45727d3351702515f86af"),
        (None, None),
    ],
)
def test_md5(text: str | None, digest: str | None) -> None:
    assert call("MD5", text) == digest


NUMBERS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("INT_FROM_BYTES", (bytes.fromhex("000007e5"),), 2021),
    ("INT_FROM_BYTES", (bytes.fromhex("ffffffff"),), -1),
    ("INT_FROM_BYTES", (bytes.fromhex("e5070000"), "LITTLE_ENDIAN"), 2021),
    ("INT_FROM_BYTES", (bytes.fromhex("000007e5"), "big_endian"), 2021),
    ("INT_FROM_BYTES", (None,), None),
    ("INT_FROM_BYTES", (None, "BIG_ENDIAN"), None),
    ("BIGINT_FROM_BYTES", (bytes.fromhex("000000012a05f200"),), 5000000000),
    ("BIGINT_FROM_BYTES", (bytes.fromhex("00f2052a01000000"), "LITTLE_ENDIAN"), 5000000000),
    ("DOUBLE_FROM_BYTES", (bytes.fromhex("4080a6fd9bc9f582"),), 532.8738323),
    ("DOUBLE_FROM_BYTES", (bytes.fromhex("82f5c99bfda68040"), "LITTLE_ENDIAN"), 532.8738323),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), NUMBERS)
def test_number_from_bytes(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert call(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("INT_FROM_BYTES", (b"123",), "Number of bytes must be equal to 4, but found 3"),
        ("BIGINT_FROM_BYTES", (b"1234",), "Number of bytes must be equal to 8, but found 4"),
        (
            "INT_FROM_BYTES",
            (b"1234", "MIDDLE"),
            "Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order 'MIDDLE'",
        ),
        ("INT_FROM_BYTES", (None, None), "Unknown byte order 'null'"),
    ],
)
def test_no_number_from_bytes(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        call(name, *arguments)
