"""Names of commands, as ksqlDB gives them, and what commands bring with them."""

from __future__ import annotations

from barnabas.sql.analysis.commands import (
    AlterSourceCommand,
    Command,
    CreateSourceCommand,
    CreateTypeCommand,
    DropSourceCommand,
    DropTypeCommand,
    QueryCommand,
)
from barnabas.sql.engine.command_log import ControlCommand, StoredCommand
from barnabas.sql.names import backquoted
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Statement


def wishes(command: Command) -> list[CreateSourceCommand]:
    """What the command makes that lies in a topic."""
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
