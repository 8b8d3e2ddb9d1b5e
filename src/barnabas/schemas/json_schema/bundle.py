"""A schema with all that it refers to in one text: the form `resolved`.

Each document that a reference leads to is added to the definitions once, and references into it
become pointers there. So the text grows only by the referenced documents, and cycles stay cycles.
Metaschemas are not included: every validator knows them.
"""

from typing import Any

from barnabas.schemas.json_schema.keywords import pointer
from barnabas.schemas.json_schema.references import (
    REFERENCE_KEYWORDS,
    Document,
    Library,
    Place,
)

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
