"""Looks at the persistent queries all the time: starts those again that failed, measures rates."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from barnabas.sql.engine.queries import QueryFailure, QueryState
from barnabas.sql.engine.running import RunningQueries, RunningQuery

_log = logging.getLogger(__name__)
_LOOK_S = 0.25
_RATES_MS = 5_000
_RESTARTS_AT_ONCE = 4
"""A start may have to wait until a broker does not answer: others need not wait for it."""

OnFailure = Callable[[str, QueryFailure], None]
"""Gets a query's id and what it failed of, once for each failure."""


class Supervisor:
    """A thread from `start` to `close`; `step` is one look, for it and for tests."""

    def __init__(self, queries: RunningQueries, on_failure: OnFailure) -> None:
        self._queries = queries
        self._on_failure = on_failure
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervise queries", daemon=True)
        self._pool = ThreadPoolExecutor(_RESTARTS_AT_ONCE, "restart query")
        self._told: dict[str, int] = {}
        self._restarting: set[str] = set()
        self._rates_ms = 0

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Look no more; a restart that has begun may go on until its query is ended."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_S):
            try:
                self.step(time.monotonic_ns() // 1_000_000)
            except Exception:  # noqa: BLE001  one look that fails is not the last
                _log.exception("the queries could not be looked at")

    def step(self, now_ms: int) -> None:
        """Look at all queries once."""
        running = list(self._queries.by_id.values())
        for one in running:
            try:
                self._look_at(one, now_ms)
            except Exception:  # noqa: BLE001  the others are looked at all the same
                _log.exception("query %s could not be looked at", one.query.query_id)
        if now_ms - self._rates_ms >= _RATES_MS:
            self._rates_ms = now_ms
            wall_ms = time.time_ns() // 1_000_000
            for one in running:
                one.rates.look(one.figures, wall_ms)
        for gone in self._told.keys() - self._queries.by_id.keys():
            del self._told[gone]

    def _look_at(self, one: RunningQuery, now_ms: int) -> None:
        query_id = one.query.query_id
        if query_id in self._restarting:
            return
        state = one.state
        if state is QueryState.ERROR:
            self._tell(query_id, one)
        if one.restarting.is_due(state, now_ms):
            self._restarting.add(query_id)
            self._pool.submit(self._restart, one)

    def _tell(self, query_id: str, one: RunningQuery) -> None:
        failures = one.failures
        if failures and failures[-1].timestamp_ms > self._told.get(query_id, -1):
            self._told[query_id] = failures[-1].timestamp_ms
            _log.warning("query %s failed: %s", query_id, failures[-1].message)
            self._on_failure(query_id, failures[-1])

    def _restart(self, one: RunningQuery) -> None:
        try:
            self._queries.restart(one)
        except Exception:  # noqa: BLE001  nobody else would hear of it
            _log.exception("query %s could not be started again", one.query.query_id)
        finally:
            self._restarting.discard(one.query.query_id)
