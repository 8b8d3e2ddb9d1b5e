"""Functions of addresses (URLs) and of values encoded in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import quote, unquote_to_bytes

from barnabas.java.strings import decode_utf8
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

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


# -- addresses (URI) as java.net.URI takes them apart: RFC 2396 with Java's deviations
#
# Java is strict about characters, takes letters beyond ASCII nearly everywhere, and has no host for
# an authority that is not a server's (`http://my_host/`: a host name has no underscore).


_UNRESERVED = r"A-Za-z0-9\-_.!~*'()"
_ESCAPE = "%[0-9A-Fa-f]{2}"
_OTHER = "\x80-\U0010ffff"  # narrowed by `_has_only_letters`

_URIC = re.compile(rf"(?:[{_UNRESERVED};/?:@&=+$,\[\]{_OTHER}]|{_ESCAPE})*")
_PATH = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/{_OTHER}]|{_ESCAPE})*")
_USER = re.compile(rf"(?:[{_UNRESERVED};:&=+$,{_OTHER}]|{_ESCAPE})*")
_REGISTRY = re.compile(rf"(?:[{_UNRESERVED}$,;:@&=+{_OTHER}]|{_ESCAPE})+")
_SERVER = re.compile(r"(?:(?P<user>[^@]*)@)?(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_PARTS = re.compile(r"(?:(?P<scheme>[^:/?#]*):)?(?P<rest>[^#]*)(?:#(?P<fragment>.*))?", re.DOTALL)
_HIERARCHY = re.compile(
    r"(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?", re.DOTALL
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})(?:\.(?!\Z)|\Z)){4}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}|(?:{_LABEL}\.)+(?=[A-Za-z]){_LABEL})\.?")


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts of an address; those that Java decodes are decoded."""

    scheme: str | None = None
    host: str | None = None
    port: int | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None


def parse_uri(text: str) -> Uri:
    """The parts of the address; raises EvaluationError if it is none."""
    parts = _PARTS.fullmatch(text)
    if parts is None or not _has_only_letters(text):
        raise _wrong(text)
    scheme, rest, fragment = parts["scheme"], parts["rest"], parts["fragment"]
    if fragment is not None and not _URIC.fullmatch(fragment):
        raise _wrong(text)
    if scheme is not None:
        if not _SCHEME.fullmatch(scheme):
            raise _wrong(text)
        if not rest.startswith("/"):  # opaque, such as mailto:
            if not rest or not _URIC.fullmatch(rest):
                raise _wrong(text)
            return Uri(scheme=scheme, fragment=_decoded(fragment))
    return _hierarchical(text, scheme, rest, fragment)


def _hierarchical(text: str, scheme: str | None, rest: str, fragment: str | None) -> Uri:
    parts = _HIERARCHY.fullmatch(rest)
    assert parts is not None
    authority, path, query = parts["authority"], parts["path"], parts["query"]
    if not _PATH.fullmatch(path) or not (query is None or _URIC.fullmatch(query)):
        raise _wrong(text)
    host, port = None, None
    if authority:
        host, port = _server(text, authority)
    elif authority is not None and not path and query is None and fragment is None:
        raise _wrong(text)
    return Uri(scheme, host, port, _decoded(path), _decoded(query), _decoded(fragment))


def _server(text: str, authority: str) -> tuple[str | None, int | None]:
    """Host and port; neither if the authority is a name in some registry."""
    parts = _SERVER.fullmatch(authority)
    if parts is not None and _is_server(parts["user"], parts["host"]):
        port = int(parts["port"]) if parts["port"] else None
        if port is None or port < 2**31:
            return parts["host"], port
    if _REGISTRY.fullmatch(authority):
        return None, None
    raise _wrong(text)


def _is_server(user: str | None, host: str) -> bool:
    if user is not None and not _USER.fullmatch(user):
        return False
    if not host.startswith("["):
        return bool(_IPV4.fullmatch(host) or _HOST.fullmatch(host))
    address, _, scope = host[1:-1].partition("%")
    try:
        IPv6Address(address)
    except AddressValueError:
        return False
    return "%" not in host or bool(re.fullmatch(r"[A-Za-z0-9_.]+", scope))


def _has_only_letters(text: str) -> bool:
    """Return whether characters beyond ASCII are neither white space nor control characters."""
    return text.isascii() or not any(
        unicodedata.category(c)[0] == "Z" or unicodedata.category(c) == "Cc"
        for c in text
        if c > "\x7f"
    )


def _decoded(part: str | None) -> str | None:
    if part is None or "%" not in part:
        return part
    return decode_utf8(unquote_to_bytes(part.encode("utf-8", "replace")))


def _wrong(text: str) -> EvaluationError:
    return EvaluationError(f"URL input has invalid syntax: {text}")
