"""Lists: contexts, subjects, versions, schemas, and who refers to whom."""

from dataclasses import dataclass

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import View
from barnabas.registry.core.lookup import ContextId, get_by_id, get_version
from barnabas.registry.store.records import SchemaValue, Which


def list_contexts(view: View, *, prefix: str = "", offset: int = 0, limit: int = -1) -> list[str]:
    """Names of contexts, the default one first."""
    contexts = [context for context in view.state.contexts() if context.startswith(prefix)]
    return view.defaults.contexts.page(contexts, offset, limit)


def list_subjects(
    view: View, *, prefix: str = ":*:", which: Which = "live", offset: int = 0, limit: int = -1
) -> list[str]:
    """Subjects with a qualified prefix, sorted; 'deleted' are those without a live version."""
    return view.defaults.subjects.page(view.state.subjects(prefix, which), offset, limit)


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
    return view.defaults.versions.page(numbers, offset, limit)


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
    return view.defaults.schemas.page(schemas, offset, limit)


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
    return view.defaults.subjects.page(names, offset, limit)


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
    places = sorted((value.subject, value.version) for value in values)
    return view.defaults.versions.page(places, offset, limit)


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
    return view.defaults.schemas.page(sorted(referrers), offset, limit)
