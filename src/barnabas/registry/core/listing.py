"""Lists: contexts, subjects, versions, schemas, and who refers to whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import View
from barnabas.registry.core.lookup import ContextId, get_by_id, get_version
from barnabas.registry.store.records import SchemaValue, Which

Item = TypeVar("Item")


def page(
    items: Sequence[Item], offset: int, limit: int, default_limit: int, max_limit: int
) -> list[Item]:
    """The part of a list that is asked for. A limit that is not from 1 to the maximum is the
    default; an offset below 0 is 0.
    """
    start = max(offset, 0)
    length = limit if 0 < limit <= max_limit else default_limit
    return list(items[start : start + length])


def list_contexts(view: View, *, prefix: str = "", offset: int = 0, limit: int = -1) -> list[str]:
    """Names of contexts, the default one first."""
    contexts = [context for context in view.state.contexts() if context.startswith(prefix)]
    limits = view.defaults
    return page(
        contexts,
        offset,
        limit,
        limits.context_search_default_limit,
        limits.context_search_max_limit,
    )


def list_subjects(
    view: View, *, prefix: str = ":*:", which: Which = "live", offset: int = 0, limit: int = -1
) -> list[str]:
    """Subjects with a qualified prefix, sorted; 'deleted' are those without a live version."""
    limits = view.defaults
    return page(
        view.state.subjects(prefix, which),
        offset,
        limit,
        limits.subject_search_default_limit,
        limits.subject_search_max_limit,
    )


def list_versions(
    view: View,
    subject: str,
    *,
    which: Which = "live",
    deleted_as_negative: bool = False,
    offset: int = 0,
    limit: int = -1,
) -> list[int]:
    """Numbers of a subject's versions, ascending. Raises RegistryError 40401.

    With `deleted_as_negative` all are there, those soft-deleted with a minus.
    """
    name = subjects.normal(subject)
    if not view.state.has_subjects(name, "live" if which == "live" else "all"):
        raise errors.subject_not_found(name)
    values = view.state.versions(name, "all" if deleted_as_negative else which)
    numbers = [
        -value.version if deleted_as_negative and value.deleted else value.version
        for value in values
    ]
    limits = view.defaults
    return page(
        numbers,
        offset,
        limit,
        limits.subject_version_search_default_limit,
        limits.subject_version_search_max_limit,
    )


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A schema in a list, with the other names (aliases) that its subject has."""

    schema: SchemaValue
    aliases: tuple[str, ...] = ()


def list_schemas(
    view: View,
    *,
    prefix: str = "",
    aliases: bool = False,
    which: Which = "live",
    latest_only: bool = False,
    rule_type: str | None = None,
    offset: int = 0,
    limit: int = -1,
) -> list[FoundSchema]:
    """Versions of all subjects with a prefix, by subject and version.

    With `aliases`, the subjects too for which a name with the prefix is an alias.
    """
    known_as = _aliases(view, prefix) if aliases else {}
    names = sorted({*view.state.subjects(prefix, "all"), *known_as})
    schemas: list[FoundSchema] = []
    for name in names:
        values = view.state.versions(name, which)
        for value in values[-1:] if latest_only else values:
            if rule_type and not (value.rule_set and value.rule_set.has_type(rule_type)):
                continue
            schemas.append(FoundSchema(value, tuple(known_as.get(name, ()))))
    return _schema_page(view, schemas, offset, limit)


def _schema_page(view: View, schemas: Sequence[Item], offset: int, limit: int) -> list[Item]:
    limits = view.defaults
    return page(
        schemas, offset, limit, limits.schema_search_default_limit, limits.schema_search_max_limit
    )


def _aliases(view: View, prefix: str) -> dict[str, list[str]]:
    """Names with a prefix that stand for a subject, by that subject."""
    aliases: dict[str, list[str]] = {}
    for name, config in sorted(view.state.configs().items(), key=lambda item: item[0] or ""):
        if name and config.alias and subjects.has_prefix(name, prefix):
            aliases.setdefault(subjects.qualified_from(name, config.alias), []).append(name)
    return aliases


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
    names = sorted({value.subject for value in _values_of_id(view, schema_id, subject, deleted)})
    limits = view.defaults
    return page(
        names,
        offset,
        limit,
        limits.subject_search_default_limit,
        limits.subject_search_max_limit,
    )


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
    values = _values_of_id(view, schema_id, subject, deleted)
    limits = view.defaults
    return page(
        sorted((value.subject, value.version) for value in values),
        offset,
        limit,
        limits.subject_version_search_default_limit,
        limits.subject_version_search_max_limit,
    )


def _values_of_id(
    view: View, schema_id: int, subject: str | None, deleted: bool
) -> list[SchemaValue]:
    context = subjects.context_of(get_by_id(view, schema_id, subject).subject)
    values = view.state.by_id(context, schema_id)
    return [value for value in values if deleted or not value.deleted]


def referenced_by(
    view: View,
    subject: str,
    version: str | int,
    *,
    deleted: bool = False,
    offset: int = 0,
    limit: int = -1,
) -> list[ContextId]:
    """Ids of schemas that refer to a version. Raises RegistryError 40401, 40402, 42202."""
    target = get_version(view, subject, version, deleted=True)
    referrers = {
        ContextId(subjects.context_of(value.subject), value.id)
        for value in view.state.referrers(target.subject, target.version)
        if deleted or not value.deleted
    }
    return _schema_page(view, sorted(referrers), offset, limit)
