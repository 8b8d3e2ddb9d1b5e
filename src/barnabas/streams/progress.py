"""The progress of a running pipeline, for programs that ask for it and for its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class QueryProgress:
    """The progress of one query. Times are milliseconds; `batches` counts from its first start.

    `rows`, `rows_per_second`, `dropped_late` and `batch_ms` are those of the last micro-batch.
    `lag`: how many records it was behind its topics when the last micro-batch was planned.
    `watermark`: ISO text, or None before the first record.
    """

    topic: str
    state: str
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int = 0
    watermark: str | None = None
    state_rows: int = 0
    state_bytes: int = 0
    dropped_late: int = 0
    batch_ms: int = 0
    restarts: int = 0
    error: str | None = None


@dataclass(frozen=True)
class QueryFigures:
    """A query's progress, and what Spark says of its last micro-batch."""

    progress: QueryProgress
    told: dict[str, Any] = field(default_factory=dict)
    """Spark's progress; empty before the first micro-batch."""


@dataclass(frozen=True)
class Progress:
    """The progress of a pipeline: its queries, by the topic that they write."""

    name: str
    is_running: bool
    queries: Mapping[str, QueryProgress] = field(default_factory=dict)
