"""The log of commands: all that changed what streams, tables and queries there are, in order.

Its records are what ksqlDB has in its command topic: as key the command's id, as value

    {"statement": …, "streamsProperties": {…}, "originalProperties": {…}, "plan": {…}, "version": …}

`plan` is ours: the analysed command, so that a later start does not depend on what the schema
registry says by then, or on how later versions analyse statements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from barnabas.sql.analysis import commands
from barnabas.sql.plan.encoding import PlanFormatError, from_json, to_json
from barnabas.sql.syntax.tree import Control

VERSION = 15
"""The version of ksqlDB's commands that ours read like."""
_PLAN_VERSION = 1


@dataclass(frozen=True)
class ControlCommand:
    """TERMINATE, PAUSE or RESUME of a query."""

    control: Control
    query_id: str


StoredCommand = (
    commands.CreateSourceCommand
    | commands.QueryCommand
    | commands.DropSourceCommand
    | commands.CreateTypeCommand
    | commands.DropTypeCommand
    | commands.AlterSourceCommand
    | ControlCommand
)
_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        commands.CreateSourceCommand,
        commands.QueryCommand,
        commands.DropSourceCommand,
        commands.CreateTypeCommand,
        commands.DropTypeCommand,
        commands.AlterSourceCommand,
        ControlCommand,
    )
}


@dataclass(frozen=True)
class LoggedCommand:
    """A command and what it was said with. `properties`: those of the statement alone."""

    command_id: str
    statement: str
    command: StoredCommand
    properties: Mapping[str, Any] = field(default_factory=dict)
    server_properties: Mapping[str, str] = field(default_factory=dict)


class LogEntry(NamedTuple):
    """A record of the log; `sequence` is its offset."""

    sequence: int
    key: bytes
    value: bytes


class CommandLogError(Exception):
    """A record of the log cannot be read, or none can be written."""


class OvertakenError(CommandLogError):
    """Another server has written since the log was read: read it, and decide again."""


class CommandLog(Protocol):
    """A store of commands. `step`: how far apart the numbers of two records are."""

    step: int

    def read_new(self) -> list[LogEntry]:
        """The records that were not read yet, in order, up to the end as it is now."""
        ...

    def next_sequence(self) -> int:
        """The number that the next record will have, if nobody else writes one before."""
        ...

    def append(self, key: bytes, value: bytes) -> int:
        """Write a record, which counts as read: gives its number. Raises CommandLogError.

        Raises OvertakenError, and writes nothing, if there are records that were not read.
        """
        ...

    def close(self) -> None: ...


def topic_name(service_id: str) -> str:
    """The command topic of a server's cluster."""
    return f"_confluent-ksql-{service_id}_command_topic"


def encode(command: LoggedCommand) -> tuple[bytes, bytes]:
    """A record's key and value."""
    plan = {
        "@type": "barnabasPlanV1",
        "version": _PLAN_VERSION,
        "is": type(command.command).__name__,
        "command": to_json(command.command),
    }
    value = {
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "originalProperties": dict(command.server_properties),
        "plan": plan,
        "version": VERSION,
    }
    return json.dumps(command.command_id).encode(), json.dumps(value, default=str).encode()


def decode(entry: LogEntry) -> LoggedCommand:
    """The command of a record. Raises CommandLogError."""
    try:
        value = json.loads(entry.value)
        plan = value["plan"]
        if plan["version"] != _PLAN_VERSION:
            raise CommandLogError(
                f"command {entry.sequence} has a plan of version {plan['version']}, this program "
                f"reads {_PLAN_VERSION}"
            )
        return LoggedCommand(
            json.loads(entry.key),
            value["statement"],
            from_json(_KINDS[plan["is"]], plan["command"]),
            value.get("streamsProperties") or {},
            value.get("originalProperties") or {},
        )
    except (ValueError, LookupError, TypeError, PlanFormatError) as error:
        raise CommandLogError(f"cannot read command {entry.sequence}: {error}") from error
