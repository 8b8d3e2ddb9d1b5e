"""A file without what extends it, for readers that do not have the extensions' definitions."""

from collections.abc import Iterable
from dataclasses import replace

from barnabas.schemas.protobuf.nodes import Enum, Field, File, Group, Message, Option, Service


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
