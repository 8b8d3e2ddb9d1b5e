"""Protobuf with a schema registry: io.confluent.connect.protobuf.ProtobufConverter.

Left out: plain values written without a struct, Confluent's variants, and the sum types that all
formats have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from google.protobuf.message import DecodeError, EncodeError

from barnabas.connect.config.definition import Definition
from barnabas.connect.converters.registry.base import (
    REGISTRY_SETTINGS,
    Reading,
    RegistryConverter,
    Writing,
)
from barnabas.connect.converters.registry.protobuf_reading import ProtobufReading
from barnabas.connect.converters.registry.protobuf_writing import (
    ProtobufOptions,
    ProtobufText,
    to_message,
)
from barnabas.connect.converters.settings import flag
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.format import StoredSchema
from barnabas.sql.formats.protobuf import decode_indexes, encode_indexes
from barnabas.sql.formats.protobuf_pool import (
    Schema as Loaded,
)
from barnabas.sql.formats.protobuf_pool import (
    indexes_of,
    load,
    message_class,
)


class ProtobufConverter(RegistryConverter):
    """Protobuf's messages."""

    definition: ClassVar[Definition] = Definition(
        (
            *REGISTRY_SETTINGS,
            flag("enhanced.protobuf.schema.support", "Whether names have their packages."),
            flag("optional.for.nullables", "Whether optional fields are optional in Protobuf."),
            flag("wrapper.for.nullables", "Whether optional numbers and texts are wrapped."),
            flag("flatten.unions", "Whether a oneof's fields stand beside the others."),
            flag("generate.index.for.unions", "Whether a oneof's name is numbered.", default=True),
        )
    )
    schema_type, title = "PROTOBUF", "Protobuf"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._options = ProtobufOptions(
            is_enhanced=parsed["enhanced.protobuf.schema.support"],
            has_optional=parsed["optional.for.nullables"],
            has_wrappers=parsed["wrapper.for.nullables"],
            flattens_unions=parsed["flatten.unions"],
            indexes_unions=parsed["generate.index.for.unions"],
            ignores_defaults=self._ignores_defaults,
        )

    def _writing(self, schema: Schema | None, target: StoredSchema | None) -> Writing:
        assert schema is not None
        text = ProtobufText(self._options).of(schema)
        loaded = _loaded(target or StoredSchema(-1, "PROTOBUF", text, ()))
        message = loaded.message(None)
        prefix, build = encode_indexes(indexes_of(message)), message_class(message)
        convert = to_message(schema, self._options)

        def write(value: Any) -> bytes:
            try:
                return prefix + bytes(build(**convert(value)).SerializeToString())
            except (ValueError, TypeError, EncodeError) as error:
                raise DataError(f"The value does not fit its Protobuf schema: {error}") from error

        return Writing(text, message.full_name, write)

    def _reading(self, stored: StoredSchema) -> Reading:
        """The schema of the first message; data of others have schemas of their own."""
        loaded = _loaded(stored)
        reading = ProtobufReading(loaded, self._options)

        def made(path: tuple[int, ...]) -> tuple[Schema, Any, Any]:
            message = loaded.message_at(list(path))
            schema, convert = reading.root(message)
            return schema, convert, message_class(message).FromString

        by_path: Cache[tuple[int, ...], tuple[Schema, Any, Any]] = Cache(made)

        def read(data: bytes) -> Any:
            path, start = decode_indexes(data)
            _, convert, parse = by_path(tuple(path))
            try:
                return convert(parse(data[start:]))
            except DecodeError as error:
                raise ValueError(str(error)) from error

        def schema_of(data: bytes) -> Schema:
            return by_path(tuple(decode_indexes(data)[0]))[0]

        return Reading(by_path((0,))[0], read, schema_of)


def _loaded(stored: StoredSchema) -> Loaded:
    try:
        return load(stored.text, dict(stored.references))
    except AnalysisError as error:
        raise DataError(str(error)) from error
