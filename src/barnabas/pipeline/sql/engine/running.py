"""The persistent queries of an engine, and what runs them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.pipeline.sql.analysis.commands import QueryCommand
from barnabas.pipeline.sql.engine import config
from barnabas.pipeline.sql.engine.command_log import ControlCommand, LoggedCommand
from barnabas.pipeline.sql.engine.ownership import ALL_SLOTS, Slots, slot_of
from barnabas.pipeline.sql.engine.queries import (
    HostedQuery,
    PersistentQuery,
    QueryFailure,
    QueryRunner,
    QueryState,
)
from barnabas.pipeline.sql.syntax.tree import Control

_log = logging.getLogger(__name__)


@dataclass
class RunningQuery:
    """A persistent query, and what runs it; `failure`: why nothing does."""

    query: PersistentQuery
    overrides: Mapping[str, Any] = field(default_factory=dict)
    is_paused: bool = False
    hosted: HostedQuery | None = None
    failure: QueryFailure | None = None
    slot: int = 0
    """Who has this slot runs it."""
    is_here: bool = True
    """Whether this server runs it."""

    @property
    def state(self) -> QueryState:
        """How it is."""
        if self.hosted is not None:
            return self.hosted.state
        if self.failure is not None:
            return QueryState.ERROR
        return QueryState.PAUSED if self.is_paused else QueryState.RUNNING

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        """The latest failures, oldest first."""
        if self.hosted is not None:
            return self.hosted.failures
        return () if self.failure is None else (self.failure,)


class RunningQueries:
    """`by_id`: the queries; none of them runs before `start`."""

    def __init__(self, runner: QueryRunner, settings: Mapping[str, Any]) -> None:
        self.by_id: dict[str, RunningQuery] = {}
        self._runner = runner
        self._settings = settings
        self._is_started = False
        self._slots = Slots(ALL_SLOTS)
        self._added = 0

    def start(self) -> None:
        """Run all of them, and from now on those that are added."""
        self._is_started = True
        for running in self.by_id.values():
            self._host(running)

    def add(self, command: QueryCommand, logged: LoggedCommand) -> None:
        """Run a query, which may take the place of another."""
        plan = command.plan
        old = self.by_id.get(command.replaces) if command.replaces is not None else None
        if old is not None and old.hosted is not None:
            old.hosted.stop()
        group = f"_confluent-ksql-{self._settings[config.SERVICE_ID]}query_{plan.query_id}"
        settings = {**self._settings, **logged.properties}
        query = PersistentQuery(plan, logged.statement, group, settings)
        running = RunningQuery(query, logged.properties, old.is_paused if old else False)
        running.slot = slot_of(self._added) if old is None else old.slot
        self._added += old is None
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
                    self._host(running)

    def _release(self, running: RunningQuery) -> None:
        hosted, running.hosted, running.failure = running.hosted, None, None
        running.is_here = False
        if hosted is not None:
            hosted.stop()

    def _host(self, running: RunningQuery) -> None:
        running.is_here = running.slot in self._slots.owned
        if not running.is_here:
            return
        try:
            running.hosted = self._runner.start(running.query, is_paused=running.is_paused)
        except Exception as error:  # noqa: BLE001  one query's fault is not the server's
            _log.warning("query %s does not start: %s", running.query.query_id, error)
            running.failure = QueryFailure(int(time.time() * 1000), str(error), "SYSTEM")

    def control(self, command: ControlCommand) -> str:
        """End, pause or resume a query; gives the message for who asked."""
        running = self.by_id.get(command.query_id)
        if command.control is Control.TERMINATE:
            self.terminate(command.query_id)
            return "Query terminated."
        is_pause = command.control is Control.PAUSE
        if running is not None:
            running.is_paused = is_pause
            if running.hosted is not None:
                running.hosted.pause() if is_pause else running.hosted.resume()
        return "Query paused." if is_pause else "Query resumed."

    def terminate(self, query_id: str) -> None:
        """End a query for good."""
        running = self.by_id.pop(query_id, None)
        if running is not None and running.hosted is not None:
            running.hosted.stop(forget=True)

    def close(self) -> None:
        """Stop all that runs, to be started again another time."""
        for running in self.by_id.values():
            if running.hosted is not None:
                running.hosted.stop()
        self._runner.close()
