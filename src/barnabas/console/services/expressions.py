"""The filter expressions of the messages page: a small language, parsed and compiled to closures.

    expression   = and ("or" and)*
    and          = not ("and" not)*
    not          = "not" not | comparison
    comparison   = operand [operator operand] | operand "in" "(" literal ("," literal)* ")"
    operator     = "==" "!=" "<" "<=" ">" ">=" "contains" "startswith" "endswith" "matches"
    operand      = path | literal | function "(" expression ")" | "(" expression ")"
    path         = root ("." name | "[" text or number "]")*
    root         = "key" "value" "headers" "offset" "partition" "timestamp"

A text that stands alone is true where key, value or a header contains it. What a path does not find
is null. Only values of one kind are ordered: other comparisons are false. Patterns are RE2's, which
take linear time. Nothing of a record or an expression is ever run as code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

import re2  # type: ignore[import-untyped]  # no stubs

LENGTH_MAX: Final = 4_000
DEPTH_MAX: Final = 50
"""Brackets and `not` within each other."""
PATTERN_MEMORY_BYTES_MAX: Final = 1 << 20
ROOTS: Final = ("key", "value", "headers", "offset", "partition", "timestamp")
FUNCTIONS: Final = ("lower", "length", "text", "exists")
OPERATORS: Final = (
    *("==", "!=", "<=", ">=", "<", ">"),
    *("contains", "startswith", "endswith", "matches", "in"),
)
_WORDS: Final = frozenset({"and", "or", "not", "true", "false", "null", *OPERATORS})
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d][\w$-]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<sign>==|!=|<=|>=|[<>().,\[\]=]))"
)


class ExpressionError(ValueError):
    """An expression is wrong at `position`, which counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message, self.position = message, position


class Searched(Protocol):
    """A record, as expressions see it. Keys and values are decoded when they are needed."""

    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> Mapping[str, Any]: ...
    @property
    def offset(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def timestamp(self) -> int: ...


Part = Callable[[Searched], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression."""

    text: str
    matches: Callable[[Searched], bool]
    roots: frozenset[str]
    """The roots that it reads."""


def compile_expression(text: str) -> Expression:
    """Compile a text. Raises ExpressionError."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"longer than {LENGTH_MAX} characters", LENGTH_MAX)
    parser = _Parser(text)
    part = parser.whole()
    return Expression(text, lambda record: truth(part(record)), frozenset(parser.roots))


def truth(value: Any) -> bool:
    """Return whether a value counts as true: everything but null, false, 0 and what is empty."""
    return bool(value)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(text: str) -> list[_Token]:
    found = []
    position = 0
    while position < len(text):
        if text[position:].isspace():
            break
        match = _TOKEN.match(text, position)
        if match is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            if text[position] in "\"'":
                raise ExpressionError("this text has no closing quote", position)
            raise ExpressionError(f"unexpected {text[position]!r}", position)
        kind = match.lastgroup
        assert kind is not None
        found.append(_Token(kind, match[kind], match.start(kind)))
        position = match.end()
    found.append(_Token("end", "", len(text)))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self.roots: set[str] = set()

    def whole(self) -> Part:
        if self._token.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        part = self._or()
        if self._token.kind != "end":
            self._fail(f"unexpected {self._token.text!r}")
        return part

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _fail(self, message: str) -> NoReturn:
        raise ExpressionError(message, self._token.position)

    def _next(self) -> _Token:
        token = self._token
        if token.kind != "end":
            self._at += 1
        return token

    def _takes(self, text: str) -> bool:
        if self._token.kind in ("name", "sign") and self._token.text == text:
            self._at += 1
            return True
        return False

    def _needs(self, text: str) -> None:
        if not self._takes(text):
            found = self._token.text or "the end"
            self._fail(f"{text!r} is missing before {found!r}")

    def _or(self) -> Part:
        parts = [self._and()]
        while self._takes("or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else lambda record: any(truth(p(record)) for p in parts)

    def _and(self) -> Part:
        parts = [self._not()]
        while self._takes("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda record: all(truth(p(record)) for p in parts)

    def _not(self) -> Part:
        if self._takes("not"):
            self._deeper()
            part = self._not()
            self._depth -= 1
            return lambda record: not truth(part(record))
        return self._comparison()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail(f"nested deeper than {DEPTH_MAX} levels")

    def _comparison(self) -> Part:
        start = self._at
        left = self._operand()
        token = self._token
        if token.kind == "sign" and token.text == "=":
            self._fail("'=' is not an operator; write '=='")
        if token.text not in OPERATORS or token.kind not in ("sign", "name"):
            first = self._tokens[start]
            if first.kind == "text" and self._at == start + 1:
                return self._anywhere(_unquoted(first))
            return left
        self._next()
        if token.text == "in":
            return _is_in(left, self._list())
        at = self._token
        right = self._operand()
        if token.text == "matches":
            return _matches(left, at, self._tokens[self._at - 1])
        return _COMPARED[token.text](left, right)

    def _list(self) -> list[Any]:
        self._needs("(")
        values = [self._literal()]
        while self._takes(","):
            values.append(self._literal())
        self._needs(")")
        return values

    def _literal(self) -> Any:
        token = self._next()
        found = _literal_of(token)
        if found is _NONE:
            raise ExpressionError("a text or a number is needed here", token.position)
        return found

    def _operand(self) -> Part:
        token = self._next()
        if token.kind == "sign" and token.text == "(":
            self._deeper()
            part = self._or()
            self._needs(")")
            self._depth -= 1
            return part
        value = _literal_of(token)
        if value is not _NONE:
            return lambda _: value
        if token.kind == "end":
            raise ExpressionError("something is missing at the end", token.position)
        if token.kind != "name" or token.text in _WORDS:
            raise ExpressionError(f"unexpected {token.text!r}", token.position)
        if token.text in FUNCTIONS and self._token.text == "(":
            return self._function(token)
        if token.text in ROOTS:
            return self._path(token)
        raise ExpressionError(
            f"unknown name {token.text!r}: a path begins with {', '.join(ROOTS)}; "
            "texts stand in quotes",
            token.position,
        )

    def _function(self, token: _Token) -> Part:
        self._needs("(")
        self._deeper()
        part = self._or()
        self._needs(")")
        self._depth -= 1
        return _FUNCTIONS[token.text](part)

    def _path(self, root: _Token) -> Part:
        self.roots.add(root.text)
        steps: list[str | int] = []
        while True:
            if self._takes("."):
                token = self._next()
                if token.kind != "name":
                    raise ExpressionError("a name is needed after '.'", token.position)
                steps.append(token.text)
            elif self._takes("["):
                token = self._next()
                if token.kind == "text":
                    steps.append(_unquoted(token))
                elif token.kind == "number" and token.text.isdigit():
                    steps.append(int(token.text))
                else:
                    raise ExpressionError("a text or an index is needed in [ ]", token.position)
                self._needs("]")
            else:
                return _read(root.text, steps)

    def _anywhere(self, text: str) -> Part:
        self.roots |= {"key", "value", "headers"}
        return lambda record: (
            text in text_of(record.key)
            or text in text_of(record.value)
            or (bool(record.headers) and text in text_of(record.headers))
        )


_NONE: Final = object()


def _literal_of(token: _Token) -> Any:
    if token.kind == "number":
        return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)
    if token.kind == "text":
        return _unquoted(token)
    if token.kind == "name" and token.text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[token.text]
    return _NONE


def _unquoted(token: _Token) -> str:
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), token.text[1:-1])


def _read(root: str, steps: list[str | int]) -> Part:
    getter: Part = {
        "key": lambda record: record.key,
        "value": lambda record: record.value,
        "headers": lambda record: record.headers,
        "offset": lambda record: record.offset,
        "partition": lambda record: record.partition,
        "timestamp": lambda record: record.timestamp,
    }[root]
    if not steps:
        return getter
    if len(steps) == 1 and isinstance(steps[0], str):
        name = steps[0]

        def read_one(record: Searched) -> Any:
            found = getter(record)
            return found.get(name) if isinstance(found, Mapping) else None

        return read_one

    def read(record: Searched) -> Any:
        found = getter(record)
        for step in steps:
            if isinstance(found, Mapping):
                found = found.get(str(step))
            elif isinstance(found, list) and isinstance(step, int):
                found = found[step] if step < len(found) else None
            else:
                return None
        return found

    return read


def text_of(value: Any) -> str:
    """A value as a text: texts as they are, null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Part, Part], Part]:
    def made(left: Part, right: Part) -> Part:
        def compared(record: Searched) -> bool:
            one, other = left(record), right(record)
            if (_is_number(one) and _is_number(other)) or (
                isinstance(one, str) and isinstance(other, str)
            ):
                return compare(one, other)
            return False

        return compared

    return made


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _contains(left: Part, right: Part) -> Part:
    def contained(record: Searched) -> bool:
        found, wanted = left(record), right(record)
        if isinstance(found, list):
            return any(_equal(one, wanted) for one in found)
        if found is None or wanted is None:
            return False
        return text_of(wanted) in text_of(found)

    return contained


def _matches(left: Part, at: _Token, last: _Token) -> Part:
    if at.kind != "text" or at is not last:
        raise ExpressionError("a pattern in quotes is needed after 'matches'", at.position)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    try:
        pattern = re2.compile(_unquoted(at), options)
    except re2.error as error:
        raise ExpressionError(f"not a pattern: {error}", at.position) from None

    def matched(record: Searched) -> bool:
        found = left(record)
        return found is not None and pattern.search(text_of(found)) is not None

    return matched


def _is_in(left: Part, values: list[Any]) -> Part:
    def is_in(record: Searched) -> bool:
        found = left(record)
        return any(_equal(found, one) for one in values)

    return is_in


_COMPARED: Final[Mapping[str, Callable[[Part, Part], Part]]] = {
    "==": lambda left, right: lambda record: _equal(left(record), right(record)),
    "!=": lambda left, right: lambda record: not _equal(left(record), right(record)),
    "<": _ordered(lambda one, other: bool(one < other)),
    "<=": _ordered(lambda one, other: bool(one <= other)),
    ">": _ordered(lambda one, other: bool(one > other)),
    ">=": _ordered(lambda one, other: bool(one >= other)),
    "contains": _contains,
    "startswith": lambda left, right: (
        lambda record: text_of(left(record)).startswith(text_of(right(record)))
    ),
    "endswith": lambda left, right: (
        lambda record: text_of(left(record)).endswith(text_of(right(record)))
    ),
}


def _length(part: Part) -> Part:
    def length(record: Searched) -> int | None:
        found = part(record)
        return len(found) if isinstance(found, str | list | Mapping | bytes) else None

    return length


_FUNCTIONS: Final[Mapping[str, Callable[[Part], Part]]] = {
    "lower": lambda part: lambda record: text_of(part(record)).lower(),
    "length": _length,
    "text": lambda part: lambda record: text_of(part(record)),
    "exists": lambda part: lambda record: part(record) is not None,
}
