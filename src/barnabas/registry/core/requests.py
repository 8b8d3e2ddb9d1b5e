"""Requests that carry a schema."""

from dataclasses import dataclass

from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.schemas.schema import Reference, TaggedEntity


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to add to, or remove from, one entity of a schema."""

    entity: TaggedEntity
    tags: frozenset[str]


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema as a client sends it. `text` None means: that of the latest version.

    `version` and `id` are given in IMPORT mode; a version as well to register exactly the next
    one. None and 0 mean that no version is given, -1 that it is the next one and is to be said
    in the metadata. None and -1 mean that no id is given. A reference to version -1 is to the
    latest one.
    """

    text: str | None
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int | None = None
    id: int | None = None
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()
    propagate_tags: bool = False


@dataclass(frozen=True, slots=True)
class TagRequest:
    """Changes of tags, metadata and rules that make a new version out of another."""

    new_version: int | None = None
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: tuple[str, ...] = ()
    propagate_tags: bool = False
