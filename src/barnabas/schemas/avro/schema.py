"""The AVRO format: parses texts to schemas, with the operations that the registry needs."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from barnabas.schemas.avro.canonical import PLAIN
from barnabas.schemas.avro.compatibility import incompatibilities
from barnabas.schemas.avro.json_text import read, write
from barnabas.schemas.avro.model import Array, Map, Primitive, Record, Schema, Union
from barnabas.schemas.avro.normal import NORMAL
from barnabas.schemas.avro.parser import Parser
from barnabas.schemas.avro.tags import set_tags, tags_of
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
