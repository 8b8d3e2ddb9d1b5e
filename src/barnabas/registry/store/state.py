"""The registry's state: what the records of `_schemas` add up to.

Entries are immutable; only `replay` changes the tables, so `copy` is a copy of tables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from barnabas.registry import subjects
from barnabas.registry.store.records import (
    AssociationKey,
    AssociationValue,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectValue,
    Key,
    MarkValue,
    ModeKey,
    ModeValue,
    SchemaKey,
    SchemaValue,
    Value,
    Which,
)
from barnabas.registry.store.tables import Tables


class _Context:
    """One context: its subjects, its ids and how far ids have come."""

    __slots__ = ("by_hash", "by_id", "is_named", "max_id", "subjects")

    def __init__(self) -> None:
        self.subjects: Tables[str, int, SchemaValue] = Tables()
        """Versions by subject, qualified; each subject's ascending."""
        self.by_id: Tables[int, tuple[str, int], None] = Tables()
        """(subject, version) of all that carry an id."""
        self.by_hash: dict[bytes, tuple[int, ...]] = {}
        """Ids of a content, the one written last at the end. Two only after an import, or where
        one text is valid in two formats."""
        self.max_id = 0
        self.is_named = False
        """True if a record of the context itself is there."""

    def copy(self) -> "_Context":
        other = _Context()
        other.subjects = self.subjects.copy()
        other.by_id = self.by_id.copy()
        other.by_hash = self.by_hash.copy()
        other.max_id = self.max_id
        other.is_named = self.is_named
        return other

    def content(self) -> tuple[object, ...]:
        return (self.subjects, self.by_id, self.by_hash, self.max_id, self.is_named)


_NO_CONTEXT = _Context()


class RegistryState:
    """Schemas, ids, settings and contexts, by replay of records in the order of the topic."""

    def __init__(self) -> None:
        self.offset = -1
        """The offset of the last record that was replayed, -1 before the first."""
        self._contexts: dict[str, _Context] = {}
        self._referrers: Tables[tuple[str, int], tuple[str, int], None] = Tables()
        """(subject, version) of those that refer to a (subject, version)."""
        self._marks: dict[str, int] = {}
        """The highest version of a subject that was deleted for good, where it was its last."""
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, ModeValue] = {}
        self._associations: Tables[str, AssociationKey, AssociationValue] = Tables()
        """By the name of the resource."""

    def copy(self) -> "RegistryState":
        """Return an independent state with the same content."""
        other = RegistryState()
        other.offset = self.offset
        other._contexts = {name: context.copy() for name, context in self._contexts.items()}
        other._referrers = self._referrers.copy()
        other._marks = self._marks.copy()
        other._configs = self._configs.copy()
        other._modes = self._modes.copy()
        other._associations = self._associations.copy()
        return other

    @property
    def size(self) -> int:
        """The number of ids; the cost of a copy grows with it."""
        return sum(len(context.by_id) for context in self._contexts.values())

    def __eq__(self, other: object) -> bool:
        """Return whether two states hold the same; how far they have read does not matter."""
        return isinstance(other, RegistryState) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment] # it changes

    def _content(self) -> tuple[object, ...]:
        contents = {name: context.content() for name, context in self._contexts.items()}
        empty = _Context().content()
        contexts = {name: content for name, content in contents.items() if content != empty}
        settings = (self._configs, self._modes)
        return (contexts, self._referrers, self._marks, *settings, self._associations)

    # Replay

    def replay(self, key: Key, value: Value | None, offset: int) -> str | None:
        """Apply one record.

        Returns a sentence for the log if the record contradicts what is known (a second text
        under one id) and was passed over, as Confluent does; else None.
        """
        self.offset = offset
        match key, value:
            case SchemaKey(), SchemaValue():
                return self._schema_put(value)
            case SchemaKey(subject, version), None:
                self._schema_removed(subject, version)
            case ConfigKey(subject), ConfigValue():
                self._configs[subject] = value
            case ConfigKey(subject), None:
                self._configs.pop(subject, None)
            case ModeKey(subject), ModeValue():
                self._modes[subject] = value
            case ModeKey(subject), None:
                self._modes.pop(subject, None)
            case ContextKey(context, _), _:
                self._context(context).is_named = value is not None
            case AssociationKey(), AssociationValue():
                self._associations.put(key.name, key, self._dated(value))
            case AssociationKey(), None:
                self._associations.remove(key.name, key)
            case _, DeleteSubjectValue(subject, version):
                self._subject_deleted(subject, version)
            case _, ClearSubjectValue(subject):
                self._cleared(subject)
            case _, MarkValue(subject, version, schema_id):
                self._marks[subject] = max(version, self._marks.get(subject, 0))
                marked = self._context(subjects.context_of(subject))
                marked.max_id = max(schema_id, marked.max_id)
        return None

    def _dated(self, value: AssociationValue) -> AssociationValue:
        """With the time of its first record, which Confluent does not write."""
        if value.created_ms is not None:
            return value
        old = self._associations.get(value.key.name).get(value.key)
        return replace(value, created_ms=value.timestamp_ms if old is None else old.created_ms)

    def _context(self, name: str) -> _Context:
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = _Context()
        return context

    def _schema_put(self, value: SchemaValue) -> str | None:
        subject, version = value.subject, value.version
        context = self._context(subjects.context_of(subject))
        for other_subject, other_version in context.by_id.get(value.id):
            other = context.subjects.get(other_subject)[other_version]
            if other.text != value.text:
                return (
                    f"version {version} of subject {subject!r} has id {value.id}, which is that "
                    f"of another schema, version {other_version} of subject {other_subject!r}"
                )
            break
        old = context.subjects.get(subject).get(version)
        if old is not None:
            self._untie(context, old)
        is_last = version >= self._version_last(subject)
        context.subjects.put(subject, version, value)
        if not is_last:
            context.subjects.sort(subject)
        context.by_id.put(value.id, (subject, version), None)
        content_hash = value.content_hash()
        others = context.by_hash.get(content_hash, ())
        context.by_hash[content_hash] = (*(n for n in others if n != value.id), value.id)
        context.max_id = max(value.id, context.max_id)
        for reference in value.references:
            target = (subjects.qualified_from(subject, reference.subject), reference.version)
            self._referrers.put(target, (subject, version), None)
        return None

    def _schema_removed(self, subject: str, version: int) -> None:
        context = self._context(subjects.context_of(subject))
        old = context.subjects.get(subject).get(version)
        if old is not None:
            self._untie(context, old)
            context.subjects.remove(subject, version)

    def _untie(self, context: _Context, old: SchemaValue) -> None:
        """Take a version out of the tables that lead to it."""
        name = (old.subject, old.version)
        context.by_id.remove(old.id, name)
        if old.id not in context.by_id:
            content_hash = old.content_hash()
            others = tuple(n for n in context.by_hash.get(content_hash, ()) if n != old.id)
            if others:
                context.by_hash[content_hash] = others
            else:
                context.by_hash.pop(content_hash, None)
        for reference in old.references:
            target = (subjects.qualified_from(old.subject, reference.subject), reference.version)
            self._referrers.remove(target, name)

    def _subject_deleted(self, subject: str, up_to_version: int) -> None:
        context = self._context(subjects.context_of(subject))
        for version, value in list(context.subjects.get(subject).items()):
            if version <= up_to_version and not value.deleted:
                context.subjects.put(subject, version, replace(value, deleted=True))

    def _cleared(self, scope: str | None) -> None:
        for subject in self._subjects_in_scope(scope):
            for value in self.versions(subject, "deleted"):
                self._schema_removed(subject, value.version)

    # Schemas

    def version(self, subject: str, version: int) -> SchemaValue | None:
        """One version of a subject, soft-deleted or not."""
        return self._versions(subject).get(version)

    def versions(self, subject: str, which: Which = "live") -> list[SchemaValue]:
        """Versions of a subject, ascending."""
        values = self._versions(subject).values()
        if which == "all":
            return list(values)
        return [value for value in values if value.deleted == (which == "deleted")]

    def latest(self, subject: str) -> SchemaValue | None:
        """The highest version of a subject that is not deleted."""
        for value in reversed(self._versions(subject).values()):
            if not value.deleted:
                return value
        return None

    def _version_last(self, subject: str) -> int:
        for version in reversed(self._versions(subject)):
            return version
        return 0

    def _versions(self, subject: str) -> dict[int, SchemaValue]:
        return self._contexts.get(subjects.context_of(subject), _NO_CONTEXT).subjects.get(subject)

    def subjects(self, prefix: str = "", which: Which = "live") -> list[str]:
        """Subjects with a qualified prefix, sorted; `:*:` stands for all contexts.

        'deleted' gives those that have no live version.
        """
        subjects: list[str] = []
        for start, context in self._contexts_with_prefix(prefix):
            for subject, versions in context.subjects.items():
                if subject.startswith(start) and (
                    which == "all" or _is_live(versions) == (which == "live")
                ):
                    subjects.append(subject)
        subjects.sort()
        return subjects

    def _contexts_with_prefix(self, prefix: str) -> Iterator[tuple[str, _Context]]:
        """Contexts that a prefix reaches, each with how its subjects have to begin."""
        wanted = subjects.parse(prefix)
        for name, context in self._contexts.items():
            if wanted.context == subjects.ANY_CONTEXT:
                yield subjects.context_prefix(name) + wanted.subject, context
            elif prefix.startswith(":.") and ":" not in prefix[1:]:
                yield prefix, context  # the name of the context is not complete
            elif name == wanted.context:
                yield str(wanted), context

    def has_subjects(self, scope: str | None, which: Which = "live") -> bool:
        """Return whether a subject, one of a context (`:.name:`) or any (None) has versions."""
        return any(
            which == "all" or _is_live(self._versions(subject)) == (which == "live")
            for subject in self._subjects_in_scope(scope)
        )

    def subjects_in_scope(self, scope: str | None) -> list[str]:
        """The subject itself, those of a context (`:.name:`) or all (None), deleted ones too."""
        return sorted(self._subjects_in_scope(scope))

    def _subjects_in_scope(self, scope: str | None) -> list[str]:
        if scope is None or scope == subjects.GLOBAL_SETTINGS:
            return [name for context in self._contexts.values() for name in context.subjects]
        wanted = subjects.parse(scope)
        names = self._contexts.get(wanted.context, _NO_CONTEXT).subjects
        if wanted.is_context and wanted.context != subjects.DEFAULT_CONTEXT:
            return list(names)
        return [scope] if scope in names else []

    def by_id(self, context: str, schema_id: int) -> list[SchemaValue]:
        """All versions that have an id in a context, soft-deleted ones too."""
        entries = self._contexts.get(context, _NO_CONTEXT)
        return [
            entries.subjects.get(name)[version] for name, version in entries.by_id.get(schema_id)
        ]

    def any_by_id(self, context: str, schema_id: int) -> SchemaValue | None:
        """One version that has an id in a context, soft-deleted perhaps. Fast."""
        entries = self._contexts.get(context, _NO_CONTEXT)
        for name, version in entries.by_id.get(schema_id):
            return entries.subjects.get(name)[version]
        return None

    def ids_of(self, context: str, content_hash: bytes) -> tuple[int, ...]:
        """The ids that content has in a context; also if all its versions are soft-deleted.

        The one written last stands last.
        """
        return self._contexts.get(context, _NO_CONTEXT).by_hash.get(content_hash, ())

    def referrers(self, subject: str, version: int) -> list[SchemaValue]:
        """The versions that refer to a version, soft-deleted ones too."""
        return [
            self._versions(name)[number] for name, number in self._referrers.get((subject, version))
        ]

    def contexts(self) -> list[str]:
        """All contexts that are named or have subjects, the default one first, sorted."""
        named = (
            name
            for name, context in self._contexts.items()
            if name != subjects.DEFAULT_CONTEXT and (context.is_named or len(context.subjects))
        )
        return [subjects.DEFAULT_CONTEXT, *sorted(named)]

    def is_named(self, context: str) -> bool:
        """Return whether the topic has a record of the context itself."""
        return self._contexts.get(context, _NO_CONTEXT).is_named

    def max_id(self, context: str) -> int:
        """The highest id ever given in a context, 0 if none was."""
        return self._contexts.get(context, _NO_CONTEXT).max_id

    def next_id(self, context: str) -> int:
        """The least id that follows all that were ever given in a context."""
        return self.max_id(context) + 1

    def next_version(self, subject: str) -> int:
        """The version that follows all that the subject ever had."""
        return max(self._version_last(subject), self._marks.get(subject, 0)) + 1

    # Associations

    def associations(self, name: str | None = None) -> list[AssociationValue]:
        """Those of the resources of a name, or all."""
        if name is not None:
            return list(self._associations.get(name).values())
        return [one for _, table in self._associations.items() for one in table.values()]

    def associations_of(self, subject: str) -> list[AssociationValue]:
        """Those with a subject."""
        return [one for one in self.associations() if one.key.subject == subject]

    # Settings

    def config(self, subject: str | None) -> ConfigValue | None:
        """The configuration of exactly this subject or context; None is the default context."""
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> ModeValue | None:
        """The mode of exactly this subject or context; None is the default context."""
        return self._modes.get(subject)

    def configs(self) -> Mapping[str | None, ConfigValue]:
        """All configuration."""
        return self._configs

    def modes(self) -> Mapping[str | None, ModeValue]:
        """All modes."""
        return self._modes


def _is_live(versions: dict[int, SchemaValue]) -> bool:
    """Return whether a version is not deleted; mostly the last one is not."""
    return any(not value.deleted for value in reversed(versions.values()))
