"""The content of a schema in its context: parsed, with what it refers to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from barnabas.registry import errors, subjects
from barnabas.registry.contracts import Metadata, RuleSet, without_version
from barnabas.registry.core.decision import View
from barnabas.registry.core.requests import SchemaRequest, TagChange
from barnabas.registry.store.records import SchemaValue, content_hash
from barnabas.schemas.schema import (
    ParsedSchema,
    Reference,
    ResolvedReference,
    SchemaFault,
    TaggedEntity,
)

REFERENCE_DEPTH_MAX = 200
"""The longest allowed chain of references."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a schema, which makes up its identity wherever it is registered."""

    parsed: ParsedSchema
    text: str
    schema_type: str
    references: tuple[Reference, ...]
    metadata: Metadata | None
    rule_set: RuleSet | None

    def hash(self) -> bytes:
        """The hash that equal content shares."""
        return content_hash(self.text, self.references, self.metadata, self.rule_set)

    def has_content_of(self, value: "SchemaValue | Content") -> bool:
        """Return whether something has this very content."""
        return (
            self.text == value.text
            and self.schema_type == value.schema_type
            and self.references == value.references
            and self.metadata == value.metadata
            and self.rule_set == value.rule_set
        )


def read_content(
    view: View, subject: str, request: SchemaRequest, *, normalize: bool, is_new: bool
) -> Content | None:
    """Parse what a request brings; None if it brings no text.

    `is_new` asks for the checks of new schemas, and for references that are not deleted. Raises
    RegistryError 42201.
    """
    text = request.text
    if text is None or not text.strip():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise errors.invalid_schema(
            f"the schema has half a surrogate pair at character {fault.start}"
        ) from fault
    references, resolved = resolve(view, subject, request.references, live_only=is_new)
    parsed = parse(view, request.schema_type, text, resolved, is_new=is_new)
    if normalize:
        parsed = parsed.normalized()
    return Content(
        parsed,
        parsed.canonical_text,
        request.schema_type,
        references,
        request.metadata,
        request.rule_set,
    )


def parse(
    view: View,
    schema_type: str,
    text: str,
    resolved: Sequence[ResolvedReference],
    *,
    is_new: bool = False,
) -> ParsedSchema:
    """Parse a text with what it refers to. Raises RegistryError 42201."""
    types = view.formats.types()
    if schema_type not in types:
        raise errors.invalid_schema(
            f"schema type {schema_type!r} is not known; there are {', '.join(types)}"
        )
    try:
        return view.formats.parse(schema_type, text, resolved, is_new=is_new)
    except SchemaFault as fault:
        raise errors.invalid_schema(f"not a valid {schema_type} schema: {fault}") from fault
    except RecursionError as fault:
        raise errors.invalid_schema(f"the {schema_type} schema is nested too deeply") from fault


def parsed(view: View, schema: SchemaValue) -> ParsedSchema:
    """A stored schema, parsed with what it refers to. Raises RegistryError 42201."""
    _, resolved = resolve(view, schema.subject, schema.references, live_only=False)
    return parse(view, schema.schema_type, schema.text, resolved)


def resolve(
    view: View, subject: str, references: Sequence[Reference], *, live_only: bool
) -> tuple[tuple[Reference, ...], list[ResolvedReference]]:
    """Find what a schema of a subject refers to.

    Returns its references, each with the number of its version, and all targets, those of others
    first, each name once. Raises RegistryError 42201: a target is missing, or refers to itself.
    """
    if not references:
        return (), []
    resolved: dict[str, ResolvedReference] = {}
    numbered = _resolve(view, subject, references, live_only, resolved, ())
    return numbered, list(resolved.values())


def _resolve(
    view: View,
    subject: str,
    references: Sequence[Reference],
    live_only: bool,
    resolved: dict[str, ResolvedReference],
    path: tuple[tuple[str, int], ...],
) -> tuple[Reference, ...]:
    if len(path) >= REFERENCE_DEPTH_MAX:
        raise errors.invalid_schema(
            f"references go through more than {REFERENCE_DEPTH_MAX} schemas, one to the next"
        )
    numbered: list[Reference] = []
    for reference in references:
        target = _target(view, subject, reference, live_only)
        place = (target.subject, target.version)
        if place in path:
            raise errors.invalid_schema(
                f"version {target.version} of subject {target.subject!r} refers to itself"
            )
        numbered.append(replace(reference, version=target.version))
        if reference.name not in resolved:
            inner = _resolve(
                view, target.subject, target.references, live_only, resolved, (*path, place)
            )
            resolved.setdefault(
                reference.name,
                ResolvedReference(
                    reference.name, reference.subject, target.version, target.text, inner
                ),
            )
    return tuple(numbered)


def _target(view: View, parent: str, reference: Reference, live_only: bool) -> SchemaValue:
    if not reference.name:
        raise errors.invalid_schema("a reference has no name")
    if not reference.subject:
        raise errors.invalid_schema(f"reference {reference.name!r} has no subject")
    subject = subjects.qualified_from(parent, reference.subject)
    if reference.version == -1:
        target = view.state.latest(subject)
    else:
        target = view.state.version(subject, reference.version)
    if target is None or (live_only and target.deleted):
        missing = "versions" if reference.version == -1 else f"version {reference.version}"
        raise errors.invalid_schema(
            f"reference {reference.name!r}: subject {subject!r} does not have {missing}"
        )
    return target


def with_tags(
    schema: ParsedSchema, added: Sequence[TagChange], removed: Sequence[TagChange]
) -> ParsedSchema:
    """A schema with other tags. Raises RegistryError 42201 if an entity is not in it."""
    try:
        return schema.with_tags(_by_entity(added), _by_entity(removed))
    except SchemaFault as fault:
        raise errors.invalid_schema(f"tags: {fault}") from fault


def _by_entity(changes: Sequence[TagChange]) -> dict[TaggedEntity, frozenset[str]]:
    tags: dict[TaggedEntity, frozenset[str]] = {}
    for change in changes:
        tags[change.entity] = tags.get(change.entity, frozenset()) | change.tags
    return tags


def can_stand_for(view: View, content: Content, value: SchemaValue) -> bool:
    """Return whether content names a stored version although their texts differ.

    They may differ in layout, in that one names its version in the metadata, and in that the
    stored one refers to what the other has written out.
    """
    if content.schema_type != value.schema_type or not _same_contract(content, value):
        return False
    if content.references == value.references:
        return content.text == value.text or content.text == parsed(view, value).canonical_text
    if content.references or not value.references:
        return False
    try:
        return content.parsed.formatted("resolved") == parsed(view, value).formatted("resolved")
    except ValueError:
        return False


def _same_contract(content: Content, value: SchemaValue) -> bool:
    ours, theirs = content.metadata, value.metadata
    our_version = None if ours is None else ours.version
    their_version = None if theirs is None else theirs.version
    if (our_version is None) == (their_version is None):
        return ours == theirs and content.rule_set == value.rule_set
    if our_version is not None and our_version != value.version:
        return False
    return without_version(ours) == without_version(theirs) and content.rule_set == value.rule_set
