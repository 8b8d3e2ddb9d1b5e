"""The engine: takes statements in order, keeps them in the command log, and has their queries run.

A statement goes through: parse → variables → analysis on a copy of the metastore → its topics and
schemas → the command log → the copy becomes the metastore → the query's start. Other servers, and
this one at its start, apply what the log says.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis import commands
from barnabas.sql.analysis.commands import (
    Command,
    CreateSourceCommand,
    DropSourceCommand,
    InsertValuesCommand,
    NothingCommand,
    PullQueryCommand,
    QueryCommand,
)
from barnabas.sql.analysis.metastore import DataSource, MetaStore
from barnabas.sql.engine import config
from barnabas.sql.engine.applying import (
    apply_to,
    command_id,
    controls,
    make_topic,
    new_topic,
    register_schemas,
    statement_id,
    wishes,
)
from barnabas.sql.engine.asking import Asking
from barnabas.sql.engine.cluster import Cluster, ClusterError
from barnabas.sql.engine.command_log import (
    CommandLog,
    CommandLogError,
    ControlCommand,
    LoggedCommand,
    OvertakenError,
    StoredCommand,
    decode,
    encode,
)
from barnabas.sql.engine.context import Context
from barnabas.sql.engine.inserting import Inserting
from barnabas.sql.engine.queries import QueryRunner
from barnabas.sql.engine.running import RunningQueries, RunningQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.engine.tables import TableView, Views
from barnabas.sql.errors import AnalysisError, SqlError, text_in_errors
from barnabas.sql.functions.catalog import Function
from barnabas.sql.processing_log import NoteEntry, log_entry, query_error
from barnabas.sql.query_failures import QueryFailure
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import Control, ParsedStatement
from barnabas.sql.syntax.variables import statement_texts, substitute

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
_STATUSES_MAX = 10_000
_ATTEMPTS_MAX = 10
"""Number of times a statement is retried because other servers were quicker."""

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
    """The result of a statement of the command log; `sequence` is its number there.

    `is_warning`: there was nothing to do. `note`: what else who asked should know.
    """

    command_id: str
    message: str
    sequence: int = -1
    query_id: str | None = None
    is_warning: bool = False
    note: str = ""


@dataclass(frozen=True)
class Tried:
    """The result of trying a statement on a copy of the metastore.

    It holds while `base` is the engine's metastore and the log's next record has the number
    `sequence`. `metastore`: as it is once the command is done. `ended`: queries that end with it.
    """

    command: Command
    sequence: int
    base: MetaStore
    metastore: MetaStore
    message: str
    ended: Sequence[str]


class EngineError(SqlError):
    """The engine cannot do what a correct statement asks."""


class KsqlEngine:
    """All calls may be made from any thread; those that change something wait for each other.

    `asking` answers SELECT, `inserting` writes rows. `statuses`: what commands came to, by id.
    `degraded`: why the command log is not followed any more, or nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        log: CommandLog,
        runner: QueryRunner,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None = None,
        settings: Mapping[str, Any] | None = None,
        note: NoteEntry = log_entry,
        before_delete: Callable[[int], None] = lambda sequence: None,
    ) -> None:
        """`before_delete` is called with a command's number before a topic that it dropped is
        deleted."""
        self._note = note
        self._before_delete = before_delete
        self.settings = config.server_settings(settings or {})
        self._context = Context(cluster, functions, schemas, self.settings)
        self.cluster, self.functions, self.schemas = cluster, functions, schemas
        self.runner = runner
        self.statuses: dict[str, Executed] = {}
        self.degraded = ""
        self._log = log
        self._lock = self._context.lock
        self._running = RunningQueries(runner, self.settings, self._failed)
        self._views = Views(self._context)
        self.asking = Asking(self._context, self._views, self._running.by_id, note)
        self.inserting = Inserting(self._context)
        self._is_started = False

    @property
    def metastore(self) -> MetaStore:
        """The streams, tables and types."""
        return self._context.metastore

    @property
    def queries(self) -> dict[str, RunningQuery]:
        """The persistent queries by id."""
        return self._running.by_id

    def view(self, source: DataSource) -> TableView:
        """The rows of a table; raises AnalysisError if they are not kept."""
        with self._lock:
            return self._views.view(source)

    def table_positions(self) -> dict[str, Mapping[tuple[str, int], tuple[int, int]]]:
        """Return the position of each kept table: next offset and end, by topic and partition."""
        with self._lock:
            views = self._views.all()
        return {name: view.positions() for name, view in views.items()}

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Have everything as the command log says, and start its queries."""
        with self._lock:
            self._read_log()
            self._is_started = True
            self._running.start()
            self._running.supervise()
            for source in list(self.metastore.sources.values()):
                self._views.keep(source)

    def read_log(self) -> None:
        """Take over what other servers wrote into the command log since it was last read."""
        with self._lock:
            self._read_log()

    def _read_log(self) -> None:
        for entry in self._log.read_new():
            if self.degraded:
                return
            try:
                self._apply(decode(entry), entry.sequence)
            except Exception as error:  # noqa: BLE001  whatever it is, the server has to tell
                # Going on would build later commands on a state that never was.
                self.degraded = str(error) or type(error).__name__
                is_expected = isinstance(error, CommandLogError | SqlError)
                _log.error(
                    "the command log cannot be followed: %s", error, exc_info=not is_expected
                )

    def own(self, slots: Iterable[int]) -> None:
        """Run the queries of these slots and no others; at first an engine runs all."""
        with self._lock:
            self._running.own(slots)

    def close(self) -> None:
        """Stop all that runs, to be started again another time."""
        self._running.end_supervision()
        with self._lock:
            self.asking.close()
            self._running.close()
            self._views.close()
            self._log.close()

    def _failed(self, query_id: str, failure: QueryFailure) -> None:
        """Note in the processing log that a query has failed."""
        self._note(query_id, query_error(failure.message, query_id))

    # --- statements --------------------------------------------------------------------------

    def parse(self, text: str, session: Session) -> Iterable[tuple[ParsedStatement, Session]]:
        """Each statement of a text with its variables replaced, and the session as it is there.

        SET, DEFINE and their kin change the session for those after them. Raises SqlError.
        """
        own = session.copy()
        if "${" not in text or not own.settings.get(config.SUBSTITUTION, True):
            for parsed in parse(text):
                yield parsed, own.copy()
                own.change(parsed.statement)
            return
        for one in statement_texts(text):
            (parsed,) = parse(substitute(one, own.variables))
            yield parsed, own.copy()
            own.change(parsed.statement)

    def check(self, statements: Sequence[tuple[ParsedStatement, Session]]) -> list[Tried | None]:
        """Try the statements, one after the other, on a copy of all.

        Returns what they come to, for `execute`: nothing for those from the first on whose columns
        the registry gives, where an earlier one may register others. Raises SqlError for the first
        that cannot be done.
        """
        with self._lock:
            self._read_log()
            metastore = self.metastore
            topics = self._context.partitions()
            sequence = self._log.next_sequence()
            results: list[Tried | None] = []
            registers = is_outdated = False
            for parsed, session in statements:
                tried = None
                with text_in_errors(parsed.text):
                    if isinstance(parsed.statement, tree.ControlQuery):
                        metastore = metastore.copy()
                        for control in controls(parsed.statement, metastore):
                            if control.control is Control.TERMINATE:
                                del metastore.queries[control.query_id]
                            sequence += self._log.step
                    elif isinstance(parsed.statement, (*DISTRIBUTED, tree.InsertValues)):
                        tried = self._try(parsed, session, metastore, topics, sequence)
                        self._foresee_topics(tried.command, session, topics)
                        metastore = tried.metastore
                        if not isinstance(tried.command, (NothingCommand, InsertValuesCommand)):
                            sequence += self._log.step
                        is_outdated |= registers and _is_inferred(parsed, tried.command)
                        registers |= bool(wishes(tried.command))
                results.append(None if is_outdated else tried)
            return results

    def _try(
        self,
        parsed: ParsedStatement,
        session: Session,
        base: MetaStore,
        topics: Mapping[str, int],
        sequence: int,
    ) -> Tried:
        """Analyse a statement and apply its command to a copy. Raises SqlError."""
        metastore = base.copy()
        metastore.next_query = sequence
        command = self._context.analyse(parsed, session, metastore, topics)
        if isinstance(command, (NothingCommand, InsertValuesCommand)):
            return Tried(command, sequence, base, base, commands.apply(command, metastore), ())
        ended: list[str] = []
        message = apply_to(metastore, command, parsed.text, ended.append)
        return Tried(command, sequence, base, metastore, message, ended)

    def _foresee_topics(self, command: Command, session: Session, topics: dict[str, int]) -> None:
        """Add the topics that the command will make."""
        for wish in wishes(command):
            topic = wish.topic
            if topic.name in topics:
                continue
            if topic.partitions is None and topic.like in topics:
                topics[topic.name] = topics[topic.like]
            else:
                infos = self.cluster.topics()
                topics[topic.name] = new_topic(topic, infos, session.settings).partitions

    def execute(
        self, parsed: ParsedStatement, session: Session, tried: Tried | None = None
    ) -> list[Executed]:
        """Do a statement of the command log's kind; raises SqlError. `tried`: see `check`."""
        with self._lock, text_in_errors(parsed.text):
            return self._up_to_date(lambda: self._execute(parsed, session, tried))

    def _up_to_date(self, do: Callable[[], Result]) -> Result:
        """Do what writes into the log, on what the log says: again if another server was
        quicker."""
        for _ in range(_ATTEMPTS_MAX):
            self._read_log()
            if self.degraded:
                raise EngineError(f"The command log cannot be followed: {self.degraded}")
            try:
                return do()
            except OvertakenError:
                continue
        raise EngineError("Other servers write statements all the time: try again.")

    def _execute(
        self, parsed: ParsedStatement, session: Session, tried: Tried | None
    ) -> list[Executed]:
        if isinstance(parsed.statement, tree.ControlQuery):
            controlled = controls(parsed.statement, self.metastore)
            return [self._distribute(control, parsed.text, session) for control in controlled]
        sequence = self._log.next_sequence()
        if tried is None or tried.base is not self.metastore or tried.sequence != sequence:
            tried = self._try(parsed, session, self.metastore, self._context.partitions(), sequence)
        command = tried.command
        if isinstance(command, NothingCommand):
            is_create = isinstance(parsed.statement, (tree.CreateSource, tree.CreateAsSelect))
            name = statement_id(parsed.statement)
            return [Executed(name, command.message, is_warning=is_create)]
        if isinstance(command, (InsertValuesCommand, PullQueryCommand)):
            raise EngineError("Statement not executable")
        self._check_limits(command)
        note = self._check_replacement(command)
        for wish in wishes(command):
            is_sink = isinstance(command, QueryCommand)
            make_topic(wish.topic, self.cluster, session.settings, is_sink=is_sink)
            register_schemas(wish.source, self.schemas, is_sink=is_sink)
        return [replace(self._distribute(command, parsed.text, session, tried), note=note)]

    def _check_replacement(self, command: Command) -> str:
        """Say what CREATE OR REPLACE does to a running query's state. Raises AnalysisError."""
        if not isinstance(command, QueryCommand) or command.replaces is None:
            return ""
        old = self.queries.get(command.replaces)
        if old is None or old.query.plan == command.plan:
            return ""
        return self.runner.check_replacement(old.query, command.plan)

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

    def _distribute(
        self, command: StoredCommand, text: str, session: Session, tried: Tried | None = None
    ) -> Executed:
        """Write a command into the log, and do it."""
        logged = LoggedCommand(
            command_id(command),
            text,
            command,
            {n: value for n, value in session.overrides.items() if not config.is_secret(n)},
            config.without_secrets(self.settings),
        )
        try:
            sequence = self._log.append(*encode(logged))
        except OvertakenError:
            raise
        except CommandLogError as error:
            raise EngineError(
                f"Could not write the statement '{text}' into the command topic: {error}"
            ) from error
        return self._apply(logged, sequence, tried, is_own=True)

    def terminate_cluster(self, patterns: Iterable[str]) -> Executed:
        """End all queries for good; delete the sinks' topics that a pattern fits."""
        with self._lock:
            wanted = [re.compile(pattern) for pattern in patterns]
            last = self._up_to_date(self._terminate_all)
            sinks = [s for s in self.metastore.sources.values() if s.is_query_target]
            for source in sinks:
                if any(pattern.fullmatch(source.topic) for pattern in wanted):
                    self.cluster.delete_topic(source.topic)
            return Executed("cluster/TerminateCluster/terminate", "Cluster terminated.", last)

    def _terminate_all(self) -> int:
        session, last = Session(self.settings), -1
        for query_id in list(self.metastore.queries):
            command = ControlCommand(Control.TERMINATE, query_id)
            last = self._distribute(command, f"TERMINATE {query_id};", session).sequence
        return last

    # --- applying ----------------------------------------------------------------------------

    def _apply(
        self,
        logged: LoggedCommand,
        sequence: int,
        tried: Tried | None = None,
        *,
        is_own: bool = False,
    ) -> Executed:
        """Do what a record of the log says; `is_own`: this server has just written it.

        `tried`: the metastore as the command makes it, if that is known.
        """
        command = logged.command
        query_id = None
        if isinstance(command, ControlCommand):
            if command.control is Control.TERMINATE:
                self.metastore.queries.pop(command.query_id, None)
            message = self._running.control(command)
            self._views.forget_ended()
        else:
            dropped = None
            if isinstance(command, DropSourceCommand):
                dropped = self.metastore.must(command.name)
            terminate = self._running.terminate
            if tried is None:
                message = apply_to(self.metastore, command, logged.statement, terminate)
            else:
                for ended in tried.ended:
                    terminate(ended)
                message, self._context.metastore = tried.message, tried.metastore
            if isinstance(command, QueryCommand):
                query_id = command.plan.query_id
                self._running.add(command, logged)
            if dropped is not None and isinstance(command, DropSourceCommand):
                self._views.forget(dropped.name)
                # The server that took the statement deletes the topic, and no other: by the time
                # that they hear of it there may be a new one of that name.
                if command.deletes_topic and is_own:
                    self._delete_topic(dropped.topic, sequence)
            for made in wishes(command):
                self._keep(made)
        executed = Executed(logged.command_id, message, sequence, query_id)
        self.statuses[logged.command_id] = executed
        if len(self.statuses) > _STATUSES_MAX:
            del self.statuses[next(iter(self.statuses))]
        return executed

    def _keep(self, made: CreateSourceCommand) -> None:
        if self._is_started:
            self._views.keep(made.source)

    def _delete_topic(self, topic: str, sequence: int) -> None:
        self._before_delete(sequence)
        try:
            self.cluster.delete_topic(topic)
        except ClusterError as error:
            raise EngineError(
                f"Could not delete the corresponding kafka topic: {topic}: {error}"
            ) from error


def _is_inferred(parsed: ParsedStatement, command: Command) -> bool:
    """Return whether the registry has given columns that the statement does not name."""
    statement = parsed.statement
    if not isinstance(statement, tree.CreateSource) or not isinstance(command, CreateSourceCommand):
        return False
    return len(command.source.schema.columns) > len(statement.elements)
