"""Answers to statements as text: each kind of answer has its way to be shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from barnabas.sql.shell.descriptions import (
    described_connector,
    described_function,
    described_query,
    described_source,
    type_text,
)
from barnabas.sql.shell.tables import table

Entity = Mapping[str, Any]


def entity_lines(entity: Entity) -> list[str]:
    """The lines that show an answer, with its warnings before it."""
    kind = str(entity.get("@type", ""))
    show = _SHOWN.get(kind)
    if show is None:
        shown = {name: value for name, value in entity.items() if value not in (None, [])}
        lines = json.dumps(shown, indent=2, ensure_ascii=False).splitlines()
    else:
        lines = show(entity)
    warnings = [f"WARNING: {one.get('message', '')}" for one in entity.get("warnings") or ()]
    return [*warnings, "", *lines]


def _message(text: str) -> list[str]:
    return table(["Message"], [[text]])


def _status(entity: Entity) -> list[str]:
    status = entity.get("commandStatus") or {}
    return _message(str(status.get("message") or status.get("status") or ""))


def _warning(entity: Entity) -> list[str]:
    return _message(str(entity.get("message", "")))


def _error(entity: Entity) -> list[str]:
    return _message(str(entity.get("errorMessage", "")))


def _sources(member: str, heading: str) -> Callable[[Entity], list[str]]:
    def show(entity: Entity) -> list[str]:
        headings = [heading, "Kafka Topic", "Key Format", "Value Format", "Windowed"]
        rows = [
            [
                _text(source.get("name")),
                _text(source.get("topic")),
                _text(source.get("keyFormat")),
                _text(source.get("valueFormat") or source.get("format")),
                _text(source.get("isWindowed")),
            ]
            for source in entity.get(member) or ()
        ]
        return table(headings, rows)

    return show


def _topics(entity: Entity) -> list[str]:
    headings = ["Kafka Topic", "Partitions", "Partition Replicas"]
    members: list[str] = []
    if entity.get("@type") == "kafka_topics_extended":
        headings += ["Consumers", "ConsumerGroups"]
        members = ["consumerCount", "consumerGroupCount"]
    rows = []
    for topic in entity.get("topics") or ():
        replicas = list(topic.get("replicaInfo") or ())
        shown = replicas[:1] if len(set(replicas)) == 1 else replicas
        row = [_text(topic.get("name")), str(len(replicas)), ", ".join(map(str, shown))]
        rows.append(row + [_text(topic.get(member)) for member in members])
    return table(headings, rows)


def messages(queries: Iterable[Entity]) -> list[str]:
    """Why queries do not run, a line for each that says so."""
    return [f"{_text(one.get('id'))}: {one['message']}" for one in queries if one.get("message")]


def _queries(entity: Entity) -> list[str]:
    rows = []
    for query in entity.get("queries") or ():
        counts = query.get("statusCount") or {}
        status = ", ".join(f"{name}:{count}" for name, count in counts.items())
        rows.append(
            [
                _text(query.get("id")),
                _text(query.get("queryType")),
                status or _text(query.get("state")),
                ", ".join(query.get("sinks") or ()),
                ", ".join(query.get("sinkKafkaTopics") or ()),
                " ".join(_text(query.get("queryString")).split()),
            ]
        )
    headings = ["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"]
    return [
        *table(headings, rows),
        *messages(entity.get("queries") or ()),
        "For detailed information on a Query run: EXPLAIN <Query ID>;",
    ]


def _functions(entity: Entity) -> list[str]:
    rows = sorted(
        (_text(f.get("name")), _text(f.get("category"))) for f in entity.get("functions") or ()
    )
    lines = table(["Function Name", "Category"], rows)
    return [*lines, "For detailed information about a function, run: DESCRIBE FUNCTION <Name>;"]


def _properties(entity: Entity) -> list[str]:
    given = entity.get("properties") or ()
    if isinstance(given, dict):  # servers of old
        given = [{"name": name, "value": value} for name, value in given.items()]
    of_session = set(entity.get("overwrittenProperties") or ())
    defaults = set(entity.get("defaultProperties") or ())
    rows = []
    for one in sorted(given, key=lambda one: str(one["name"])):
        name = str(one["name"])
        override = "SESSION" if name in of_session else "" if name in defaults else "SERVER"
        scope, level = _text(one.get("scope")), _text(one.get("level"))
        rows.append([name, scope, level, override, _text(one.get("value"))])
    return table(["Property", "Scope", "Level", "Default override", "Effective Value"], rows)


def _types(entity: Entity) -> list[str]:
    types: Mapping[str, Any] = entity.get("types") or {}
    return table(["Type Name", "Schema"], [[n, type_text(s)] for n, s in sorted(types.items())])


def _variables(entity: Entity) -> list[str]:
    rows = [[_text(v.get("name")), _text(v.get("value"))] for v in entity.get("variables") or ()]
    return table(["Variable Name", "Value"], rows)


def _connectors(entity: Entity) -> list[str]:
    rows = _rows(entity.get("connectors") or (), ("name", "type", "className", "state"))
    return table(["Connector Name", "Type", "Class", "Status"], rows)


def _plugins(entity: Entity) -> list[str]:
    rows = _rows(entity.get("connectorsPlugins") or (), ("className", "type", "version"))
    return table(["Class", "Type", "Version"], rows)


def _created(entity: Entity) -> list[str]:
    return _message(f"Created connector {(entity.get('info') or {}).get('name', '')}")


def _dropped(entity: Entity) -> list[str]:
    return _message(f'Dropped connector "{entity.get("connectorName", "")}"')


def _source(entity: Entity) -> list[str]:
    return described_source(entity.get("sourceDescription") or {})


def _descriptions(entity: Entity) -> list[str]:
    return _joined(described_source(one) for one in entity.get("sourceDescriptions") or ())


def _query(entity: Entity) -> list[str]:
    return described_query(entity.get("queryDescription") or {})


def _query_descriptions(entity: Entity) -> list[str]:
    return _joined(described_query(one) for one in entity.get("queryDescriptions") or ())


def _terminated(entity: Entity) -> list[str]:
    done = "terminated." if entity.get("wasTerminated", True) else "was not terminated."
    return _message(f"Query {entity.get('queryId', '')} {done}")


def _assert_topic(entity: Entity) -> list[str]:
    state = "exists" if entity.get("exists", True) else "does not exist"
    return _message(f"Topic {entity.get('topicName', '')} {state}.")


def _assert_schema(entity: Entity) -> list[str]:
    named = [f"subject name {entity['subject']}"] if entity.get("subject") else []
    named += [f"id {entity['id']}"] if entity.get("id") is not None else []
    state = "exists" if entity.get("exists", True) else "does not exist"
    return _message(f"Schema with {' '.join(named)} {state}.")


def _joined(parts: Iterable[list[str]]) -> list[str]:
    lines: list[str] = []
    for part in parts:
        lines += ["", *part] if lines else part
    return lines


def _rows(entities: Sequence[Entity], members: Sequence[str]) -> list[list[str]]:
    return [[_text(one.get(member)) for member in members] for one in entities]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


_SHOWN: dict[str, Callable[[Entity], list[str]]] = {
    "currentStatus": _status,
    "warning_entity": _warning,
    "error_entity": _error,
    "streams": _sources("streams", "Stream Name"),
    "tables": _sources("tables", "Table Name"),
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics,
    "queries": _queries,
    "function_names": _functions,
    "describe_function": described_function,
    "properties": _properties,
    "type_list": _types,
    "variables": _variables,
    "connector_info": _created,
    "drop_connector": _dropped,
    "connector_description": described_connector,
    "connector_list": _connectors,
    "connector_plugins_list": _plugins,
    "sourceDescription": _source,
    "source_descriptions": _descriptions,
    "queryDescription": _query,
    "query_descriptions": _query_descriptions,
    "terminate_query": _terminated,
    "assert_topic": _assert_topic,
    "assert_schema": _assert_schema,
}
