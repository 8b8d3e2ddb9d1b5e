"""Entities of answers: JSON objects by ksqlDB's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine.engine import Executed
from barnabas.sql.engine.push import PushQuery
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import Array, Decimal, Map, SqlType, Struct

Entity = dict[str, Any]


def entity(kind: str, statement: str, **members: Any) -> Entity:
    """One result of a statement."""
    return {"@type": kind, "statementText": statement, **members, "warnings": []}


def command_status(statement: str, executed: Executed) -> Entity:
    """Return the outcome of a statement of the command log."""
    if executed.is_warning:
        return entity("warning_entity", statement, message=executed.message)
    answer = entity(
        "currentStatus",
        statement,
        commandId=executed.command_id,
        commandStatus=status(executed),
        commandSequenceNumber=executed.sequence,
    )
    if executed.note:
        answer["warnings"] = [{"message": executed.note}]
    return answer


def status(executed: Executed) -> Entity:
    return {
        "status": "SUCCESS",
        "message": executed.message,
        "queryId": executed.query_id,
    }


def schema_info(kind: SqlType) -> Entity:
    """A type."""
    info: Entity = {"type": kind.base.value, "fields": None, "memberSchema": None}
    match kind:
        case Array(item):
            info["memberSchema"] = schema_info(item)
        case Map(_, item):
            info["memberSchema"] = schema_info(item)
        case Struct(fields):
            info["fields"] = [{"name": f.name, "schema": schema_info(f.type)} for f in fields]
        case Decimal(precision, scale):
            info["parameters"] = {"precision": precision, "scale": scale}
    return info


def field_info(column: Column) -> Entity:
    """A column of a source."""
    info: Entity = {"name": column.name, "schema": schema_info(column.type)}
    if column.part is Part.KEY:
        info["type"] = "KEY"
    elif column.part is Part.HEADERS:
        info["type"] = "HEADER"
        if column.header is not None:
            info["headerKey"] = column.header
    return info


def fields(columns: Iterable[Column]) -> list[Entity]:
    return [field_info(column) for column in columns]


def source_info(source: DataSource) -> Entity:
    """A stream or table of a list."""
    return {
        "type": source.kind.value,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.formats.key.name.upper(),
        "valueFormat": source.formats.value.name.upper(),
        "isWindowed": source.is_windowed,
    }


def running_query(running: RunningQuery, topics: Mapping[str, str]) -> Entity:
    """A persistent query of a list; `topics`: the topic of each source."""
    plan = running.query.plan
    sinks = [] if plan.sink is None else [plan.sink]
    state = running.state.value
    message = running.message
    return {
        "queryString": running.query.text,
        "sinks": sinks,
        "sinkKafkaTopics": [topics[sink] for sink in sinks if sink in topics],
        "id": plan.query_id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
        # Ours: ksqlDB's clients pass over members that they do not know.
        **({"message": message} if message else {}),
    }


def push_query(query: PushQuery) -> Entity:
    """A push query of a list."""
    return {
        "queryString": query.text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": query.query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
    }


def topic_info(name: str, replicas: Sequence[int]) -> Entity:
    return {"name": name, "replicaInfo": list(replicas)}
