"""Effects of commands on queries: the queries of TERMINATE, and those that end with a source."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.analysis import commands
from barnabas.sql.analysis.commands import (
    AlterSourceCommand,
    Command,
    CreateSourceCommand,
    CreateTypeCommand,
    DropSourceCommand,
    DropTypeCommand,
    QueryCommand,
)
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.engine.command_log import ControlCommand, StoredCommand
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Statement


def controls(statement: tree.ControlQuery, metastore: MetaStore) -> list[ControlCommand]:
    """Return the commands of TERMINATE, PAUSE or RESUME, one per query. Raises AnalysisError."""
    if statement.query_id is None:
        return [ControlCommand(statement.control, name) for name in metastore.queries]
    if statement.query_id not in metastore.queries:
        raise AnalysisError(f"Unknown queryId: {statement.query_id}")
    return [ControlCommand(statement.control, statement.query_id)]


def apply_to(
    metastore: MetaStore,
    command: Command,
    text: str,
    terminate: Callable[[str], None] = lambda query_id: None,
) -> str:
    """`commands.apply`; a source that is dropped takes the query with it that made it.

    Raises AnalysisError, also if other queries use that source.
    """
    if isinstance(command, DropSourceCommand):
        for query_id in _makers(command.name, metastore):
            del metastore.queries[query_id]
            terminate(query_id)
    return commands.apply(command, metastore, text)


def _makers(name: str, metastore: MetaStore) -> list[str]:
    """The queries that made a source; raises AnalysisError if others read it or write into it."""
    made = [q for q in metastore.writers(name) if q.startswith(("CSAS_", "CTAS_"))]
    writers = [q for q in metastore.writers(name) if q not in made]
    readers = metastore.readers(name)
    if readers or writers:
        raise AnalysisError(
            f"Cannot drop {name}.\n"
            f"The following queries read from this source: [{', '.join(readers)}].\n"
            f"The following queries write into this source: [{', '.join(writers)}].\n"
            f"You need to terminate them before dropping {name}."
        )
    return made


def wishes(command: Command) -> list[CreateSourceCommand]:
    """Return the topics that the command creates."""
    if isinstance(command, CreateSourceCommand):
        return [command]
    if isinstance(command, QueryCommand) and command.ddl is not None:
        return [command.ddl]
    return []


def command_id(command: StoredCommand) -> str:
    """The id of a command, which is its key in the log."""
    match command:
        case CreateSourceCommand():
            return f"{command.source.kind.value.lower()}/{backquoted(command.source.name)}/create"
        case QueryCommand():
            if command.ddl is not None:
                return command_id(command.ddl)
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


def statement_id(statement: Statement) -> str:
    """The id of the command that the statement would be, if there were something to do."""
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
