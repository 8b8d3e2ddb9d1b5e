"""Modes, which say what changes a subject allows; changes of modes; and marks.

A mark keeps versions and ids of deleted schemas from coming back.
"""

from collections.abc import Sequence

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import (
    MODES,
    ClearSubjectKey,
    ClearSubjectValue,
    MarkValue,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
    SchemaValue,
)


def marks(view: View, gone: Sequence[SchemaValue]) -> list[Record]:
    """The mark that versions of one subject leave when they are deleted for good.

    The topic forgets a deleted record at its next compaction. What it would forget has to be
    written down if it was the subject's highest version or the context's highest id; all else
    follows from the records that stay. One subject has one mark, the latest.
    """
    if not gone:
        return []
    subject = gone[0].subject
    version_last = view.state.next_version(subject) - 1
    id_last = view.state.max_id(subjects.context_of(subject))
    if max(value.version for value in gone) < version_last and all(
        value.id < id_last for value in gone
    ):
        return []
    return [Record(NoopKey(subject), MarkValue(subject, version_last, id_last))]


READ_ONLY = ("READONLY", "READONLY_OVERRIDE")
IMPORTING = ("IMPORT", "FORWARD")


def settings_name(subject: str | None) -> str | None:
    """The name under which settings are kept; None for the default context."""
    return None if subject is None else subjects.normal(subject) or None


def scope(name: str | None) -> list[str | None]:
    """Names under which settings that hold for a name may be kept, the narrowest first."""
    context = subjects.context_of(name or "")
    names = (name, subjects.context_prefix(context) or None, subjects.GLOBAL_SETTINGS)
    return list(dict.fromkeys(names))


def mode_in_scope(view: View, subject: str | None) -> str:
    """The mode that holds for a subject: its own, its context's, the global one.

    READONLY_OVERRIDE of the default context, or of the global one, overrides all others.
    """
    modes = view.state.modes()
    if not modes:
        return view.defaults.mode
    for place in (None, subjects.GLOBAL_SETTINGS):
        mode = modes.get(place)
        if mode is not None and mode.mode == "READONLY_OVERRIDE":
            return mode.mode
    for place in scope(settings_name(subject)):
        mode = modes.get(place)
        if mode is not None:
            return mode.mode
    return view.defaults.mode


def get_mode(view: View, subject: str | None = None, *, default_to_global: bool = False) -> str:
    """Mode of a subject or context, None for the default one. Raises RegistryError 40409."""
    name = settings_name(subject)
    if default_to_global:
        return mode_in_scope(view, name)
    mode = _own_mode(view, name)
    if mode is None:
        raise RegistryError(
            errors.MODE_NOT_FOUND, f"Subject '{name}' does not have subject-level mode configured"
        )
    return mode


def _own_mode(view: View, name: str | None) -> str | None:
    own = view.state.mode(name)
    if own is not None:
        return own.mode
    return view.defaults.mode if name in (None, subjects.GLOBAL_SETTINGS) else None


def check_writable(view: View, subject: str | None) -> None:
    """Raise RegistryError 42205 if a subject is read-only."""
    mode = mode_in_scope(view, subject)
    if mode in READ_ONLY:
        raise errors.not_permitted(f"{_place(subject)} is in mode {mode}")


def _place(subject: str | None) -> str:
    return "the default context" if subject is None else f"subject {subject!r}"


def check_registrable(view: View, subject: str, *, with_id: bool) -> None:
    """Raise RegistryError 42205 if the mode does not admit a registration, with an id or not."""
    mode = mode_in_scope(view, subject)
    if mode in READ_ONLY:
        raise errors.not_permitted(f"subject {subject!r} is in mode {mode}")
    if with_id and mode not in IMPORTING:
        raise errors.not_permitted(
            f"an id can be given in mode IMPORT only, and subject {subject!r} is in mode {mode}"
        )
    if not with_id and mode != "READWRITE":
        raise errors.not_permitted(
            f"subject {subject!r} is in mode {mode}: a schema needs an id to be registered in it"
        )


def set_mode(
    view: View, subject: str | None, mode: str | None, *, force: bool = False
) -> Decision[str | None]:
    """Set a mode, or take it away with None; the answer is the mode.

    IMPORT needs a subject or context without live versions, or `force`; soft-deleted versions
    are then deleted for good. Raises RegistryError 42204, 42205, 42206, 42208.
    """
    if subject is not None and not subjects.is_valid(subject, settings=True):
        raise errors.invalid_subject(subject)
    name = settings_name(subject)
    wanted = None if mode is None else mode.upper()
    if wanted is not None and wanted not in MODES:
        raise RegistryError(
            errors.INVALID_MODE, f"{mode!r} is not a mode: give one of {', '.join(MODES)}"
        )
    if wanted == "FORWARD" and name != subjects.GLOBAL_SETTINGS:
        raise RegistryError(errors.INVALID_MODE, "mode FORWARD is for the global context only")
    _check_mutable(view)
    records: list[Record] = []
    if wanted == "IMPORT" and not force and mode_in_scope(view, name) != "IMPORT":
        records += _clearing(view, name)
    value = None if wanted is None else ModeValue(name, wanted)
    return Decision((*records, Record(ModeKey(name), value)), wanted)


def _check_mutable(view: View) -> None:
    if not view.defaults.mode_mutability:
        raise errors.not_permitted("modes cannot be changed: mode.mutability is false")


def _clearing(view: View, name: str | None) -> list[Record]:
    """Delete for good what is soft-deleted under a name; nothing may be live there."""
    state = view.state
    if state.has_subjects(name):
        raise errors.not_permitted(f"{_place(name)} has schemas; delete them first, or use force")
    versions = [state.versions(subject, "all") for subject in state.subjects_in_scope(name)]
    gone = {(value.subject, value.version) for values in versions for value in values}
    records: list[Record] = []
    for values in versions:
        for value in values:
            for other in state.referrers(value.subject, value.version):
                if (other.subject, other.version) not in gone:
                    raise errors.reference_exists(
                        value.subject, value.version, f"subject {other.subject!r}"
                    )
            records.append(Record(SchemaKey(value.subject, value.version), None))
        records += marks(view, values)
    records.append(Record(ClearSubjectKey(name), ClearSubjectValue(name)))
    return records


def delete_mode(
    view: View, subject: str | None, *, recursive: bool = False
) -> Decision[str | None]:
    """Take a mode away; the answer is what it was. Raises RegistryError 40401, 42205.

    With `recursive`, those of the subjects of a context too; the answer is None if the context
    itself had none.
    """
    name = settings_name(subject)
    old = _own_mode(view, name)
    if old is None and not recursive:
        raise errors.subject_not_found(name or "")
    _check_mutable(view)
    records = [Record(ModeKey(name), None)]
    wanted = subjects.parse(name or "")
    if recursive and wanted.is_context:
        inside = [
            place
            for place in view.state.modes()
            if place and place != name and subjects.context_of(place) == wanted.context
        ]
        records += [Record(ModeKey(place), None) for place in sorted(inside)]
    return Decision(tuple(records), old)
