"""The persistent queries of an engine, and what runs them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from barnabas.base import clock
from barnabas.spark.supervision import QueryState, Restarts, Supervisor
from barnabas.sql.analysis.commands import QueryCommand
from barnabas.sql.engine import config
from barnabas.sql.engine.command_log import ControlCommand, LoggedCommand
from barnabas.sql.engine.ownership import ALL_SLOTS, Slots, slot_of
from barnabas.sql.engine.queries import HostedQuery, MicroBatch, PersistentQuery, QueryRunner
from barnabas.sql.query_failures import QueryFailure, failure_of
from barnabas.sql.syntax.tree import Control

_log = logging.getLogger(__name__)
_LOOK_S = 0.25
_RATES_MS = 5_000
_LEFT_MAX = 100
"""Terminated queries that are remembered for who gets their slot: asking for each takes time."""
_LEFT_AT_START_MAX = 10
"""A server that was killed may have deleted nothing of the queries that were terminated last."""

OnFailure = Callable[[str, QueryFailure], None]
"""Gets a query's id and what it failed of, once for each failure."""


SPAN_MS = 30_000
"""Rates are means over this long, and over less at first."""
_SPAN_MIN_MS = 1_000
_LOOKS_MAX = 64
RATED = ("rows_in", "rows_out", "errors")


class Rates:
    """Rates of the counts in `RATED`, in units per second; `changed_ms`: when each grew last."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, dict[str, float]]] = deque(maxlen=_LOOKS_MAX)
        self.changed_ms: dict[str, int] = {}

    def look(self, figures: Mapping[str, float], now_ms: int) -> None:
        """Take in what the counts are now."""
        counts = {name: float(figures.get(name, 0)) for name in RATED}
        last = self._looks[-1][1] if self._looks else dict.fromkeys(RATED, 0.0)
        for name, count in counts.items():
            if count > last[name]:
                self.changed_ms[name] = now_ms
        self._looks.append((now_ms, counts))
        while len(self._looks) > 2 and now_ms - self._looks[1][0] >= SPAN_MS:
            self._looks.popleft()

    def per_second(self, name: str) -> float:
        """The rate of a count."""
        if len(self._looks) < 2:
            return 0.0
        (first_ms, first), (last_ms, last) = self._looks[0], self._looks[-1]
        return max(0.0, last[name] - first[name]) * 1000 / max(last_ms - first_ms, _SPAN_MIN_MS)


@dataclass
class RunningQuery:
    """A persistent query, and what runs it; `failure`: why nothing does.

    `restarts`: how often it was started again after a failure.
    """

    query: PersistentQuery
    overrides: Mapping[str, Any] = field(default_factory=dict)
    is_paused: bool = False
    hosted: HostedQuery | None = None
    failure: QueryFailure | None = None
    slot: int = 0
    """The server with this slot runs it."""
    is_here: bool = True
    """True if this server runs it."""
    restarts: int = 0
    is_ended: bool = False
    told_ms: int = -1
    """When the last failure was that `on_failure` got."""
    rated_ms: int = 0
    restarting: Restarts = field(default_factory=lambda: config.restarts({}))
    rates: Rates = field(default_factory=Rates)
    progress: Callable[[], str] = lambda: ""
    """The condition that its start waits for."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while it is started or stopped."""

    @property
    def state(self) -> QueryState:
        """The state of the query."""
        hosted = self.hosted
        if hosted is not None:
            return hosted.state
        if self.failure is not None:
            return QueryState.ERROR
        return QueryState.PAUSED if self.is_paused else QueryState.RUNNING

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        """The latest failures, oldest first: as many as the setting allows."""
        hosted, failure = self.hosted, self.failure
        failures = () if hosted is None else hosted.failures
        if failure is not None:
            failures = (*failures, failure)
        limit = int(self.query.properties.get(config.ERRORS_MAX, 10))
        return failures[-limit:] if limit > 0 else ()

    @property
    def message(self) -> str:
        """Why it does not run, in a line: what it failed of, or waits for; else empty."""
        failures = self.failures
        if self.state is QueryState.ERROR:
            return failures[-1].message.partition("\n")[0] if failures else ""
        if self.hosted is None and self.is_here and not self.is_paused:
            return self.progress()
        return ""

    @property
    def figures(self) -> Mapping[str, float]:
        """The figures of the query; see HostedQuery."""
        hosted = self.hosted
        return {} if hosted is None else hosted.figures

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return the positions of the query; see HostedQuery."""
        hosted = self.hosted
        return {} if hosted is None else hosted.positions()

    def batches(self) -> Sequence[MicroBatch] | None:
        """Return the last micro-batches; see HostedQuery."""
        hosted = self.hosted
        return None if hosted is None else hosted.batches()


class RunningQueries:
    """`by_id`: the queries; none of them runs before `start`."""

    def __init__(
        self,
        runner: QueryRunner,
        settings: Mapping[str, Any],
        on_failure: OnFailure = lambda query_id, failure: None,
    ) -> None:
        self._on_failure = on_failure
        self._supervisor = Supervisor(
            "supervise queries",
            lambda: self.by_id.values(),
            self.look,
            self.restart,
            look_s=_LOOK_S,
            failed=_log_failed,
        )
        self.by_id: dict[str, RunningQuery] = {}
        self._runner = runner
        self._settings = settings
        self._is_started = False
        self._slots = Slots(ALL_SLOTS)
        self._added = 0
        self._left: deque[RunningQuery] = deque(maxlen=_LEFT_MAX)
        """Terminated while this server did not run, or did not have their slot: returning them also
        clears them."""

    def start(self) -> None:
        """Run all of them, and from now on those that are added.

        The remains of those that were terminated last are deleted.
        """
        self._is_started = True
        left = list(self._left)[-_LEFT_AT_START_MAX:]
        self._left.clear()
        for running in left:
            self._forget(running)
        for running in self.by_id.values():
            self._host(running)

    def supervise(self) -> None:
        """Look at all of them all the time, until `close`."""
        self._supervisor.start()

    def look(self, one: RunningQuery, now_ms: int) -> bool:
        """Report a failure, measure rates; returns whether the query is to be started again."""
        state = one.state
        if state is QueryState.ERROR:
            self._report(one)
        if now_ms - one.rated_ms >= _RATES_MS:
            one.rated_ms = now_ms
            one.rates.look(one.figures, clock.now_ms())
        return one.restarting.is_due(state, now_ms)

    def _report(self, one: RunningQuery) -> None:
        failures, query_id = one.failures, one.query.query_id
        if failures and failures[-1].timestamp_ms > one.told_ms:
            one.told_ms = failures[-1].timestamp_ms
            _log.warning("query %s failed: %s", query_id, failures[-1].message)
            self._on_failure(query_id, failures[-1])

    def add(self, command: QueryCommand, logged: LoggedCommand) -> None:
        """Run a query, which may take the place of another."""
        plan = command.plan
        old = self.by_id.get(command.replaces) if command.replaces is not None else None
        if old is not None:
            self._end(old)
        group = f"_confluent-ksql-{self._settings[config.SERVICE_ID]}query_{plan.query_id}"
        settings = {**self._settings, **logged.properties}
        query = PersistentQuery(plan, logged.statement, group, settings)
        running = RunningQuery(
            query,
            logged.properties,
            old.is_paused if old else False,
            restarting=config.restarts(settings),
            progress=lambda: self._runner.progress,
        )
        running.slot = slot_of(self._added) if old is None else old.slot
        self._added += old is None
        running.rates.look({}, clock.now_ms())
        self.by_id[plan.query_id] = running
        if self._is_started:
            self._host(running)

    def own(self, slots: Iterable[int]) -> None:
        """Run the queries of these slots, and no others: those of lost slots first stop."""
        change = self._slots.change_to(slots)
        queries = list(self.by_id.values())
        for running in queries:
            if running.slot in change.lost:
                self._release(running)
        if self._is_started:
            for running in queries:
                if running.slot in change.won:
                    with running.lock:
                        self._host(running)
            for left in list(self._left):
                if left.slot in change.won:
                    self._left.remove(left)
                    self._forget(left)

    def _release(self, running: RunningQuery) -> None:
        with running.lock:
            hosted, running.hosted, running.failure = running.hosted, None, None
            running.is_here = False
            if hosted is not None:
                with self._guarded(running):
                    hosted.stop()

    def _forget(self, running: RunningQuery) -> None:
        """Delete what a query has left that was terminated while nobody ran it."""
        if not self._is_started or running.slot not in self._slots.owned:
            self._left.append(running)
        elif running.query.query_id not in self.by_id:
            with self._guarded(running):
                self._runner.forget(running.query)

    @contextmanager
    def _guarded(self, running: RunningQuery) -> Iterator[None]:
        """One query that makes trouble does not keep others from being ended."""
        try:
            yield
        except Exception:  # noqa: BLE001  whatever it is, only this query has it
            _log.exception("query %s could not be stopped or changed", running.query.query_id)

    def _host(self, running: RunningQuery) -> None:
        running.is_here = running.slot in self._slots.owned
        if not running.is_here:
            return
        try:
            running.hosted = self._runner.start(running.query, is_paused=running.is_paused)
            running.failure = None
        except Exception as error:  # noqa: BLE001  one query's fault is not the server's
            _log.warning("query %s does not start: %s", running.query.query_id, error)
            running.failure = failure_of(error, running.query.properties, clock.now_ms())

    def restart(self, running: RunningQuery) -> None:
        """Start a query again that has failed; it may fail again."""
        with running.lock:
            if running.is_ended or running.state is not QueryState.ERROR:
                return
            running.restarts += 1
            _log.info("restarting query %s", running.query.query_id)
            if running.hosted is None:
                self._host(running)
            else:
                running.hosted.restart()

    def control(self, command: ControlCommand) -> str:
        """End, pause or resume a query; gives the message for who asked."""
        running = self.by_id.get(command.query_id)
        if command.control is Control.TERMINATE:
            self.terminate(command.query_id)
            return "Query terminated."
        is_pause = command.control is Control.PAUSE
        if running is not None:
            with running.lock:
                running.is_paused = is_pause
                if running.hosted is not None:
                    with self._guarded(running):
                        running.hosted.pause() if is_pause else running.hosted.resume()
                elif is_pause:
                    running.failure = None
                elif self._is_started:
                    self._host(running)
        return "Query paused." if is_pause else "Query resumed."

    def terminate(self, query_id: str) -> None:
        """End a query for good."""
        running = self.by_id.pop(query_id, None)
        if running is not None:
            self._end(running, forget=True)

    def _end(self, running: RunningQuery, *, forget: bool = False) -> None:
        with running.lock:
            running.is_ended = True
            if running.hosted is not None:
                with self._guarded(running):
                    running.hosted.stop(forget=forget)
            elif forget:
                self._forget(running)

    def end_supervision(self) -> None:
        """Start nothing again from now on."""
        self._supervisor.close()

    def close(self) -> None:
        """Stop all that runs, to be started again another time."""
        for running in self.by_id.values():
            self._end(running)
        self._runner.close()


def _log_failed(one: RunningQuery, error: Exception) -> None:
    _log.error("query %s could not be checked or started", one.query.query_id, exc_info=error)
