"""The view that decisions are based on, and their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.registry.store.records import Record
from barnabas.registry.store.state import RegistryState
from barnabas.schemas.schema import ParsedSchema, ResolvedReference

Response = TypeVar("Response")

INT_MAX = (1 << 31) - 1
"""The highest id, version and limit: Java's."""


class Formats(Protocol):
    """The formats of schemas, with a memory of what was parsed."""

    def types(self) -> Sequence[str]:
        """The types of schemas: AVRO, JSON, PROTOBUF."""

    def parse(
        self,
        schema_type: str,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        is_new: bool = False,
    ) -> ParsedSchema:
        """Parse a text of a type out of `types()`, as SchemaFormat.parse does.

        Raises SchemaFault.
        """

    def apart(self) -> "Formats":
        """The same formats with a memory of their own, for another thread."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for subjects without a configuration, from the server's properties."""

    compatibility_level: str = "BACKWARD"
    mode: str = "READWRITE"
    mode_mutability: bool = True
    validate_fields: bool = False
    validate_new_schemas: bool = True
    allow_empty_subject: bool = True
    schema_search_default_limit: int = 1000
    schema_search_max_limit: int = 1000
    subject_search_default_limit: int = INT_MAX
    subject_search_max_limit: int = INT_MAX
    context_search_default_limit: int = INT_MAX
    context_search_max_limit: int = INT_MAX
    subject_version_search_default_limit: int = INT_MAX
    subject_version_search_max_limit: int = INT_MAX


@dataclass(frozen=True, slots=True)
class View:
    """A state, and what is needed to judge schemas in it. Nothing here changes it."""

    state: RegistryState
    formats: Formats
    defaults: Defaults = Defaults()


@dataclass(frozen=True, slots=True)
class Decision(Generic[Response]):
    """Records to append, in this order, and the answer once they are committed.

    The records take effect when they are replayed. No records: the answer holds at once.
    """

    records: tuple[Record, ...]
    response: Response
