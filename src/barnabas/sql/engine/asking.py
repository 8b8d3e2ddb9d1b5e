"""Queries whose results go to who asks: pull and push queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from barnabas.spark.supervision import QueryState
from barnabas.sql.analysis.commands import PullQueryCommand, QueryCommand
from barnabas.sql.engine import config
from barnabas.sql.engine.cluster import Start
from barnabas.sql.engine.context import Context
from barnabas.sql.engine.pull import PullQuery, check_limit, compile_pull
from barnabas.sql.engine.push import PushQuery, Send
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.engine.tables import Views
from barnabas.sql.errors import AnalysisError, SqlError, text_in_errors
from barnabas.sql.names import backquoted
from barnabas.sql.processing_log import NoteEntry, log_entry
from barnabas.sql.syntax.tree import Emit, ParsedStatement, Query, Statement

STREAM_READ_S = 60.0
LOCK_WAIT_S = 1.0
"""Time that a pull query waits for its turn before it checks whether its table is filled."""


class TooManyQueriesError(SqlError):
    """There are as many push queries as may be."""


class NotMaterializedError(SqlError):
    """The query that fills a table has not started, or has failed."""


class Asking:
    """`push_queries`: those that run now, by id. `queries`: the persistent ones, by id."""

    def __init__(
        self,
        context: Context,
        views: Views,
        queries: Mapping[str, RunningQuery],
        note: NoteEntry = log_entry,
    ) -> None:
        self._note = note
        self._queries = queries
        self.push_queries: dict[str, PushQuery] = {}
        self._context = context
        self._views = views
        self._ids = itertools.count(1)

    def query(self, parsed: ParsedStatement, session: Session) -> PullQuery | PushQuery:
        """A SELECT, ready to be answered: of a table's rows, or a push query (also for a pull
        query of a stream, which ends by itself). Raises SqlError."""
        with text_in_errors(parsed.text), self._locked(parsed.statement):
            return self._query(parsed, session)

    def _query(self, parsed: ParsedStatement, session: Session) -> PullQuery | PushQuery:
        command = self._context.analyse(parsed, session, topics={})
        if isinstance(command, PullQueryCommand):
            if not self._context.settings.get(config.PULL_ENABLED, True):
                raise AnalysisError(
                    "Pull queries are disabled. See https://cnfl.io/queries for more info.\nAdd "
                    "EMIT CHANGES if you intended to issue a push query.\nPlease set "
                    "ksql.pull.queries.enable=true to enable this feature.\n"
                )
            if command.source.is_table:
                pull = compile_pull(command, self._context.functions, session.settings)
                self._views.view(command.source)
                self._check_filled(command.source.name)
                return pull
            check_limit(command.query, session.settings)
            assert isinstance(parsed.statement, Query)
            changes = replace(parsed.statement, emit=Emit.CHANGES)
            command = self._context.analyse(replace(parsed, statement=changes), session, topics={})
        assert isinstance(command, QueryCommand)
        return self._push_query(command, parsed.text, session)

    def _check_filled(self, table: str) -> None:
        """Raise NotMaterializedError if the query that fills a table has not started or has failed.

        Only the server that runs a query knows. A paused query leaves the table as it was. Needs no
        lock.
        """
        for running in list(self._queries.values()):
            if running.query.plan.sink != table or not running.is_here:
                continue
            has_failed = running.state is QueryState.ERROR
            if not has_failed and (running.hosted is not None or running.is_paused):
                continue
            what = (
                "The query was not in a running state. state: ERROR."
                if has_failed
                else f"Materialized data for table {backquoted(table)} is not available yet. "
                "Please try again later."
            )
            message = running.message
            why = f" {running.query.query_id}: {message}" if message else ""
            raise NotMaterializedError(f"Unable to execute pull query: {what}{why}")

    @contextmanager
    def _locked(self, statement: Statement) -> Iterator[None]:
        """Hold the lock. A start of Spark has it for minutes: pull queries do not wait for that.

        Raises NotMaterializedError.
        """
        while not self._context.lock.acquire(timeout=LOCK_WAIT_S):
            if isinstance(statement, Query) and statement.emit is None:
                source = self._context.metastore.sources.get(statement.source.name)
                if source is not None and source.is_table:
                    self._check_filled(source.name)
        try:
            yield
        finally:
            self._context.lock.release()

    def _push_query(self, command: QueryCommand, text: str, session: Session) -> PushQuery:
        if len(self.push_queries) >= int(self._context.settings[config.PUSH_LIMIT]):
            raise TooManyQueriesError("Maximum number of push queries exceeded", statement=text)
        prefix = command.plan.query_id.rpartition("_")[0]
        if self._is_scalable(command, session):
            prefix = prefix.replace("transient", "SCALABLE_PUSH_QUERY", 1)
        plan = replace(command.plan, query_id=f"{prefix}_{next(self._ids)}")
        return PushQuery(plan, text, command.limit, session.settings)

    def _is_scalable(self, command: QueryCommand, session: Session) -> bool:
        """Return whether ksqlDB would answer it from the query that makes its source.

        We read the source's topic for every push query, so this shows in the id alone.
        """
        settings = session.settings
        sources = command.plan.sources
        return (
            bool(settings.get(config.PUSH_V2))
            and str(settings.get("ksql.streams.auto.offset.reset")).lower() == "latest"
            and len(sources) == 1
            and len(self._context.metastore.writers(sources[0])) == 1
        )

    def push_query(self, query_id: str | None) -> PushQuery | None:
        """The running push query of that id, in any case, as statements may spell it."""
        wanted = (query_id or "").upper()
        running = list(self.push_queries.items())
        return next((query for name, query in running if name.upper() == wanted), None)

    def run_push(self, query: PushQuery, send: Send, *, is_pull: bool = False) -> None:
        """Send a push query's results until it ends; of a pull query only those that are there."""
        context = self._context
        self.push_queries[query.query_id] = query
        query.on_end = lambda: self._forget(query)
        start = Start.EARLIEST if is_pull else None
        query.start(send, context.cluster, context.functions, context.schemas, start, self._note)
        if is_pull:
            query.run_to_end(STREAM_READ_S)

    def _forget(self, query: PushQuery) -> None:
        self.push_queries.pop(query.query_id, None)

    def close(self) -> None:
        """End them all."""
        for query in list(self.push_queries.values()):
            query.stop()
