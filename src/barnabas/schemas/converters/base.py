"""The interface of the formats of a schema registry: values of a schema to bytes, and back.

Bytes here are the data after the prefix that names the schema (`schemas/wire_format.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.registry_client import StoredSchema

SchemaAndValue = tuple[Schema | None, Any]
Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]


PARTS_MAX: Final = 100_000


class Parts:
    """Counts the parts of a schema while it is read.

    A schema may contain many times what it names once: thirty records, each with two fields of the
    next one, have a thousand million parts.
    """

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Count one. Raises DataError if there are too many."""
        self._count += 1
        if self._count > PARTS_MAX:
            raise DataError(f"The schema has more than {PARTS_MAX} parts")


@dataclass(slots=True)
class Writing:
    """The text to register for one Connect schema, and the function that writes its values."""

    text: str
    record_name: str | None
    write: Write


@dataclass(slots=True)
class Reading:
    """The function that reads bytes of one registered schema, and the Connect schema of its values
    (None: data without one).
    """

    schema: Schema | None
    read: Read
    schema_of: Callable[[bytes], Schema] | None = None
    """Returns the schema of data that may have another than `schema`."""


class SchemaFormat(ABC):
    """One schema type. A subclass is made with its options."""

    schema_type: ClassVar[str]
    title: ClassVar[str]
    takes_any: ClassVar[bool] = False
    """True if it writes data without a schema."""

    @abstractmethod
    def writing(self, schema: Schema | None, target: StoredSchema | None = None) -> Writing:
        """Return how values of a schema are written, as `target` if one is given. Raises DataError.

        The schema is None only where `takes_any`.
        """

    @abstractmethod
    def reading(self, stored: StoredSchema) -> Reading:
        """The value that bytes of a registered schema encode. Raises DataError."""
