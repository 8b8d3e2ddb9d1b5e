"""The JSON format: parses texts to schemas, with the operations that the registry needs."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.schemas.json_schema.bundle import bundle
from barnabas.schemas.json_schema.dialect import Draft, draft_of
from barnabas.schemas.json_schema.diff.compare import compare
from barnabas.schemas.json_schema.keywords import check
from barnabas.schemas.json_schema.model.reader import Reader
from barnabas.schemas.json_schema.references import Library
from barnabas.schemas.json_schema.tags import put_tags, tags_of
from barnabas.schemas.json_schema.text import decode, encode, sort_members
from barnabas.schemas.schema import (
    Incompatibility,
    ParsedSchema,
    ResolvedReference,
    SchemaFault,
    TaggedEntity,
)


class JsonSchema:
    """A JSON schema with the texts that it refers to."""

    schema_type: ClassVar[str] = "JSON"
    __slots__ = ("_document", "_draft", "_reader", "canonical_text", "references")

    def __init__(
        self,
        document: Any,
        draft: Draft,
        references: tuple[ResolvedReference, ...],
        library: Library | None = None,
    ) -> None:
        self._document = document
        self._draft = draft
        self._reader = None if library is None else Reader(library)
        self.references = references
        self.canonical_text = encode(document)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, JsonSchema)
            and self.canonical_text == other.canonical_text
            and self.references == other.references
        )

    def __hash__(self) -> int:
        return hash((self.canonical_text, self.references))

    @property
    def name(self) -> str | None:
        """The title."""
        title = self._document.get("title") if isinstance(self._document, dict) else None
        return title if isinstance(title, str) else None

    def formatted(self, form: str) -> str:
        """Forms: '' canonical, 'resolved' with all that it refers to among its definitions."""
        if form == "":
            return self.canonical_text
        if form == "resolved":
            return encode(bundle(self._own_reader().library))
        raise ValueError(f"JSON schemas have no form {form!r}")

    def normalized(self) -> "JsonSchema":
        """The schema with members in order of their names, and references of their subjects."""
        references = sorted(
            dict.fromkeys(self.references), key=lambda item: (item.subject, item.version, item.name)
        )
        return JsonSchema(sort_members(self._document), self._draft, tuple(references))

    def incompatibilities(
        self, written: ParsedSchema, *, lenient: bool = False
    ) -> list[Incompatibility]:
        """Why this schema does not read what was written with `written`.

        `lenient` allows more changes of content models.
        """
        if not isinstance(written, JsonSchema):
            return [
                Incompatibility(
                    kind="SCHEMA_TYPE_CHANGED",
                    path="#/",
                    description=f"a schema of type JSON reads none of type {written.schema_type}",
                )
            ]
        return compare(written._own_reader(), self._own_reader(), lenient=lenient)

    def top_level_fields(self) -> frozenset[str]:
        """Properties that the document itself names, not those of what it refers to."""
        properties = self._document.get("properties") if isinstance(self._document, dict) else None
        return frozenset(properties) if isinstance(properties, dict) else frozenset()

    def tags(self) -> Mapping[TaggedEntity, frozenset[str]]:
        """Tags of objects (`SR_RECORD`) and their properties (`SR_FIELD`)."""
        reader = self._own_reader()
        return tags_of(reader, reader.library.document.root)

    def with_tags(
        self,
        added: Mapping[TaggedEntity, frozenset[str]],
        removed: Mapping[TaggedEntity, frozenset[str]],
    ) -> "JsonSchema":
        """The schema with other tags. Raises SchemaFault if an entity is not in the schema."""
        document = decode(self.canonical_text)
        library = Library(document, self._draft, self.references)
        put_tags(Reader(library), library.document.root, added, removed)
        return JsonSchema(document, self._draft, self.references, library)

    def _own_reader(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(Library(self._document, self._draft, self.references))
        return self._reader


class JsonSchemaFormat:
    """JSON Schema."""

    schema_type: ClassVar[str] = "JSON"

    def parse(
        self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = False
    ) -> JsonSchema:
        """Parse a text. Only a new one must be right in all its keywords. Raises SchemaFault."""
        document = decode(text, allow_duplicates=not is_new)
        if not isinstance(document, dict | bool):
            raise SchemaFault("# must be a schema: an object or a boolean")
        draft = draft_of(document)
        library = Library(document, draft, references)
        if is_new:
            if isinstance(document, dict):
                check(document, draft)
                _check_names(document)
            library.check()
        return JsonSchema(document, draft, tuple(references), library)


def _check_names(document: dict[str, Any]) -> None:
    for name in document.get("properties", ()):
        if name.startswith("$$"):
            raise SchemaFault(f"#/properties/{name} begins with $$, which names may not")
