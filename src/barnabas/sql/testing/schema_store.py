"""A schema registry in memory."""

from barnabas.sql.formats.format import FormatError, StoredSchema


class MemorySchemaStore:
    """Ids count from 1 and belong to a text; subjects list the ids of their versions."""

    def __init__(self) -> None:
        self.schemas: dict[int, StoredSchema] = {}
        self.subjects: dict[str, list[int]] = {}

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
        return self.add(subject, schema_type, text)

    def by_id(self, schema_id: int) -> StoredSchema:
        if schema_id not in self.schemas:
            raise FormatError(f"Schema {schema_id} not found; error code: 40403")
        return self.schemas[schema_id]

    def latest(self, subject: str) -> StoredSchema | None:
        versions = self.subjects.get(subject)
        return self.by_id(versions[-1]) if versions else None
