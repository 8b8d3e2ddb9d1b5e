"""Records of `_schemas`: their keys and values. `encoding` turns them into bytes and back.

One kind of record is our own: a *mark*, whose key is a NOOP with a subject. It says how far ids
and versions of a subject had come when its records were deleted for good, so that neither comes
back after compaction. To Confluent it is a NOOP, whose value it never looks at.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.schemas.schema import Reference

COMPATIBILITY_LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
COMPATIBILITY_POLICIES = ("STRICT", "LENIENT", "LOGICAL")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")

Which = Literal["live", "all", "deleted"]
"""The requested versions: those not soft-deleted, all, or only the soft-deleted."""


class UnreadableRecordError(ValueError):
    """A record is not one that we know. To be logged and passed over, never fatal."""


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """A version of a subject."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Configuration of a subject, of a context (`:.name:`) or of the default context (None)."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ModeKey:
    """Mode of a subject, of a context (`:.name:`) or of the default context (None)."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class NoopKey:
    """Nothing to do: written to learn the end of the topic. With a subject it is a mark."""

    subject: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteSubjectKey:
    """Soft deletion of all versions of a subject up to one."""

    subject: str


@dataclass(frozen=True, slots=True)
class ClearSubjectKey:
    """Removal of all soft-deleted versions of a subject or a context (`:.name:`), or of all."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextKey:
    """A context that schemas have been registered in."""

    context: str
    tenant: str = "default"


@dataclass(frozen=True, slots=True, order=True)
class AssociationKey:
    """An association of a resource's keys or values with a subject. `name` and `namespace` are the
    resource's.
    """

    name: str
    namespace: str
    resource_type: str
    association_type: str
    subject: str
    tenant: str = "default"


Key = (
    SchemaKey
    | ConfigKey
    | ModeKey
    | NoopKey
    | DeleteSubjectKey
    | ClearSubjectKey
    | ContextKey
    | AssociationKey
)


@dataclass(frozen=True, slots=True)
class SchemaValue:
    """A schema as one version of a subject.

    `md5` is Confluent's field, in base64, seldom there: it holds the hash where metadata is
    stored encrypted. `timestamp_ms` is the record's, where it came from the topic.
    """

    subject: str
    version: int
    id: int
    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool = False
    md5: str | None = None
    timestamp_ms: int | None = field(default=None, compare=False)

    def content_hash(self) -> bytes:
        """The hash that schemas of the same content share, in Confluent's way."""
        if self.md5 is not None:
            try:
                return base64.b64decode(self.md5, validate=True)
            except binascii.Error:
                pass
        return content_hash(self.text, self.references, self.metadata, self.rule_set)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """Configuration. None means: not said here."""

    subject: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


@dataclass(frozen=True, slots=True)
class ModeValue:
    """A mode: READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD."""

    subject: str | None
    mode: str


@dataclass(frozen=True, slots=True)
class DeleteSubjectValue:
    """The version up to which a subject is deleted."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubjectValue:
    """The subject or context that is cleared; None is everything."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextValue:
    """A context, again."""

    context: str
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class MarkValue:
    """The highest version of a subject and the highest id in its context that were deleted."""

    subject: str
    version: int
    id: int


@dataclass(frozen=True, slots=True)
class AssociationValue:
    """An association. Times are of its first record and of this one."""

    key: AssociationKey
    guid: str
    resource_id: str
    lifecycle: str
    """STRONG or WEAK."""
    frozen: bool = False
    created_ms: int | None = None
    timestamp_ms: int | None = field(default=None, compare=False)


Value = (
    SchemaValue
    | ConfigValue
    | ModeValue
    | DeleteSubjectValue
    | ClearSubjectValue
    | ContextValue
    | MarkValue
    | AssociationValue
)


@dataclass(frozen=True, slots=True)
class Record:
    """A key with its value; None is a tombstone, or a NOOP's nothing."""

    key: Key
    value: Value | None


def content_hash(
    text: str,
    references: Iterable[Reference] = (),
    metadata: Metadata | None = None,
    rule_set: RuleSet | None = None,
) -> bytes:
    """Confluent's MD5 of what a schema consists of. The type is not part of it."""
    md5 = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        md5.update(reference.name.encode())
        md5.update(reference.subject.encode())
        md5.update(reference.version.to_bytes(4, "big", signed=True))
    for contract in (metadata, rule_set):
        if contract is not None:
            md5.update(b"\x01")
            for part in contract.hashed():
                md5.update(part)
    return md5.digest()
