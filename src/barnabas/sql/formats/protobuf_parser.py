"""Texts of Protobuf schemas to descriptors, as far as records need them.

The descriptor's names stay as they are written; the pool that takes the descriptor resolves them.
Of options only `default` and the parameters of Confluent's `field_meta` are read (a decimal's
precision and scale). Services, extensions and other options are passed over; groups and editions
are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[-+]?[\w.]+)
    | (?P<sign>[{}\[\]()<>=;,:-])""",
    re.VERBOSE | re.DOTALL,
)
_TEXT_MAX = 4 * 1024 * 1024
_DEPTH_MAX = 64
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+\Z|\d+\Z")
_TYPES = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32"),
        *("fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
_LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


class ProtobufTextError(ValueError):
    """The text is no schema that can be read here."""


@dataclass(slots=True)
class ParsedFile:
    """A schema; `parameters` are those of `field_meta`, by the full names of fields."""

    descriptor: FileDescriptorProto
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)


def parse_file(name: str, text: str) -> ParsedFile:
    """The descriptor of a text. Raises ProtobufTextError."""
    if len(text) > _TEXT_MAX:
        raise ProtobufTextError("the schema is too long")
    return _Parser(name, text).file()


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ProtobufTextError(f"unexpected character {text[place]!r}")
        place = match.end()
        if match.lastgroup:
            yield match.group()


class _Parser:
    def __init__(self, name: str, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.tokens.append("")
        self.place = 0
        self.depth = 0
        self.parsed = ParsedFile(FileDescriptorProto(name=name))

    def peek(self) -> str:
        return self.tokens[self.place]

    def next(self) -> str:
        token = self.tokens[self.place]
        if not token:
            raise ProtobufTextError("the schema ends too early")
        self.place += 1
        return token

    def take(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.place += 1
        return True

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ProtobufTextError(f"expected {wanted!r}, found {self.peek()!r}")

    def string(self) -> str:
        token = self.next()
        if token[0] not in "\"'":
            raise ProtobufTextError(f"expected a string, found {token!r}")
        return token[1:-1]

    def number(self) -> int:
        token = self.next()
        if not _NUMBER.match(token.lstrip("+-")):
            raise ProtobufTextError(f"expected a number, found {token!r}")
        return int(token, 0 if "x" in token.lower() else 10)

    def file(self) -> ParsedFile:
        file = self.parsed.descriptor
        while self.peek():
            match self.next():
                case ";":
                    pass
                case "syntax":
                    self.expect("=")
                    syntax = self.string()
                    if syntax not in ("proto2", "proto3"):
                        raise ProtobufTextError(f"unknown syntax {syntax!r}")
                    file.syntax = syntax
                case "package":
                    file.package = self.next()
                case "import":
                    if self.peek() in ("public", "weak"):
                        self.next()
                    file.dependency.append(self.string())
                case "message":
                    self.message(file.message_type.add(), file.package)
                case "enum":
                    self.enum(file.enum_type.add())
                case "option" | "service" | "extend":
                    self.skip_statement()
                case other:
                    raise ProtobufTextError(f"unexpected {other!r}")
        return self.parsed

    def skip_statement(self) -> None:
        """Pass over all up to `;`, or up to the end of a block."""
        depth = 0
        while True:
            token = self.next()
            if token in ("{", "["):
                depth += 1
            elif token in ("}", "]"):
                depth -= 1
                if not depth and token == "}" and self.peek() != ";":
                    return
            elif token == ";" and not depth:
                return

    def message(self, message: DescriptorProto, scope: str) -> None:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise ProtobufTextError("messages are nested too deep")
        message.name = self.next()
        scope = f"{scope}.{message.name}" if scope else message.name
        self.expect("{")
        while not self.take("}"):
            self.member(message, scope)
        for member in message.field:
            if member.proto3_optional:
                member.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{member.name}")
        self.depth -= 1

    def member(self, message: DescriptorProto, scope: str) -> None:
        following = self.tokens[self.place + 1 : self.place + 3]
        match self.peek():
            case ";":
                self.next()
            case "message" if following[1:] == ["{"]:
                self.next()
                self.message(message.nested_type.add(), scope)
            case "enum" if following[1:] == ["{"]:
                self.next()
                self.enum(message.enum_type.add())
            case "oneof" if following[1:] == ["{"]:
                self.next()
                self.oneof(message, scope)
            case "option" | "reserved" | "extensions" | "extend" if following[1:] != ["="]:
                self.skip_statement()
            case "option":
                self.skip_statement()
            case _:
                self.field(message, scope)

    def oneof(self, message: DescriptorProto, scope: str) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self.next())
        self.expect("{")
        while not self.take("}"):
            if self.peek() == "option":
                self.skip_statement()
            elif not self.take(";"):
                self.field(message, scope).oneof_index = index

    def field(self, message: DescriptorProto, scope: str) -> FieldDescriptorProto:
        label = self.next() if self.peek() in _LABELS else ""
        kind = self.next()
        result = message.field.add(label=_LABELS[label or "optional"])
        if kind == "group":
            raise ProtobufTextError("groups are not supported")
        entry = None
        if kind == "map" and self.take("<"):
            entry = message.nested_type.add()
            key = entry.field.add(name="key", number=1, label=_LABELS["optional"])
            _set_type(key, self.next())
            self.expect(",")
            value = entry.field.add(name="value", number=2, label=_LABELS["optional"])
            _set_type(value, self.next())
            self.expect(">")
            entry.options.map_entry = True
            result.label = _LABELS["repeated"]
        else:
            _set_type(result, kind)
        result.name = self.next()
        if entry is not None:
            words = result.name.split("_")
            entry.name = "".join(word[:1].upper() + word[1:] for word in words) + "Entry"
            result.type_name = entry.name
        self.expect("=")
        result.number = self.number()
        if label == "optional" and self.parsed.descriptor.syntax == "proto3":
            result.proto3_optional = True
        if self.take("["):
            self.options(result, f"{scope}.{result.name}")
        self.expect(";")
        return result

    def options(self, member: FieldDescriptorProto, full_name: str) -> None:
        """The options of a field, up to their `]`."""
        parameters: dict[str, str] = {}
        entry: dict[str, str] = {}
        depth = 1
        while depth:
            token = self.next()
            if token in ("[", "{"):
                depth += 1
            elif token in ("]", "}"):
                depth -= 1
                if entry.keys() == {"key", "value"}:
                    parameters[entry["key"]] = entry["value"]
                    entry = {}
            elif token == "default" and depth == 1 and self.take("="):
                member.default_value = self.next().strip("\"'")
            elif token in ("key", "value"):
                self.take(":")
                if self.peek()[:1] in ("'", '"'):
                    entry[token] = self.string()
        if parameters:
            self.parsed.parameters[full_name] = parameters

    def enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self.next()
        self.expect("{")
        while not self.take("}"):
            if self.peek() in ("option", "reserved") and self.tokens[self.place + 1] != "=":
                self.skip_enum_statement(enum)
            elif not self.take(";"):
                value = enum.value.add(name=self.next())
                self.expect("=")
                sign = -1 if self.take("-") else 1
                value.number = sign * self.number()
                if self.peek() != ";":
                    self.skip_statement()
                else:
                    self.next()

    def skip_enum_statement(self, enum: EnumDescriptorProto) -> None:
        start = self.place
        self.skip_statement()
        if "allow_alias" in self.tokens[start : self.place]:
            enum.options.allow_alias = "true" in self.tokens[start : self.place]


def _set_type(member: FieldDescriptorProto, name: str) -> None:
    """A scalar's type, or the name of a message or enum, which only the pool tells apart."""
    if name in _TYPES:
        member.type = _TYPES[name]
    else:
        member.type_name = name
