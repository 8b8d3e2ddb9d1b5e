"""Signatures of functions, read from the texts that `catalog` describes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from barnabas.sql import types
from barnabas.sql.functions.patterns import (
    ArrayOf,
    LambdaOf,
    MapOf,
    Pattern,
    Variable,
    Wildcard,
    has_variables,
    pattern_text,
    substitute,
)
from barnabas.sql.types import BaseType, Primitive, Struct


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a signature."""

    name: str
    pattern: Pattern
    is_variadic: bool = False
    is_constant: bool = False
    """True if the argument must be a literal."""

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
        """The index of the variadic parameter, or -1."""
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


_TOKEN = re.compile(r"\s*(->|\.\.\.|`[^`]*`|\w+|[(),<>!])")


_AFTER_TYPE: tuple[list[str], ...] = ([], ["<"], ["("], [","], [")"], ["..."], ["!"])
"""Tokens that may follow the first word of a type, and not a name."""


_PRIMITIVES: dict[str, Primitive] = {
    base.value: Primitive(base)
    for base in BaseType
    if base not in (BaseType.DECIMAL, BaseType.ARRAY, BaseType.MAP, BaseType.STRUCT)
} | {"INT": types.INTEGER, "VARCHAR": types.STRING}


@lru_cache(maxsize=4096)
def parse_signature(text: str) -> Signature:
    """Parse a signature; raises ValueError if the text is not one."""
    reader = _SignatureReader(text)
    parameters = reader.parameters()
    result = reader.pattern() if reader.takes("->") else None
    reader.finish()
    if sum(parameter.is_variadic for parameter in parameters) > 1:
        raise ValueError(f"more than one variadic parameter: {text}")
    return Signature(parameters, result)


def parse_type(text: str) -> Pattern:
    """Parse a type or a pattern of types; raises ValueError if the text is neither."""
    reader = _SignatureReader(text)
    pattern = reader.pattern()
    reader.finish()
    return pattern


class _SignatureReader:
    """Reads a signature, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"not a signature: {text}")
            self._tokens.append(match[1])
            position = match.end()
        self._at = 0

    def takes(self, token: str) -> bool:
        """Return whether the next token is that one; then it is read."""
        is_next = self._at < len(self._tokens) and self._tokens[self._at] == token
        self._at += is_next
        return is_next

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
        raise ValueError(f"unknown type: {word} in {self._text}")

    def finish(self) -> None:
        if self._at != len(self._tokens):
            raise ValueError(f"text after the signature: {self._text}")

    def _parameter(self) -> Parameter:
        is_named = self._tokens[self._at + 1 : self._at + 2] not in _AFTER_TYPE
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
