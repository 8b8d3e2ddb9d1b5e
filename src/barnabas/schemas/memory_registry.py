"""A schema registry in memory, with the methods of the client, for tests and test kits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import StoredSchema


class MemoryRegistry:
    """Ids count from 1 and belong to a text; subjects list the ids of their versions."""

    def __init__(self, avro: Mapping[str, str] | None = None) -> None:
        """`avro`: texts of Avro schemas to register, by subject."""
        self.schemas: dict[int, StoredSchema] = {}
        self.subjects: dict[str, list[int]] = {}
        for subject, text in (avro or {}).items():
            self.register(subject, "AVRO", text)

    def add(
        self,
        subject: str,
        schema_type: str,
        text: str,
        references: tuple[tuple[str, str], ...] = (),
        given_id: int | None = None,
    ) -> int:
        """The id of the schema, now also the subject's latest.

        `given_id`: an id to have it under; else it has the one that it has, or the next.
        """
        schema_id = given_id
        if schema_id is None:
            wanted = (schema_type, text, references)
            known = (s.id for s in self.schemas.values() if tuple(s[1:]) == wanted)
            schema_id = next(known, max(self.schemas, default=0) + 1)
        self.schemas[schema_id] = StoredSchema(schema_id, schema_type, text, references)
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """The id of the schema under the subject, registered if it is not."""
        return self.add(subject, schema_type, text)

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of that id. Raises RegistryError for an unknown one."""
        if schema_id not in self.schemas:
            raise RegistryError(f"Schema {schema_id} not found; error code: 40403")
        return self.schemas[schema_id]

    def latest(self, subject: str) -> StoredSchema | None:
        """The subject's latest version; None where there is no such subject."""
        versions = self.subjects.get(subject)
        return self.by_id(versions[-1]) if versions else None

    def versions(self, subject: str) -> list[dict[str, Any]]:
        """A subject's versions, ascending."""
        return [
            {"subject": subject, "version": number, "id": schema_id}
            for number, schema_id in enumerate(self.subjects.get(subject, []), 1)
        ]

    def version_ids(self, subject: str) -> list[int]:
        """The ids of a subject's versions, ascending."""
        return list(self.subjects.get(subject, []))

    def resolved_avro(self, schema_id: int) -> str | None:
        """The text of an Avro schema; None for an unknown id."""
        schema = self.schemas.get(schema_id)
        return schema.text if schema is not None and schema.type == "AVRO" else None

    def resolved_avro_of(self, subject: str) -> dict[int, str]:
        """The Avro schemas of a subject's versions, by id."""
        texts = {one: self.resolved_avro(one) for one in self.subjects.get(subject, [])}
        return {schema_id: text for schema_id, text in texts.items() if text is not None}
