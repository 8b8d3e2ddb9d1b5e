"""A schema registry in memory, for tests of formats."""

from barnabas.pipeline.sql.formats.format import FormatError, StoredSchema


class MemorySchemaStore:
    """Ids count from 1 and belong to a text; subjects list the ids of their versions."""

    def __init__(self) -> None:
        self.schemas: list[StoredSchema] = []
        self.subjects: dict[str, list[int]] = {}

    def add(
        self,
        subject: str,
        schema_type: str,
        text: str,
        references: tuple[tuple[str, str], ...] = (),
    ) -> int:
        """The id of the schema, now also the subject's latest."""
        wanted = (schema_type, text, references)
        schema_id = next((s.id for s in self.schemas if tuple(s[1:]) == wanted), 0)
        if not schema_id:
            schema_id = len(self.schemas) + 1
            self.schemas.append(StoredSchema(schema_id, *wanted))
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def register(self, subject: str, schema_type: str, text: str) -> int:
        return self.add(subject, schema_type, text)

    def by_id(self, schema_id: int) -> StoredSchema:
        if not 0 < schema_id <= len(self.schemas):
            raise FormatError(f"Schema {schema_id} not found; error code: 40403")
        return self.schemas[schema_id - 1]

    def latest(self, subject: str) -> StoredSchema | None:
        versions = self.subjects.get(subject)
        return self.by_id(versions[-1]) if versions else None
