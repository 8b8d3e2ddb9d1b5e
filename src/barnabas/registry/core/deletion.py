"""Deletion of versions, subjects and contexts: soft first, then for good."""

from dataclasses import replace

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.lookup import own_version, version_number
from barnabas.registry.core.modes import check_writable, marks
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import (
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    ModeKey,
    Record,
    SchemaKey,
    SchemaValue,
)


def delete_version(
    view: View, subject: str, version: str | int, *, permanent: bool = False
) -> Decision[int]:
    """Delete one version (a number, 'latest' or -1); the answer is its number.

    Raises RegistryError: 40401, 40402, 40406 and 40407, 40904, 42202, 42205, 42206.
    """
    name = subjects.normal(subject)
    value = own_version(view, name, version_number(version), deleted=True)
    if value.deleted and not permanent:
        raise errors.version_soft_deleted(name, value.version)
    check_writable(view, name)
    _check_unreferenced(view, value, permanent)
    if not permanent:
        if len(view.state.versions(name)) == 1:
            _check_unassociated(view, name)
        record = Record(SchemaKey(name, value.version), replace(value, deleted=True))
        return Decision((record,), value.version)
    if not value.deleted:
        raise errors.version_not_soft_deleted(name, value.version)
    records = [*marks(view, [value]), Record(SchemaKey(name, value.version), None)]
    if len(view.state.versions(name, "all")) == 1:
        records += _settings_removed(view, name)
    return Decision(tuple(records), value.version)


def delete_subject(view: View, subject: str, *, permanent: bool = False) -> Decision[list[int]]:
    """Delete all versions of a subject; the answer is their numbers.

    Raises RegistryError: 40401, 40404, 40405, 40904, 42205, 42206.
    """
    name = subjects.normal(subject)
    values = view.state.versions(name, "all" if permanent else "live")
    if not view.state.versions(name, "all"):
        raise errors.subject_not_found(name)
    if not values:
        raise errors.subject_soft_deleted(name)
    check_writable(view, name)
    _check_unassociated(view, name)
    for value in values:
        _check_unreferenced(view, value, permanent, but_by=name)
        if permanent and not value.deleted:
            raise errors.subject_not_soft_deleted(name)
    numbers = [value.version for value in values]
    if not permanent:
        # Up to the last of all, for this record takes the place of an earlier one, which may have
        # deleted a higher version: an import brings lower ones later.
        last = view.state.versions(name, "all")[-1].version
        record = Record(DeleteSubjectKey(name), DeleteSubjectValue(name, last))
        return Decision((record,), numbers)
    return Decision(tuple(_removed(view, name, values)), numbers)


def removed_for_good(view: View, subject: str) -> list[Record]:
    """The records that delete all versions of a subject for good. Raises RegistryError 42206."""
    values = view.state.versions(subject, "all")
    for value in values:
        _check_unreferenced(view, value, permanent=True, but_by=subject)
    return _removed(view, subject, values)


def _removed(view: View, subject: str, values: list[SchemaValue]) -> list[Record]:
    return [
        *marks(view, values),
        *(Record(SchemaKey(subject, value.version), None) for value in reversed(values)),
        *_settings_removed(view, subject),
    ]


def _check_unassociated(view: View, subject: str) -> None:
    """Raise RegistryError 40904 if resources are associated with a subject."""
    for key in (one.key for one in view.state.associations_of(subject)):
        raise RegistryError(
            errors.SUBJECT_HAS_ASSOCIATION,
            f"subject {subject!r} is associated with the {key.association_type} of {key.name!r}",
        )


def _check_unreferenced(
    view: View, value: SchemaValue, permanent: bool, but_by: str | None = None
) -> None:
    """Raise RegistryError 42206 if others refer to a version: for good, soft-deleted ones too."""
    for other in view.state.referrers(value.subject, value.version):
        if other.subject != but_by and (permanent or not other.deleted):
            raise errors.reference_exists(
                value.subject,
                value.version,
                f"version {other.version} of subject {other.subject!r}",
            )


def _settings_removed(view: View, subject: str) -> list[Record]:
    records: list[Record] = []
    if view.state.mode(subject) is not None:
        records.append(Record(ModeKey(subject), None))
    if view.state.config(subject) is not None:
        records.append(Record(ConfigKey(subject), None))
    return records


def delete_context(view: View, context: str) -> Decision[None]:
    """Delete a context that has no schemas, soft-deleted ones counted.

    Raises RegistryError 42211 if it has some, 42208 if it is not a name of a context.
    """
    try:
        name = subjects.context_named(context)
    except ValueError as fault:
        raise errors.invalid_subject(context) from fault
    if view.state.subjects(subjects.context_prefix(name), "all"):
        raise RegistryError(errors.CONTEXT_NOT_EMPTY, f"context {name!r} has schemas")
    if not view.state.is_named(name):
        return Decision((), None)
    return Decision((Record(ContextKey(name), None),), None)
