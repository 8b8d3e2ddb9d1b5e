"""The test kits: SQL over streams, and pipelines in Python, in memory and in virtual time.

`SqlTest` is described in docs/sql/testing.md, `PipelineTest` in docs/streams.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.pipeline.sql.testing.kit import OutputRecord, SqlTest
    from barnabas.pipeline.streams.testkit import PipelineTest, Record

__all__ = ["OutputRecord", "PipelineTest", "Record", "SqlTest"]

_HOMES = {
    "OutputRecord": "barnabas.pipeline.sql.testing.kit",
    "SqlTest": "barnabas.pipeline.sql.testing.kit",
    "PipelineTest": "barnabas.pipeline.streams.testkit",
    "Record": "barnabas.pipeline.streams.testkit",
}


def __getattr__(name: str) -> Any:
    """Import a kit when it is asked for: a test of SQL loads nothing of Spark's."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
