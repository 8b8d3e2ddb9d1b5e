r"""Values made up after an Avro schema, with the hints that Confluent's random generator knows.

Hints stand as `arg.properties` beside a type: `options`, `range` (min, max), `iteration` (start,
step, restart), `regex`, `length` (a number, or min and max), `odds` of booleans and `keys` of maps.

Source: github.com/confluentinc/avro-random-generator, README.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any, Final

from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.data.schema import Field, Schema, Struct, Type

_PRIMITIVES: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}
_LETTERS: Final = string.ascii_letters + string.digits
_LENGTH: Final = (8, 16)
_WHOLE: Final = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63)}
_REPEATS_MAX: Final = 8
Make = Callable[[Random, int], Any]
"""Takes a source of randomness and the record's number."""


def compile_schema(node: Any) -> tuple[Schema, Make]:
    """Return Connect's schema, and what makes values. Raises ConfigError."""
    if isinstance(node, list):
        return _union(node)
    if isinstance(node, str):
        node = {"type": node}
    if not isinstance(node, Mapping) or "type" not in node:
        raise ConfigError(f"this is not an Avro schema: {node!r}")
    kind, hints = node["type"], node.get("arg.properties", {})
    if isinstance(kind, Mapping | list):
        return compile_schema(kind)
    if kind == "record":
        return _record(node)
    if kind == "array":
        return _array(node, hints)
    if kind == "map":
        return _map(node, hints)
    if kind == "enum":
        symbols = list(node["symbols"])
        return Schema(Type.STRING, name=node.get("name")), _chosen(hints, symbols)
    if kind not in _PRIMITIVES:
        raise ConfigError(f"Datagen makes no values of type {kind}")
    return Schema(_PRIMITIVES[kind]), _primitive(kind, hints)


def _union(nodes: Sequence[Any]) -> tuple[Schema, Make]:
    rest = [node for node in nodes if node != "null"]
    if len(rest) != 1:
        raise ConfigError("Datagen makes values of unions of null and one type only")
    schema, make = compile_schema(rest[0])
    if len(rest) == len(nodes):
        return schema, make
    return (
        replace(schema, optional=True),
        lambda random, number: make(random, number) if random.random() < 0.5 else None,
    )


def _record(node: Mapping[str, Any]) -> tuple[Schema, Make]:
    parts = [(field["name"], compile_schema(field["type"])) for field in node["fields"]]
    fields = tuple(Field(name, at, schema) for at, (name, (schema, _)) in enumerate(parts))
    space = node.get("namespace")
    schema = Schema(
        Type.STRUCT, name=f"{space}.{node['name']}" if space else node["name"], fields=fields
    )
    makes = [make for _, (_, make) in parts]
    options = node.get("arg.properties", {}).get("options")
    if options:
        names = [field.name for field in fields]
        return schema, lambda random, number: _struct(schema, names, random.choice(options))
    return schema, lambda random, number: Struct(schema, [make(random, number) for make in makes])


def _struct(schema: Schema, names: Sequence[str], values: Mapping[str, Any]) -> Struct:
    return Struct(schema, [values.get(name) for name in names])


def _array(node: Mapping[str, Any], hints: Mapping[str, Any]) -> tuple[Schema, Make]:
    items, make = compile_schema(node["items"])
    schema = Schema(Type.ARRAY, value_schema=items)
    if "options" in hints:
        return schema, _chosen(hints, [])
    low, high = _bounds(hints.get("length"), (1, 4))
    return schema, lambda random, number: [
        make(random, number) for _ in range(random.randrange(low, high))
    ]


def _map(node: Mapping[str, Any], hints: Mapping[str, Any]) -> tuple[Schema, Make]:
    values, make = compile_schema(node["values"])
    schema = Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=values)
    if "options" in hints:
        return schema, _chosen(hints, [])
    low, high = _bounds(hints.get("length"), (1, 4))
    key = _primitive("string", hints.get("keys", {}))
    return schema, lambda random, number: {
        key(random, number): make(random, number) for _ in range(random.randrange(low, high))
    }


def _chosen(hints: Mapping[str, Any], default: Sequence[Any]) -> Make:
    options = hints.get("options", default)
    if not isinstance(options, list) or not options:
        raise ConfigError("options of arg.properties must be a list of values")
    return lambda random, number: random.choice(options)


def _primitive(kind: str, hints: Mapping[str, Any]) -> Make:
    if "options" in hints:
        return _chosen(hints, [])
    if "iteration" in hints:
        return _iteration(kind, hints["iteration"])
    if kind == "boolean":
        odds = float(hints.get("odds", 0.5))
        return lambda random, number: random.random() < odds
    if kind in ("int", "long"):
        low, high = _bounds(hints.get("range"), _WHOLE[kind])
        return lambda random, number: random.randrange(low, high)
    if kind in ("float", "double"):
        given = hints.get("range", {})
        least, most = float(given.get("min", 0.0)), float(given.get("max", 1.0))
        return lambda random, number: least + random.random() * (most - least)
    if "regex" in hints:
        return _matching(hints["regex"])
    low, high = _bounds(hints.get("length"), _LENGTH)
    if kind == "bytes":
        return lambda random, number: random.randbytes(random.randrange(low, high))
    return lambda random, number: "".join(random.choices(_LETTERS, k=random.randrange(low, high)))


def _bounds(given: Any, default: tuple[int, int]) -> tuple[int, int]:
    """Return the least value, and the one behind the greatest."""
    if given is None:
        return default
    if isinstance(given, int):
        return given, given + 1
    low, high = int(given.get("min", default[0])), int(given.get("max", default[1]))
    if high <= low:
        raise ConfigError(f"max of arg.properties is not above min: {given}")
    return low, high


def _iteration(kind: str, given: Mapping[str, Any]) -> Make:
    if kind not in ("int", "long", "float", "double", "string"):
        raise ConfigError(f"values of type {kind} cannot be counted")
    start, step = Decimal(str(given.get("start", 0))), Decimal(str(given.get("step", 1)))
    first = Decimal(str(given.get("initial", start)))
    restart = given.get("restart")
    span = None if restart is None else Decimal(str(restart)) - start
    if span is not None and span <= 0:
        raise ConfigError("restart of an iteration must be above start")
    to: Callable[[Decimal], Any] = {"float": float, "double": float, "string": str}.get(kind, int)

    def make(random: Random, number: int) -> Any:
        value = first + number * step
        return to(value if span is None else start + (value - start) % span)

    return make


def _matching(pattern: str) -> Make:
    from re import _parser as parser  # there is no other parser

    try:
        parsed = parser.parse(pattern)
    except re.error as error:
        raise ConfigError(f"regex {pattern} of arg.properties: {error}") from error
    return lambda random, number: "".join(_text(one, random) for one in parsed)


def _text(node: Any, random: Random) -> str:
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return chr(value)
        case "IN":
            return _one_of(value, random)
        case "ANY":
            return random.choice(_LETTERS)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = value
            count = random.randint(low, min(int(high), max(low, _REPEATS_MAX)))
            return "".join(_text(one, random) for _ in range(count) for one in inner)
        case "SUBPATTERN":
            return "".join(_text(one, random) for one in value[3])
        case "BRANCH":
            return "".join(_text(one, random) for one in random.choice(value[1]))
        case "AT":
            return ""
    raise ConfigError(f"regex of arg.properties: {kind} cannot be made up")


def _one_of(parts: Sequence[Any], random: Random) -> str:
    letters = ""
    is_negated = False
    for kind, value in parts:
        match str(kind):
            case "NEGATE":
                is_negated = True
            case "LITERAL":
                letters += chr(value)
            case "RANGE":
                letters += "".join(map(chr, range(value[0], value[1] + 1)))
            case "CATEGORY":
                letters += string.digits if "DIGIT" in str(value) else _LETTERS + "_"
    if is_negated:
        letters = "".join(one for one in string.printable[:94] if one not in letters)
    return random.choice(letters)
