"""A schema registry in memory, for tests of pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MemorySchemas:
    """Avro schemas by subject; each new text is a new version."""

    def __init__(self, subjects: Mapping[str, str] = {}) -> None:
        self._texts: list[str] = []
        self._subjects: dict[str, list[int]] = {}
        for subject, schema in subjects.items():
            self.register(subject, schema)

    def versions(self, subject: str) -> list[dict[str, Any]]:
        """Return a subject's versions, ascending."""
        ids = self._subjects.get(subject, [])
        return [
            {"subject": subject, "version": number, "id": schema_id}
            for number, schema_id in enumerate(ids, 1)
        ]

    def avro_of(self, schema_id: int) -> str | None:
        """Return a schema by its id."""
        return self._texts[schema_id - 1] if 0 < schema_id <= len(self._texts) else None

    def avro_of_subject(self, subject: str) -> dict[int, str]:
        """Return a subject's schemas by id."""
        return {one: self._texts[one - 1] for one in self._subjects.get(subject, [])}

    def register(self, subject: str, schema: str) -> int:
        """Register a schema, or find it; returns its id."""
        if schema not in self._texts:
            self._texts.append(schema)
        schema_id = self._texts.index(schema) + 1
        ids = self._subjects.setdefault(subject, [])
        if schema_id not in ids:
            ids.append(schema_id)
        return schema_id
