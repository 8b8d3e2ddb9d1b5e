"""A schema registry in memory, for tests of formats: the test kit's."""

from barnabas.sql.testing.schema_store import MemorySchemaStore

__all__ = ["MemorySchemaStore"]
