"""Rules of the language beyond its grammar. Each fault names its line and column.

A schema to be registered has to keep the rules; what is in the topic already is not asked. They are
protoc's, except that custom options without their extension's definition are allowed, as Confluent
allows them: what they say is for others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from barnabas.schemas.protobuf.nodes import (
    SCALARS,
    Enum,
    Extend,
    Field,
    File,
    Group,
    Message,
    Option,
    Reserved,
    Service,
    Span,
    Word,
)
from barnabas.schemas.protobuf.scope import Scope, joined
from barnabas.schemas.protobuf.tokens import fault_at, whole_number
from barnabas.schemas.schema import SchemaFault

_KEY_TYPES = SCALARS - {"double", "float", "bytes"}
_OF_PROTOBUF_ITSELF = Span(19000, 19999)


def check_file(text: str, scope: Scope) -> None:
    """Raise SchemaFault if the scope's file, which `text` has, breaks a rule."""
    _Rules(text, scope).file(scope.root)


class _Rules:
    def __init__(self, text: str, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        self._file = scope.root

    def file(self, file: File) -> None:
        self._imports(file)
        self._names(_declared(file.messages, file.enums, file.extends, file.services))
        for message in file.messages:
            self._message(message, file.package)
        for enum in file.enums:
            self._enum(enum)
        for extend in file.extends:
            self._extend(extend, file.package)
        for service in file.services:
            self._service(service, joined(file.package, service.name))
        first = file.imports[0].path if file.imports else ""
        defines = file.messages or file.enums or file.extends or file.services
        if not defines and not any(one.kind == "public" for one in file.imports):
            raise self._fault(
                f"the file defines nothing, it only imports {first}"
                if first
                else "the file defines nothing",
                0,
            )

    def _fault(self, message: str, position: int) -> SchemaFault:
        return fault_at(self._text, position, message)

    def _imports(self, file: File) -> None:
        seen = set()
        for one in file.imports:
            if one.path in seen:
                raise self._fault(f"{one.path} is imported twice", one.position)
            seen.add(one.path)
        own = {id(one) for one in file.imports}
        for one in self._scope.missing:
            if id(one) in own:
                raise self._fault(
                    f"{one.path} is imported, but it is neither a reference nor built in",
                    one.position,
                )
            raise SchemaFault(f"a reference imports {one.path}, which no reference has")
        if self._scope.cycle:
            raise SchemaFault(f"the imports are a cycle: {' -> '.join(self._scope.cycle)}")

    def _names(self, declared: Iterable[tuple[str, int]]) -> None:
        seen = set()
        for name, position in declared:
            if name in seen:
                raise self._fault(f"{name} is defined twice", position)
            seen.add(name)

    def _message(self, message: Message, within: str) -> None:
        name = joined(within, message.name)
        self._names(_declared_in(message))
        for field in message.fields:
            self._field(field, name)
        for group in message.groups:
            self._group(group, name)
        for oneof in message.oneofs:
            if not oneof.fields and not oneof.groups:
                raise self._fault(f"the oneof {oneof.name} has no fields", oneof.position)
            for field in oneof.fields:
                if field.is_map:
                    raise self._fault("a map cannot be in a oneof", field.position)
                self._field(field, name, labelled=False)
            for group in oneof.groups:
                self._group(group, name, labelled=False)
        self._numbers(message)
        if message.extensions and self._file.is_proto3:
            raise self._fault(
                "extension ranges are not allowed in proto3", message.extensions[0].position
            )
        for extend in message.extends:
            self._extend(extend, name)
        for nested in message.messages:
            self._message(nested, name)
        for enum in message.enums:
            self._enum(enum)

    def _numbers(self, message: Message) -> None:
        names = _reserved_names(message.reserved)
        spans = _Spans(
            [(span, "reserved") for span in _reserved_spans(message.reserved)]
            + [(s, "for extensions") for one in message.extensions for s in one.spans]
        )
        overlap = spans.overlap()
        if overlap is not None:
            raise self._fault(
                f"the range from {overlap.first} overlaps another one", overlap.position
            )
        taken: dict[int, str] = {}
        for node in message.members():
            if node.number in taken:
                raise self._fault(
                    f"{node.name} has the number {node.number}, which {taken[node.number]} has",
                    node.position,
                )
            taken[node.number] = node.name
            why = spans.why(node.number)
            if why:
                raise self._fault(
                    f"{node.name} has the number {node.number}, which is {why}", node.position
                )
            if node.name in names:
                raise self._fault(f"the name {node.name} is reserved", node.position)

    def _field(self, field: Field, within: str, *, labelled: bool = True) -> None:
        self._label(field, labelled and not field.is_map)
        self._number(field)
        if field.key_type is not None and field.key_type not in _KEY_TYPES:
            raise self._fault(
                f"the keys of a map cannot be of type {field.key_type}", field.position
            )
        node = None
        if field.type not in SCALARS:
            node = self._type(field.type, within, field.position)
        self._default(field, node)

    def _group(self, group: Group, within: str, *, labelled: bool = True) -> None:
        if self._file.is_proto3 or self._file.edition is not None:
            raise self._fault("groups are allowed in proto2 only", group.position)
        self._label(group, labelled)
        self._number(group)
        self._message(group.body, within)

    def _label(self, node: Field | Group, labelled: bool) -> None:
        if self._file.is_proto3 and node.label == "required":
            raise self._fault("required fields are not allowed in proto3", node.position)
        if self._file.edition is not None:
            if node.label in ("required", "optional"):
                raise self._fault(
                    f"in editions, {node.label} is said by features.field_presence", node.position
                )
        elif not self._file.is_proto3 and labelled and node.label is None:
            raise self._fault(
                f"{node.name} has no label: expected optional, required or repeated (proto2)",
                node.position,
            )

    def _number(self, node: Field | Group) -> None:
        if _OF_PROTOBUF_ITSELF.first <= node.number <= _OF_PROTOBUF_ITSELF.end:
            raise self._fault(
                f"{node.name} has the number {node.number}; 19000 to 19999 are protobuf's own",
                node.position,
            )

    def _default(self, field: Field, node: Message | Enum | None) -> None:
        given = [option for option in field.options if option.parts == ("default",)]
        if not given:
            return
        option = given[0]
        if self._file.is_proto3:
            raise self._fault("defaults are not allowed in proto3", option.position)
        if len(given) > 1:
            raise self._fault(f"{field.name} has two defaults", given[1].position)
        if field.label == "repeated" or field.is_map or isinstance(node, Message):
            raise self._fault(f"{field.name} cannot have a default", option.position)
        if not _fits(option, field.type, node):
            fault = f"the default of {field.name} is not of type {field.type}"
            raise self._fault(fault, option.position)

    def _type(self, name: str, within: str, position: int) -> Message | Enum:
        entry = self._scope.resolve(name, within)
        if entry is None:
            raise self._fault(f"the type {name} is not defined", position)
        if entry.path not in self._scope.visible:
            raise self._fault(
                f"the type {name} is defined in {entry.path}, which is not imported", position
            )
        return entry.node

    def _message_type(self, name: str, within: str, position: int) -> Message:
        node = None if name in SCALARS else self._type(name, within, position)
        if not isinstance(node, Message):
            raise self._fault(f"{name} is not a message", position)
        return node

    def _extend(self, extend: Extend, within: str) -> None:
        extended = self._message_type(extend.name, within, extend.position)
        if not extend.fields and not extend.groups:
            raise self._fault(f"the extension of {extend.name} has no fields", extend.position)
        open_to = _Spans([(span, "open") for one in extended.extensions for span in one.spans])
        for node in extend.members():
            if not open_to.why(node.number):
                raise self._fault(
                    f"{extend.name} has no extension range with the number {node.number}",
                    node.position,
                )
        for field in extend.fields:
            self._field(field, within)
        for group in extend.groups:
            self._group(group, within)

    def _enum(self, enum: Enum) -> None:
        if not enum.values:
            raise self._fault(f"the enum {enum.name} has no values", enum.position)
        if self._file.is_proto3 and enum.values[0].number != 0:
            raise self._fault(
                f"in proto3, the first value of {enum.name} has to be 0", enum.values[0].position
            )
        aliases = any(o.parts == ("allow_alias",) and o.value == Word("true") for o in enum.options)
        names = _reserved_names(enum.reserved)
        spans = _Spans([(span, "reserved") for span in _reserved_spans(enum.reserved)])
        overlap = spans.overlap()
        if overlap is not None:
            raise self._fault(
                f"the range from {overlap.first} overlaps another one", overlap.position
            )
        taken: dict[int, str] = {}
        for value in enum.values:
            if value.number in taken and not aliases:
                raise self._fault(
                    f"{value.name} has the number {value.number}, which {taken[value.number]} has;"
                    " allow_alias would allow it",
                    value.position,
                )
            taken[value.number] = value.name
            if spans.why(value.number) or value.name in names:
                raise self._fault(
                    f"{value.name} = {value.number} has a reserved name or number", value.position
                )

    def _service(self, service: Service, name: str) -> None:
        self._names((method.name, method.position) for method in service.methods)
        for method in service.methods:
            self._message_type(method.input, name, method.position)
            self._message_type(method.output, name, method.position)


class _Spans:
    """Ranges of numbers, each with what it is for."""

    def __init__(self, spans: Sequence[tuple[Span, str]]) -> None:
        self._spans = sorted(spans, key=lambda entry: entry[0].first)
        self._firsts = [span.first for span, _ in self._spans]

    def overlap(self) -> Span | None:
        """A range that begins before the one before it ends."""
        last = None
        for span, _ in self._spans:
            if last is not None and span.first <= last:
                return span
            last = span.end
        return None

    def why(self, number: int) -> str:
        index = bisect_right(self._firsts, number) - 1
        if index < 0 or self._spans[index][0].end < number:
            return ""
        return self._spans[index][1]


def _declared(
    messages: Iterable[Message],
    enums: Iterable[Enum],
    extends: Iterable[Extend],
    services: Iterable[Service] = (),
) -> Iterable[tuple[str, int]]:
    """Names that one scope has. The values of an enum are beside it, not in it."""
    for message in messages:
        yield message.name, message.position
    for service in services:
        yield service.name, service.position
    for enum in enums:
        yield enum.name, enum.position
        for value in enum.values:
            yield value.name, value.position
    for extend in extends:
        yield from ((field.name, field.position) for field in extend.fields)
        yield from _group_names(extend.groups)


def _declared_in(message: Message) -> Iterable[tuple[str, int]]:
    yield from _declared(message.messages, message.enums, message.extends)
    for field in message.all_fields():
        yield field.name, field.position
    for oneof in message.oneofs:
        yield oneof.name, oneof.position
    yield from _group_names(message.all_groups())


def _group_names(groups: Iterable[Group]) -> Iterable[tuple[str, int]]:
    for group in groups:
        yield group.name, group.position
        if group.name.lower() != group.name:
            yield group.name.lower(), group.position


def _reserved_names(statements: Iterable[Reserved]) -> set[str]:
    return {item for one in statements for item in one.items if isinstance(item, str)}


def _reserved_spans(statements: Iterable[Reserved]) -> list[Span]:
    return [item for one in statements for item in one.items if isinstance(item, Span)]


def _fits(option: Option, type_name: str, node: Message | Enum | None) -> bool:
    value = option.value
    if isinstance(node, Enum):
        return isinstance(value, Word) and any(one.name == value.text for one in node.values)
    if type_name in ("string", "bytes"):
        return isinstance(value, str)
    if not isinstance(value, Word):
        return False
    if type_name == "bool":
        return value.text in ("true", "false")
    digits = value.text.removeprefix("-")
    if type_name in ("float", "double"):
        return digits in ("inf", "nan") or digits[:1].isdigit() or digits[:1] == "."
    low, high = _bounds(type_name)
    number = whole_number(digits) if digits[:1].isdigit() else None
    return number is not None and low <= (-number if digits != value.text else number) <= high


def _bounds(type_name: str) -> tuple[int, int]:
    bits = 64 if type_name.endswith("64") else 32
    if type_name.startswith(("uint", "fixed")):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
