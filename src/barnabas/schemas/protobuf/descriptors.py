"""Builds descriptors with the protobuf library, which finds errors that our own rules do not."""

import re
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError
from google.protobuf.text_encoding import CEscape

from barnabas.schemas.protobuf.descriptor_reader import read_descriptor
from barnabas.schemas.protobuf.descriptor_writer import Optioned, OptionsProto, write_descriptor
from barnabas.schemas.protobuf.known import known_file, library_descriptor
from barnabas.schemas.protobuf.nodes import Aggregate, File, Option, Value, Word
from barnabas.schemas.protobuf.printer import print_file
from barnabas.schemas.protobuf.scope import Scope, scope_of
from barnabas.schemas.schema import SchemaFault

_DESCRIPTOR_PATH = "google/protobuf/descriptor.proto"


class OptionFault(ValueError):  # noqa: N818 - it is the option that is at fault
    """An option has a value that its type does not allow."""

    def __init__(self, option: Option, message: str) -> None:
        super().__init__(message)
        self.option = option


class CompileFault(ValueError):  # noqa: N818 - it is the file that is at fault
    """The library refuses the file, in its words."""

    def __init__(self, message: str) -> None:
        super().__init__(message.removeprefix("Couldn't build proto file into descriptor pool: "))


def compile_file(
    scope: Scope, path: str = "default", *, lenient: bool = False
) -> tuple[descriptor_pb2.FileDescriptorProto, descriptor_pool.DescriptorPool]:
    """The descriptor of the scope's file, and a pool that holds it and all that it imports.

    Custom options of which the scope does not have the extension are left out. Raises OptionFault
    or CompileFault; with `lenient` neither, but options are left out that cannot be written.
    """
    pool = descriptor_pool.DescriptorPool()
    proto, optioned = write_descriptor(scope.root, path, scope)
    _fill_standard(optioned, lenient)
    try:
        _add_imported(scope, pool)
        pool.AddSerializedFile(proto.SerializeToString())
    except TypeError as error:
        if lenient:
            return proto, pool
        raise CompileFault(str(error)) from None
    _fill_custom(optioned, scope, pool, lenient)
    return proto, pool


def _add_imported(scope: Scope, pool: descriptor_pool.DescriptorPool) -> None:
    for path, file in scope.files.items():
        # A reference may have the path of a built-in file, and wins.
        serialized = library_descriptor(path) if file is known_file(path) else None
        if serialized is None:
            proto, optioned = write_descriptor(file, path, scope)
            _fill_standard(optioned, lenient=True)
            serialized = proto.SerializeToString()
        pool.AddSerializedFile(serialized)


def decompile(serialized: bytes) -> tuple[File, str]:
    """The file of a serialized descriptor, and its canonical text. Raises SchemaFault."""
    factory = _reading_class()
    try:
        file = read_descriptor(factory.FromString(serialized))
        return file, print_file(file)
    except (DecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        # The last two are of a string that is not UTF-8, which the library gives as bytes.
        raise SchemaFault(f"the serialized file descriptor cannot be read: {error}") from None


@cache
def _reading_class() -> Any:
    """`FileDescriptorProto` with Confluent's extensions of options."""
    meta = known_file("confluent/meta.proto")
    assert meta is not None
    _, pool = compile_file(scope_of(meta, known_file), "confluent/meta.proto")
    name = descriptor_pb2.FileDescriptorProto.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _fill_standard(optioned: list[Optioned], lenient: bool) -> None:
    for proto, options, _ in optioned:
        for option in options:
            if option.is_custom or _is_simple(proto, option):
                continue
            name = ".".join(option.parts).partition(".")[0]
            if name not in proto.DESCRIPTOR.fields_by_name or "(" in ".".join(option.parts):
                # Perhaps of a newer release of protobuf than ours, or of another language.
                continue
            parts = ".".join(option.parts).split(".")
            try:
                text_format.Merge(_as_text(parts, _text(option.value)), proto)
            except text_format.ParseError as error:
                if not lenient:
                    raise OptionFault(option, _said(error)) from None


def _is_simple(proto: OptionsProto, option: Option) -> bool:
    """Set `deprecated = true` and the like, which most options are, without a parser."""
    if len(option.parts) > 1 or not isinstance(option.value, Word):
        return False
    word = option.value.text
    if word not in ("true", "false"):
        return False
    field = proto.DESCRIPTOR.fields_by_name.get(option.parts[0])
    if field is None or field.type != field.TYPE_BOOL:
        return False
    setattr(proto, field.name, word == "true")
    return True


def _fill_custom(
    optioned: list[Optioned], scope: Scope, pool: descriptor_pool.DescriptorPool, lenient: bool
) -> None:
    if _DESCRIPTOR_PATH not in scope.files:
        return
    for proto, options, within in optioned:
        for option in options:
            if not option.is_custom:
                continue
            text = _custom_text(option, within, scope)
            if text is None:
                continue
            try:
                options_type = pool.FindMessageTypeByName(proto.DESCRIPTOR.full_name)
            except KeyError:
                continue  # a reference of that path that has other messages
            message = message_factory.GetMessageClass(options_type)()
            try:
                text_format.Merge(text, message, descriptor_pool=pool)
            except text_format.ParseError as error:
                if not lenient:
                    raise OptionFault(option, _said(error)) from None
                continue
            # They become unknown fields, which keep their place.
            proto.MergeFromString(message.SerializeToString())


def _said(error: text_format.ParseError) -> str:
    """The library's words without their place, which is one in the text that we made."""
    return re.sub(r"^\d+:\d+ : (?:'.*': )?", "", str(error), flags=re.DOTALL)


def _custom_text(option: Option, within: str, scope: Scope) -> str | None:
    """The option in protobuf's text format, None if an extension of it is not known."""
    parts = []
    for part in option.parts:
        if part[0] == "(":
            entry = scope.resolve_extension(part[1:-1], within)
            if entry is None:
                return None
            parts.append(f"[{entry.full_name}]")
        else:
            parts.append(part)
    return _as_text(parts, _text(option.value, scope, within))


def _as_text(parts: list[str], value: str) -> str:
    opening = "".join(f"{part} {{ " for part in parts[:-1])
    return f"{opening}{parts[-1]}: {value}{' }' * (len(parts) - 1)}"


def _text(value: Value, scope: Scope | None = None, within: str = "") -> str:
    if isinstance(value, str):
        return f'"{CEscape(value.encode("utf-8", "surrogateescape"), as_utf8=False)}"'
    if isinstance(value, Word):
        return value.text
    if isinstance(value, Aggregate):
        entries = []
        for key, inner in value.entries:
            if key[0] == "[" and "/" not in key and scope is not None:
                entry = scope.resolve_extension(key[1:-1], within)
                key = key if entry is None else f"[{entry.full_name}]"
            entries.append(f"{key}: {_text(inner, scope, within)}")
        return f"{{ {' '.join(entries)} }}"
    return f"[{', '.join(_text(one, scope, within) for one in value)}]"
