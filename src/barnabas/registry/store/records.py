"""Records of `_schemas`: keys and values <-> bytes, in Confluent's JSON and order of fields.

Fields that Confluent leaves out when empty are left out; unknown fields are skipped, as it does.
One kind of record is our own: a *mark*, whose key is a NOOP with a subject. It says how far ids
and versions of a subject had come when its records were deleted, so that neither comes back
after compaction. To Confluent it is a NOOP, which it never looks into.
"""

from dataclasses import dataclass
from typing import Literal

from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.registry.schema import Reference


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
    """Removal of all soft-deleted versions of a subject, or of a context (`:.name:`)."""

    subject: str


@dataclass(frozen=True, slots=True)
class ContextKey:
    """A context that schemas have been registered in."""

    context: str
    tenant: str = "default"


Key = SchemaKey | ConfigKey | ModeKey | NoopKey | DeleteSubjectKey | ClearSubjectKey | ContextKey


@dataclass(frozen=True, slots=True)
class SchemaValue:
    """A schema as one version of a subject. `md5` is Confluent's field, in base64, seldom there."""

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
    """The subject or context that is cleared."""

    subject: str


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


Value = (
    SchemaValue
    | ConfigValue
    | ModeValue
    | DeleteSubjectValue
    | ClearSubjectValue
    | ContextValue
    | MarkValue
)


@dataclass(frozen=True, slots=True)
class Record:
    """A key with its value; None is a tombstone, or a NOOP's nothing."""

    key: Key
    value: Value | None


def encode_key(key: Key) -> bytes:
    """The bytes of a key. The same key always has the same bytes, or compaction would fail."""
    raise NotImplementedError


def encode_value(value: Value | None) -> bytes | None:
    """The bytes of a value; None for a tombstone."""
    raise NotImplementedError


def decode_key(data: bytes | None) -> Key:
    """Read a key. Raises UnreadableRecordError; of an unknown type as well."""
    raise NotImplementedError


def decode_value(key: Key, data: bytes | None) -> Value | None:
    """Read the value of a key; None for a tombstone. Raises UnreadableRecordError."""
    raise NotImplementedError


Which = Literal["live", "all", "deleted"]
"""Which versions are asked for: those not soft-deleted, all, or the soft-deleted only."""
