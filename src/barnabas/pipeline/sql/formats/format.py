"""A format: how columns become the bytes of a record's key or value, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.pipeline.sql.runtime.records import Row
from barnabas.pipeline.sql.schema import Column

Serializer = Callable[[Row | None], bytes | None]
Deserializer = Callable[[bytes | None], Row | None]
"""Both raise FormatError for what cannot be written or read."""


class FormatError(Exception):
    """A record's bytes do not fit its columns, or its values do not fit the format."""


class SchemaStore(Protocol):
    """A schema registry, as formats need it: texts by subject and by id. Network errors are
    FormatErrors that say `retriable`."""

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """The id of the schema under the subject, registered if it is not."""
        ...

    def by_id(self, schema_id: int) -> tuple[str, str]:
        """(type, text) of a schema."""
        ...

    def latest(self, subject: str) -> tuple[int, str, str] | None:
        """(id, type, text) of the subject's latest version."""
        ...


class Format(Protocol):
    """One of ksqlDB's formats."""

    name: str
    has_schemas: bool
    """Whether a schema registry holds the schemas, and columns can be inferred from it."""
    wraps_by_default: bool | None
    """Whether a single column is wrapped in a record; None where the format has no choice."""

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        """Raise AnalysisError for columns or properties that the format cannot have."""
        ...

    def serializer(
        self,
        columns: Sequence[Column],
        properties: Mapping[str, str],
        subject: str,
        schemas: SchemaStore | None,
        *,
        wraps: bool,
    ) -> Serializer: ...

    def deserializer(
        self,
        columns: Sequence[Column],
        properties: Mapping[str, str],
        subject: str,
        schemas: SchemaStore | None,
        *,
        wraps: bool,
    ) -> Deserializer: ...
