"""Lists: contexts, subjects, versions, schemas, and who refers to whom."""

from dataclasses import dataclass

from barnabas.registry.core.decision import View
from barnabas.registry.core.lookup import ContextId
from barnabas.registry.store.records import SchemaValue, Which


def page(offset: int, limit: int, default_limit: int, max_limit: int) -> slice:
    """The part of a list that is asked for; a limit below 0 is the default, 0 too."""
    raise NotImplementedError


def list_contexts(view: View, *, prefix: str = "", offset: int = 0, limit: int = -1) -> list[str]:
    """Names of contexts, the default one first."""
    raise NotImplementedError


def list_subjects(
    view: View, *, prefix: str = ":*:", which: Which = "live", offset: int = 0, limit: int = -1
) -> list[str]:
    """Subjects with a prefix, sorted by context and name."""
    raise NotImplementedError


def list_versions(
    view: View, subject: str, *, which: Which = "live", offset: int = 0, limit: int = -1
) -> list[int]:
    """Numbers of a subject's versions. Raises RegistryError 40401."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A schema in a list, with the other names (aliases) that its subject has."""

    schema: SchemaValue
    aliases: tuple[str, ...] = ()


def list_schemas(
    view: View,
    *,
    prefix: str = ":*:",
    aliases: bool = False,
    which: Which = "live",
    latest_only: bool = False,
    rule_type: str | None = None,
    offset: int = 0,
    limit: int = -1,
) -> list[FoundSchema]:
    """Versions of all subjects with a prefix."""
    raise NotImplementedError


def subjects_of_id(
    view: View,
    schema_id: int,
    subject: str | None = None,
    *,
    deleted: bool = False,
    offset: int = 0,
    limit: int = -1,
) -> list[str]:
    """Subjects that have the schema of an id. Raises RegistryError 40403."""
    raise NotImplementedError


def versions_of_id(
    view: View,
    schema_id: int,
    subject: str | None = None,
    *,
    deleted: bool = False,
    offset: int = 0,
    limit: int = -1,
) -> list[tuple[str, int]]:
    """(subject, version) of all that have the schema of an id. Raises RegistryError 40403."""
    raise NotImplementedError


def referenced_by(
    view: View, subject: str, version: str | int, *, offset: int = 0, limit: int = -1
) -> list[ContextId]:
    """Schemas that refer to a version. Raises RegistryError 40401, 40402, 42202."""
    raise NotImplementedError
