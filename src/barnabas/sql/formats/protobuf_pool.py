"""Descriptors of Protobuf schemas with all that they import, and the classes of their messages."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.protobuf_parser import ParsedFile, ProtobufTextError, parse_file

DECIMAL = "confluent.type.Decimal"
DATE = "google.type.Date"
TIME = "google.type.TimeOfDay"
TIMESTAMP = "google.protobuf.Timestamp"

_KNOWN = {
    "confluent/meta.proto": """syntax = "proto3"; package confluent;
        message Meta { string doc = 1; map<string, string> params = 2; }""",
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "google/type/date.proto": """syntax = "proto3"; package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }""",
    "google/type/timeofday.proto": """syntax = "proto3"; package google.type;
        message TimeOfDay {
          int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4;
        }""",
}
_IMPORTS_MAX = 1_000


@dataclass(slots=True)
class Schema:
    """A schema with its pool; `parameters` are those of fields, by full name."""

    file: FileDescriptor
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)

    def message(self, full_name: str | None) -> Descriptor:
        """The message of that name; the first one for None. Raises AnalysisError."""
        messages = self.file.message_types_by_name
        if full_name is None:
            if not messages:
                raise AnalysisError("The Protobuf schema has no message")
            return next(iter(messages.values()))
        try:
            return self.file.pool.FindMessageTypeByName(full_name)
        except KeyError:
            raise AnalysisError(f"The Protobuf schema has no message {full_name}") from None

    def message_at(self, indexes: list[int]) -> Descriptor:
        """The message at a path of indexes: in the file, then in messages. Raises ValueError."""
        messages = list(self.file.message_types_by_name.values())
        found = None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueError("the schema has no message at the data's index")
            found = messages[index]
            messages = list(found.nested_types)
        if found is None:
            raise ValueError("the data names no message")
        return found


def indexes_of(message: Descriptor) -> list[int]:
    """The path of a message in its file."""
    outer = message.containing_type
    if outer is None:
        return [list(message.file.message_types_by_name).index(message.name)]
    return [*indexes_of(outer), [inner.name for inner in outer.nested_types].index(message.name)]


def load(text: str, references: Mapping[str, str]) -> Schema:
    """The schema of a text; `references` are texts by the names that imports have.

    Raises AnalysisError for what is no schema or lacks an import.
    """
    try:
        parsed = parse_file("default.proto", text)
        return of_file(parsed, references)
    except (ProtobufTextError, TypeError, ValueError) as error:
        raise AnalysisError(f"The schema is not a Protobuf schema: {error}") from error


def of_file(parsed: ParsedFile, references: Mapping[str, str]) -> Schema:
    """The schema of a descriptor, in a pool of its own. Raises TypeError, ValueError."""
    pool = descriptor_pool.DescriptorPool()
    parameters = dict(parsed.parameters)
    added: set[str] = set()

    def add(file: ParsedFile) -> None:
        for path in file.descriptor.dependency:
            if path not in added:
                if len(added) >= _IMPORTS_MAX:
                    raise ValueError("the schema imports too much")
                added.add(path)
                add(_imported(path, references))
        parameters.update(file.parameters)
        pool.AddSerializedFile(file.descriptor.SerializeToString())

    add(parsed)
    return Schema(pool.FindFileByName(parsed.descriptor.name), parameters)


def _imported(path: str, references: Mapping[str, str]) -> ParsedFile:
    if path in references:
        return parse_file(path, references[path])
    if path in _KNOWN:
        return parse_file(path, _KNOWN[path])
    if path.startswith("google/") and path.endswith(".proto"):
        module = path.removesuffix(".proto").replace("/", ".") + "_pb2"
        try:
            serialized = importlib.import_module(module).DESCRIPTOR.serialized_pb
        except ImportError:
            raise ValueError(f"the import {path!r} was not found") from None
        result = ParsedFile(FileDescriptorProto())
        result.descriptor.MergeFromString(serialized)
        return result
    raise ValueError(f"the import {path!r} was not found")


def message_class(descriptor: Descriptor) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(descriptor)
