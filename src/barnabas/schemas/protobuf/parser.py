"""Parser of .proto texts: proto2, proto3 and editions.

It is written by hand because the registry keeps a text as it was written, names unresolved: protoc
gives a descriptor with all names resolved, and `proto-schema-parser` (ANTLR in Python) is slow and
leaves positions out. See docs/decisions/0017-own-parser-of-protobuf-texts.md. What the grammar
forbids is a fault here; what the language forbids beyond it is `rules.py`'s.
"""

from collections.abc import Callable

from barnabas.schemas.protobuf.nodes import (
    ENUM_NUMBER_MAX,
    ENUM_NUMBER_MIN,
    FIELD_NUMBER_MAX,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    Message,
    Method,
    OneOf,
    Option,
    Reserved,
    Service,
    Span,
)
from barnabas.schemas.protobuf.option_parser import parse_bracketed_options, parse_option_statement
from barnabas.schemas.protobuf.tokens import Cursor

_LABELS = frozenset(["optional", "required", "repeated"])
_IMPORT_ORDER = {"": 0, "public": 1, "weak": 2}
_EDITIONS = frozenset(["2023", "2024"])


def parse_file(text: str) -> File:
    """Parse a text. Raises SchemaFault with line and column."""
    cursor = Cursor(text)
    file = File()
    if cursor.token in ("syntax", "edition"):
        file.syntax = _syntax(cursor)
    imports: list[Import] = []
    services: list[Service] = []
    definitions = _Definitions()
    while cursor.kind != "end":
        at = cursor.position
        if cursor.accept(";"):
            continue
        if cursor.kind != "word":
            raise cursor.unexpected("a definition")
        match cursor.take():
            case "package":
                if file.package:
                    raise cursor.fault("the package is named a second time", at)
                file.package = cursor.full_name("the name of the package")
                cursor.expect(";", " after the name of the package")
            case "import":
                imports.append(_import(cursor, at))
            case "service":
                services.append(_service(cursor, at))
            case word:
                if not definitions.take(cursor, word, at):
                    raise cursor.fault(
                        "expected message, enum, service, extend, import, option or package,"
                        f" found {word[:40]}",
                        at,
                    )
    file.imports = tuple(sorted(imports, key=lambda one: _IMPORT_ORDER[one.kind]))
    file.options = tuple(definitions.options)
    file.messages = tuple(definitions.messages)
    file.enums = tuple(definitions.enums)
    file.extends = tuple(definitions.extends)
    file.services = tuple(services)
    return file


class _Definitions:
    """The definitions that a file and a message can both contain, as read so far."""

    __slots__ = ("enums", "extends", "messages", "options")

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.messages: list[Message] = []
        self.enums: list[Enum] = []
        self.extends: list[Extend] = []

    def take(self, cursor: Cursor, word: str, at: int) -> bool:
        """Read what `word` begins; False where that is something else."""
        match word:
            case "message":
                self.messages.append(_message(cursor, at))
            case "enum":
                self.enums.append(_enum(cursor, at))
            case "extend":
                self.extends.append(_extend(cursor, at))
            case "option":
                self.options.append(parse_option_statement(cursor))
            case _:
                return False
        return True


def _syntax(cursor: Cursor) -> str:
    word = cursor.take()
    cursor.expect("=", f" after {word}")
    at = cursor.position
    syntax = cursor.string("a quoted name of the syntax")
    if syntax not in ("proto2", "proto3") and syntax not in _EDITIONS:
        raise cursor.fault(
            f'expected "proto2", "proto3" or edition "2023", found {syntax[:40]!a}', at
        )
    cursor.expect(";", f" after the {word}")
    return syntax


def _import(cursor: Cursor, at: int) -> Import:
    kind = cursor.take() if cursor.token in ("public", "weak") else ""
    path = cursor.string("the quoted path of a file")
    cursor.expect(";", " after the path")
    return Import(path, kind, at)


def _block(cursor: Cursor, name: str, statement: Callable[[Cursor], None]) -> None:
    cursor.expect("{", f" after {name}")
    cursor.enter()
    while not cursor.accept("}"):
        if cursor.accept(";"):
            continue
        if cursor.kind == "end":
            raise cursor.unexpected(f"'}}' of {name}")
        statement(cursor)
    cursor.leave()


def _message(cursor: Cursor, at: int) -> Message:
    return _message_body(cursor, cursor.identifier("the name of the message"), at)


def _message_body(cursor: Cursor, name: str, at: int) -> Message:
    fields: list[Field] = []
    oneofs: list[OneOf] = []
    groups: list[Group] = []
    extensions: list[Extensions] = []
    reserved: list[Reserved] = []
    definitions = _Definitions()

    def statement(cursor: Cursor) -> None:
        start = cursor.position
        match _keyword(cursor):
            case "oneof":
                oneofs.append(_oneof(cursor, start))
            case "reserved":
                reserved.append(_reserved(cursor, start, 1, FIELD_NUMBER_MAX))
            case "extensions":
                extensions.append(_extensions(cursor, start))
            case word:
                if not definitions.take(cursor, word, start):
                    _field(cursor, fields, groups)

    _block(cursor, name, statement)
    return Message(
        name, tuple(fields), tuple(oneofs), tuple(groups), tuple(extensions),
        tuple(definitions.extends), tuple(definitions.messages), tuple(definitions.enums),
        tuple(reserved), tuple(definitions.options), at,
    )  # fmt: skip


_KEYWORDS = frozenset(["message", "enum", "extend", "oneof", "option", "reserved", "extensions"])


def _keyword(cursor: Cursor) -> str:
    """Take the keyword that begins a statement, if it is one."""
    if cursor.token not in _KEYWORDS:
        return ""
    return cursor.take()


def _field(
    cursor: Cursor, fields: list[Field], groups: list[Group], *, labels: bool = True
) -> None:
    at = cursor.position
    label = None
    if cursor.token in _LABELS and cursor.kind == "word":
        if not labels:
            raise cursor.fault("a field of a oneof has no label", at)
        label = cursor.take()
    if cursor.token == "group" and cursor.following() != "=":
        groups.append(_group(cursor, label, at))
        return
    if cursor.token == "map" and cursor.following() == "<":
        if label is not None:
            raise cursor.fault("a map has no label", at)
        key_type, type_name = _map_types(cursor)
        key: str | None = key_type
    else:
        key, type_name = None, cursor.full_name("the type of a field")
    name_at = cursor.position
    name = cursor.identifier("the name of the field")
    cursor.expect("=", " and the number of the field")
    number = cursor.integer("the number of a field", 1, FIELD_NUMBER_MAX)
    options = parse_bracketed_options(cursor)
    cursor.expect(";", " after the field")
    fields.append(Field(label, type_name, name, number, options, key, name_at))


def _map_types(cursor: Cursor) -> tuple[str, str]:
    cursor.take()
    cursor.expect("<")
    key = cursor.full_name("the type of the map's keys")
    cursor.expect(",", " between the types of a map")
    value = cursor.full_name("the type of the map's values")
    cursor.expect(">", " after the types of a map")
    return key, value


def _group(cursor: Cursor, label: str | None, at: int) -> Group:
    cursor.take()
    name = cursor.identifier("the name of the group")
    cursor.expect("=", " and the number of the group")
    number = cursor.integer("the number of a group", 1, FIELD_NUMBER_MAX)
    options = parse_bracketed_options(cursor)
    return Group(label, number, _message_body(cursor, name, at), options, at)


def _oneof(cursor: Cursor, at: int) -> OneOf:
    name = cursor.identifier("the name of the oneof")
    fields: list[Field] = []
    groups: list[Group] = []
    options: list[Option] = []

    def statement(cursor: Cursor) -> None:
        if cursor.token == "option":
            cursor.take()
            options.append(parse_option_statement(cursor))
        else:
            _field(cursor, fields, groups, labels=False)

    _block(cursor, name, statement)
    return OneOf(name, tuple(fields), tuple(groups), tuple(options), at)


def _extend(cursor: Cursor, at: int) -> Extend:
    name = cursor.full_name("the name of the message to extend")
    fields: list[Field] = []
    groups: list[Group] = []
    _block(cursor, name, lambda cursor: _field(cursor, fields, groups))
    for field in fields:
        if field.is_map:
            raise cursor.fault("an extension cannot be a map", field.position)
    return Extend(name, tuple(fields), tuple(groups), at)


def _reserved(cursor: Cursor, at: int, low: int, high: int) -> Reserved:
    items: list[Span | str] = []
    while True:
        if cursor.kind == "string":
            items.append(cursor.string("a name"))
        elif cursor.kind == "word":
            items.append(cursor.identifier("a name"))
        else:
            items.append(_span(cursor, low, high))
        if not cursor.accept(","):
            break
    cursor.expect(";", " or ','")
    return Reserved(tuple(items), at)


def _extensions(cursor: Cursor, at: int) -> Extensions:
    spans = [_span(cursor, 1, FIELD_NUMBER_MAX)]
    while cursor.accept(","):
        spans.append(_span(cursor, 1, FIELD_NUMBER_MAX))
    options = parse_bracketed_options(cursor)
    cursor.expect(";", " or ','")
    return Extensions(tuple(spans), options, at)


def _span(cursor: Cursor, low: int, high: int) -> Span:
    at = cursor.position
    first = cursor.integer("a number", low, high)
    if not cursor.accept("to"):
        return Span(first, None, at)
    if cursor.accept("max"):
        return Span(first, high, at)
    last = cursor.integer("a number", low, high)
    if last < first:
        raise cursor.fault(f"the range ends at {last}, before it begins", at)
    return Span(first, last, at)


def _enum(cursor: Cursor, at: int) -> Enum:
    name = cursor.identifier("the name of the enum")
    values: list[EnumValue] = []
    reserved: list[Reserved] = []
    options: list[Option] = []

    def statement(cursor: Cursor) -> None:
        start = cursor.position
        if cursor.token == "option" and cursor.following() != "=":
            cursor.take()
            options.append(parse_option_statement(cursor))
        elif cursor.token == "reserved" and cursor.following() != "=":
            cursor.take()
            reserved.append(_reserved(cursor, start, ENUM_NUMBER_MIN, ENUM_NUMBER_MAX))
        else:
            values.append(_enum_value(cursor))

    _block(cursor, name, statement)
    return Enum(name, tuple(values), tuple(reserved), tuple(options), at)


def _enum_value(cursor: Cursor) -> EnumValue:
    at = cursor.position
    name = cursor.identifier("the name of an enum value")
    cursor.expect("=", " and the number of the value")
    number = cursor.integer("the number of a value", ENUM_NUMBER_MIN, ENUM_NUMBER_MAX)
    options = parse_bracketed_options(cursor)
    cursor.expect(";", " after the value")
    return EnumValue(name, number, options, at)


def _service(cursor: Cursor, at: int) -> Service:
    name = cursor.identifier("the name of the service")
    methods: list[Method] = []
    options: list[Option] = []

    def statement(cursor: Cursor) -> None:
        start = cursor.position
        if cursor.accept("option"):
            options.append(parse_option_statement(cursor))
        elif cursor.accept("rpc"):
            methods.append(_method(cursor, start))
        else:
            raise cursor.unexpected("rpc or option")

    _block(cursor, name, statement)
    return Service(name, tuple(methods), tuple(options), at)


def _method(cursor: Cursor, at: int) -> Method:
    name = cursor.identifier("the name of the method")
    client_streaming, request = _message_type(cursor)
    cursor.expect("returns", " after the type of the request")
    server_streaming, response = _message_type(cursor)
    options: list[Option] = []

    def statement(cursor: Cursor) -> None:
        cursor.expect("option")
        options.append(parse_option_statement(cursor))

    if cursor.token == "{":
        _block(cursor, name, statement)
    else:
        cursor.expect(";", " or '{' after the method")
    return Method(name, request, response, client_streaming, server_streaming, tuple(options), at)


def _message_type(cursor: Cursor) -> tuple[bool, str]:
    cursor.expect("(", " and a message")
    streaming = cursor.token == "stream" and cursor.following() != ")"
    if streaming:
        cursor.take()
    name = cursor.full_name("the name of a message")
    cursor.expect(")", " after the message")
    return streaming, name
