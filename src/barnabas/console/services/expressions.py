"""The filter expressions of the messages page: a small language, parsed and compiled to closures.

    expression   = and ("or" and)*
    and          = not ("and" not)*
    not          = "not" not | comparison
    comparison   = operand [operator operand] | operand "in" "(" literal ("," literal)* ")"
    operator     = "==" "!=" "<" "<=" ">" ">=" "contains" "startswith" "endswith" "matches"
    operand      = path | literal | function "(" expression ")" | "(" expression ")"
    path         = root ("." name | "[" text or number "]")*
    root         = "key" "value" "headers" "offset" "partition" "timestamp"

A text alone is true if the key, the value or a header contains it. A path that matches nothing is
null. Only values of one kind are ordered: other comparisons are false. Patterns are RE2's, which
take linear time. No part of a record or an expression is ever run as code.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

import re2  # type: ignore[import-untyped]  # no stubs

from barnabas.console.services.needles import Needles, both, either, needle_of

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
    needles: Needles | None = None
    """Texts of which a record must have one, for the expression to be true; None if not known."""


def compile_expression(text: str) -> Expression:
    """Compile a text. Raises ExpressionError."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"longer than {LENGTH_MAX} characters", LENGTH_MAX)
    parser = _Parser(text)
    term = parser.whole()
    part = term.part
    roots = frozenset(parser.roots)
    return Expression(text, lambda record: bool(part(record)), roots, term.needles)


def truth(value: Any) -> bool:
    """Return whether a value counts as true: everything but null, false, 0 and what is empty."""
    return bool(value)


class _Constant:
    """A literal."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: Searched) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of an expression."""

    part: Part
    root: str | None = None
    """The root of a path; None for anything else."""
    needles: Needles | None = None
    """Those without which it is false."""

    @property
    def literal(self) -> Any:
        """The value of a literal; None also for anything else."""
        return self.part.value if isinstance(self.part, _Constant) else None


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

    def whole(self) -> _Term:
        if self._token.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        term = self._or()
        if self._token.kind != "end":
            self._fail(f"unexpected {self._token.text!r}")
        return term

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

    def _or(self) -> _Term:
        terms = [self._and()]
        while self._takes("or"):
            terms.append(self._and())
        if len(terms) == 1:
            return terms[0]
        return _Term(_any([one.part for one in terms]), None, either(x.needles for x in terms))

    def _and(self) -> _Term:
        terms = [self._not()]
        while self._takes("and"):
            terms.append(self._not())
        if len(terms) == 1:
            return terms[0]
        return _Term(_all([one.part for one in terms]), None, both(x.needles for x in terms))

    def _not(self) -> _Term:
        if self._takes("not"):
            self._deeper()
            part = self._not().part
            self._depth -= 1
            return _Term(lambda record: not truth(part(record)))
        return self._comparison()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail(f"nested deeper than {DEPTH_MAX} levels")

    def _comparison(self) -> _Term:
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
            values = self._list()
            return _Term(_is_in(left.part, values), None, _compared_with(left.root, values))
        at = self._token
        right = self._operand()
        if token.text == "matches":
            return _Term(_matches(left.part, at, self._tokens[self._at - 1]))
        needles = None
        if token.text == "==":
            needles = _compared_with(left.root, [right.literal])
        elif token.text in _WITHIN and left.root in _TEXTS:
            needles = needle_of(left.root, right.literal)
        return _Term(_COMPARED[token.text](left.part, right.part), None, needles)

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

    def _operand(self) -> _Term:
        token = self._next()
        if token.kind == "sign" and token.text == "(":
            self._deeper()
            term = self._or()
            self._needs(")")
            self._depth -= 1
            return term
        value = _literal_of(token)
        if value is not _NONE:
            return _Term(_Constant(value))
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

    def _function(self, token: _Token) -> _Term:
        self._needs("(")
        self._deeper()
        part = self._or().part
        self._needs(")")
        self._depth -= 1
        return _Term(_FUNCTIONS[token.text](part))

    def _path(self, root: _Token) -> _Term:
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
                return _Term(_read(root.text, steps), root.text)

    def _anywhere(self, text: str) -> _Term:
        self.roots |= set(_TEXTS)

        def found(record: Searched) -> bool:
            return (
                text in text_of(record.key)
                or text in text_of(record.value)
                or (bool(record.headers) and text in text_of(record.headers))
            )

        return _Term(found, None, either(needle_of(root, text) for root in _TEXTS))


_NONE: Final = object()
_TEXTS: Final = ("key", "value", "headers")
"""Roots that are made of bytes."""
_NUMBER: Final = (int, float)
_WITHIN: Final = ("contains", "startswith", "endswith")


def _compared_with(root: str | None, values: list[Any]) -> Needles | None:
    """The needles of a path that equals one of several values."""
    if root not in _TEXTS:
        return None
    return either(needle_of(root, one, is_whole=True) for one in values)


def _any(parts: list[Part]) -> Part:
    def is_any(record: Searched) -> bool:
        for part in parts:  # noqa: SIM110  a generator takes twice as long
            if part(record):
                return True
        return False

    return is_any


def _all(parts: list[Part]) -> Part:
    def are_all(record: Searched) -> bool:
        for part in parts:  # noqa: SIM110  as above
            if not part(record):
                return False
        return True

    return are_all


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
    return isinstance(value, _NUMBER) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Part, Part], Part]:
    def made(left: Part, right: Part) -> Part:
        if isinstance(right, _Constant) and _is_number(right.value):
            return with_number(left, right.value)

        def compared(record: Searched) -> bool:
            one, other = left(record), right(record)
            if (_is_number(one) and _is_number(other)) or (
                isinstance(one, str) and isinstance(other, str)
            ):
                return compare(one, other)
            return False

        return compared

    def with_number(left: Part, number: float) -> Part:
        def compared(record: Searched) -> bool:
            one = left(record)
            return _is_number(one) and compare(one, number)

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
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
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
