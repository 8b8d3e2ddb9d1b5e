"""Text of statements in ksqlDB's canonical form, as the command topic and SHOW QUERIES have it.

Durations are written in the largest unit that leaves no remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from barnabas.java.time.units import MS_OF_UNIT
from barnabas.sql.names import quoted
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printer import (
    decimal_text,
    double_text,
    expression_text,
    string_text,
    type_text,
)


def statement_text(statement: tree.Statement) -> str:
    """The statement, without a `;`."""
    return _PRINTERS[type(statement)](statement)


def literal_text(value: tree.Literal) -> str:
    """The value of a property."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return string_text(value)
        case float():
            return double_text(value)
        case Decimal():
            return decimal_text(value)
        case _:
            return str(value)


def duration_text(ms: int) -> str:
    """A number and a unit of time."""
    unit = next(unit for unit, size in MS_OF_UNIT.items() if ms % size == 0)
    return f"{ms // MS_OF_UNIT[unit]} {unit}"


# --- queries ---------------------------------------------------------------------------------


def _query(query: tree.Query) -> str:
    items = [_select_item(item) for item in query.select]
    lines = ["SELECT " + items[0]] if len(items) == 1 else ["SELECT\n  " + ",\n  ".join(items)]
    lines.append(f"FROM {_source(query.source)}")
    lines += [_join(join) for join in query.joins]
    if query.window is not None:
        lines.append(f"WINDOW {_window(query.window)}")
    if query.where is not None:
        lines.append(f"WHERE {expression_text(query.where)}")
    if query.group_by is not None:
        lines.append(f"GROUP BY {_grouping(query.group_by)}")
    if query.partition_by is not None:
        lines.append(f"PARTITION BY {_grouping(query.partition_by)}")
    if query.having is not None:
        lines.append(f"HAVING {expression_text(query.having)}")
    if query.emit is not None:
        lines.append(f"EMIT {query.emit.value}")
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    return "\n".join(lines)


def _grouping(expressions: tuple[Any, ...]) -> str:
    return ", ".join(map(expression_text, expressions)) or "()"


def _select_item(item: tree.SelectItem) -> str:
    match item:
        case tree.AllColumns():
            return "*" if item.source is None else f"{quoted(item.source)}.*"
        case tree.StructAll():
            return f"{expression_text(item.base)}->*"
        case _:
            alias = "" if item.alias is None else f" {quoted(item.alias)}"
            return expression_text(item.expression) + alias


def _source(source: tree.Source) -> str:
    return f"{quoted(source.name)} {quoted(source.alias)}"


_JOIN_WORDS = {
    tree.JoinKind.INNER: "INNER",
    tree.JoinKind.LEFT: "LEFT OUTER",
    tree.JoinKind.RIGHT: "RIGHT OUTER",
    tree.JoinKind.OUTER: "FULL OUTER",
}


def _join(join: tree.Join) -> str:
    within = "" if join.within is None else _within(join.within)
    condition = expression_text(join.condition)
    return f"{_JOIN_WORDS[join.kind]} JOIN {_source(join.source)}{within} ON ({condition})"


def _within(within: tree.Within) -> str:
    before, after = duration_text(within.before_ms), duration_text(within.after_ms)
    size = before if within.before_ms == within.after_ms else f"({before}, {after})"
    grace = "" if within.grace_ms is None else f" GRACE PERIOD {duration_text(within.grace_ms)}"
    return f" WITHIN {size}{grace}"


def _window(window: tree.Window) -> str:
    size = duration_text(window.size_ms)
    parts = [size if window.kind is tree.WindowKind.SESSION else f"SIZE {size}"]
    if window.kind is tree.WindowKind.HOPPING:
        parts.append(f"ADVANCE BY {duration_text(window.advance_ms)}")
    if window.retention_ms is not None:
        parts.append(f"RETENTION {duration_text(window.retention_ms)}")
    if window.grace_ms is not None:
        parts.append(f"GRACE PERIOD {duration_text(window.grace_ms)}")
    name = "" if window.name is None else f"{window.name} "
    return f"{name}{window.kind.value} ( {' , '.join(parts)} ) "


# --- data definition -------------------------------------------------------------------------


def _with(properties: Mapping[str, tree.Literal], *, quotes: bool = False) -> str:
    """A WITH clause with its names in order, or nothing."""
    if not properties:
        return ""
    name = string_text if quotes else quoted
    listed = (f"{name(key)}={literal_text(properties[key])}" for key in sorted(properties))
    return f" WITH ({', '.join(listed)})"


def _words(statement: Any, *words: str) -> str:
    """The words, between which the statement's flags stand."""
    flags = {
        "or_replace": "OR REPLACE",
        "is_source": "SOURCE",
        "if_not_exists": "IF NOT EXISTS",
        "if_exists": "IF EXISTS",
    }
    shown = (flags.get(word, word) for word in words if getattr(statement, word, True))
    return " ".join(shown)


def _elements(elements: tuple[tree.ColumnElement, ...]) -> str:
    return f" ({', '.join(map(_element, elements))})" if elements else ""


def _element(element: tree.ColumnElement) -> str:
    constraint = "" if element.constraint is None else f" {element.constraint.value}"
    header = "" if element.header is None else f"({string_text(element.header)})"
    return f"{quoted(element.name)} {type_text(element.type)}{constraint}{header}"


def _create_source(statement: tree.CreateSource) -> str:
    words = _words(
        statement, "CREATE", "or_replace", "is_source", statement.kind.value, "if_not_exists"
    )
    elements, properties = _elements(statement.elements), _with(statement.properties)
    return f"{words} {quoted(statement.name)}{elements}{properties}"


def _create_as(statement: tree.CreateAsSelect) -> str:
    words = _words(statement, "CREATE", "or_replace", statement.kind.value, "if_not_exists")
    properties = _with(statement.properties)
    return f"{words} {quoted(statement.name)}{properties} AS {_query(statement.query)}"


def _insert_into(statement: tree.InsertInto) -> str:
    properties = _with(statement.properties)
    return f"INSERT INTO {quoted(statement.name)}{properties} {_query(statement.query)}"


def _columns(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, names))}) " if names else ""


def _values(expressions: tuple[Any, ...]) -> str:
    return f"({', '.join(map(expression_text, expressions))})"


def _insert_values(statement: tree.InsertValues) -> str:
    columns, values = _columns(statement.columns), _values(statement.values)
    return f"INSERT INTO {quoted(statement.name)} {columns}VALUES {values}"


def _drop(statement: tree.DropSource) -> str:
    words = _words(statement, "DROP", statement.kind.value, "if_exists")
    return f"{words} {quoted(statement.name)}{' DELETE TOPIC' * statement.delete_topic}"


def _alter(statement: tree.AlterSource) -> str:
    added = (f"ADD COLUMN {quoted(name)} {type_text(of)}" for name, of in statement.added)
    return f"ALTER {statement.kind.value} {quoted(statement.name)}\n" + ",\n".join(added)


def _create_type(statement: tree.CreateType) -> str:
    words = _words(statement, "CREATE", "TYPE", "if_not_exists")
    return f"{words} {quoted(statement.name)} AS {type_text(statement.type)}"


def _create_connector(statement: tree.CreateConnector) -> str:
    kind = "SOURCE" if statement.is_source else "SINK"
    words = _words(statement, "CREATE", kind, "CONNECTOR", "if_not_exists")
    return f"{words} {quoted(statement.name)}{_with(statement.properties, quotes=True)}"


# --- statements about statements --------------------------------------------------------------


def _extended(statement: Any) -> str:
    return " EXTENDED" if statement.extended else ""


def _describe(statement: tree.Describe) -> str:
    name = statement.name or ""
    match statement.described:
        case tree.Described.SOURCE:
            return f"DESCRIBE {quoted(name)}{_extended(statement)}"
        case tree.Described.FUNCTION:
            return f"DESCRIBE FUNCTION {name}"
        case tree.Described.CONNECTOR:
            return f"DESCRIBE CONNECTOR {quoted(name)}"
        case _:
            return f"DESCRIBE {statement.described.value}{_extended(statement)}"


def _explain(statement: tree.Explain) -> str:
    if statement.statement is None:
        return f"EXPLAIN {quoted(statement.query_id or '')}"
    return f"EXPLAIN\n{statement_text(statement.statement)}"


def _print(statement: tree.PrintTopic) -> str:
    parts = ["PRINT", string_text(statement.topic)]
    parts += ["FROM BEGINNING"] * statement.from_beginning
    parts += [] if statement.interval is None else [f"INTERVAL {statement.interval}"]
    parts += [] if statement.limit is None else [f"LIMIT {statement.limit}"]
    return " ".join(parts)


def _control(statement: tree.ControlQuery) -> str:
    named = "ALL" if statement.query_id is None else quoted(statement.query_id)
    return f"{statement.control.value} {named}"


def _set(statement: tree.SetProperty) -> str:
    words = "ALTER SYSTEM" if statement.is_system else "SET"
    return f"{words} {string_text(statement.name)}={string_text(statement.value)}"


# --- assertions ------------------------------------------------------------------------------


def _assert(exists: bool) -> str:
    return "ASSERT" if exists else "ASSERT NOT EXISTS"


def _timeout(timeout_ms: int | None) -> str:
    return "" if timeout_ms is None else f" TIMEOUT {duration_text(timeout_ms)}"


def _assert_topic(statement: tree.AssertTopic) -> str:
    topic, properties = string_text(statement.topic), _with(statement.properties)
    return f"{_assert(statement.exists)} TOPIC {topic}{properties}{_timeout(statement.timeout_ms)}"


def _assert_schema(statement: tree.AssertSchema) -> str:
    subject = "" if statement.subject is None else f" SUBJECT {string_text(statement.subject)}"
    number = "" if statement.schema_id is None else f" ID {statement.schema_id}"
    return f"{_assert(statement.exists)} SCHEMA{subject}{number}{_timeout(statement.timeout_ms)}"


def _assert_values(statement: tree.AssertValues) -> str:
    words = ("NULL VALUES", "KEY") if statement.is_tombstone else ("VALUES", "VALUES")
    columns, values = _columns(statement.columns), _values(statement.values)
    return f"ASSERT {words[0]} {quoted(statement.name)} {columns}{words[1]} {values}"


def _assert_source(statement: tree.AssertSource) -> str:
    elements, properties = _elements(statement.elements), _with(statement.properties)
    return f"ASSERT {statement.kind.value} {quoted(statement.name)}{elements}{properties}"


_PRINTERS: dict[type, Callable[[Any], str]] = {
    tree.Query: _query,
    tree.CreateSource: _create_source,
    tree.CreateAsSelect: _create_as,
    tree.InsertInto: _insert_into,
    tree.InsertValues: _insert_values,
    tree.DropSource: _drop,
    tree.AlterSource: _alter,
    tree.CreateType: _create_type,
    tree.DropType: lambda s: f"{_words(s, 'DROP', 'TYPE', 'if_exists')} {quoted(s.name)}",
    tree.CreateConnector: _create_connector,
    tree.DropConnector: lambda s: f"{_words(s, 'DROP', 'CONNECTOR', 'if_exists')} {quoted(s.name)}",
    tree.Show: lambda s: f"SHOW {'ALL ' * s.show_all}{s.listed.value}{_extended(s)}",
    tree.Describe: _describe,
    tree.Explain: _explain,
    tree.PrintTopic: _print,
    tree.ControlQuery: _control,
    tree.SetProperty: _set,
    tree.UnsetProperty: lambda s: f"UNSET {string_text(s.name)}",
    tree.DefineVariable: lambda s: f"DEFINE {s.name}={string_text(s.value)}",
    tree.UndefineVariable: lambda s: f"UNDEFINE {s.name}",
    tree.RunScript: lambda s: f"RUN SCRIPT {string_text(s.path)}",
    tree.AssertTopic: _assert_topic,
    tree.AssertSchema: _assert_schema,
    tree.AssertValues: _assert_values,
    tree.AssertSource: _assert_source,
}
