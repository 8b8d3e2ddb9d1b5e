"""Tags in a schema (`confluent:tags`), and the names of the entities that can have tags.

An entity's name is its path, as Confluent writes it: `object.address.object.street` is a field
of the object in the field `address`. Items of an array are `array`, alternatives `oneof.0` (in an
order of their own, not the text's), definitions `definitions.Name`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    EnumSchema,
    NotSchema,
    ObjectSchema,
    Schema,
)
from barnabas.schemas.json_schema.model.reader import Reader
from barnabas.schemas.json_schema.references import Place
from barnabas.schemas.json_schema.text import encode
from barnabas.schemas.schema import SchemaFault, TaggedEntity

TAGS = "confluent:tags"


def tags_of(reader: Reader, root: Place) -> dict[TaggedEntity, frozenset[str]]:
    """The tags of all entities that carry some."""
    tags: dict[TaggedEntity, frozenset[str]] = {}
    for entity, schema in _entities(reader, root).items():
        own = schema.source.get(TAGS)
        if isinstance(own, list) and own and not (schema.is_part and entity.kind == "SR_RECORD"):
            tags[entity] = frozenset(tag if isinstance(tag, str) else encode(tag) for tag in own)
    return tags


def put_tags(
    reader: Reader,
    root: Place,
    added: Mapping[TaggedEntity, frozenset[str]],
    removed: Mapping[TaggedEntity, frozenset[str]],
) -> None:
    """Change the tags in the document that the reader reads. Raises SchemaFault."""
    entities = _entities(reader, root)
    for entity in dict.fromkeys([*added, *removed]):
        schema = entities.get(entity)
        if schema is None:
            raise SchemaFault(f"the schema has no {entity.kind} of the name {entity.name!r}")
        own = schema.source.get(TAGS)
        kept = dict.fromkeys(tag for tag in own if isinstance(tag, str)) if own else {}
        kept |= dict.fromkeys(sorted(added.get(entity, ())))
        tags = [tag for tag in kept if tag not in removed.get(entity, ())]
        if tags:
            schema.source[TAGS] = tags
        else:
            schema.source.pop(TAGS, None)


def _entities(reader: Reader, root: Place) -> dict[TaggedEntity, Schema]:
    entities: dict[TaggedEntity, Schema] = {}
    for entity, schema in _walk(reader, reader.root(), root, "", in_field=False):
        if isinstance(schema.source, dict):
            entities.setdefault(entity, schema)
    return entities


def _walk(
    reader: Reader, schema: Schema, place: Place | None, scope: str, *, in_field: bool
) -> Iterator[tuple[TaggedEntity, Schema]]:
    if isinstance(schema, CombinedSchema):
        for index, part in enumerate(sorted(schema.parts, key=_sort_key)):
            inner = f"{scope}{schema.criterion.lower()}.{index}."
            yield from _walk(reader, part, place if part.is_part else None, inner, in_field=False)
    elif isinstance(schema, ArraySchema):
        if schema.each is not None:
            yield from _walk(reader, schema.each, None, scope + "array.", in_field=False)
    elif isinstance(schema, NotSchema):
        yield from _walk(reader, schema.inner, None, scope + "not.", in_field=False)
    elif isinstance(schema, ConditionalSchema):
        for keyword, branch in schema.branches.items():
            inner = f"{scope}conditional.{keyword}."
            yield from _walk(reader, branch, None, inner, in_field=False)
    elif isinstance(schema, ObjectSchema):
        name = scope + "object"
        if not in_field:
            yield TaggedEntity("SR_RECORD", name), schema
        for field, inner_schema in schema.properties.items():
            yield TaggedEntity("SR_FIELD", f"{name}.{field}"), inner_schema
            yield from _walk(reader, inner_schema, None, f"{name}.{field}.", in_field=True)
        yield from _definitions(reader, schema, place, name)


def _definitions(
    reader: Reader, schema: ObjectSchema, place: Place | None, name: str
) -> Iterator[tuple[TaggedEntity, Schema]]:
    if place is None or place.schema is not schema.source:
        return
    for keyword in ("definitions", "$defs"):
        defined = schema.source.get(keyword)
        if isinstance(defined, dict):
            for key, inner in reader.each(place, keyword, defined).items():
                yield from _walk(reader, inner, None, f"{name}.{keyword}.{key}.", in_field=False)


def _sort_key(schema: Schema) -> tuple[Any, ...]:
    source = schema.source if isinstance(schema.source, dict) else {}
    common = source if not schema.is_part else {}
    return (
        type(schema).__name__,  # Confluent's order of kinds is that of their names
        *(str(common.get(keyword) or "") for keyword in ("title", "description", "default")),
        *_own_key(schema),
    )


def _own_key(schema: Schema) -> tuple[Any, ...]:
    if isinstance(schema, ConstSchema):
        return (str(schema.value),)
    if isinstance(schema, EnumSchema):
        return (len(schema.values), sorted(map(str, schema.values)))
    if isinstance(schema, CombinedSchema):
        return (schema.criterion.lower(), len(schema.parts))
    if isinstance(schema, ObjectSchema):
        return (
            len(schema.properties),
            sorted(schema.properties),
            len(schema.required),
            sorted(schema.required),
        )
    return ()
