"""The engine: takes statements in order, keeps them in the command log, and has their queries run.

A statement goes through: parse → variables → analysis → a try on a copy of the metastore → its
topics and schemas → the command log → the metastore → the query's start. All changes come from the
log: at a start it is read from its beginning, and what it says is there again.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.pipeline.sql.analysis import commands
from barnabas.pipeline.sql.analysis.analyse import analyse
from barnabas.pipeline.sql.analysis.commands import (
    AlterSourceCommand,
    Command,
    CreateSourceCommand,
    CreateTypeCommand,
    DropSourceCommand,
    DropTypeCommand,
    InsertValuesCommand,
    PullQueryCommand,
    QueryCommand,
)
from barnabas.pipeline.sql.analysis.metastore import DataSource, MetaStore
from barnabas.pipeline.sql.engine import config
from barnabas.pipeline.sql.engine.cluster import Cluster, ClusterError, Start
from barnabas.pipeline.sql.engine.command_log import (
    CommandLog,
    CommandLogError,
    ControlCommand,
    LoggedCommand,
    StoredCommand,
    decode,
    encode,
)
from barnabas.pipeline.sql.engine.inserted import InsertedRow, inserted_row
from barnabas.pipeline.sql.engine.inserting import RowWriter
from barnabas.pipeline.sql.engine.pull import PullQuery, check_limit, compile_pull
from barnabas.pipeline.sql.engine.push import PushQuery, Send
from barnabas.pipeline.sql.engine.queries import (
    HostedQuery,
    PersistentQuery,
    QueryRunner,
    QueryState,
)
from barnabas.pipeline.sql.engine.session import Session
from barnabas.pipeline.sql.engine.tables import TableView
from barnabas.pipeline.sql.engine.topics import make_topic, new_topic, register_schemas
from barnabas.pipeline.sql.errors import AnalysisError, EvaluationError, SqlError
from barnabas.pipeline.sql.formats.format import SchemaStore
from barnabas.pipeline.sql.functions.catalog import Function
from barnabas.pipeline.sql.names import backquoted
from barnabas.pipeline.sql.syntax import tree
from barnabas.pipeline.sql.syntax.parser import parse
from barnabas.pipeline.sql.syntax.tree import Control, Emit, ParsedStatement, Query, Statement
from barnabas.pipeline.sql.syntax.variables import substitute

_log = logging.getLogger(__name__)
STREAM_READ_S = 60.0
_STATUSES_MAX = 10_000
_WRITERS_MAX = 1_000

DISTRIBUTED = (
    tree.CreateSource,
    tree.CreateAsSelect,
    tree.InsertInto,
    tree.DropSource,
    tree.AlterSource,
    tree.CreateType,
    tree.DropType,
    tree.ControlQuery,
)
"""Statements that the command log keeps."""


@dataclass(frozen=True)
class Executed:
    """What a statement of the command log came to; `sequence` is its number there.

    `is_warning`: there was nothing to do.
    """

    command_id: str
    message: str
    sequence: int = -1
    query_id: str | None = None
    is_warning: bool = False


@dataclass
class RunningQuery:
    """A persistent query, and what runs it."""

    query: PersistentQuery
    overrides: Mapping[str, Any] = field(default_factory=dict)
    is_paused: bool = False
    hosted: HostedQuery | None = None

    @property
    def state(self) -> QueryState:
        if self.hosted is not None:
            return self.hosted.state
        return QueryState.PAUSED if self.is_paused else QueryState.RUNNING


class EngineError(SqlError):
    """The engine cannot do what a correct statement asks."""


class KsqlEngine:
    """All calls may be made from any thread; those that change something wait for each other."""

    def __init__(
        self,
        cluster: Cluster,
        log: CommandLog,
        runner: QueryRunner,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.cluster = cluster
        self.functions = functions
        self.schemas = schemas
        self.settings = config.server_settings(settings or {})
        self.metastore = MetaStore()
        self.queries: dict[str, RunningQuery] = {}
        self.push_queries: dict[str, PushQuery] = {}
        self.statuses: dict[str, Executed] = {}
        self.runner = runner
        self._log = log
        self._views: dict[str, TableView] = {}
        self._writers: dict[str, RowWriter] = {}
        self._lock = threading.RLock()
        self._transient_ids = itertools.count(1)
        self._is_started = False
        self._degraded = ""

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Have everything as the command log says, and start its queries."""
        with self._lock:
            self._read_log()
            self._is_started = True
            for running in self.queries.values():
                self._host(running)
            for source in list(self.metastore.sources.values()):
                self._view_if_kept(source)

    def read_log(self) -> None:
        """Take over what other servers wrote into the command log since it was last read."""
        with self._lock:
            self._read_log()

    def _read_log(self) -> None:
        for entry in self._log.read_new():
            try:
                logged = decode(entry)
                self._apply(logged, entry.sequence)
            except (CommandLogError, SqlError) as error:
                # Going on would build later commands on a state that never was.
                self._degraded = f"{error}"
                _log.error("the command log cannot be followed: %s", error)
                return

    @property
    def degraded(self) -> str:
        """Why the command log is not followed any more, or nothing."""
        return self._degraded

    def close(self) -> None:
        """Stop all that runs, to be started again another time."""
        with self._lock:
            for push in list(self.push_queries.values()):
                push.stop()
            for running in self.queries.values():
                if running.hosted is not None:
                    running.hosted.stop()
            self.runner.close()
            for view in self._views.values():
                view.close()
            self._views.clear()
            self._log.close()

    # --- statements --------------------------------------------------------------------------

    def parse(self, text: str, session: Session) -> Iterable[tuple[ParsedStatement, Session]]:
        """Each statement of a text with its variables replaced, and the session as it is there.

        SET, DEFINE and their kin change the session for those after them. Raises SqlError.
        """
        own = session.copy()
        for parsed in parse(text):
            substituted = parsed.text
            if own.settings.get(config.SUBSTITUTION, True):
                substituted = substitute(parsed.text, own.variables)
            if substituted != parsed.text:
                (parsed,) = parse(substituted)
            before = own.copy()
            own.change(parsed.statement)
            yield parsed, before

    def check(self, statements: Sequence[tuple[ParsedStatement, Session]]) -> None:
        """Try the statements on a copy of all; raises SqlError for the first that cannot be."""
        with self._lock:
            self._read_log()
            trial = self.metastore.copy()
            topics = {name: info.partitions for name, info in self.cluster.topics().items()}
            trial.next_query = self._log.next_sequence()
            for parsed, session in statements:
                if isinstance(parsed.statement, (*DISTRIBUTED, tree.InsertValues)):
                    with _text_in_errors(parsed.text):
                        self._try(parsed, session, trial, topics)

    def _try(
        self, parsed: ParsedStatement, session: Session, trial: MetaStore, topics: dict[str, int]
    ) -> None:
        if isinstance(parsed.statement, tree.ControlQuery):
            self._controlled(parsed.statement, trial)
            return
        command = self._analyse(parsed, session, trial, topics)
        for wish in _wishes(command):
            if wish.topic.name not in topics:
                infos = self.cluster.topics()
                made = (
                    topics[wish.topic.like]
                    if wish.topic.partitions is None and wish.topic.like in topics
                    else new_topic(wish.topic, infos, session.settings).partitions
                )
                topics[wish.topic.name] = made
        if isinstance(command, DropSourceCommand):
            self._drop(command, trial)
        commands.apply(command, trial, parsed.text)

    def _analyse(
        self,
        parsed: ParsedStatement,
        session: Session,
        metastore: MetaStore,
        topics: Mapping[str, int] | None = None,
    ) -> Command:
        if topics is None:
            topics = {name: info.partitions for name, info in self.cluster.topics().items()}
        return analyse(
            parsed.statement,
            metastore,
            session.settings,
            self.functions,
            self.schemas,
            topics=topics,
            text=parsed.text,
        )

    def execute(self, parsed: ParsedStatement, session: Session) -> list[Executed]:
        """Do a statement of the command log's kind; raises SqlError."""
        with self._lock:
            if self._degraded:
                raise EngineError(f"The command log cannot be followed: {self._degraded}")
            self._read_log()
            if isinstance(parsed.statement, tree.ControlQuery):
                controls = self._controlled(parsed.statement, self.metastore)
                return [self._distribute(c, parsed.text, session) for c in controls]
            self.metastore.next_query = self._log.next_sequence()
            command = self._analyse(parsed, session, self.metastore)
            if isinstance(command, commands.NothingCommand):
                is_create = isinstance(parsed.statement, (tree.CreateSource, tree.CreateAsSelect))
                return [
                    Executed(_statement_id(parsed.statement), command.message, is_warning=is_create)
                ]
            if isinstance(command, (InsertValuesCommand, PullQueryCommand)):
                raise EngineError("Statement not executable", statement=parsed.text)
            self._check_limits(command)
            for wish in _wishes(command):
                is_sink = isinstance(command, QueryCommand)
                make_topic(wish.topic, self.cluster, session.settings, is_sink=is_sink)
                register_schemas(wish, self.schemas, is_sink=is_sink)
            return [self._distribute(command, parsed.text, session)]

    def _check_limits(self, command: Command) -> None:
        limit = int(self.settings[config.QUERY_LIMIT])
        is_new = isinstance(command, QueryCommand) and command.replaces is None
        if is_new and len(self.queries) + 1 > limit:
            raise AnalysisError(
                "Not executing statement(s) as it would cause the number of active, persistent "
                "queries to exceed the configured limit. Use the TERMINATE command to "
                f"terminate existing queries. Configured limit: {limit}. Current queries: "
                f"{len(self.queries)}."
            )

    def _distribute(self, command: StoredCommand, text: str, session: Session) -> Executed:
        logged = LoggedCommand(
            _command_id(command),
            text,
            command,
            dict(session.overrides),
            config.without_secrets(self.settings),
        )
        commands.apply(command, self.metastore.copy(), text) if not isinstance(
            command, ControlCommand
        ) else None
        sequence = self._log.append(*encode(logged))
        return self._apply(logged, sequence)

    def terminate_cluster(self, patterns: Iterable[str]) -> Executed:
        """End all queries for good; delete the sinks' topics that a pattern fits."""
        with self._lock:
            session = Session(self.settings)
            wanted = [re.compile(pattern) for pattern in patterns]
            sinks = [s for s in self.metastore.sources.values() if s.is_query_target]
            last = -1
            for query_id in list(self.metastore.queries):
                command = ControlCommand(Control.TERMINATE, query_id)
                last = self._distribute(command, f"TERMINATE {query_id};", session).sequence
            for source in sinks:
                if any(pattern.fullmatch(source.topic) for pattern in wanted):
                    self.cluster.delete_topic(source.topic)
            return Executed("cluster/TerminateCluster/terminate", "Cluster terminated.", last)

    # --- applying ----------------------------------------------------------------------------

    def _apply(self, logged: LoggedCommand, sequence: int) -> Executed:
        """Do what a record of the log says."""
        command = logged.command
        query_id = None
        if isinstance(command, ControlCommand):
            message = self._control(command)
        else:
            if isinstance(command, DropSourceCommand):
                self._drop(command, self.metastore, self._terminate)
                topic = self.metastore.must(command.name).topic
            message = commands.apply(command, self.metastore, logged.statement)
            if isinstance(command, QueryCommand):
                query_id = command.plan.query_id
                self._add_query(command, logged)
            if isinstance(command, DropSourceCommand):
                self._dropped(command, topic)
            elif isinstance(command, CreateSourceCommand):
                self._forget_view(command.source.name)
                self._view_if_kept(command.source)
        executed = Executed(logged.command_id, message, sequence, query_id)
        self.statuses[logged.command_id] = executed
        if len(self.statuses) > _STATUSES_MAX:
            del self.statuses[next(iter(self.statuses))]
        return executed

    def _add_query(self, command: QueryCommand, logged: LoggedCommand) -> None:
        plan = command.plan
        old = self.queries.get(command.replaces) if command.replaces is not None else None
        if old is not None and old.hosted is not None:
            old.hosted.stop()
        settings = {**self.settings, **logged.properties}
        query = PersistentQuery(plan, logged.statement, self._group(plan.query_id), settings)
        running = RunningQuery(query, logged.properties, old.is_paused if old else False)
        self.queries[plan.query_id] = running
        if self._is_started:
            self._host(running)
        if command.ddl is not None:
            self._forget_view(command.ddl.source.name)
            self._view_if_kept(command.ddl.source)

    def _group(self, query_id: str) -> str:
        return f"_confluent-ksql-{self.settings[config.SERVICE_ID]}query_{query_id}"

    def _host(self, running: RunningQuery) -> None:
        running.hosted = self.runner.start(running.query, is_paused=running.is_paused)

    def _controlled(
        self, statement: tree.ControlQuery, metastore: MetaStore
    ) -> list[ControlCommand]:
        """What TERMINATE, PAUSE or RESUME means for each query; raises AnalysisError."""
        if statement.query_id is None:
            return [ControlCommand(statement.control, name) for name in metastore.queries]
        if statement.query_id not in metastore.queries:
            raise AnalysisError(f"Unknown queryId: {statement.query_id}")
        if statement.control is Control.TERMINATE and metastore is not self.metastore:
            del metastore.queries[statement.query_id]
        return [ControlCommand(statement.control, statement.query_id)]

    def _control(self, command: ControlCommand) -> str:
        running = self.queries.get(command.query_id)
        if command.control is Control.TERMINATE:
            self._terminate(command.query_id)
            return "Query terminated."
        is_pause = command.control is Control.PAUSE
        if running is not None:
            running.is_paused = is_pause
            if running.hosted is not None:
                running.hosted.pause() if is_pause else running.hosted.resume()
        return "Query paused." if is_pause else "Query resumed."

    def _terminate(self, query_id: str) -> None:
        self.metastore.queries.pop(query_id, None)
        running = self.queries.pop(query_id, None)
        if running is not None and running.hosted is not None:
            running.hosted.stop(forget=True)

    def _drop(
        self,
        command: DropSourceCommand,
        metastore: MetaStore,
        terminate: Callable[[str], None] | None = None,
    ) -> None:
        """End the query that made a source that is dropped; raises AnalysisError if others use
        it."""
        name = command.name
        own = [q for q in metastore.writers(name) if not q.startswith("INSERTQUERY_")]
        writers = [q for q in metastore.writers(name) if q not in own]
        readers = metastore.readers(name)
        if readers or writers:
            raise AnalysisError(
                f"Cannot drop {name}.\n"
                f"The following queries read from this source: [{', '.join(readers)}].\n"
                f"The following queries write into this source: [{', '.join(writers)}].\n"
                f"You need to terminate them before dropping {name}."
            )
        for query_id in own:
            if terminate is None:
                del metastore.queries[query_id]
            else:
                terminate(query_id)

    def _dropped(self, command: DropSourceCommand, topic: str) -> None:
        self._forget_view(command.name)
        if not (command.deletes_topic and self._is_started):
            return
        try:
            self.cluster.delete_topic(topic)
        except ClusterError as error:
            raise EngineError(f"Could not delete the corresponding kafka topic: {topic}") from error

    # --- tables ------------------------------------------------------------------------------

    def _is_kept(self, source: DataSource) -> bool:
        return source.is_table and (source.is_source or bool(self.metastore.writers(source.name)))

    def _view_if_kept(self, source: DataSource) -> None:
        if self._is_started and self._is_kept(source) and source.name not in self._views:
            retention = None
            if source.is_windowed:
                retention = self._retention(source)
            self._views[source.name] = TableView(source, self.cluster, self.schemas, retention)

    def _retention(self, source: DataSource) -> int | None:
        try:
            found = self.cluster.topic_config(source.topic).get("retention.ms")
        except ClusterError:
            return None
        return None if found is None or int(found) < 0 else int(found)

    def _forget_view(self, name: str) -> None:
        view = self._views.pop(name, None)
        if view is not None:
            view.close()

    def view(self, source: DataSource) -> TableView:
        """The rows of a table; raises AnalysisError if they are not kept."""
        with self._lock:
            if not self._is_kept(source):
                raise AnalysisError(
                    f"The {backquoted(source.name)} table isn't queryable. To derive a queryable "
                    f"table, you can do 'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM "
                    f"{source.name}'. See https://cnfl.io/queries for more info.\n"
                    "Add EMIT CHANGES if you intended to issue a push query."
                )
            self._view_if_kept(source)
            return self._views[source.name]

    # --- queries of who asks -------------------------------------------------------------------

    def query(self, parsed: ParsedStatement, session: Session) -> PullQuery | PushQuery:
        """A SELECT, ready to be answered: of a table's rows, or a push query (also for a pull
        query of a stream, which ends by itself). Raises SqlError."""
        assert isinstance(parsed.statement, Query)
        with self._lock, _text_in_errors(parsed.text):
            return self._query(parsed, session)

    def _query(self, parsed: ParsedStatement, session: Session) -> PullQuery | PushQuery:
        command = self._analyse(parsed, session, self.metastore)
        if isinstance(command, PullQueryCommand):
            if not self.settings.get(config.PULL_ENABLED, True):
                raise AnalysisError(
                    "Pull queries are disabled. See https://cnfl.io/queries for more info.\nAdd "
                    "EMIT CHANGES if you intended to issue a push query.\nPlease set "
                    "ksql.pull.queries.enable=true to enable this feature.\n"
                )
            if command.source.is_table:
                pull = compile_pull(command, self.functions, session.settings)
                self.view(command.source)
                return pull
            check_limit(command.query, session.settings)
            assert isinstance(parsed.statement, Query)
            changes = replace(parsed.statement, emit=Emit.CHANGES)
            command = self._analyse(replace(parsed, statement=changes), session, self.metastore)
        assert isinstance(command, QueryCommand)
        if len(self.push_queries) >= int(self.settings[config.PUSH_LIMIT]):
            raise TooManyQueriesError(
                "Maximum number of push queries exceeded", statement=parsed.text
            )
        prefix = command.plan.query_id.rpartition("_")[0]
        if self._is_scalable(command, session):
            prefix = prefix.replace("transient", "SCALABLE_PUSH_QUERY", 1)
        query_id = f"{prefix}_{next(self._transient_ids)}"
        plan = replace(command.plan, query_id=query_id)
        return PushQuery(plan, parsed.text, command.limit, session.settings)

    def _is_scalable(self, command: QueryCommand, session: Session) -> bool:
        """Whether ksqlDB would answer it from the query that makes its source.

        We read the source's topic for every push query, so this shows in the id alone.
        """
        settings = session.settings
        sources = command.plan.sources
        return (
            bool(settings.get(config.PUSH_V2))
            and str(settings.get("ksql.streams.auto.offset.reset")).lower() == "latest"
            and len(sources) == 1
            and len(self.metastore.writers(sources[0])) == 1
        )

    def run_push(self, query: PushQuery, send: Send, *, is_pull: bool = False) -> None:
        """Send a push query's results until it ends; of a pull query only those that are there."""
        with self._lock:
            self.push_queries[query.query_id] = query
            query.on_end = lambda: self._forget_push(query)
        start = Start.EARLIEST if is_pull else None
        query.start(send, self.cluster, self.functions, self.schemas, start)
        if is_pull:
            query.run_to_end(STREAM_READ_S)

    def _forget_push(self, query: PushQuery) -> None:
        self.push_queries.pop(query.query_id, None)

    # --- inserting ---------------------------------------------------------------------------

    def insert(self, parsed: ParsedStatement, session: Session) -> None:
        """INSERT INTO … VALUES; raises SqlError."""
        if not self.settings.get(config.INSERTS_ENABLED, True):
            raise AnalysisError(
                "The server has disabled INSERT INTO ... VALUES functionality. To enable it, "
                f"restart your ksqlDB server with '{config.INSERTS_ENABLED}'=true"
            )
        with self._lock:
            command = self._analyse(parsed, session, self.metastore)
            assert isinstance(command, InsertValuesCommand)
        try:
            row = inserted_row(command, self.functions)
            self.insert_row(command.source, row)
        except (EvaluationError, SqlError, ClusterError) as error:
            raise AnalysisError(
                f"Failed to insert values into '{command.source.name}'. {error}",
                statement=parsed.text,
            ) from error
        self.cluster.flush()

    def insert_row(self, source: DataSource, row: InsertedRow) -> None:
        """Write a row, which may be done after the call returned; raises InsertError."""
        with self._lock:
            writer = self._writers.get(source.name)
            if writer is None or writer.source is not source:
                if len(self._writers) > _WRITERS_MAX:
                    self._writers.clear()
                writer = self._writers[source.name] = RowWriter(source, self.schemas)
            record = writer.record(row)
        self.cluster.write(source.topic, record)


class TooManyQueriesError(SqlError):
    """There are as many push queries as may be."""


@contextmanager
def _text_in_errors(text: str) -> Iterator[None]:
    """Errors tell which statement they are about."""
    try:
        yield
    except SqlError as error:
        error.statement = error.statement or text
        raise


def _wishes(command: Command) -> list[CreateSourceCommand]:
    """What the command makes that lies in a topic."""
    if isinstance(command, CreateSourceCommand):
        return [command]
    if isinstance(command, QueryCommand) and command.ddl is not None:
        return [command.ddl]
    return []


def _command_id(command: StoredCommand) -> str:
    match command:
        case CreateSourceCommand():
            return f"{command.source.kind.value.lower()}/{backquoted(command.source.name)}/create"
        case QueryCommand():
            if command.ddl is not None:
                return _command_id(command.ddl)
            return f"stream/{backquoted(command.plan.sink or '')}/create"
        case DropSourceCommand():
            return f"{command.kind.value.lower()}/{backquoted(command.name)}/drop"
        case AlterSourceCommand():
            return f"{command.kind.value.lower()}/{backquoted(command.name)}/alter"
        case CreateTypeCommand():
            return f"type/{command.name}/create"
        case DropTypeCommand():
            return f"type/{command.name}/drop"
        case ControlCommand():
            return f"{command.control.value.lower()}/{command.query_id}/execute"


def _statement_id(statement: Statement) -> str:
    match statement:
        case tree.CreateSource() | tree.CreateAsSelect():
            return f"{statement.kind.value.lower()}/{backquoted(statement.name)}/create"
        case tree.DropSource():
            return f"{statement.kind.value.lower()}/{backquoted(statement.name)}/drop"
        case tree.CreateType():
            return f"type/{statement.name}/create"
        case tree.DropType():
            return f"type/{statement.name}/drop"
    return ""
