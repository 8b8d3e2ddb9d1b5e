"""Translates documents to kinds."""

from collections.abc import Mapping

from barnabas.schemas.json_schema.model.classic import read_classic
from barnabas.schemas.json_schema.model.kinds import (
    EmptySchema,
    FalseSchema,
    ReferenceSchema,
    Schema,
    TrueSchema,
)
from barnabas.schemas.json_schema.model.modern import read_modern
from barnabas.schemas.json_schema.references import Library, Place


class Reader:
    """Reads the schemas of one library. A place that several lead to is read once."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._targets: dict[int, Schema] = {}
        self._kept: list[Place] = []

    def root(self) -> Schema:
        """The schema of the document itself."""
        return self._target(self.library.document.root)

    def read(self, place: Place) -> Schema:
        """The schema at a place."""
        if place.schema is True:
            return TrueSchema(True)
        if place.schema is False:
            return FalseSchema(False)
        if not isinstance(place.schema, dict):
            return EmptySchema(place.schema)
        return (read_modern if place.document.draft.is_modern else read_classic)(self, place)

    def inner(self, place: Place, keyword: str, *path: str) -> Schema:
        """The schema under a keyword of the one at a place."""
        value = place.schema[keyword]
        for step in path:
            value = value[int(step)] if isinstance(value, list) else value[step]
        return self.read(place.inner((keyword, *path), value))

    def each(self, place: Place, keyword: str, values: Mapping[str, object]) -> dict[str, Schema]:
        """The schemas in the members of an object."""
        return {
            name: self.inner(place, keyword, name)
            for name, value in values.items()
            if isinstance(value, dict | bool)
        }

    def referred(self, schema: Schema) -> Schema:
        """The schema at the end of a reference; any other schema itself."""
        seen: set[int] = set()
        while isinstance(schema, ReferenceSchema):
            if schema.place is None or id(schema.place.schema) in seen:
                return schema if schema.place is None else EmptySchema(schema.source)
            seen.add(id(schema.place.schema))
            schema = self._target(schema.place)
        return schema

    def reference(self, place: Place, keyword: str, text: str) -> ReferenceSchema:
        """The reference that a keyword of the schema at a place is."""
        target = self.library.target(place, keyword, text)
        return ReferenceSchema(place.schema, text=text, place=target, follow=self.referred)

    def _target(self, place: Place) -> Schema:
        if isinstance(place.schema, bool):
            return self.read(place)
        key = id(place.schema)
        target = self._targets.get(key)
        if target is None:
            self._kept.append(place)  # as long as the key is in use
            target = self._targets[key] = self.read(place)
        return target
