"""The JSON format: parses texts to schemas, with the operations that the registry needs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.schemas.json_schema.dialect import Draft, draft_of
from barnabas.schemas.json_schema.diff.compare import compare
from barnabas.schemas.json_schema.keywords import check, pointer
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
from barnabas.schemas.json_schema.references import REFERENCE_KEYWORDS, Document, Library, Place
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


# -- a schema with all that it refers to in one text: the form `resolved`
#
# Each document that a reference leads to is added to the definitions once, and references into it
# become pointers there. So the text grows only by the referenced documents, and cycles stay cycles.
# Metaschemas are not included: every validator knows them.


_NAMES = ("$id", "id", "$schema", "$anchor", "$dynamicAnchor")


def bundle(library: Library) -> Any:
    """The document with the documents it refers to inside. A document without any is itself."""
    own = library.document
    if not isinstance(own.contents, dict):
        return own.contents
    bundler = _Bundler(library)
    whole = bundler.rewritten(own)
    while bundler.waiting:
        document = bundler.waiting.pop()
        definitions = whole.setdefault(bundler.keyword, {})
        definitions[bundler.names[document.name]] = bundler.rewritten(document)
    return whole


class _Bundler:
    def __init__(self, library: Library) -> None:
        self._library = library
        self.keyword = "$defs" if library.document.draft.is_modern else "definitions"
        taken = library.document.contents.get(self.keyword)
        self._taken = set(taken) if isinstance(taken, dict) else set()
        self.names: dict[str, str] = {}
        self.waiting: list[Document] = []

    def rewritten(self, document: Document) -> Any:
        """A copy of the document whose references lead to where their targets will be."""
        changes: dict[int, dict[str, str]] = {}
        for place, keyword, reference in document.references:
            target = self._library.target(place, keyword, reference)
            is_own = document is self._library.document
            if target is None or not self._library.has_text(target.document):
                continue
            if is_own and target.document is document:
                continue
            changes.setdefault(id(place.schema), {})[keyword] = self._pointer(target)
        copied = _copy(document.contents, changes)
        if document is not self._library.document and isinstance(copied, dict):
            for name in _NAMES:
                copied.pop(name, None)
        return copied

    def _pointer(self, target: Place) -> str:
        document = target.document
        if document is self._library.document:
            return pointer(target.path)
        name = self.names.get(document.name)
        if name is None:
            name = document.name
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self.names[document.name] = name
            self.waiting.append(document)
        return pointer((self.keyword, name, *target.path))


def _copy(value: Any, changes: dict[int, dict[str, str]]) -> Any:
    if isinstance(value, dict):
        copied = {name: _copy(item, changes) for name, item in value.items()}
        change = changes.get(id(value), {})
        for keyword, text in change.items():
            if keyword != "$ref" and keyword in REFERENCE_KEYWORDS:
                copied.pop(keyword)
            copied["$ref"] = text
        return copied
    if isinstance(value, list):
        return [_copy(item, changes) for item in value]
    return value


# -- tags in a schema (`confluent:tags`), and the names of the entities that can have tags
#
# An entity's name is its path, as Confluent writes it: `object.address.object.street` is a field
# of the object in the field `address`. Items of an array are `array`, alternatives `oneof.0` (in an
# order of their own, not the text's), definitions `definitions.Name`.


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
