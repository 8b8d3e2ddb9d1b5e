"""Descriptors of Protobuf schemas with all that they import, and the classes of their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor

from barnabas.schemas.protobuf.descriptors import compile_file
from barnabas.schemas.protobuf.nodes import Aggregate, Message
from barnabas.schemas.protobuf.option_values import as_list
from barnabas.schemas.protobuf.schema import read_with_references
from barnabas.schemas.protobuf.scope import joined
from barnabas.schemas.protobuf.tags import meta_of
from barnabas.schemas.schema import SchemaFault

DECIMAL = "confluent.type.Decimal"
DATE = "google.type.Date"
TIME = "google.type.TimeOfDay"
TIMESTAMP = "google.protobuf.Timestamp"
_PATH = "default.proto"


@dataclass(slots=True)
class MessageSchema:
    """A schema with its pool.

    `parameters` are those that Confluent's `field_meta` gives to fields, by their full names.
    """

    file: FileDescriptor
    parameters: dict[str, dict[str, str]]

    def message(self, full_name: str | None) -> Descriptor:
        """The message of that name; the first one for None. Raises SchemaFault."""
        messages = self.file.message_types_by_name
        if full_name is None:
            if not messages:
                raise SchemaFault("The Protobuf schema has no message")
            return next(iter(messages.values()))
        try:
            return self.file.pool.FindMessageTypeByName(full_name)
        except KeyError:
            raise SchemaFault(f"The Protobuf schema has no message {full_name}") from None

    def message_at(self, indexes: list[int]) -> Descriptor:
        """The message at a path of indexes: in the file, then in messages. Raises ValueError."""
        messages = list(self.file.message_types_by_name.values())
        message = None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueError("the schema has no message at the data's index")
            message = messages[index]
            messages = list(message.nested_types)
        if message is None:
            raise ValueError("the data names no message")
        return message


def indexes_of(message: Descriptor) -> list[int]:
    """The path of a message in its file."""
    outer = message.containing_type
    if outer is None:
        return [list(message.file.message_types_by_name).index(message.name)]
    return [*indexes_of(outer), [inner.name for inner in outer.nested_types].index(message.name)]


def load(text: str, references: Mapping[str, str]) -> MessageSchema:
    """Return the schema of a text, in a new pool; `references` maps import names to texts.

    Options of the wrong type are left out. Raises SchemaFault for a text that is not a schema or
    lacks an import.
    """
    try:
        scope = read_with_references(text, references)
        if scope.missing:
            raise SchemaFault(f"the import {scope.missing[0].path!r} was not found")
        if scope.cycle:
            raise SchemaFault(f"imports lead around: {' -> '.join(scope.cycle)}")
        proto, pool = compile_file(scope, _PATH, lenient=True)
        try:
            file = pool.FindFileByName(_PATH)
        except KeyError:
            pool.AddSerializedFile(proto.SerializeToString())  # it says why it cannot
            file = pool.FindFileByName(_PATH)
    except (SchemaFault, TypeError) as error:
        raise SchemaFault(f"The schema is not a Protobuf schema: {error}") from error
    parameters: dict[str, dict[str, str]] = {}
    for one in (*scope.files.values(), scope.root):
        _collect(one.messages, one.package, parameters)
    return MessageSchema(file, parameters)


def _collect(messages: Iterable[Message], within: str, params: dict[str, dict[str, str]]) -> None:
    for message in messages:
        name = joined(within, message.name)
        for field in message.all_fields():
            meta = meta_of(field.options, "confluent.field_meta")
            pairs = {} if meta is None else _params(meta)
            if pairs:
                params[joined(name, field.name)] = pairs
        _collect(message.messages, name, params)


def _params(meta: Aggregate) -> dict[str, str]:
    params = {}
    for entry in as_list(dict(meta.entries).get("params", ())):
        if isinstance(entry, Aggregate):
            pair = dict(entry.entries)
            key, value = pair.get("key"), pair.get("value")
            if isinstance(key, str) and isinstance(value, str):
                params[key] = value
    return params


def message_class(descriptor: Descriptor) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(descriptor)
