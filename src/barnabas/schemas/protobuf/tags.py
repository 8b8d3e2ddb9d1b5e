"""Tags in a schema: what its `confluent.message_meta` and `confluent.field_meta` options list."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from barnabas.schemas.protobuf.nodes import Aggregate, Field, File, Message, Option
from barnabas.schemas.protobuf.option_values import all_of, as_list, merged, whole
from barnabas.schemas.schema import SchemaFault, TaggedEntity

RECORD = "SR_RECORD"
FIELD = "SR_FIELD"
_META = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}

_Tags = Mapping[TaggedEntity, frozenset[str]]


def tags_of(file: File) -> dict[TaggedEntity, frozenset[str]]:
    """Tags by entity. Names of entities are without the package: `Message.Nested.field`."""
    tags: dict[TaggedEntity, frozenset[str]] = {}
    for message in file.messages:
        _find(message, message.name, tags)
    return tags


def _find(message: Message, name: str, tags: dict[TaggedEntity, frozenset[str]]) -> None:
    _note(TaggedEntity(RECORD, name), message.options, tags)
    for field in message.all_fields():
        _note(TaggedEntity(FIELD, f"{name}.{field.name}"), field.options, tags)
    for nested in message.messages:
        _find(nested, f"{name}.{nested.name}", tags)


def _note(
    entity: TaggedEntity, options: Iterable[Option], by_entity: dict[TaggedEntity, frozenset[str]]
) -> None:
    meta = meta_of(options, _META[entity.kind])
    tags = frozenset() if meta is None else frozenset(_tags(meta))
    if tags:
        by_entity[entity] = tags


def change_tags(file: File, added: _Tags, removed: _Tags) -> File:
    """The file with tags added, then others removed. Raises SchemaFault for an unknown entity."""
    change = _Change(file, added, removed)
    messages = tuple(change.message(one, one.name) for one in file.messages)
    change.check_all_found()
    return replace(file, messages=messages)


class _Change:
    def __init__(self, file: File, added: _Tags, removed: _Tags) -> None:
        self._package = file.package
        self._added = {self._local(entity): tags for entity, tags in added.items()}
        self._removed = {self._local(entity): tags for entity, tags in removed.items()}
        self._left = set(self._added) | set(self._removed)

    def _local(self, entity: TaggedEntity) -> TaggedEntity:
        """The entity without its possible prefix: a dot and the package."""
        name = entity.name.removeprefix(".")
        if self._package:
            name = name.removeprefix(f"{self._package}.")
        return TaggedEntity(entity.kind, name)

    def message(self, message: Message, name: str) -> Message:
        return replace(
            message,
            options=self._changed(message.options, [TaggedEntity(RECORD, name)]),
            fields=tuple(self._field(one, f"{name}.") for one in message.fields),
            oneofs=tuple(
                replace(
                    oneof,
                    fields=tuple(
                        self._field(one, f"{name}.", f"{name}.{oneof.name}.")
                        for one in oneof.fields
                    ),
                )
                for oneof in message.oneofs
            ),
            messages=tuple(self.message(one, f"{name}.{one.name}") for one in message.messages),
        )

    def _field(self, field: Field, *prefixes: str) -> Field:
        entities = [TaggedEntity(FIELD, prefix + field.name) for prefix in prefixes]
        return replace(field, options=self._changed(field.options, entities))

    def _changed(
        self, options: tuple[Option, ...], entities: list[TaggedEntity]
    ) -> tuple[Option, ...]:
        for entity in entities:
            if entity in self._left:
                self._left.discard(entity)
                options = _with_tags(
                    options,
                    _META[entity.kind],
                    self._added.get(entity, frozenset()),
                    self._removed.get(entity, frozenset()),
                )
        return options

    def check_all_found(self) -> None:
        if self._left:
            missing = min(self._left, key=lambda entity: entity.name)
            kind = "message" if missing.kind == RECORD else "field"
            raise SchemaFault(f"the schema has no {kind} {missing.name} that tags could be put on")


def _with_tags(
    options: tuple[Option, ...], name: str, added: frozenset[str], removed: frozenset[str]
) -> tuple[Option, ...]:
    meta = meta_of(options, name) or Aggregate(())
    tags = [tag for tag in (*_tags(meta), *sorted(added)) if tag not in removed]
    entries = dict(meta.entries)
    entries["tags"] = tuple(dict.fromkeys(tags))
    if not tags:
        del entries["tags"]
    at = next((i for i, one in enumerate(options) if _is_meta(one, name)), len(options))
    changed = [one for one in options if not _is_meta(one, name)]
    if entries:
        changed.insert(at, Option((f"({name})",), Aggregate(tuple(entries.items()))))
    return tuple(changed)


def meta_of(options: Iterable[Option], name: str) -> Aggregate | None:
    """All that the options say of a name, in whichever way they are written."""
    values = [whole(option).value for option in options if _is_meta(option, name)]
    if not values:
        return None
    value = merged(values, all_of)
    return value if isinstance(value, Aggregate) else None


def _is_meta(option: Option, name: str) -> bool:
    return option.is_custom and option.name.lstrip(".") == name


def _tags(meta: Aggregate) -> list[str]:
    tags = dict(meta.entries).get("tags", ())
    return [tag for tag in as_list(tags) if isinstance(tag, str)]
