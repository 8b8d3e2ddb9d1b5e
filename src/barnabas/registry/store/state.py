"""The registry's state: what the records of `_schemas` add up to.

Entries are immutable; only `replay` changes the tables, so `copy` is a copy of tables.
"""

from collections.abc import Iterable, Iterator, Mapping

from barnabas.registry.store.records import (
    ConfigValue,
    Key,
    ModeValue,
    SchemaKey,
    SchemaValue,
    Value,
    Which,
)


class RegistryState:
    """Schemas, ids, settings and contexts, by replay of records in the order of the topic."""

    offset: int
    """The offset of the last record that was replayed, -1 before the first."""

    def __init__(self) -> None:
        raise NotImplementedError

    def replay(
        self, key: Key, value: Value | None, offset: int, timestamp_ms: int | None = None
    ) -> str | None:
        """Apply one record.

        Returns a sentence for the log if the record contradicts what is known (a second text
        under one id) and was passed over, as Confluent does; else None.
        """
        raise NotImplementedError

    def copy(self) -> "RegistryState":
        """A state of its own with the same content."""
        raise NotImplementedError

    # Schemas

    def version(self, subject: str, version: int) -> SchemaValue | None:
        """One version of a subject, soft-deleted or not."""
        raise NotImplementedError

    def versions(self, subject: str, which: Which = "live") -> list[SchemaValue]:
        """Versions of a subject, ascending."""
        raise NotImplementedError

    def latest(self, subject: str, which: Which = "live") -> SchemaValue | None:
        """The highest version of a subject."""
        raise NotImplementedError

    def subjects(self, prefix: str = "", which: Which = "live") -> list[str]:
        """Subjects with a qualified prefix (`:*:` for all contexts), sorted by context and name.

        'deleted' gives those that have no live version.
        """
        raise NotImplementedError

    def has_subjects(self, prefix: str, which: Which = "live") -> bool:
        """Whether a subject, or any subject of a context (`:.name:`), has versions."""
        raise NotImplementedError

    def by_id(self, context: str, schema_id: int) -> Mapping[str, tuple[int, ...]]:
        """Subjects with the versions that have an id in a context, soft-deleted ones too."""
        raise NotImplementedError

    def id_of(self, context: str, content_hash: bytes) -> int | None:
        """The id that content has in a context; also if all its versions are soft-deleted."""
        raise NotImplementedError

    def referenced_by(self, subject: str, version: int) -> Iterable[tuple[str, int]]:
        """(context, id) of each schema that refers to a version, soft-deleted ones too."""
        raise NotImplementedError

    def schemas(self, prefix: str = "", which: Which = "live") -> Iterator[SchemaValue]:
        """All versions of the subjects with a prefix, in the order of `subjects`."""
        raise NotImplementedError

    def timestamp_ms(self, key: SchemaKey) -> int | None:
        """When a version was written, if known."""
        raise NotImplementedError

    def contexts(self) -> list[str]:
        """All contexts, the default one first, sorted."""
        raise NotImplementedError

    def next_id(self, context: str) -> int:
        """The least id that was never given in a context and follows all that were."""
        raise NotImplementedError

    def max_id(self, context: str) -> int:
        """The highest id ever given in a context, 0 if none was."""
        raise NotImplementedError

    def next_version(self, subject: str) -> int:
        """The version that follows all that the subject ever had."""
        raise NotImplementedError

    # Settings

    def config(self, subject: str | None) -> ConfigValue | None:
        """What is configured for exactly this subject or context; None is the default context."""
        raise NotImplementedError

    def mode(self, subject: str | None) -> ModeValue | None:
        """The mode of exactly this subject or context; None is the default context."""
        raise NotImplementedError

    def configs(self) -> Mapping[str | None, ConfigValue]:
        """All configuration."""
        raise NotImplementedError

    def modes(self) -> Mapping[str | None, ModeValue]:
        """All modes."""
        raise NotImplementedError
