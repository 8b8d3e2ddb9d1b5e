"""A test kit for SQL over streams, in memory and in virtual time: docs/sql/testing.md."""

from barnabas.sql.testing.kit import OutputRecord, SqlTest

__all__ = ["OutputRecord", "SqlTest"]
