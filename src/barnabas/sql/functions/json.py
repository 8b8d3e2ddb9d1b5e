"""Functions of JSON in texts. A text that is no JSON has no value: they fail, which gives NULL."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from functools import lru_cache, partial

from barnabas.java.strings import from_units
from barnabas.java.time.calendar import date_text, iso_timestamp_text, time_text
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.functions.json_text import MISSING, Json, parse, parse_at, skip_blank, write
from barnabas.sql.functions.ordering import key_of
from barnabas.sql.java_text import encode_bytes, text_maker
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value

JSON = "JSON"
_scalar = partial(scalar, category=JSON, null_is_null=True)


def _as_string(value: Json) -> str:
    """A string as it is, anything else as JSON."""
    return from_units(value) if isinstance(value, str) else write(value, is_plain=False)


@_scalar(
    "extractjsonfield",
    "(input STRING, path STRING) -> STRING",
    description="What a path such as $.a.b[0] leads to in a JSON text; NULL if nothing is there.",
    parameters={"input": "the JSON text", "path": "the path, with names and indexes"},
)
def extract_json_field(text: str, path: str) -> str | None:
    tokens = parse_path(path)
    root = parse(text)
    if root is MISSING:
        return None if tokens else ""
    is_there, value = follow(root, tokens)
    return _as_string(value) if is_there else None


@scalar(
    "IS_JSON_STRING",
    "(input STRING) -> BOOLEAN",
    description="True if the text is a JSON value.",
    category=JSON,
    parameters={"input": "the text"},
)
def is_json_string(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return parse(text) is not MISSING
    except EvaluationError:
        return False


@scalar(
    "JSON_ARRAY_CONTAINS",
    "(jsonArray STRING, val T) -> BOOLEAN",
    description="True if a value is an element of the array that a JSON text holds. A whole "
    "number is never equal to one with a point.",
    category=JSON,
    parameters={"jsonArray": "the JSON text", "val": "the value to look for"},
)
def json_array_contains(text: str | None, value: Value) -> bool:
    if text is None:
        raise EvaluationError("JSON_ARRAY_CONTAINS of NULL")
    at = skip_blank(text, 0)
    if not text.startswith("[", at):
        return False
    at = skip_blank(text, at + 1)
    while at < len(text) and text[at] != "]":
        try:
            element, at = parse_at(text, at)
        except ValueError:
            return False
        if _is_same(element, value):
            return True
        at = skip_blank(text, at)
        if not text.startswith(",", at):
            return False
        at = skip_blank(text, at + 1)
    return False


def _is_same(element: Json, value: Value) -> bool:
    """Return whether an element of an array is the SQL value."""
    match element:
        case None:
            return value is None
        case bool():
            return element is value
        case int():
            return isinstance(value, int) and not isinstance(value, bool) and element == value
        case decimal.Decimal():
            return isinstance(value, float) and float(element) == value
        case str():
            return isinstance(value, str) and element == value
    return False


@_scalar(
    "JSON_ARRAY_LENGTH",
    "(jsonArray STRING) -> INTEGER",
    description="The length of the array that a JSON text holds; NULL if it holds none.",
    parameters={"jsonArray": "the JSON text"},
)
def json_array_length(text: str) -> int | None:
    value = parse(text)
    return len(value) if isinstance(value, list) else None


@scalar(
    "JSON_CONCAT",
    "(jsonStrings STRING...) -> STRING",
    description="JSON texts joined: objects to one with the fields of all (the last of each name "
    "counts), else arrays to one, other values counting as arrays of one. NULL if any is NULL or "
    "empty.",
    category=JSON,
    parameters={"jsonStrings": "the JSON texts"},
)
def json_concat(*texts: str | None) -> str | None:
    values = []
    for text in texts:
        value = MISSING if text is None else parse(text)
        if value is MISSING:
            return None
        values.append(value)
    if not values:
        raise EvaluationError("JSON_CONCAT needs a text.")
    if len(values) == 1:
        return write(values[0], is_plain=True)
    if all(isinstance(value, dict) for value in values):
        return write({k: v for value in values for k, v in value.items()}, is_plain=True)
    joined = [i for v in values for i in (v if isinstance(v, list) else [v])]
    return write(joined, is_plain=True)


@_scalar(
    "JSON_ITEMS",
    "(jsonItems STRING) -> ARRAY<STRING>",
    description="The elements of the array that a JSON text holds, each as JSON.",
    parameters={"jsonItems": "the JSON text"},
)
def json_items(text: str) -> list[str]:
    value = parse(text)
    if not isinstance(value, list):
        raise EvaluationError(f"Invalid JSON format:{text}")
    return [write(item, is_plain=False) for item in value]


@_scalar(
    "JSON_KEYS",
    "(jsonObj STRING) -> ARRAY<STRING>",
    description="The names of the fields of the object that a JSON text holds; NULL if it holds "
    "none.",
    parameters={"jsonObj": "the JSON text"},
)
def json_keys(text: str) -> list[str] | None:
    value = parse(text)
    return [from_units(name) for name in value] if isinstance(value, dict) else None


@_scalar(
    "JSON_RECORDS",
    "(jsonObj STRING) -> MAP<STRING, STRING>",
    description="The fields of the object that a JSON text holds: strings as they are, others as "
    "JSON. NULL if it holds none.",
    parameters={"jsonObj": "the JSON text"},
)
def json_records(text: str) -> dict[str, str] | None:
    value = parse(text)
    if not isinstance(value, dict):
        return None
    return {from_units(name): _as_string(member) for name, member in value.items()}


_STEP = re.compile(
    r"""\.(?P<name>[\w:@]+)        # .name
    | \[ (?P<index>\w+) \]         # [0], or [name]
    | \[ "(?P<quoted>(?:[^"\\]|\\["\\])*)" \]""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


@lru_cache(maxsize=1024)
def parse_path(path: str) -> tuple[str, ...]:
    """The names and indexes that lead from the root; raises EvaluationError."""
    if not path.startswith("$"):
        raise EvaluationError(f"Invalid JSON path: '{path}'")
    tokens = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise EvaluationError(f"Invalid JSON path: '{path}'")
        quoted = step["quoted"]
        token = step["name"] or step["index"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        tokens.append(token)
        at = step.end()
    return tuple(tokens)


def follow(value: Json, tokens: tuple[str, ...]) -> tuple[bool, Json]:
    """Return whether the path leads to a value, and the value (JSON's null is one)."""
    for token in tokens:
        if isinstance(value, dict):
            if token not in value:
                return False, None
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return False, None
    return True, value


# -- TO_JSON_STRING: any SQL value as JSON


@scalar(
    "TO_JSON_STRING",
    "(input T) -> STRING",
    description="Any value as JSON: bytes in base64, dates and times as text, fields of structs "
    "and keys of maps in alphabetical order.",
    category=JSON,
    takes_types=True,
    parameters={"input": "the value"},
)
def to_json_string(value: Value, *, types: Sequence[SqlType | None]) -> str:
    return write(_prepared(value, types[0]), is_plain=True)


def _prepared(value: Value, sql_type: SqlType | None) -> Json:
    """The value in JSON's types."""
    if value is None or sql_type is None:
        return value
    match sql_type:
        case Array(item):
            return [_prepared(element, item) for element in value]
        case Map(key, member):
            key_text = text_maker(key)
            members = {key_text(k): _prepared(v, member) for k, v in value.items()}
            return {name: members[name] for name in sorted(members, key=key_of)}
        case Struct(fields):
            fields_in_order = sorted(fields, key=lambda field: key_of(field.name))
            return {f.name: _prepared(value[f.name], f.type) for f in fields_in_order}
    match sql_type.base:
        case BaseType.BYTES:
            return encode_bytes(value)
        case BaseType.DATE:
            return date_text(value)
        case BaseType.TIME:
            return time_text(value)
        case BaseType.TIMESTAMP:
            return iso_timestamp_text(value)
    return value
