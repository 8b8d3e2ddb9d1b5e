"""Plans as JSON, for the command topic: readable, and the same years later.

    {"version": 1, "plan": {"query_id": …, "step": {"is": "StreamSink", "source": {…}, …}}}

A step or expression is an object whose `is` names its class; every other field is one of the
class's, left out where it has its default. Types are `"BIGINT"`, `{"decimal": [4, 2]}`,
`{"array": …}`, `{"map": [key, value]}` and `{"struct": [[name, type], …]}`; enums are their names.
Positions in the text are not kept: it counts for messages alone.

A field that is added later must have a default, so that older plans can be read. What changes the
meaning of older plans raises VERSION, and the decoder must go on reading the old ones.
"""

from __future__ import annotations

import base64
import decimal
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from barnabas.sql import types
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.syntax import expressions
from barnabas.sql.types import BaseType, Primitive, SqlType

T = TypeVar("T")

VERSION = 1

_TAGGED: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (*get_args(steps.Step), *get_args(expressions.Expression))
}
"""Classes by the name that `is` gives them. A class that is renamed keeps its old name here."""

_NAMES = {kind: name for name, kind in _TAGGED.items()}


class PlanFormatError(ValueError):
    """Text is not a plan, or one of a version that this program does not know."""


def encode_plan(plan: QueryPlan) -> str:
    """The plan as JSON on one line."""
    return json.dumps(plan_to_json(plan), separators=(",", ":"), ensure_ascii=False)


def decode_plan(text: str) -> QueryPlan:
    """The plan that `encode_plan` was given. Raises PlanFormatError."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise PlanFormatError(f"the plan is not JSON: {error}") from error
    return plan_from_json(data)


def plan_to_json(plan: QueryPlan) -> dict[str, Any]:
    """The plan as JSON's objects, lists and values."""
    return {"version": VERSION, "plan": _codec(QueryPlan).encode(plan)}


def plan_from_json(data: Any) -> QueryPlan:
    """The plan that `plan_to_json` was given. Raises PlanFormatError."""
    try:
        version = data["version"]
        if version != VERSION:
            raise PlanFormatError(f"plan of version {version!r}, this program reads {VERSION}")
        plan = _codec(QueryPlan).decode(data["plan"])
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise PlanFormatError(f"not a plan: {type(error).__name__}: {error}") from error
    assert isinstance(plan, QueryPlan)
    return plan


def to_json(value: Any) -> Any:
    """Any dataclass of the kinds that plans are made of as JSON's objects, lists and values."""
    return _codec(type(value)).encode(value)


def from_json(kind: type[T], data: Any) -> T:
    """The object of that class that `to_json` was given. Raises PlanFormatError."""
    try:
        value = _codec(kind).decode(data)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise PlanFormatError(f"no {kind.__name__}: {type(error).__name__}: {error}") from error
    assert isinstance(value, kind)
    return value


class _Codec:
    """The encoding of values of one annotation."""

    def __init__(self, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
        self.encode = encode
        self.decode = decode


_AS_IT_IS = _Codec(lambda value: value, lambda data: data)


_codecs: dict[Any, _Codec] = {}


def _codec(annotation: Any) -> _Codec:
    if annotation not in _codecs:
        _codecs[annotation] = _new_codec(annotation)
    return _codecs[annotation]


def _new_codec(annotation: Any) -> _Codec:
    if annotation == SqlType:
        return _Codec(_encode_type, _decode_type)
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _union_codec(annotation)
    if origin is tuple:
        return _tuple_codec(get_args(annotation))
    if origin is not None and issubclass(origin, Mapping):
        return _Codec(dict, dict)
    if annotation is bytes:
        return _Codec(lambda value: base64.b64encode(value).decode(), base64.b64decode)
    if annotation is decimal.Decimal:
        return _Codec(str, decimal.Decimal)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _Codec(lambda value: value.name, lambda data: annotation[data])
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _class_codec(annotation)
    if annotation in (int, float, str, bool):
        return _AS_IT_IS
    raise TypeError(f"cannot write {annotation} in a plan")


def _union_codec(annotation: Any) -> _Codec:
    """Something or None, or one of the tagged classes."""
    options = set(get_args(annotation)) - {NoneType}
    if options <= _NAMES.keys():
        inner = _Codec(_encode_tagged, _decode_tagged)
    elif options == set(get_args(SqlType)):
        inner = _codec(SqlType)
    else:
        (only,) = options
        inner = _codec(only)
    if NoneType not in get_args(annotation):
        return inner
    return _Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda data: None if data is None else inner.decode(data),
    )


def _tuple_codec(arguments: tuple[Any, ...]) -> _Codec:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _codec(arguments[0])
        return _Codec(
            lambda value: [item.encode(each) for each in value],
            lambda data: tuple(item.decode(each) for each in data),
        )
    parts = [_codec(argument) for argument in arguments]
    return _Codec(
        lambda value: [part.encode(each) for part, each in zip(parts, value, strict=True)],
        lambda data: tuple(part.decode(each) for part, each in zip(parts, data, strict=True)),
    )


def _encode_tagged(value: Any) -> Any:
    kind = type(value)
    return {"is": _NAMES[kind], **_codec(kind).encode(value)}


def _decode_tagged(data: Any) -> Any:
    name = data["is"]
    if name not in _TAGGED:
        raise PlanFormatError(f"unknown step or expression: {name}")
    return _codec(_TAGGED[name]).decode({key: data[key] for key in data if key != "is"})


def _class_codec(kind: type[Any]) -> _Codec:
    hints = get_type_hints(kind)
    table = {
        each.name: (_codec(hints[each.name]), _default(each))
        for each in fields(kind)
        if each.compare
    }

    def encode(value: Any) -> dict[str, Any]:
        made = {}
        for name, (codec, default) in table.items():
            part = getattr(value, name)
            if default is MISSING or part != default:
                made[name] = codec.encode(part)
        return made

    def decode(data: Any) -> Any:
        unknown = data.keys() - table.keys()
        if unknown:
            raise PlanFormatError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
        return kind(**{name: table[name][0].decode(part) for name, part in data.items()})

    return _Codec(encode, decode)


def _default(of: Field[Any]) -> Any:
    if of.default_factory is not MISSING:
        return of.default_factory()
    return of.default


def _encode_type(of: SqlType) -> Any:
    match of:
        case Primitive(base):
            return base.name
        case types.Decimal(precision, scale):
            return {"decimal": [precision, scale]}
        case types.Array(item):
            return {"array": _encode_type(item)}
        case types.Map(key, value):
            return {"map": [_encode_type(key), _encode_type(value)]}
        case types.Struct(members):
            return {"struct": [[member.name, _encode_type(member.type)] for member in members]}


def _decode_type(data: Any) -> SqlType:
    if isinstance(data, str):
        return Primitive(BaseType[data])
    ((kind, of),) = data.items()
    match kind:
        case "decimal":
            return types.Decimal(*of)
        case "array":
            return types.Array(_decode_type(of))
        case "map":
            return types.Map(_decode_type(of[0]), _decode_type(of[1]))
        case "struct":
            return types.Struct(tuple(types.Field(name, _decode_type(each)) for name, each in of))
    raise PlanFormatError(f"unknown type: {kind}")
