"""Targets of each `$ref` of a document, within the document or in one that it refers to by name.

Nothing is ever fetched. What a `$ref` can reach is the document itself (by JSON pointer, `$id` and
anchor), the documents of the registry's references (by their names) and the metaschemas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin

from barnabas.schemas.json_schema.dialect import Draft, draft_of, metaschema, subschemas
from barnabas.schemas.json_schema.keywords import pointer
from barnabas.schemas.json_schema.text import decode
from barnabas.schemas.schema import ResolvedReference, SchemaFault

REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(slots=True, eq=False)
class Place:
    """A schema in a document: what it is, where it is, and what references in it start from."""

    document: "Document"
    schema: Any
    path: tuple[str, ...]
    base: str
    """URL that relative references start from."""
    root: tuple[str, ...]
    """Path of the innermost schema around it that has an `$id`; pointers start there."""

    def inner(self, path: tuple[str, ...], schema: Any) -> "Place":
        """The place of a schema inside this one."""
        whole = (*self.path, *path)
        own_id = self.document.id_of(schema)
        if own_id is None:
            return Place(self.document, schema, whole, self.base, self.root)
        return Place(self.document, schema, whole, _join(self.base, own_id), whole)


@dataclass(slots=True, eq=False)
class Document:
    """A document, with the names that its schemas have. `name` is '' for the schema itself."""

    name: str
    contents: Any
    draft: Draft
    places: dict[str, Place] = field(default_factory=dict)
    """By URL: schemas with an `$id`, and with an anchor."""
    references: list[tuple[Place, str, str]] = field(default_factory=list)
    """Of each schema that refers to another: its place, the keyword and what it says."""
    root: Place = field(init=False)

    def __post_init__(self) -> None:
        base = self.name
        if isinstance(self.contents, dict):
            own_id = self.contents.get(self.draft.id_keyword)
            if isinstance(own_id, str) and not own_id.startswith("#"):
                base = _join(self.name, own_id)
        self.root = Place(self, self.contents, (), base, ())
        self.places[base.removesuffix("#")] = self.root
        self._index(self.root)

    def id_of(self, schema: Any) -> str | None:
        """The schema's own URL, as it is written; none if it is only an anchor."""
        if not isinstance(schema, dict):
            return None
        own_id = schema.get(self.draft.id_keyword)
        if not isinstance(own_id, str) or own_id.startswith("#") or not own_id:
            return None
        if "$ref" in schema and not self.draft.is_modern:
            return None  # drafts to 7 ignore what stands beside a `$ref`
        return own_id

    def at(self, start: Place, steps: Sequence[str]) -> Place | None:
        """The place that a JSON pointer leads to from another one."""
        place = start
        if not start.path and len(steps) > 1 and steps[0] == "$defs":
            steps = (self._defined_by(steps[1]), *steps[1:])
        for step in steps:
            value: Any = place.schema
            if isinstance(value, dict):
                if step not in value:
                    return None
                value = value[step]
            elif isinstance(value, list) and step.isascii() and step.isdigit():
                if int(step[:9]) >= len(value):
                    return None
                value = value[int(step[:9])]
            else:
                return None
            place = place.inner((step,), value)
        return place

    def _defined_by(self, name: str) -> str:
        """The pointer of a definition: `#/$defs/x` finds `#/definitions/x` too, as in Confluent's
        registry.
        """
        if isinstance(self.contents, dict):
            for keyword in ("$defs", "definitions"):
                defined = self.contents.get(keyword)
                if isinstance(defined, dict) and name in defined:
                    return keyword
        return "$defs"

    def _index(self, place: Place) -> None:
        schema = place.schema
        if not isinstance(schema, dict):
            return
        for keyword in REFERENCE_KEYWORDS:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                self.references.append((place, keyword, reference))
        if place.root == place.path:
            self.places.setdefault(place.base.removesuffix("#"), place)
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self.places.setdefault(f"{place.base.partition('#')[0]}#{anchor}", place)
        own_id = schema.get(self.draft.id_keyword)
        if isinstance(own_id, str) and own_id.startswith("#") and len(own_id) > 1:
            self.places.setdefault(place.base.partition("#")[0] + own_id, place)
        for path, inner in subschemas(schema):
            if isinstance(inner, dict):
                self._index(place.inner(path, inner))


class Library:
    """The schema's own document and all that it can refer to."""

    def __init__(self, contents: Any, draft: Draft, references: Sequence[ResolvedReference]):
        self.document = Document("", contents, draft)
        self._texts: Mapping[str, str] = {item.name: item.text for item in references}
        self._documents: dict[str, Document | None] = {}
        self._faults: dict[str, SchemaFault] = {}

    def has_text(self, document: Document) -> bool:
        """Return whether the document is the schema or a reference of it, and no metaschema."""
        return document is self.document or document.name in self._texts

    def check(self) -> None:
        """Raise SchemaFault for the first reference that leads nowhere."""
        for place, keyword, reference in self.document.references:
            if self.target(place, keyword, reference) is None:
                where = pointer((*place.path, keyword))
                if self._faults:
                    name, fault = next(iter(self._faults.items()))
                    raise SchemaFault(f"{where}: the reference {name[:200]!r} is at fault: {fault}")
                raise SchemaFault(
                    f"{where} leads nowhere: {reference[:200]!r} is"
                    " neither in this schema nor the name of one of its references"
                )

    def target(self, place: Place, keyword: str, reference: str) -> Place | None:
        """The target of a reference, or None."""
        if keyword == "$recursiveRef":
            return place.document.root
        if keyword == "$dynamicRef":
            outermost = self._dynamic(reference)
            if outermost is not None:
                return outermost
        url, _, fragment = reference.partition("#")
        if not url:
            return self._in_document(place, fragment)
        try:
            whole = urljoin(place.base, url)
        except ValueError:
            return None
        for document in (place.document, self.document):
            start = document.places.get(whole)
            if start is not None:
                return self._from(start, whole, fragment)
        other = self._document(url, whole)
        return None if other is None else self._from(other.root, other.root.base, fragment)

    def document_named(self, name: str) -> Document | None:
        """The document of the reference with this name, or the metaschema with this URL."""
        if name not in self._documents:
            text = self._texts.get(name)
            try:
                contents = metaschema(name) if text is None else decode(text, allow_duplicates=True)
            except SchemaFault as fault:
                self._faults[name], contents = fault, None
            self._documents[name] = (
                None
                if contents is None
                else Document(name, contents, draft_of(contents, self.document.draft))
            )
        return self._documents[name]

    def _dynamic(self, reference: str) -> Place | None:
        anchor = reference.partition("#")[2]
        root = self.document.root
        place = self.document.places.get(f"{root.base.partition('#')[0]}#{anchor}")
        if place is not None and place.schema.get("$dynamicAnchor") == anchor:
            return place
        return None

    def _in_document(self, place: Place, fragment: str) -> Place | None:
        document = place.document
        start = document.root
        if place.root:
            start = document.places.get(place.base.removesuffix("#"), start)
        target = self._from(start, place.base, fragment)
        return target or self._from(document.root, document.root.base, fragment)

    @staticmethod
    def _from(start: Place, base: str, fragment: str) -> Place | None:
        if not fragment:
            return start
        if not fragment.startswith("/"):
            return start.document.places.get(f"{base.partition('#')[0]}#{unquote(fragment)}")
        steps = unquote(fragment).split("/")[1:]
        return start.document.at(
            start, [step.replace("~1", "/").replace("~0", "~") for step in steps]
        )

    def _document(self, url: str, whole: str) -> Document | None:
        for name in (url, url.removeprefix("./"), whole, "./" + url):
            document = self.document_named(name)
            if document is not None:
                return document
        for name in self._texts:
            if _join(self.document.root.base, name) == whole:
                return self.document_named(name)
        return None


def _join(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return url
