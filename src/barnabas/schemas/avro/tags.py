"""Tags in the text of a schema: `confluent:tags` of a record or a field."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.schemas.avro.model import Array, Map, Props, Record, Schema, Union
from barnabas.schemas.schema import SchemaFault, TaggedEntity

_TAGS = "confluent:tags"
_RECORD, _FIELD = "SR_RECORD", "SR_FIELD"


def tags_of(root: Schema) -> dict[TaggedEntity, frozenset[str]]:
    """The tags of all records and fields, those of referenced schemas too."""
    tags = {}
    for record in _records(root):
        if names := _read(record.props):
            tags[TaggedEntity(_RECORD, record.name.full)] = names
        for field in record.fields:
            if names := _read(field.props):
                tags[TaggedEntity(_FIELD, f"{record.name.full}.{field.name}")] = names
    return tags


def _read(props: Props) -> frozenset[str]:
    tags = props.get(_TAGS)
    return frozenset(map(str, tags)) if isinstance(tags, list) else frozenset()


def _records(root: Schema) -> Iterator[Record]:
    seen: set[str] = set()
    pending: list[Schema] = [root]
    while pending:
        schema = pending.pop()
        if isinstance(schema, Union):
            pending.extend(reversed(schema.branches))
        elif isinstance(schema, Array):
            pending.append(schema.items)
        elif isinstance(schema, Map):
            pending.append(schema.values)
        elif isinstance(schema, Record) and schema.name.full not in seen:
            seen.add(schema.name.full)
            yield schema
            pending.extend(field.type for field in reversed(schema.fields))


def set_tags(
    tree: Any,
    added: Mapping[TaggedEntity, frozenset[str]],
    removed: Mapping[TaggedEntity, frozenset[str]],
) -> None:
    """Change the tags in the JSON of a canonical text. A tag that is both added and removed is
    removed.

    Raises SchemaFault if an entity is not in the text itself; references are not written to.
    """
    for entity in dict.fromkeys((*added, *removed)):
        node = _find(tree, entity)
        if node is None:
            raise SchemaFault(f"the schema has no {entity.kind} {entity.name!r}")
        old = node.get(_TAGS)
        tags = [str(tag) for tag in old] if isinstance(old, list) else []
        tags += sorted(added.get(entity, frozenset()).difference(tags))
        tags = [tag for tag in tags if tag not in removed.get(entity, frozenset())]
        if tags:
            node[_TAGS] = tags
        else:
            node.pop(_TAGS, None)


def _find(tree: Any, entity: TaggedEntity) -> dict[str, Any] | None:
    """The object of a record or field. A name without a namespace is one of any namespace."""
    name, field_name = entity.name, None
    if entity.kind == _FIELD:
        name, _, field_name = name.rpartition(".")
    space, _, simple = name.rpartition(".")
    pending = deque([(tree, "")])
    while pending:
        node, outer_space = pending.popleft()
        if isinstance(node, list):
            pending.extend((branch, outer_space) for branch in node)
        elif isinstance(node, dict):
            node_space = node.get("namespace", outer_space)
            fields = node.get("fields", ())
            is_it = node["type"] in ("record", "error") and node["name"] == simple
            if is_it and space in ("", node_space):
                nodes: list[dict[str, Any]] = [node] if field_name is None else fields
                for candidate in nodes:
                    if field_name in (None, candidate["name"]):
                        return candidate
            pending.extend((field["type"], node_space) for field in fields)
            pending.extend((node[key], node_space) for key in ("items", "values") if key in node)
    return None
