"""Queries that run, and what runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from barnabas.spark.supervision import QueryState
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.query_failures import QueryFailure

BATCH_MS = "batch_ms:"
"""Figures whose names begin so are milliseconds of the last micro-batch, by phase."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch that is done; `phases_ms` is its time by Spark's phases."""

    batch_id: int
    began_ms: int
    duration_ms: int
    input_rows: int
    phases_ms: Mapping[str, int]

    @classmethod
    def of_progress(cls, progress: Mapping[str, Any], read: Mapping[int, int]) -> MicroBatch:
        """Of Spark's progress. `read`: records by micro-batch, as Spark counts rows, which may be
        ranges of them."""
        began = datetime.fromisoformat(progress["timestamp"])
        phases: Mapping[str, int] = progress["durationMs"]
        return cls(
            progress["batchId"],
            int(began.timestamp() * 1000),
            phases.get("triggerExecution", sum(phases.values())),
            read.get(progress["batchId"], progress["numInputRows"]),
            phases,
        )


@dataclass(frozen=True)
class PersistentQuery:
    """A query as its statement asks for it: what a runner is given.

    `group` names it in the cluster; `properties` are those of server and statement.
    """

    plan: QueryPlan
    text: str
    group: str
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def query_id(self) -> str:
        return self.plan.query_id


class HostedQuery(Protocol):
    """A query that a runner runs."""

    @property
    def state(self) -> QueryState: ...

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        """The latest failures, oldest first."""
        ...

    @property
    def figures(self) -> Mapping[str, float]:
        """Counts since it started: `rows_in`, `rows_out`, `errors`; `state_bytes` and `state_rows`
        as they are now; others that only some runners have. Never asks the cluster."""
        ...

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """By topic and partition the next offset, and the end of the partition as it was last
        heard of: the cluster is not asked."""
        ...

    def batches(self) -> Sequence[MicroBatch] | None:
        """The last micro-batches, oldest first; None if it does not run in micro-batches."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def restart(self) -> None:
        """Start again from where it was, if it has failed; a new failure is its state."""
        ...

    def stop(self, *, forget: bool = False) -> None:
        """Stop; `forget`: what it has done and its state are deleted too: it is terminated."""
        ...


class QueryRunner(Protocol):
    """Runs persistent queries."""

    def start(self, query: PersistentQuery, *, is_paused: bool = False) -> HostedQuery: ...

    @property
    def progress(self) -> str:
        """The reason why starting queries wait, in a line."""
        ...

    def describe(self, query: PersistentQuery) -> str:
        """Describe how the query runs, for EXPLAIN."""
        ...

    def forget(self, query: PersistentQuery) -> None:
        """Delete what a query has done and its state: it is terminated, and does not run."""
        ...

    def check_replacement(self, old: PersistentQuery, plan: QueryPlan) -> str:
        """Say what happens to the state if a plan replaces a query, for the answer to the user.

        Raises AnalysisError if it cannot: the query goes on as it was.
        """
        ...

    def close(self) -> None:
        """Stop all that runs, to be started again another time."""
        ...
