"""Signatures of functions: their text as `catalog` describes it, and the choice of an overload.

The choice follows ksqlDB. A call first looks for signatures that take its arguments as they are;
only if there is none, for those that take them after implicit casts. Of several, the best is the
one without a variadic parameter, then with more parameters, with fewer type variables, without
`ANY...`, with its variadic parameter later. Two equally good ones make the call ambiguous. NULL
and intervals have no type (None) and fit every parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Generic, Protocol, TypeAlias, TypeVar

from barnabas.pipeline.sql import types
from barnabas.pipeline.sql.errors import AnalysisError
from barnabas.pipeline.sql.types import Array, BaseType, Map, Primitive, SqlType, Struct


class Wildcard(Enum):
    """A parameter that takes many types."""

    ANY = "ANY"
    DECIMAL = "DECIMAL"
    STRUCT = "STRUCT<>"
    INTERVAL = "INTERVAL UNIT"


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for one type, the same one everywhere in a signature."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Pattern


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map whose keys and values have these patterns."""

    key: Pattern
    value: Pattern


@dataclass(frozen=True, slots=True)
class LambdaOf:
    """A function given as an argument."""

    inputs: tuple[Pattern, ...]
    result: Pattern


Pattern: TypeAlias = (
    Primitive | types.Decimal | Struct | Wildcard | Variable | ArrayOf | MapOf | LambdaOf
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a signature says of one argument."""

    name: str
    pattern: Pattern
    is_variadic: bool = False
    is_constant: bool = False
    """Whether the argument must be a literal."""

    def __str__(self) -> str:
        dots = "..." if self.is_variadic else ""
        return f"{pattern_text(self.pattern)}{dots} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Signature:
    """`result` is None where the text does not tell it (aggregates may leave it out)."""

    parameters: tuple[Parameter, ...]
    result: Pattern | None

    def expanded(self, count: int) -> tuple[Parameter, ...] | None:
        """The parameter for each of `count` arguments, or None if there cannot be so many."""
        at = self.variadic_index
        if at < 0:
            return self.parameters if count == len(self.parameters) else None
        repeats = count - len(self.parameters) + 1
        if repeats < 0:
            return None
        return self.parameters[:at] + (self.parameters[at],) * repeats + self.parameters[at + 1 :]

    @property
    def variadic_index(self) -> int:
        """Where the variadic parameter stands, or -1."""
        return next((i for i, p in enumerate(self.parameters) if p.is_variadic), -1)

    @property
    def rank(self) -> tuple[int, ...]:
        """Greater is better where several signatures fit."""
        any_variadic = any(p.is_variadic and p.pattern is Wildcard.ANY for p in self.parameters)
        generic = sum(
            has_variables(p.pattern) or (p.is_variadic and p.pattern is Wildcard.ANY)
            for p in self.parameters
        )
        at = self.variadic_index
        return (int(at < 0), len(self.parameters), -generic, int(not any_variadic), at)


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """A lambda as an argument, before its types are known: they follow from the overload."""

    parameter_count: int


Argument: TypeAlias = SqlType | LambdaShape | None


class HasSignature(Protocol):
    @property
    def signature(self) -> str: ...


O = TypeVar("O", bound=HasSignature)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Choice(Generic[O]):
    """The overload for a call, and the parameter that each argument goes to."""

    overload: O
    signature: Signature
    parameters: tuple[Parameter, ...]


def choose(
    name: str, overloads: Sequence[O], arguments: Sequence[Argument], *, casts: bool = True
) -> Choice[O]:
    """The overload that takes the arguments; raises AnalysisError if none or several do.

    `casts`: whether implicit casts are allowed (they are not for aggregates).
    """
    choices = [
        Choice(overload, signature, parameters)
        for overload in overloads
        if (signature := parse_signature(overload.signature))
        and (parameters := signature.expanded(len(arguments))) is not None
    ]
    for with_casts in (False, True) if casts else (False,):
        fitting = [c for c in choices if _fits(c.parameters, arguments, with_casts)]
        if fitting:
            fitting.sort(key=lambda choice: choice.signature.rank)
            if len(fitting) > 1 and fitting[-1].signature.rank == fitting[-2].signature.rank:
                raise _ambiguous(name, overloads, arguments)
            return fitting[-1]
    raise _none_fits(name, overloads, arguments)


def _fits(parameters: Sequence[Parameter], arguments: Sequence[Argument], casts: bool) -> bool:
    bindings: dict[str, SqlType] = {}
    return all(
        bind(parameter.pattern, argument, bindings)
        if has_variables(parameter.pattern)
        else _takes(parameter.pattern, argument, casts)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def _takes(pattern: Pattern, argument: Argument, casts: bool) -> bool:
    """Whether a parameter without variables takes the argument."""
    match pattern, argument:
        case (_, None) | (Wildcard.ANY, _):
            return True
        case LambdaOf(inputs, _), LambdaShape(count):
            return len(inputs) == count
        case (LambdaOf(), _) | (_, LambdaShape()) | (Wildcard.INTERVAL, _):
            return False
        case ArrayOf(item), Array(argument_item):
            return _takes(item, argument_item, casts)
        case MapOf(key, value), Map(argument_key, argument_value):
            return _takes(key, argument_key, casts) and _takes(value, argument_value, casts)
        case Wildcard.STRUCT, Struct():
            return True
        case Struct(fields), Struct(argument_fields):
            return not argument_fields or (
                {field.name: field.type for field in fields}
                == {field.name: field.type for field in argument_fields}
            )
    assert not isinstance(argument, LambdaShape)
    base = _base(pattern)
    if base is None or argument is None:
        return False
    return argument.base is base or (casts and can_cast_implicitly(argument.base, base))


def _base(pattern: Pattern) -> BaseType | None:
    match pattern:
        case Wildcard.DECIMAL:
            return BaseType.DECIMAL
        case Wildcard.STRUCT:
            return BaseType.STRUCT
        case Primitive() | types.Decimal() | Struct():
            return pattern.base
    return None


def can_cast_implicitly(source: BaseType, target: BaseType) -> bool:
    """Whether a value becomes the other type without CAST: numbers become wider ones, and texts
    become dates, times and bytes."""
    if source.is_number and target.is_number:
        return types.NUMBERS.index(source) <= types.NUMBERS.index(target)
    if source is BaseType.STRING and (target.is_time or target is BaseType.BYTES):
        return True
    return source is target


def bind(pattern: Pattern, argument: Argument, bindings: dict[str, SqlType]) -> bool:
    """Note in `bindings` what the pattern's variables stand for; False if the argument does not
    have the pattern's shape, or a variable already stands for another type. Types of lambdas are
    bound by what types their bodies."""
    match pattern, argument:
        case _, None:
            return True
        case Variable(), LambdaShape():
            return False
        case Variable(name), _:
            assert not isinstance(argument, LambdaShape)
            return bindings.setdefault(name, argument) == argument
        case LambdaOf(inputs, _), LambdaShape(count):
            return len(inputs) == count
        case ArrayOf(item), Array(argument_item):
            return bind(item, argument_item, bindings)
        case MapOf(key, value), Map(argument_key, argument_value):
            return bind(key, argument_key, bindings) and bind(value, argument_value, bindings)
        case Wildcard.ANY, _:
            return True
    if isinstance(argument, LambdaShape) or argument is None:
        return False
    return _base(pattern) is argument.base


def has_variables(pattern: Pattern) -> bool:
    """Whether types of arguments decide what the pattern means."""
    match pattern:
        case Variable():
            return True
        case ArrayOf(item):
            return has_variables(item)
        case MapOf(key, value):
            return has_variables(key) or has_variables(value)
        case LambdaOf(inputs, result):
            return any(map(has_variables, inputs)) or has_variables(result)
    return False


def substitute(pattern: Pattern, bindings: dict[str, SqlType]) -> SqlType:
    """The type that the pattern means; raises AnalysisError for a variable without a type."""
    match pattern:
        case Variable(name):
            if name not in bindings:
                raise AnalysisError(f"Could not find mapping for generic type: {name}")
            return bindings[name]
        case ArrayOf(item):
            return Array(substitute(item, bindings))
        case MapOf(key, value):
            return Map(substitute(key, bindings), substitute(value, bindings))
        case Primitive() | types.Decimal() | Struct():
            return pattern
    raise AnalysisError(f"The signature does not tell the type: {pattern_text(pattern)}")


def pattern_text(pattern: Pattern) -> str:
    """The pattern as ksqlDB shows it."""
    match pattern:
        case Variable(name):
            return name
        case Wildcard():
            return pattern.value
        case ArrayOf(item):
            return f"ARRAY<{pattern_text(item)}>"
        case MapOf(key, value):
            return f"MAP<{pattern_text(key)}, {pattern_text(value)}>"
        case LambdaOf(inputs, result):
            return f"LAMBDA ({', '.join(map(pattern_text, inputs))}) => {pattern_text(result)}"
        case types.STRING:
            return "VARCHAR"
        case types.INTEGER:
            return "INT"
        case types.Decimal():
            return "DECIMAL"
    return _type_text(pattern)


def _argument_text(argument: Argument) -> str:
    if argument is None:
        return "null"
    if isinstance(argument, LambdaShape):
        return "LAMBDA"
    return _type_text(argument)


def _type_text(sql_type: SqlType) -> str:
    """The type with the names of fields unquoted, as messages about calls show it."""
    match sql_type:
        case Array(item):
            return f"ARRAY<{_type_text(item)}>"
        case Map(key, value):
            return f"MAP<{_type_text(key)}, {_type_text(value)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{f.name} {_type_text(f.type)}' for f in fields)}>"
    return str(sql_type)


def _none_fits(
    name: str, overloads: Sequence[HasSignature], arguments: Sequence[Argument]
) -> AnalysisError:
    return AnalysisError(
        f"Function '{name}' does not accept parameters ({_texts(arguments)}).\n"
        f"Valid alternatives are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _ambiguous(
    name: str, overloads: Sequence[HasSignature], arguments: Sequence[Argument]
) -> AnalysisError:
    return AnalysisError(
        f"Function '{name}' cannot be resolved due to ambiguous method parameters "
        f"({_texts(arguments)}).\n"
        "Use CAST() to explicitly cast your parameters to one of the supported function calls.\n"
        f"Valid function calls are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _texts(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(_argument_text, arguments))


def _alternatives(name: str, overloads: Sequence[HasSignature]) -> str:
    signatures = [parse_signature(overload.signature) for overload in overloads]
    return "\n".join(sorted(f"{name}({', '.join(map(str, s.parameters))})" for s in signatures))


_TOKEN = re.compile(r"\s*(->|\.\.\.|`[^`]*`|\w+|[(),<>!])")

_AFTER_TYPE: tuple[list[str], ...] = ([], ["<"], ["("], [","], [")"], ["..."], ["!"])
"""What may follow the first word of a type, and not a name."""

_PRIMITIVES: dict[str, Primitive] = {
    base.value: Primitive(base)
    for base in BaseType
    if base not in (BaseType.DECIMAL, BaseType.ARRAY, BaseType.MAP, BaseType.STRUCT)
}


@lru_cache(maxsize=4096)
def parse_signature(text: str) -> Signature:
    """The signature that the text tells; raises ValueError if it tells none."""
    reader = _Reader(text)
    parameters = reader.parameters()
    result = reader.pattern() if reader.takes("->") else None
    reader.finish()
    if sum(parameter.is_variadic for parameter in parameters) > 1:
        raise ValueError(f"more than one variadic parameter: {text}")
    return Signature(parameters, result)


class _Reader:
    """Reads a signature, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"no signature: {text}")
            self._tokens.append(match[1])
            position = match.end()
        self._at = 0

    def takes(self, token: str) -> bool:
        """Whether the next token is that one; then it is read."""
        found = self._at < len(self._tokens) and self._tokens[self._at] == token
        self._at += found
        return found

    def parameters(self) -> tuple[Parameter, ...]:
        self._expect("(")
        parameters: list[Parameter] = []
        while not self.takes(")"):
            if parameters:
                self._expect(",")
            parameters.append(self._parameter())
        return tuple(parameters)

    def pattern(self) -> Pattern:
        word = self._word()
        if word in _PRIMITIVES:
            return _PRIMITIVES[word]
        match word:
            case "ARRAY":
                self._expect("<")
                item = self.pattern()
                self._expect(">")
                return ArrayOf(item)
            case "MAP":
                self._expect("<")
                key = self.pattern()
                self._expect(",")
                value = self.pattern()
                self._expect(">")
                return MapOf(key, value)
            case "STRUCT":
                return self._struct() if self.takes("<") else Wildcard.STRUCT
            case "DECIMAL":
                return self._decimal() if self.takes("(") else Wildcard.DECIMAL
            case "LAMBDA":
                return self._lambda()
            case "ANY" | "INTERVAL":
                return Wildcard[word]
        if len(word) == 1 and word.isupper():
            return Variable(word)
        raise ValueError(f"no type: {word} in {self._text}")

    def finish(self) -> None:
        if self._at != len(self._tokens):
            raise ValueError(f"text after the signature: {self._text}")

    def _parameter(self) -> Parameter:
        is_named = self._tokens[self._at + 1 : self._at + 2] not in (
            ["<"],
            ["("],
            [","],
            [")"],
            ["..."],
            ["!"],
        )
        name = self._word() if is_named else ""
        pattern = self.pattern()
        is_constant = self.takes("!")
        is_variadic = self.takes("...")
        return Parameter(name, pattern, is_variadic, is_constant or self.takes("!"))

    def _lambda(self) -> LambdaOf:
        self._expect("(")
        inputs: list[Pattern] = []
        while not self.takes(")"):
            if inputs:
                self._expect(",")
            inputs.append(self.pattern())
        self._expect("->")
        return LambdaOf(tuple(inputs), self.pattern())

    def _struct(self) -> Struct:
        fields: list[types.Field] = []
        while not self.takes(">"):
            if fields:
                self._expect(",")
            name = self._word().strip("`")
            fields.append(types.Field(name, substitute(self.pattern(), {})))
        return Struct(tuple(fields))

    def _decimal(self) -> types.Decimal:
        precision = int(self._word())
        self._expect(",")
        scale = int(self._word())
        self._expect(")")
        return types.Decimal(precision, scale)

    def _word(self) -> str:
        if self._at == len(self._tokens):
            raise ValueError(f"the signature ends early: {self._text}")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if not self.takes(token):
            raise ValueError(f"{token} expected: {self._text}")
