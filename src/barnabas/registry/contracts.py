"""Data contracts: the metadata and the rules that a schema carries.

They are kept, merged, hashed and returned. Rules are run by clients, never here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION_PROPERTY = "confluent:version"
"""The metadata property that asks for a version, or says which one the schema has."""

RULE_KINDS = ("TRANSFORM", "CONDITION")
MIGRATION_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN")
DOMAIN_MODES = ("WRITE", "READ", "WRITEREAD")
RULE_MODES = MIGRATION_MODES + DOMAIN_MODES
ENVIRONMENTS = ("CLIENT", "GATEWAY")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Tags by path, properties, and the names of properties that are sensitive. All sorted."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any, place: str = "metadata") -> "Metadata":
        """Read decoded JSON. Unknown fields are skipped. Raises ValueError with the place."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields in its order; empty ones are left out."""
        raise NotImplementedError

    def hashed(self) -> Iterator[bytes]:
        """The bytes that stand for it in the hash of a schema."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `kind` is of RULE_KINDS, `mode` of RULE_MODES."""

    name: str | None = None
    doc: str | None = None
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    type: str | None = None
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules for migration between versions, for the domain and for encoding."""

    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_json(cls, value: Any, place: str = "ruleSet") -> "RuleSet":
        """Read decoded JSON. Unknown fields are skipped. Raises ValueError with the place."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields in its order; empty ones are left out."""
        raise NotImplementedError

    def hashed(self) -> Iterator[bytes]:
        """The bytes that stand for it in the hash of a schema."""
        raise NotImplementedError

    def fault(self) -> str | None:
        """What is wrong with the rules, or None: names twice, no type, a mode of another kind."""
        raise NotImplementedError
