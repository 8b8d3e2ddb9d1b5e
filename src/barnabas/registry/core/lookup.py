"""Reads of one schema: by subject and version, by id, by content, by metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.registry.core.decision import View
from barnabas.registry.core.registration import SchemaRequest
from barnabas.registry.schema import ParsedSchema
from barnabas.registry.store.records import SchemaValue


def version_number(version: str | int) -> int:
    """Read a version: 1 and up, or -1 for 'latest' and '-1'. Raises RegistryError 42202."""
    raise NotImplementedError


def guid(schema: SchemaValue) -> str:
    """The name of a schema's content, the same in every registry: a UUID out of its hash."""
    raise NotImplementedError


def schema_json(schema: SchemaValue) -> dict[str, Any]:
    """A version as JSON, with Confluent's fields in its order."""
    raise NotImplementedError


def get_version(
    view: View, subject: str, version: str | int, *, deleted: bool = False
) -> SchemaValue:
    """A version of a subject. Raises RegistryError 40401, 40402, 42202."""
    raise NotImplementedError


def look_up(
    view: View,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    deleted: bool = False,
) -> SchemaValue:
    """The version of a subject that a schema has. Raises RegistryError 40401, 40403, 42201."""
    raise NotImplementedError


def latest_with_metadata(
    view: View, subject: str, properties: Mapping[str, str], *, deleted: bool = False
) -> SchemaValue:
    """The highest version whose metadata has these properties. Raises 40401, 40402."""
    raise NotImplementedError


def get_by_id(view: View, schema_id: int, subject: str | None = None) -> SchemaValue:
    """The schema of an id, soft-deleted too; `subject` names a context or a subject in one.

    Raises RegistryError 40403.
    """
    raise NotImplementedError


def get_by_guid(view: View, text: str) -> SchemaValue:
    """The schema of a guid, in whatever context. Raises RegistryError 40403."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ContextId:
    """An id and the context in which it is valid."""

    context: str
    id: int


def ids_of_guid(view: View, text: str) -> list[ContextId]:
    """The ids of a guid in all contexts. Raises RegistryError 40403."""
    raise NotImplementedError


def parsed(view: View, schema: SchemaValue) -> ParsedSchema:
    """A stored schema, parsed with what it refers to. Raises RegistryError 42201."""
    raise NotImplementedError


def formatted(view: View, schema: SchemaValue, form: str) -> str:
    """The text of a stored schema in a form; as it is stored for ''. Raises RegistryError 422xx."""
    raise NotImplementedError
