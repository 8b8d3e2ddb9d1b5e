"""The AVRO format: parses texts to schemas, with the operations that the registry needs."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.schemas.avro.canonical import PLAIN
from barnabas.schemas.avro.compatibility import incompatibilities
from barnabas.schemas.avro.json_text import read, write
from barnabas.schemas.avro.model import Array, Map, Primitive, Props, Record, Schema, Union
from barnabas.schemas.avro.normal import NORMAL
from barnabas.schemas.avro.parser import Parser
from barnabas.schemas.schema import (
    Incompatibility,
    ParsedSchema,
    ResolvedReference,
    SchemaFault,
    TaggedEntity,
)

AVRO = "AVRO"


class AvroFormat:
    """Reads Avro schemas. The rules are those of Avro's Java library; see `parser.py`."""

    schema_type: ClassVar[str] = AVRO

    def parse(
        self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = False
    ) -> "AvroSchema":
        """Parse a text. Types of references are known by the names that their texts define."""
        parser = Parser(strict=is_new)
        known = [_full_name(_parse_reference(parser, reference)) for reference in references]
        root = parser.parse(read(text))
        return AvroSchema(root, tuple(references), frozenset(filter(None, known)), is_new=is_new)


def _parse_reference(parser: Parser, reference: ResolvedReference) -> Schema:
    try:
        return parser.parse(read(reference.text))
    except SchemaFault as fault:
        raise SchemaFault(
            f"reference {reference.name!r} (subject {reference.subject!r}, version"
            f" {reference.version}): {fault}"
        ) from None


def _full_name(schema: Schema) -> str | None:
    return None if isinstance(schema, Primitive | Array | Map | Union) else schema.name.full


class AvroSchema:
    """A valid Avro schema."""

    schema_type: ClassVar[str] = AVRO
    __slots__ = ("_is_new", "_known", "_references", "_root", "_text")

    def __init__(
        self,
        root: Schema,
        references: tuple[ResolvedReference, ...],
        known: frozenset[str],
        *,
        is_new: bool,
    ) -> None:
        self._root = root
        self._references = references
        self._known = known
        self._is_new = is_new
        self._text = PLAIN.text(root, known)
        _check_unicode(self._text)

    @property
    def name(self) -> str | None:
        """Full name of the record; None for any other type."""
        return self._root.name.full if isinstance(self._root, Record) else None

    @property
    def canonical_text(self) -> str:
        """The text as Java writes it, types of references by name."""
        return self._text

    def formatted(self, form: str) -> str:
        """The canonical text ('' or 'default'), or 'resolved': types of references inlined."""
        match form.strip().lower():
            case "" | "default":
                return self._text
            case "resolved":
                return PLAIN.text(self._root)
        raise ValueError(f"an Avro schema has no form {form!r}: it has 'default' and 'resolved'")

    def normalized(self) -> "AvroSchema":
        """The schema in its normal form; see `normal.py`."""
        text = NORMAL.text(self._root, self._known)
        return self if text == self._text else self._parse(text)

    def incompatibilities(
        self,
        written: ParsedSchema,
        *,
        lenient: bool = False,
    ) -> list[Incompatibility]:
        """Why this schema, as the reader's, cannot read what was written with `written`."""
        if isinstance(written, AvroSchema):
            return incompatibilities(self._root, written._root)
        return [
            Incompatibility(
                "TYPE_MISMATCH",
                "/",
                f"The schemas are of different formats: {AVRO} and {written.schema_type}",
            )
        ]

    def top_level_fields(self) -> frozenset[str]:
        """Fields of the record."""
        root = self._root
        return frozenset(root.field_by_name) if isinstance(root, Record) else frozenset()

    def tags(self) -> Mapping[TaggedEntity, frozenset[str]]:
        """Tags of records and fields."""
        return tags_of(self._root)

    def with_tags(
        self,
        added: Mapping[TaggedEntity, frozenset[str]],
        removed: Mapping[TaggedEntity, frozenset[str]],
    ) -> "AvroSchema":
        """The schema with other tags. Raises SchemaFault if an entity is not in its text."""
        tree = json.loads(self._text)
        set_tags(tree, added, removed)
        return self._parse(write(tree))

    def _parse(self, text: str) -> "AvroSchema":
        return AvroFormat().parse(text, self._references, is_new=self._is_new)

    def _identity(self) -> tuple[str, list[tuple[str, str, int]]]:
        return self._text, [(r.name, r.subject, r.version) for r in self._references]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AvroSchema):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"AvroSchema({self._text})"


def _check_unicode(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 40) : error.start]
        raise SchemaFault(f"half of a surrogate pair stands after {around!r}") from None


# -- tags in the text of a schema: `confluent:tags` of a record or a field


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
