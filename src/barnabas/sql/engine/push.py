"""Push queries: results go to the client as they come, until it leaves or has enough."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.engine.cluster import Cluster, Follower, Start
from barnabas.sql.engine.local_runner import start_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import QueryPlan, ResultKind
from barnabas.sql.processing_log import NoteEntry, entry_of, includes_rows, log_entry
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import PlanDriver, TopicsDriver
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import WINDOW_BOUNDS, WINDOWEND, WINDOWSTART, Schema


class PushRow(NamedTuple):
    """One result. `is_tombstone`: the row of a table was deleted; only its key is known."""

    values: Sequence[Any]
    is_tombstone: bool = False


@dataclass(frozen=True)
class End:
    """The end of a query's results: why, or the error that ended it."""

    message: str
    error: Exception | None = None


LIMIT_REACHED = "Limit Reached"
COMPLETED = "Query Completed"

Send = Callable[[PushRow | End], None]
"""Gets results in any thread, without blocking; an End is the last."""


class PushQuery:
    """A query without a sink, over the topics of a cluster."""

    def __init__(
        self,
        plan: QueryPlan,
        text: str,
        limit: int | None,
        properties: Mapping[str, Any],
    ) -> None:
        self.plan = plan
        self.query_id = plan.query_id
        self.text = text
        self.limit = limit
        self.schema = Schema(tuple(plan.step.schema.value))
        self._properties = properties
        self._key_places = [
            _key_place(plan.step.schema, column.name) for column in self.schema.columns
        ]
        self._lock = threading.Lock()
        self._is_ended = False
        self._count = 0
        self._send: Send | None = None
        self._note: NoteEntry = log_entry
        self._shows_rows = includes_rows(properties)
        self._follower: Follower | None = None
        self._input: TopicsDriver | None = None
        self.on_end: Callable[[], None] = lambda: None

    def start(
        self,
        send: Send,
        cluster: Cluster,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None,
        start: Start | None = None,
        note: NoteEntry = log_entry,
    ) -> None:
        """Send results from now on, or from the topics' beginning."""
        self._send = send
        self._note = note
        compiler = PlanCompiler(functions, self._properties, self._log)
        driver = PlanDriver(self.plan, compiler, log=self._log)
        self._input = TopicsDriver(driver, schemas, self._log)
        if self.limit == 0:
            self._end(End(LIMIT_REACHED))
            return
        follower = cluster.follow(
            self._input.topics,
            self._take,
            start or start_of(self._properties),
            on_error=lambda error: self._end(End("", error)),
        )
        with self._lock:
            self._follower = follower
            is_ended = self._is_ended
        if is_ended:
            follower.close()

    def run_to_end(self, timeout_s: float) -> None:
        """End once all that is in the topics now is read: a pull query of a stream."""
        follower = self._follower
        if follower is not None and not follower.wait_until_caught_up(timeout_s):
            self._end(End("", TimeoutError("the topics could not be read in time")))
        self._end(End(COMPLETED))

    def _log(self, message: str, row: Row | None, cause: BaseException | None) -> None:
        self._note(self.query_id, entry_of(message, row, cause, rows=self._shows_rows))

    def _take(self, topic: str, record: TopicRecord, is_done: bool) -> None:
        assert self._input is not None
        for result in self._input.pipe(topic, record):
            if self._is_ended:
                return
            if result.value is None and self.plan.kind is ResultKind.STREAM:
                continue
            self._count += 1
            assert self._send is not None
            self._send(self._row(result))
            if self.limit is not None and self._count >= self.limit:
                self._end(End(LIMIT_REACHED))

    def _row(self, result: Record) -> PushRow:
        if result.value is not None:
            return PushRow(list(result.value))
        key: Row = result.key or ()
        values: list[Any] = []
        for column, place in zip(self.schema.columns, self._key_places, strict=True):
            if column.name in WINDOW_BOUNDS and result.window is not None:
                bounds = {WINDOWSTART: result.window.start_ms, WINDOWEND: result.window.end_ms}
                values.append(bounds[column.name])
            else:
                values.append(None if place is None or place >= len(key) else key[place])
        return PushRow(values, is_tombstone=True)

    def stop(self, message: str = COMPLETED) -> None:
        """End it: who gets its results hears so."""
        self._end(End(message))

    def _end(self, end: End) -> None:
        with self._lock:
            if self._is_ended:
                return
            self._is_ended = True
            follower = self._follower
        if self._send is not None:
            self._send(end)
        if follower is not None:
            follower.close()
        self.on_end()

    @property
    def is_started(self) -> bool:
        """True if records that are written from now on are seen."""
        return self._follower is not None


def _key_place(schema: Schema, name: str) -> int | None:
    """Which part of the key a column of the value shows; the key's own name may differ from it."""
    names = [column.name for column in schema.key]
    place = next((n for n in (name, f"KSQL_KEY_{name}") if n in names), None)
    return None if place is None else names.index(place)
