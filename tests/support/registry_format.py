"""A small format of schemas, for tests of what the registry does around formats.

A schema is a JSON object: `fields` (names; one with a `!` has no default), `uses` (names of
references), `tags` (by path), `name`. `{"flaw": true}` is refused when it is new only. A reader
cannot do without its own fields that have no default and that the writer does not have, if the
policy is not lenient.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from barnabas.registry.core.decision import Defaults, View
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import SchemaValue
from barnabas.registry.store.state import RegistryState
from barnabas.schemas.schema import (
    Incompatibility,
    ParsedSchema,
    ResolvedReference,
    SchemaFault,
    TaggedEntity,
)


def text(*fields: str, **more: Any) -> str:
    """The text of a schema, as the registry keeps it."""
    return json.dumps({"fields": list(fields), **more}, separators=(",", ":"))


@dataclass(frozen=True)
class PlainSchema:
    """A schema of the small format."""

    schema_type: ClassVar[str] = "PLAIN"
    body: dict[str, Any]
    resolved: tuple[ResolvedReference, ...]

    @property
    def name(self) -> str | None:
        return self.body.get("name")

    @property
    def canonical_text(self) -> str:
        return json.dumps(self.body, separators=(",", ":"))

    def formatted(self, form: str) -> str:
        if form == "resolved":
            texts = {reference.name: reference.text for reference in self.resolved}
            uses = [texts.get(name, name) for name in self.body.get("uses", [])]
            return json.dumps({**self.body, "uses": uses})
        if form:
            raise ValueError(form)
        return self.canonical_text

    def normalized(self) -> ParsedSchema:
        body = {key: self.body[key] for key in sorted(self.body)}
        return PlainSchema(body | {"fields": sorted(body.get("fields", []))}, self.resolved)

    def incompatibilities(
        self, written: ParsedSchema, *, lenient: bool = False
    ) -> list[Incompatibility]:
        assert isinstance(written, PlainSchema)
        if lenient:
            return []
        theirs = {field.rstrip("!") for field in written.body.get("fields", [])}
        return [
            Incompatibility("FIELD_MISSING", f"/{field}", f"the reader schema needs {field}", "x")
            for field in self.body.get("fields", [])
            if field.endswith("!") and field.rstrip("!") not in theirs
        ]

    def tags(self) -> Mapping[TaggedEntity, frozenset[str]]:
        return {
            TaggedEntity("SR_FIELD", path): frozenset(names)
            for path, names in self.body.get("tags", {}).items()
        }

    def with_tags(
        self,
        added: Mapping[TaggedEntity, frozenset[str]],
        removed: Mapping[TaggedEntity, frozenset[str]],
    ) -> ParsedSchema:
        tags = {entity: set(names) for entity, names in self.tags().items()}
        for entity, names in added.items():
            if entity.name not in self.body.get("fields", []):
                raise SchemaFault(f"{entity.name} is not in the schema")
            tags.setdefault(entity, set()).update(names)
        for entity, names in removed.items():
            tags.setdefault(entity, set()).difference_update(names)
        written = {entity.name: sorted(names) for entity, names in tags.items() if names}
        body = {key: value for key, value in self.body.items() if key != "tags"}
        return PlainSchema(body | ({"tags": written} if written else {}), self.resolved)

    def top_level_fields(self) -> frozenset[str]:
        return frozenset(field.rstrip("!") for field in self.body.get("fields", []))


class PlainFormats:
    """The small format, under the names of the real ones."""

    def __init__(self) -> None:
        self.parsed = 0
        """The number of parsed texts."""

    def types(self) -> Sequence[str]:
        return ("AVRO", "JSON", "PROTOBUF")

    def parse(
        self,
        schema_type: str,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        is_new: bool = False,
    ) -> ParsedSchema:
        self.parsed += 1
        try:
            body = json.loads(text)
        except ValueError as fault:
            raise SchemaFault(str(fault)) from fault
        if not isinstance(body, dict):
            raise SchemaFault("not an object")
        if is_new and body.get("flaw"):
            raise SchemaFault("a flaw")
        names = {reference.name for reference in references}
        for name in body.get("uses", []):
            if name not in names:
                raise SchemaFault(f"{name} is not known")
        return PlainSchema(body, tuple(references))

    def apart(self) -> "PlainFormats":
        return self


class Registry:
    """A registry in memory: decisions are replayed at once."""

    def __init__(self, defaults: Defaults | None = None) -> None:
        self.state = RegistryState()
        self.formats = PlainFormats()
        self.defaults = defaults or Defaults()
        self.log: list[Any] = []
        """All records, in order."""

    @property
    def view(self) -> View:
        return View(self.state, self.formats, self.defaults)

    def do(self, decide: Any, *arguments: Any, **options: Any) -> Any:
        """Decide, replay what was decided, and give the answer."""
        decision = decide(self.view, *arguments, **options)
        for record in decision.records:
            self.log.append(record)
            assert self.state.replay(record.key, record.value, len(self.log) - 1) is None
        return decision.response


def put(registry: Registry, subject: str, schema: str, **more: Any) -> SchemaValue:
    """Register a text under a subject."""
    options = {name: more.pop(name) for name in ("normalize", "force") if name in more}
    result = registry.do(register, subject, SchemaRequest(schema, **more), **options)
    assert isinstance(result, SchemaValue)
    return result


def refused(registry: Registry, code: int, decide: Any, *arguments: Any, **options: Any) -> str:
    """Return what is said when a decision is refused with a code; nothing has changed then."""
    before = registry.state.copy()
    with pytest.raises(RegistryError) as caught:
        registry.do(decide, *arguments, **options)
    assert caught.value.code == code
    assert registry.state == before
    return caught.value.message


def refused_read(registry: Registry, code: int, read: Any, *arguments: Any, **options: Any) -> str:
    """Return what is said when a read is refused with a code."""
    with pytest.raises(RegistryError) as caught:
        read(registry.view, *arguments, **options)
    assert caught.value.code == code
    return caught.value.message
