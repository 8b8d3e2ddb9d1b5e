"""The canonical text of a file, which is what the registry keeps, compares and returns.

It is, to the letter, what Confluent's registry makes of the same text, so that schemas of its
topic are found again: no comments; within a message first what is reserved, then options, fields,
oneofs, groups, extension ranges, extensions, messages, enums; option values of several parts over
several lines; a blank line between the kinds, which is indented as the block around it. Differences
are where its text would not mean the same: weak imports and editions stay, bytes that are not UTF-8
stay bytes, a default of type bytes keeps its quotes.
"""

import re
from collections.abc import Iterable

from barnabas.schemas.protobuf.nodes import (
    ENUM_NUMBER_MAX,
    FIELD_NUMBER_MAX,
    Aggregate,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Method,
    OneOf,
    Option,
    Reserved,
    Service,
    Span,
    Value,
    Word,
)

_TO_ESCAPE = re.compile("[\x00-\x1f\x7f\\\\'\"\udc80-\udcff]")
_NAMED_ESCAPES = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", "'": r"\'", '"': r"\"",
}  # fmt: skip


def print_file(file: File) -> str:
    """The canonical text of a file."""
    printer = _Printer(bare_names=file.edition is not None)
    return printer.file(file)


def quoted(text: str) -> str:
    """A string in its quotes."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _NAMED_ESCAPES.get(character) or f"\\{ord(character) & 0xFF:03o}"


class _Printer:
    """Collects lines. `indent` is that of the lines of the block that is being printed."""

    def __init__(self, bare_names: bool) -> None:
        self.lines: list[str] = []
        self.indent = ""
        self.bare_names = bare_names

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def file(self, file: File) -> str:
        if file.edition is not None:
            self.line(f'edition = "{file.syntax}";')
        elif file.syntax is not None:
            self.line(f'syntax = "{file.syntax}";')
        if file.package:
            self.line(f"package {file.package};")
        if file.imports:
            self.line("")
        for one in file.imports:
            kind = f"{one.kind} " if one.kind else ""
            self.line(f"import {kind}{quoted(one.path)};")
        if file.options:
            self.line("")
            self.option_statements(file.options)
        if file.messages or file.enums:
            self.line("")
            self.types(file.messages, file.enums)
        if file.extends:
            self.line("")
            self.extends(file.extends)
        if file.services:
            self.line("")
        for service in file.services:
            self.service(service)
        return "".join([line + "\n" for line in self.lines])

    def types(self, messages: Iterable[Message], enums: Iterable[Enum]) -> None:
        for message in messages:
            self.message(f"message {message.name} {{", message)
        for enum in enums:
            self.enum(enum)

    def message(self, opening: str, message: Message) -> None:
        block = _Block(self, opening)
        if message.reserved:
            block.section()
            self.reserved(message.reserved, FIELD_NUMBER_MAX)
        if message.options:
            block.section()
            self.option_statements(message.options)
        if message.fields:
            block.section()
            self.fields(message.fields)
        if message.oneofs:
            block.section()
            for oneof in message.oneofs:
                self.oneof(oneof)
        if message.groups:
            block.section()
            self.groups(message.groups)
        if message.extensions:
            block.section()
            for extensions in message.extensions:
                self.extensions(extensions)
        if message.extends:
            block.section()
            self.extends(message.extends)
        if message.messages or message.enums:
            block.section()
            self.types(message.messages, message.enums)
        block.end()

    def reserved(self, statements: Iterable[Reserved], high: int) -> None:
        for statement in statements:
            items = [
                self.reserved_name(item) if isinstance(item, str) else _span(item, high)
                for item in statement.items
            ]
            self.line(f"reserved {', '.join(items)};")

    def reserved_name(self, name: str) -> str:
        return name if self.bare_names else quoted(name)

    def fields(self, fields: Iterable[Field]) -> None:
        for field in fields:
            label = f"{field.label} " if field.label else ""
            type_name = field.type if field.key_type is None else _map_type(field)
            self.with_options(f"{label}{type_name} {field.name} = {field.number}", field.options)

    def oneof(self, oneof: OneOf) -> None:
        block = _Block(self, f"oneof {oneof.name} {{")
        if oneof.options:
            block.section()
            self.option_statements(oneof.options)
        if oneof.fields:
            block.section()
            self.fields(oneof.fields)
        if oneof.groups:
            block.section()
            self.groups(oneof.groups)
        block.end()

    def groups(self, groups: Iterable[Group]) -> None:
        for group in groups:
            label = f"{group.label} " if group.label else ""
            options = ""
            if group.options:
                options = " " + self.in_one_line(self.bracketed(group.options))
            self.message(f"{label}group {group.name} = {group.number}{options} {{", group.body)

    def in_one_line(self, lines: list[str]) -> str:
        return " ".join(line.strip() for line in lines)

    def extensions(self, extensions: Extensions) -> None:
        spans = ", ".join(_span(span, FIELD_NUMBER_MAX) for span in extensions.spans)
        self.with_options(f"extensions {spans}", extensions.options)

    def extends(self, extends: Iterable[Extend]) -> None:
        for extend in extends:
            block = _Block(self, f"extend {extend.name} {{")
            if extend.fields:
                block.section()
                self.fields(extend.fields)
            if extend.groups:
                block.section()
                self.groups(extend.groups)
            block.end()

    def enum(self, enum: Enum) -> None:
        block = _Block(self, f"enum {enum.name} {{")
        if enum.reserved or enum.options or enum.values:
            block.section()
        self.reserved(enum.reserved, ENUM_NUMBER_MAX)
        self.option_statements(enum.options)
        for value in enum.values:
            self.with_options(f"{value.name} = {value.number}", value.options)
        block.end()

    def service(self, service: Service) -> None:
        block = _Block(self, f"service {service.name} {{")
        if service.options:
            block.section()
            self.option_statements(service.options)
        if service.methods:
            block.section()
            for method in service.methods:
                self.method(method)
        block.end()

    def method(self, method: Method) -> None:
        request = ("stream " if method.client_streaming else "") + method.input
        response = ("stream " if method.server_streaming else "") + method.output
        head = f"rpc {method.name} ({request}) returns ({response})"
        if not method.options:
            self.line(f"{head};")
            return
        block = _Block(self, f"{head} {{")
        block.section()
        self.option_statements(method.options)
        block.end("};")

    def option_statements(self, options: Iterable[Option]) -> None:
        for option in options:
            lines = _option(option)
            lines[0] = f"option {lines[0]}"
            lines[-1] += ";"
            self.all(lines)

    def with_options(self, head: str, options: tuple[Option, ...]) -> None:
        if not options:
            self.line(f"{head};")
            return
        lines = self.bracketed(options)
        lines[0] = f"{head} {lines[0]}"
        lines[-1] += ";"
        self.all(lines)

    def bracketed(self, options: tuple[Option, ...]) -> list[str]:
        return _bracketed([_option(option) for option in options])

    def all(self, lines: list[str]) -> None:
        for line in lines:
            self.line(line)


class _Block:
    """Something in braces: sections with a blank line between them, `{}` without sections."""

    def __init__(self, printer: _Printer, opening: str) -> None:
        self._printer = printer
        self._outer = printer.indent
        self._empty = True
        printer.line(opening)

    def section(self) -> None:
        if not self._empty:
            # The blank line belongs to the block around this one.
            self._printer.lines.append(self._outer)
        self._empty = False
        self._printer.indent = self._outer + "  "

    def end(self, closing: str = "}") -> None:
        self._printer.indent = self._outer
        if self._empty:
            self._printer.lines[-1] += closing
        else:
            self._printer.line(closing)


def _map_type(field: Field) -> str:
    return f"map<{field.key_type}, {field.type}>"


def _span(span: Span, high: int) -> str:
    if span.last is None:
        return str(span.first)
    return f"{span.first} to {'max' if span.last >= high else span.last}"


def _option(option: Option) -> list[str]:
    name = ".".join(option.parts)
    if isinstance(option.value, tuple):
        lines = _bracketed([_value(value) for value in option.value])
    else:
        lines = _value(option.value)
    lines[0] = f"{name} = {lines[0]}"
    return lines


def _bracketed(items: list[list[str]]) -> list[str]:
    """One item is on the brackets' lines, several are on separate lines."""
    if len(items) != 1:
        return _listed(items)
    lines = items[0]
    lines[0] = f"[{lines[0]}"
    lines[-1] += "]"
    return lines


def _listed(items: list[list[str]]) -> list[str]:
    return ["[", *_separated(items), "]"]


def _separated(items: list[list[str]]) -> list[str]:
    lines = []
    for item in items:
        lines += [f"  {line}" for line in item]
        lines[-1] += ","
    if lines:
        lines[-1] = lines[-1][:-1]
    return lines


def _value(value: Value) -> list[str]:
    if isinstance(value, str):
        return [quoted(value)]
    if isinstance(value, Word):
        return [value.text]
    if isinstance(value, Aggregate):
        entries = []
        for key, inner in value.entries:
            lines = _value(inner)
            lines[0] = f"{key}: {lines[0]}"
            entries.append(lines)
        return ["{", *_separated(entries), "}"]
    return _listed([_value(item) for item in value])
