"""Parsing of types: `BIGINT`, `DECIMAL(4, 2)`, `MAP<STRING, ARRAY<INT>>`, `STRUCT<a INT, b
STRING>`, names of types that CREATE TYPE made."""

from __future__ import annotations

from typing import cast

from barnabas.sql import types
from barnabas.sql.decimals import decimal_type
from barnabas.sql.errors import PrepareError, SqlError
from barnabas.sql.names import repeated
from barnabas.sql.syntax.cursor import Cursor
from barnabas.sql.syntax.lexer import NUMBERS, TokenKind
from barnabas.sql.syntax.limits import check_text
from barnabas.sql.syntax.tree import NamedType
from barnabas.sql.types import SqlType

PRIMITIVES: dict[str, SqlType] = {
    "BOOLEAN": types.BOOLEAN,
    "INTEGER": types.INTEGER,
    "INT": types.INTEGER,
    "BIGINT": types.BIGINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "VARCHAR": types.STRING,
    "BYTES": types.BYTES,
    "DATE": types.DATE,
    "TIME": types.TIME,
    "TIMESTAMP": types.TIMESTAMP,
}


class TypeParser(Cursor):
    """A cursor that can take a type, and whole numbers as commands have them."""

    def type(self) -> SqlType:
        """Take a type; a name that is not a primitive type becomes a NamedType."""
        self.open_level()
        taken = self._simple_type()
        while self.accept("ARRAY"):
            taken = types.Array(taken)
        self.close_level()
        return taken

    def _simple_type(self) -> SqlType:
        if self.at("ARRAY", "<"):
            self.expect("ARRAY", "<")
            item = self.type()
            self.expect(">")
            return types.Array(item)
        if self.at("MAP", "<"):
            self.expect("MAP", "<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return types.Map(key, value)
        if self.at("STRUCT", "<") or self.at("STRUCT", "<>"):
            self.expect("STRUCT")
            return types.Struct(self._fields())
        if self.at("DECIMAL", "("):
            return self._decimal()
        return self._named_type()

    def _fields(self) -> tuple[types.Field, ...]:
        if self.accept("<>") or self.accept("<", ">"):
            return ()
        self.expect("<")
        fields = self.listed(lambda: types.Field(self.identifier(), self.type()))
        self.expect(">")
        names = [field.name for field in fields]
        twice = repeated(names)
        for name in names:
            if name in twice:
                raise PrepareError(f"Duplicate field names found in STRUCT: '`{name}`'")
        return fields

    def _decimal(self) -> types.Decimal:
        place = self.token.place
        self.expect("DECIMAL", "(")
        precision = self.whole_number("DECIMAL(PRECISION)")
        self.expect(",")
        scale = self.whole_number("DECIMAL(SCALE)")
        self.expect(")")
        try:
            return decimal_type(precision, scale)
        except SqlError as error:
            raise PrepareError(error.message, place) from None

    def _named_type(self) -> SqlType:
        if not self.is_identifier():
            self.fail_here()
        token = self.token
        name = self.identifier()
        if self.accept("("):
            self.listed(self._type_parameter)
            if not self.at(")"):
                self.fail_expecting(",", ")")
            self.expect(")")
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        return cast("SqlType", NamedType(name, place=token.place))

    def _type_parameter(self) -> None:
        """Lengths mean nothing here, but `VARCHAR(20)` may be said."""
        if self.token.kind is not TokenKind.INTEGER and not self.at("STRING"):
            self.fail_expecting("STRING", "INTEGER_VALUE")
        self.take()

    def whole_number(self, command: str) -> int:
        """Take a number that must be an INTEGER; `command` is what it belongs to."""
        sign = "-" if self.accept("-") else ""
        if self.token.kind not in NUMBERS:
            self.fail_here()
        token = self.take()
        number = whole(sign + token.text) if token.kind is TokenKind.INTEGER else 2**64
        if not -(2**31) <= number < 2**31:
            raise PrepareError(f"Value must be integer for command: {command}")
        return number


def whole(text: str) -> int:
    """The number that digits stand for, or one that is too large for every type."""
    return int(text) if len(text) < 30 else 2**64


def parse_type(text: str) -> SqlType:
    """The type of a text such as `MAP<STRING, INT>`; raises ParseError."""
    check_text(text)
    parser = TypeParser(text)
    parsed = parser.type()
    if parser.token.kind is not TokenKind.END:
        parser.fail_here()
    return parsed
