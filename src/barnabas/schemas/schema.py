"""Schemas, as every format gives them to the registry: text in, a parsed schema out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol


class SchemaFault(ValueError):  # noqa: N818 - it is the schema that is at fault
    """A text is not a schema of its format. The message has line and column, path or name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema's reference to another one: its name in the text, its subject and version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference with the text of its target.

    A schema gets all references that it needs in order of dependency: the target of a reference
    comes after the targets of its own references, and each name comes once.
    """

    name: str
    subject: str
    version: int
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why what was written with one schema cannot be read with another.

    `kind` is the word of the format's rules (`READER_FIELD_MISSING_DEFAULT_VALUE`,
    `PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL`, `FIELD_SCALAR_KIND_CHANGED`), `path` the place
    in the new schema, as the format writes paths.
    """

    kind: str
    path: str
    description: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class TaggedEntity:
    """A place in a schema that tags can be put on: `SR_RECORD` or `SR_FIELD`, and its full name."""

    kind: str
    name: str


class ParsedSchema(Protocol):
    """A valid schema. Immutable; equal if and only if canonical text and references are."""

    schema_type: ClassVar[str]

    @property
    def name(self) -> str | None:
        """Full name of the record or message, title of the JSON schema."""

    @property
    def canonical_text(self) -> str:
        """The text that the registry keeps: layout is gone, meaning, order and docs are not."""

    def formatted(self, form: str) -> str:
        """The text in a form of the format: '' canonical, 'resolved', 'serialized' and so on.

        Raises ValueError for a form that the format does not have.
        """

    def normalized(self) -> "ParsedSchema":
        """The same schema in the one order that all schemas of its meaning have."""

    def incompatibilities(
        self, written: "ParsedSchema", *, lenient: bool = False
    ) -> list[Incompatibility]:
        """Why this schema cannot read what was written with `written`. Empty if it can.

        A schema of another format is one incompatibility. `lenient` is the compatibility policy
        LENIENT, which only JSON Schema knows: others ignore it.
        """

    def top_level_fields(self) -> frozenset[str]:
        """Names of the fields at the top, which metadata can reserve; none if it has no fields."""

    def tags(self) -> Mapping[TaggedEntity, frozenset[str]]:
        """Tags in the text (`confluent:tags`), by the entity that carries them."""

    def with_tags(
        self,
        added: Mapping[TaggedEntity, frozenset[str]],
        removed: Mapping[TaggedEntity, frozenset[str]],
    ) -> "ParsedSchema":
        """The schema with other tags in its text.

        Raises SchemaFault if an entity is not in the schema.
        """


class SchemaFormat(Protocol):
    """One format: AVRO, JSON or PROTOBUF."""

    schema_type: ClassVar[str]

    def parse(
        self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = False
    ) -> ParsedSchema:
        """Parse a text with what it refers to.

        `is_new` asks for the checks that only a schema to be registered has to pass; texts that
        are in the topic already are read more mildly. Raises SchemaFault.
        """
