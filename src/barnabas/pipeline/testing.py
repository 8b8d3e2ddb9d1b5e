"""The test kit: SQL over streams in memory, in virtual time, in milliseconds.

`SqlTest` is described in docs/sql/testing.md.
"""

from barnabas.pipeline.sql.testing.kit import OutputRecord, SqlTest

__all__ = ["OutputRecord", "SqlTest"]
