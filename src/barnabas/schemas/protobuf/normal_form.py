"""The normal form: the same for all files with one meaning, as Confluent's registry's `normalize`.

Names of types are full, options, imports, reserved numbers and the like are sorted, fields are in
the order of their numbers, and an entry of a map that stands as a message becomes a map. The order
of messages stays: records count them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from barnabas.schemas.protobuf.nodes import (
    SCALARS,
    Aggregate,
    Enum,
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
    Value,
    Word,
)
from barnabas.schemas.protobuf.option_values import all_of, merged, whole
from barnabas.schemas.protobuf.scope import ExtensionEntry, Scope, joined
from barnabas.schemas.protobuf.tokens import plain_number


def normalize_file(scope: Scope) -> File:
    """The normal form of the scope's file. Names that cannot be resolved stay as they are."""
    file = scope.root
    normal = _Normalizer(scope)
    package = file.package
    return File(
        None if file.syntax == "proto2" else file.syntax,
        package,
        _imports(file.imports),
        normal.options(file.options, package),
        normal.messages(file.messages, package),
        normal.enums(file.enums, package),
        normal.extends(file.extends, package),
        tuple(normal.service(service) for service in file.services),
    )


class _Normalizer:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._package = scope.root.package

    def messages(self, messages: Iterable[Message], within: str) -> tuple[Message, ...]:
        return tuple(self.message(one, within) for one in messages if not one.is_map_entry)

    def message(self, message: Message, within: str) -> Message:
        name = joined(within, message.name)
        oneofs = [self.oneof(one, name) for one in message.oneofs if one.fields or one.groups]
        return Message(
            name=message.name,
            fields=self.fields(message.fields, name),
            oneofs=tuple(sorted(oneofs, key=_first_number)),
            groups=self.groups(message.groups, name),
            extensions=self.extensions(message.extensions, name),
            extends=self.extends(message.extends, name),
            messages=self.messages(message.messages, name),
            enums=self.enums(message.enums, name),
            reserved=_reserved(message.reserved),
            options=self.options(message.options, name),
        )

    def fields(self, fields: Iterable[Field], within: str) -> tuple[Field, ...]:
        normal = [self.field(field, within) for field in fields]
        return tuple(sorted(normal, key=lambda field: field.number))

    def field(self, field: Field, within: str) -> Field:
        options = self.options(field.options, within)
        entry = None if field.is_map else self._scope.resolve(field.type, within)
        if entry is not None and isinstance(entry.node, Message) and entry.node.is_map_entry:
            parts = {part.name: part.type for part in entry.node.fields}
            if "key" in parts and "value" in parts:
                value_type = self.type_name(parts["value"], entry.full_name)
                return Field(
                    None, value_type, field.name, field.number, options, key_type=parts["key"]
                )
        return replace(field, type=self.type_name(field.type, within), options=options)

    def type_name(self, name: str, within: str) -> str:
        if name in SCALARS:
            return name
        entry = self._scope.resolve(name, within)
        return name if entry is None else f".{entry.full_name}"

    def groups(self, groups: Iterable[Group], within: str) -> tuple[Group, ...]:
        normal = [
            replace(
                group,
                body=self.message(group.body, within),
                options=self.options(group.options, within),
            )
            for group in groups
        ]
        return tuple(sorted(normal, key=lambda group: group.number))

    def oneof(self, oneof: OneOf, within: str) -> OneOf:
        return OneOf(
            oneof.name,
            self.fields(oneof.fields, within),
            self.groups(oneof.groups, within),
            self.options(oneof.options, within),
        )

    def extensions(self, several: Iterable[Extensions], within: str) -> tuple[Extensions, ...]:
        normal = [
            Extensions((_span(span),), self.options(one.options, within))
            for one in several
            for span in one.spans
        ]
        return tuple(sorted(normal, key=lambda one: one.spans[0].first))

    def extends(self, extends: Iterable[Extend], within: str) -> tuple[Extend, ...]:
        """One block for each message that is extended."""
        fields: dict[str, list[Field]] = {}
        groups: dict[str, list[Group]] = {}
        for extend in extends:
            name = self.type_name(extend.name, within)
            fields.setdefault(name, []).extend(extend.fields)
            groups.setdefault(name, []).extend(extend.groups)
        return tuple(
            Extend(name, self.fields(fields[name], within), self.groups(groups[name], within))
            for name in fields
        )

    def enums(self, enums: Iterable[Enum], within: str) -> tuple[Enum, ...]:
        return tuple(self.enum(enum, joined(within, enum.name)) for enum in enums)

    def enum(self, enum: Enum, name: str) -> Enum:
        values = [
            replace(value, options=self.options(value.options, name)) for value in enum.values
        ]
        return Enum(
            enum.name,
            tuple(sorted(values, key=lambda value: (value.number, value.name))),
            _reserved(enum.reserved),
            self.options(enum.options, name),
        )

    def service(self, service: Service) -> Service:
        # Confluent resolves names in a service from the package.
        methods = tuple(self.method(method) for method in service.methods)
        return Service(service.name, methods, self.options(service.options, self._package))

    def method(self, method: Method) -> Method:
        return replace(
            method,
            input=self.type_name(method.input, self._package),
            output=self.type_name(method.output, self._package),
            options=self.options(method.options, self._package),
        )

    def options(self, options: Iterable[Option], within: str) -> tuple[Option, ...]:
        named: dict[str, list[Option]] = {}
        for option in sorted((self._named(one, within) for one in options), key=_sorting_name):
            named.setdefault(_sorting_name(option), []).append(option)
        normal: list[Option] = []
        for name, several in named.items():
            extension = self._scope.extensions.get(name) if several[0].is_custom else None
            if extension is not None and extension.node.label != "repeated":
                several = [self._one(extension, several)]
            normal.extend(
                Option(option.parts, self._value(option.value, within, is_option=True))
                for option in several
            )
        return tuple(normal)

    def _named(self, option: Option, within: str) -> Option:
        """An option whose extension is known, by its full name and as one value."""
        if not option.is_custom:
            return option
        entry = self._scope.resolve_extension(option.name, within)
        if entry is None:
            return option
        return whole(Option((f"({entry.full_name})", *option.parts[1:]), option.value))

    def _one(self, extension: ExtensionEntry, options: list[Option]) -> Option:
        node = self._message_of(extension.type_name, extension.within)
        values = [option.value for option in options]
        value = merged(values, lambda key, several: self._together(node, key, several))
        return Option(options[0].parts, value)

    def _together(
        self, node: tuple[Message, str] | None, key: str, values: Sequence[Value]
    ) -> Value:
        """Merge values of a field: of a single message into one message, of a list into all of
        them.
        """
        field = None
        if node is not None:
            field = next((one for one in node[0].all_fields() if one.name == key), None)
        if node is None or field is None or field.label == "repeated" or field.is_map:
            return all_of(key, values)
        inner = self._message_of(field.type, node[1])
        if inner is None:
            return values[-1]
        return merged(values, lambda k, several: self._together(inner, k, several))

    def _message_of(self, type_name: str, within: str) -> tuple[Message, str] | None:
        entry = self._scope.resolve(type_name, within)
        if entry is None or not isinstance(entry.node, Message):
            return None
        return entry.node, entry.full_name

    def _value(self, value: Value, within: str, *, is_option: bool = False) -> Value:
        """In a message, but not as an option's own value, a list of one is its item."""
        if isinstance(value, str):
            return value
        if isinstance(value, Word):
            return Word(plain_number(value.text))
        if isinstance(value, tuple):
            items = tuple(self._value(item, within) for item in value)
            return items[0] if len(items) == 1 and not is_option else items
        entries: dict[str, Value] = {}
        for key, inner in value.entries:
            normal = self._value(inner, within)
            if normal != ():
                entries.setdefault(self._key(key, within), normal)
        return Aggregate(tuple(sorted(entries.items())))

    def _key(self, key: str, within: str) -> str:
        if key[0] != "[":
            return key
        entry = self._scope.resolve_extension(key[1:-1], within)
        return key if entry is None else f"[{entry.full_name}]"


def _sorting_name(option: Option) -> str:
    return option.name if option.is_custom else ".".join(option.parts)


def _first_number(oneof: OneOf) -> int:
    return min(node.number for node in oneof.members())


def _imports(imports: Iterable[Import]) -> tuple[Import, ...]:
    seen = {(one.kind, one.path) for one in imports}
    # '' is before public, and that before weak.
    return tuple(Import(path, kind) for kind, path in sorted(seen))


def _reserved(statements: Iterable[Reserved]) -> tuple[Reserved, ...]:
    spans = [item for one in statements for item in one.items if isinstance(item, Span)]
    names = [item for one in statements for item in one.items if isinstance(item, str)]
    spans = sorted((_span(span) for span in spans), key=lambda span: (span.first, span.end))
    return (
        *(Reserved((span,)) for span in spans),
        *(Reserved((name,)) for name in sorted(names)),
    )


def _span(span: Span) -> Span:
    return Span(span.first, None if span.end == span.first else span.end)
