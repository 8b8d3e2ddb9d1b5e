"""Sources, queries and functions as DESCRIBE and EXPLAIN show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.sql.shell.tables import table

_LABEL = 20


def described_source(source: Mapping[str, Any]) -> list[str]:
    """A stream or table; EXTENDED tells more."""
    lines = [_labelled("Name", source.get("name"))]
    if not source.get("extended"):
        lines += _fields(source)
        hint = "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"
        return [*lines, hint]
    place = f"(partitions: {source.get('partitions')}, replication: {source.get('replication')})"
    lines += [
        _labelled("Type", source.get("type")),
        _labelled("Timestamp field", source.get("timestamp") or "Not set - using <ROWTIME>"),
        _labelled("Key format", source.get("keyFormat")),
        _labelled("Value format", source.get("valueFormat") or source.get("format")),
        _labelled("Kafka topic", f"{source.get('topic')} {place}"),
        _labelled("Statement", source.get("statement")),
    ]
    if source.get("windowType"):
        lines.append(_labelled("Window type", source["windowType"]))
    lines += ["", *_fields(source)]
    kind = source.get("type", "source")
    for member, title in (
        ("sourceConstraints", f"Sources that are made from this {kind}"),
        ("readQueries", f"Queries that read from this {kind}"),
        ("writeQueries", f"Queries that write from this {kind}"),
    ):
        lines += _listed(title, source.get(member) or ())
    if source.get("readQueries") or source.get("writeQueries"):
        lines += ["", "For query topology and execution plan please run: EXPLAIN <QueryId>"]
    lines += _statistics(source)
    for summary in source.get("queryOffsetSummaries") or ():
        lines += _offsets(summary)
    return lines


def described_query(query: Mapping[str, Any]) -> list[str]:
    """A query, running or not."""
    lines = [
        _labelled("ID", query.get("id")),
        _labelled("Query Type", query.get("queryType")),
    ]
    hosts = query.get("ksqlHostQueryStatus") or {}
    if hosts:
        shown = ", ".join(f"{host}={state}" for host, state in hosts.items())
        lines.append(_labelled("Host Query Status", f"{{{shown}}}"))
    if query.get("message"):
        lines.append(_labelled("Status", query["message"]))
    errors = query.get("queryErrors") or ()
    if errors:
        rows = [[str(e.get("type", "")), str(e.get("errorMessage", ""))] for e in errors]
        lines += ["", "Errors", *table(["Type", "Message"], rows), ""]
    lines.append(_labelled("SQL", query.get("statementText")))
    if query.get("windowType"):
        lines.append(_labelled("Window Type", query["windowType"]))
    if query.get("consumerGroupId"):
        lines.append(_labelled("Consumer Group", query["consumerGroupId"]))
    lines += ["", *_fields(query)]
    lines += _listed("Sources that this query reads from", query.get("sources") or ())
    lines += _listed("Sinks that this query writes to", query.get("sinks") or ())
    for title, member in (
        ("Execution plan", "executionPlan"),
        ("Processing topology", "topology"),
    ):
        if query.get(member):
            lines += ["", title, "-" * len(title), *str(query[member]).rstrip().splitlines()]
    overridden = query.get("overriddenProperties") or {}
    if overridden:
        rows = [[name, str(value)] for name, value in sorted(overridden.items())]
        lines += ["", "Overridden Properties", *table(["Property", "Value"], rows)]
    return lines


def described_function(entity: Mapping[str, Any]) -> list[str]:
    """A function with each of its forms."""
    lines = [_labelled("Name", entity.get("name"), 12)]
    for label, member in (("Author", "author"), ("Version", "version")):
        if entity.get(member):
            lines.append(_labelled(label, entity[member], 12))
    if entity.get("description"):
        lines.append(_labelled("Overview", entity["description"], 12))
    lines.append(_labelled("Type", str(entity.get("type", "")).upper(), 12))
    if entity.get("path"):
        lines.append(_labelled("Jar", entity["path"], 12))
    lines += [_labelled("Variations", "", 12).rstrip()]
    for form in entity.get("functions") or ():
        arguments = form.get("arguments") or ()
        shown = ", ".join(
            " ".join(filter(None, (a.get("name"), _argument_type(a)))) for a in arguments
        )
        lines += ["", f"\tVariation   : {entity.get('name')}({shown})"]
        lines.append(f"\tReturns     : {form.get('returnType', '')}")
        if form.get("description"):
            lines.append(f"\tDescription : {form['description']}")
        for argument in arguments:
            if argument.get("description"):
                lines.append(f"\t{argument.get('name', ''):<12}: {argument['description']}")
    return lines


def described_connector(entity: Mapping[str, Any]) -> list[str]:
    """A connector, its tasks, and the sources over its topics."""
    status = entity.get("status") or {}
    connector = status.get("connector") or {}
    lines = [
        _labelled("Name", status.get("name")),
        _labelled("Class", entity.get("connectorClass")),
        _labelled("Type", status.get("type")),
        _labelled("State", connector.get("state")),
        _labelled("WorkerId", connector.get("worker_id")),
    ]
    if connector.get("trace"):
        lines.append(_labelled("Trace", connector["trace"]))
    tasks = [
        [str(task.get("id")), str(task.get("state")), _first_line(task.get("trace"))]
        for task in status.get("tasks") or ()
    ]
    if tasks:
        lines += ["", *table(["Task ID", "State", "Error Trace"], tasks)]
    sources = [
        [str(source.get(member, "")) for member in ("name", "topic", "type")]
        for source in entity.get("sources") or ()
    ]
    if sources:
        lines += ["", *table(["SQL Source Name", "Kafka Topic", "Type"], sources)]
    topics = [[topic] for topic in entity.get("topics") or ()]
    if topics:
        lines += ["", *table(["Related Topics"], topics)]
    return lines


def _first_line(trace: Any) -> str:
    return str(trace or "").strip().partition("\n")[0]


def type_text(schema: Mapping[str, Any]) -> str:
    """A type as tables show it."""
    kind = str(schema.get("type", ""))
    member = schema.get("memberSchema")
    if kind == "STRING":
        return "VARCHAR(STRING)"
    if kind == "ARRAY" and member:
        return f"ARRAY<{type_text(member)}>"
    if kind == "MAP" and member:
        return f"MAP<STRING, {type_text(member)}>"
    if kind == "STRUCT":
        fields = schema.get("fields") or ()
        return "STRUCT<" + ", ".join(f"{f['name']} {type_text(f['schema'])}" for f in fields) + ">"
    parameters = schema.get("parameters") or {}
    if kind == "DECIMAL" and parameters:
        return f"DECIMAL({parameters.get('precision')}, {parameters.get('scale')})"
    return kind


def _fields(described: Mapping[str, Any]) -> list[str]:
    key = "(primary key)" if described.get("type") == "TABLE" else "(key)"
    windowed = described.get("windowType")
    rows = []
    for field in described.get("fields") or ():
        shown = type_text(field["schema"])
        role = field.get("type")
        if role == "KEY":
            shown = f"{shown:<16} {key}"
            if windowed:
                shown += f" (Window type: {windowed})"
        elif role == "HEADER":
            name = field.get("headerKey")
            shown = f"{shown:<16} " + ("(headers)" if name is None else f"(header('{name}'))")
        rows.append([str(field["name"]), shown])
    return table(["Field", "Type"], rows)


def _listed(title: str, items: Sequence[Any]) -> list[str]:
    if not items:
        return []
    lines = ["", title, "-" * 35]
    for item in items:
        if isinstance(item, Mapping):
            text = " ".join(str(item.get("queryString", "")).split())
            lines.append(f"{item.get('id')} ({item.get('state', '')}) : {text}")
            if item.get("message"):
                lines.append(f"  {item['message']}")
        else:
            lines.append(str(item))
    return lines


def _statistics(source: Mapping[str, Any]) -> list[str]:
    figures = [str(source.get(m) or "").strip() for m in ("statistics", "errorStats")]
    shown = [figure for figure in figures if figure]
    if not shown:
        return []
    return ["", "Local runtime statistics", "------------------------", *shown]


def _offsets(summary: Mapping[str, Any]) -> list[str]:
    lines = ["", _labelled("Consumer Group", summary.get("groupId"))]
    for topic in summary.get("topicSummaries") or ():
        rows = []
        for one in topic.get("offsets") or ():
            start, end = int(one["logStartOffset"]), int(one["logEndOffset"])
            at = int(one["consumerOffset"])
            rows.append([str(one["partition"]), str(start), str(end), str(at), str(end - at)])
        lines.append(_labelled("Kafka topic", topic.get("kafkaTopic")))
        lines += table(["Partition", "Start Offset", "End Offset", "Offset", "Lag"], rows)
    return lines


def _argument_type(argument: Mapping[str, Any]) -> str:
    kind = str(argument.get("type", ""))
    return f"{kind}[]" if argument.get("isVariadic") else kind


def _labelled(label: str, value: Any, width: int = _LABEL) -> str:
    return f"{label:<{width}} : {'' if value is None else value}"
