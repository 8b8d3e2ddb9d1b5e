"""The PROTOBUF format: what the registry sees of it."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import ClassVar

from barnabas.schemas.protobuf.compatibility import compare
from barnabas.schemas.protobuf.descriptors import CompileFault, OptionFault, compile_file, decompile
from barnabas.schemas.protobuf.known import known_file
from barnabas.schemas.protobuf.nodes import Enum, Field, File, Group, Message, Option, Service
from barnabas.schemas.protobuf.normal_form import normalize_file
from barnabas.schemas.protobuf.parser import parse_file
from barnabas.schemas.protobuf.printer import print_file
from barnabas.schemas.protobuf.rules import check_file
from barnabas.schemas.protobuf.scope import Scope, joined, scope_of
from barnabas.schemas.protobuf.tags import change_tags, tags_of
from barnabas.schemas.protobuf.tokens import TEXT_CHARS_MAX, fault_at
from barnabas.schemas.schema import (
    Incompatibility,
    ParsedSchema,
    ResolvedReference,
    SchemaFault,
    TaggedEntity,
)

PROTOBUF = "PROTOBUF"
# No .proto text is of these characters only, but an empty one.
_BASE64 = re.compile(r"\s*+[A-Za-z0-9+/][A-Za-z0-9+/\s]*+={0,2}\s*+", re.ASCII)
_REFERENCES_CACHED_MAX = 256
_REFERENCE_CHARS_CACHED_MAX = 1 << 16


class ProtobufSchema:
    """A file, with the texts that it imports."""

    schema_type: ClassVar[str] = PROTOBUF

    def __init__(self, file: File, references: Sequence[ResolvedReference] = ()) -> None:
        self.file = file
        self.references = tuple(references)

    @cached_property
    def canonical_text(self) -> str:
        return print_file(self.file)

    @cached_property
    def scope(self) -> Scope:
        """The names that the file can use. Files that cannot be found are left out."""
        return scope_of(self.file, _loader(self.references))

    @property
    def name(self) -> str | None:
        """The full name of the first message, else of the first enum."""
        file = self._defining_file()
        names = [one.name for one in file.messages[:1]] or [one.name for one in file.enums[:1]]
        return joined(file.package, names[0]) if names else None

    def message_at(self, indexes: Sequence[int]) -> str:
        """The full name of the message that an index path of a record names.

        A path counts messages from 0 at each level. Enums do not count; the entry of a map does if
        the file has it as a message. An empty path is the first message. Raises LookupError if
        none exists.
        """
        file = self._defining_file()
        messages, name = file.messages, file.package
        for depth, index in enumerate(indexes or (0,)):
            if not 0 <= index < len(messages):
                path = ", ".join(map(str, indexes or (0,)))
                raise LookupError(
                    f"no message has the index path [{path}]: at position {depth},"
                    f" {index} is not below {len(messages)}"
                )
            name = joined(name, messages[index].name)
            messages = messages[index].messages
        return name

    def formatted(self, form: str) -> str:
        """The text in the form '', 'default', 'ignore_extensions' or 'serialized'.

        `serialized` is the `FileDescriptorProto` in base64. Raises ValueError for another form.
        """
        match form.strip().lower():
            case "" | "default":
                return self.canonical_text
            case "ignore_extensions":
                return print_file(without_extensions(self.file))
            case "serialized":
                return self._serialized()
        raise ValueError(f"PROTOBUF has no format {form}")

    def normalized(self) -> "ProtobufSchema":
        references = sorted(
            set(self.references), key=lambda one: (one.name, one.subject, one.version)
        )
        return ProtobufSchema(normalize_file(self.scope), references)

    def incompatibilities(
        self,
        written: ParsedSchema,
        *,
        lenient: bool = False,
    ) -> list[Incompatibility]:
        if not isinstance(written, ProtobufSchema):
            return [
                Incompatibility(
                    "TYPE_MISMATCH", "/", f"the older schema is of type {written.schema_type}"
                )
            ]
        return [
            difference.incompatibility()
            for difference in compare(written.scope, self.scope, written.versions, self.versions)
            if not difference.is_compatible
        ]

    @cached_property
    def versions(self) -> Mapping[str, tuple[str, int]]:
        """Subject and version of each reference, by name."""
        return {one.name: (one.subject, one.version) for one in self.references}

    def top_level_fields(self) -> frozenset[str]:
        """Fields of all outermost messages, but as Confluent's not those of oneofs and groups."""
        messages = self._defining_file().messages
        return frozenset(field.name for message in messages for field in message.fields)

    def tags(self) -> Mapping[TaggedEntity, frozenset[str]]:
        return tags_of(self.file)

    def with_tags(
        self,
        added: Mapping[TaggedEntity, frozenset[str]],
        removed: Mapping[TaggedEntity, frozenset[str]],
    ) -> "ProtobufSchema":
        return ProtobufSchema(change_tags(self.file, added, removed), self.references)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProtobufSchema):
            return NotImplemented
        return self.canonical_text == other.canonical_text and self.references == other.references

    def __hash__(self) -> int:
        return hash((self.canonical_text, self.references))

    def __repr__(self) -> str:
        return f"ProtobufSchema({self.name}, {len(self.canonical_text)} characters)"

    def _defining_file(self) -> File:
        """The file itself; of one that only imports another one publicly, the other."""
        file = self.file
        if file.messages or file.enums or file.services or file.extends or len(file.imports) != 1:
            return file
        if file.imports[0].kind != "public":
            return file
        return self.scope.files.get(file.imports[0].path, file)

    def _serialized(self) -> str:
        proto, _ = compile_file(self.scope, lenient=True)
        return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


class ProtobufFormat:
    """The format, as the registry's table of formats has it."""

    schema_type: ClassVar[str] = PROTOBUF

    def parse(
        self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = False
    ) -> ProtobufSchema:
        file, text = _read(text)
        schema = ProtobufSchema(file, references)
        if references:
            # A reference that is not a schema is a fault here, not when it is needed.
            _ = schema.scope
        if is_new:
            check_file(text, schema.scope)
            _check_descriptor(text, schema.scope)
        return schema


def _check_descriptor(text: str, scope: Scope) -> None:
    try:
        compile_file(scope)
    except OptionFault as fault:
        option = fault.option
        name = ".".join(option.parts)
        raise fault_at(text, option.position, f"the option {name}: {fault}") from None
    except CompileFault as fault:
        # The library asks it of proto2 too, where protoc only warns.
        if not str(fault).startswith("duplicate json_name") or scope.root.is_proto3:
            raise SchemaFault(f"the protobuf library refuses the schema: {fault}") from None


def read_with_references(text: str, references: Mapping[str, str]) -> Scope:
    """The names of a text and of what it imports; `references` are texts by path.

    It checks none of the registry's rules. Raises SchemaFault for what is not a schema.
    """
    resolved = [ResolvedReference(name, "", 0, told) for name, told in references.items()]
    return scope_of(_read(text)[0], _loader(resolved))


def _read(text: str) -> tuple[File, str]:
    """The file of a text, and the text that the positions in it are of."""
    if len(text) > TEXT_CHARS_MAX or not _BASE64.fullmatch(text):
        return parse_file(text), text
    try:
        file, printed = decompile(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, SchemaFault) as no_descriptor:
        try:
            return parse_file(text), text
        except SchemaFault as fault:
            raise SchemaFault(f"{fault}; nor is it base64 of one: {no_descriptor}") from None
    # Names in a descriptor can be anything; those that are names can be read again.
    try:
        read_again = parse_file(printed)
    except SchemaFault as fault:
        raise SchemaFault(f"the serialized file descriptor is not a schema: {fault}") from None
    if read_again != file:
        raise SchemaFault("the serialized file descriptor has names that are none")
    return read_again, printed


@lru_cache(maxsize=_REFERENCES_CACHED_MAX)
def _read_cached(text: str) -> File:
    return _read(text)[0]


def _loader(references: Sequence[ResolvedReference]) -> Callable[[str], File | None]:
    texts = {one.name: one.text for one in references}

    def load(path: str) -> File | None:
        text = texts.get(path)
        if text is None:
            return known_file(path)
        try:
            return (
                _read_cached(text) if len(text) <= _REFERENCE_CHARS_CACHED_MAX else _read(text)[0]
            )
        except SchemaFault as fault:
            raise SchemaFault(f"the reference {path}: {fault}") from None

    return load


# -- a file without what extends it, for readers that do not have the extensions' definitions


def without_extensions(file: File) -> File:
    """Leave out extensions, their ranges and custom options; Confluent's own options stay."""
    return replace(
        file,
        options=_options(file.options),
        messages=tuple(_message(one) for one in file.messages),
        enums=tuple(_enum(one) for one in file.enums),
        services=tuple(_service(one) for one in file.services),
        extends=(),
    )


def _message(message: Message) -> Message:
    return replace(
        message,
        fields=_fields(message.fields),
        oneofs=tuple(
            replace(
                one,
                fields=_fields(one.fields),
                groups=_groups(one.groups),
                options=_options(one.options),
            )
            for one in message.oneofs
        ),
        groups=_groups(message.groups),
        extensions=(),
        extends=(),
        messages=tuple(_message(one) for one in message.messages),
        enums=tuple(_enum(one) for one in message.enums),
        options=_options(message.options),
    )


def _fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(replace(one, options=_options(one.options)) for one in fields)


def _groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(
        replace(one, body=_message(one.body), options=_options(one.options)) for one in groups
    )


def _enum(enum: Enum) -> Enum:
    values = tuple(replace(one, options=_options(one.options)) for one in enum.values)
    return replace(enum, values=values, options=_options(enum.options))


def _service(service: Service) -> Service:
    methods = tuple(replace(one, options=_options(one.options)) for one in service.methods)
    return replace(service, methods=methods, options=_options(service.options))


def _options(options: Iterable[Option]) -> tuple[Option, ...]:
    return tuple(one for one in options if not one.is_custom or one.name.startswith("confluent."))
