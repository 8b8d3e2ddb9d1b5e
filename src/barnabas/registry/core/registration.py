"""Registration of a schema under a subject."""

from dataclasses import dataclass

from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.schema import Reference, TaggedEntity
from barnabas.registry.store.records import SchemaValue


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to add to, or remove from, one entity of a schema."""

    entity: TaggedEntity
    tags: frozenset[str]


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema as a client sends it. `text` None means: that of the latest version.

    `version` and `id` are given in IMPORT mode; a version as well to register exactly the next
    one. None, 0 and -1 mean: not given.
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


def register(
    view: View, subject: str, request: SchemaRequest, *, normalize: bool = False
) -> Decision[SchemaValue]:
    """Register a schema under a subject, or find that it is there already.

    The answer is the version with its id. Raises RegistryError: 42201 invalid schema or
    reference, 40901 incompatible, 42205 not in this mode, 42207 another id, 42208 subject,
    42210 rules.
    """
    raise NotImplementedError


def modify_tags(
    view: View, subject: str, version: str | int, request: TagRequest
) -> Decision[SchemaValue]:
    """Register a version of a subject anew with other tags, metadata or rules."""
    raise NotImplementedError
