"""The test kit: SQL over streams in memory, in virtual time, in milliseconds.

from barnabas.pipeline.testing import OutputRecord, SqlTest
"""

from barnabas.pipeline.sql.testing.kit import OutputRecord, SqlTest

__all__ = ["OutputRecord", "SqlTest"]
