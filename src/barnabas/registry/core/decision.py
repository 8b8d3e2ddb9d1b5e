"""The view that decisions are based on, and their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.registry.store.records import Record
from barnabas.registry.store.state import RegistryState
from barnabas.schemas.schema import ParsedSchema, ResolvedReference

Response = TypeVar("Response")
Item = TypeVar("Item")

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
class Limits:
    """The length of a page of a list: by default, and the highest that may be asked for."""

    default: int = INT_MAX
    max: int = INT_MAX

    def page(self, items: Sequence[Item], offset: int, limit: int) -> list[Item]:
        """The part of a list that is asked for. A limit that is not from 1 to the maximum is the
        default; an offset below 0 is 0.
        """
        start = max(offset, 0)
        length = limit if 0 < limit <= self.max else self.default
        return list(items[start : start + length])


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for subjects without a configuration, from the server's properties."""

    compatibility_level: str = "BACKWARD"
    mode: str = "READWRITE"
    mode_mutability: bool = True
    validate_fields: bool = False
    validate_new_schemas: bool = True
    allow_empty_subject: bool = True
    schemas: Limits = Limits(1000, 1000)
    subjects: Limits = Limits()
    contexts: Limits = Limits()
    versions: Limits = Limits()


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
