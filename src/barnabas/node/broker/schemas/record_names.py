"""The name of a schema's record, after which some subjects are named.

As the `name()` of Confluent's schemas: of an Avro record its full name, of a JSON Schema its title,
of Protobuf the first message (or, without messages, the first enum) with its package.
"""

import json
import re
from typing import Any

_PROTOBUF_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|[{};]""",
    re.DOTALL,
)


def record_name(schema_type: str, text: str) -> str | None:
    """The name, or None where the schema has none (an Avro union, JSON without a title)."""
    if schema_type == "PROTOBUF":
        return _protobuf_name(text)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if schema_type == "JSON":
        title = schema.get("title") if isinstance(schema, dict) else None
        return title if isinstance(title, str) else None
    return _avro_name(schema) if schema_type == "AVRO" else None


def _avro_name(schema: Any) -> str | None:
    while isinstance(schema, dict) and isinstance(schema.get("type"), dict):
        schema = schema["type"]
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        return None
    name, namespace = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str):
        return None
    if "." in name or not isinstance(namespace, str) or not namespace:
        return name.removeprefix(".")
    return f"{namespace}.{name}"


def _protobuf_name(text: str) -> str | None:
    package = ""
    first: dict[str, str] = {}
    depth = 0
    before = before_that = ""
    for token in _PROTOBUF_TOKEN.findall(text):
        if token.startswith(("//", "/*")):
            continue
        if token == "{":
            if depth == 0 and before_that in ("message", "enum"):
                first.setdefault(before_that, before)
            depth += 1
        elif token == "}":
            depth -= 1
        elif token == ";" and depth == 0 and before_that == "package":
            package = before
        before, before_that = token, before
    name = first.get("message") or first.get("enum")
    return f"{package}.{name}" if name and package else name
