"""Functions of addresses (URLs) and of values encoded in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, unquote_to_bytes

from barnabas.java.strings import decode_utf8
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.functions.java_uri import Uri, parse_uri

URL = "URL"
_scalar = partial(scalar, category=URL, null_is_null=True)


@_scalar(
    "url_encode_param",
    "(input STRING) -> STRING",
    description="The text encoded as a parameter of a URL (application/x-www-form-urlencoded).",
    parameters={"input": "the text"},
)
def url_encode_param(text: str) -> str:
    # Python never encodes the tilde, Java's form encoding does.
    return quote(text, safe=" *-._", errors="replace").replace("~", "%7E").replace(" ", "+")


_ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2})+")


@_scalar(
    "url_decode_param",
    "(input STRING) -> STRING",
    description="Decodes a text that was encoded for a URL (application/x-www-form-urlencoded).",
    parameters={"input": "the encoded text"},
)
def url_decode_param(text: str) -> str:
    if "%" in _ESCAPES.sub("", text):
        raise EvaluationError(f"not two hexadecimal digits after %: {text}")
    return _ESCAPES.sub(
        lambda match: decode_utf8(unquote_to_bytes(match[0])),
        text.replace("+", " "),
    )


def _declare(
    name: str, result: str, description: str, part: Callable[[Uri], str | int | None]
) -> None:
    @_scalar(
        name,
        f"(input STRING) -> {result}",
        description=description,
        parameters={"input": "the URL"},
    )
    def extract(text: str) -> str | int | None:
        return part(parse_uri(text))


_declare(
    "url_extract_fragment", "STRING", "The part of a URL after the #.", lambda uri: uri.fragment
)
_declare("url_extract_host", "STRING", "The host of a URL.", lambda uri: uri.host)
_declare("url_extract_path", "STRING", "The path of a URL.", lambda uri: uri.path)
_declare("url_extract_port", "INTEGER", "The port that a URL names.", lambda uri: uri.port)
_declare("url_extract_protocol", "STRING", "The protocol of a URL.", lambda uri: uri.scheme)
_declare("url_extract_query", "STRING", "What follows ? in a URL.", lambda uri: uri.query)


@scalar(
    "url_extract_parameter",
    "(input STRING, paramToFind STRING) -> STRING",
    description="The value of a parameter in a URL; empty if it has none.",
    category=URL,
    parameters={"input": "the URL", "paramToFind": "the name of the parameter"},
)
def url_extract_parameter(text: str | None, name: str | None) -> str | None:
    query = None if text is None else parse_uri(text).query
    if query is None:
        return None
    for parameter in query.split("&"):
        key, _, value = parameter.partition("=")
        if key == name:
            return value
    return None
