"""SqlTest: statements and records in memory, in virtual time, without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.sql.analysis.commands import DropSourceCommand, InsertValuesCommand, QueryCommand
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.errors import AnalysisError, text_in_errors
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.records import Row, WindowBounds
from barnabas.sql.runtime.topics import TopicRecord, key_reader
from barnabas.sql.schema import Column
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import (
    Control,
    ControlQuery,
    ParsedStatement,
    PrintTopic,
    Query,
    WindowKind,
)
from barnabas.sql.testing.sides import Side, SpecError, value_of, with_window
from barnabas.sql.testing.world import World
from barnabas.sql.udf import load_extensions


@dataclass(frozen=True)
class OutputRecord:
    """A record that was written: values by names of columns; `value` None deletes a table's row.

    `window`: start and end in milliseconds, where the key has a window.
    """

    key: dict[str, Any] | None
    value: dict[str, Any] | None
    timestamp_ms: int
    window: tuple[int, int] | None = None


class SqlTest:
    """An isolated SQL engine with its topics, for one test.

        with SqlTest() as test:
            test.execute("CREATE STREAM …; CREATE TABLE … AS SELECT …;")
            test.pipe("clicks", key={"user": "u1"}, value={"page": "a"}, timestamp_ms=0)
            assert test.read("CLICKS_PER_MINUTE") == [OutputRecord(…)]

    Each record runs through all queries before `pipe` returns. Time is what records say; `now_ms`
    is the time of records without one, and goes forward with them. A query reads what comes after
    its statement. `log` has what queries noted of records that they could not take.
    """

    def __init__(
        self,
        *,
        properties: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
        catalog: Mapping[str, Function] | None = None,
        partitions: int = 1,
        now_ms: int = 0,
    ) -> None:
        self._world = World(
            (
                load_extensions((properties or {}).get("ksql.extension.dir"))
                if catalog is None
                else catalog
            ),
            dict(properties or {}),
            variables=dict(variables or {}),
            now_ms=now_ms,
            partitions=partitions,
        )
        self._driver = Driver(
            (),
            self._compiler(),
            schemas=self._world.schemas,
            partitions=partitions,
            log=lambda message, _row, cause: self.log.append(f"{message}: {cause}"),
        )
        self._positions: dict[str, int] = {}

    def __enter__(self) -> SqlTest:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close; a `with` says where the world ends."""

    @property
    def log(self) -> list[str]:
        """The processing log."""
        return self._world.log

    @property
    def now_ms(self) -> int:
        """The time of records that come without one."""
        return self._world.now_ms

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self._world.now_ms += milliseconds

    # --- statements ------------------------------------------------------------------------

    def execute_file(self, path: str) -> None:
        """The statements of a file. Raises SqlError, OSError."""
        with open(path, encoding="utf-8") as file:
            self.execute(file.read())

    def execute(self, text: str) -> None:
        """CREATE, INSERT, DROP, TERMINATE, SET, DEFINE and their kin, in order. Raises SqlError."""
        for parsed in parse(text):
            self.execute_one(parsed)

    def execute_one(self, parsed: ParsedStatement) -> None:
        """One statement. Raises SqlError."""
        statement = parsed.statement
        if isinstance(statement, Query | PrintTopic):
            raise AnalysisError(
                "What a query gives can be read where CREATE … AS writes it", statement=parsed.text
            )
        if isinstance(statement, ControlQuery) and statement.control is Control.TERMINATE:
            self._terminate(statement.query_id)
            return
        with text_in_errors(parsed.text):
            command = self._world.statement(parsed)
        if isinstance(command, QueryCommand):
            self._driver.add(command.plan, self._compiler(), replaces=command.replaces)
        elif isinstance(command, DropSourceCommand):
            for query_id in self._world.metastore.writers(command.name):
                self._end(query_id)
        elif isinstance(command, InsertValuesCommand):
            self._pipe(*self._world.inserted[-1])

    def _compiler(self) -> PlanCompiler:
        return PlanCompiler(self._world.functions, self._world.properties)

    def _terminate(self, query_id: str | None) -> None:
        queries = self._world.metastore.queries
        if query_id is not None and query_id not in queries:
            raise AnalysisError(f"Unknown queryId: {query_id}")
        for one in list(queries) if query_id is None else [query_id]:
            self._end(one)

    def _end(self, query_id: str) -> None:
        self._world.metastore.queries.pop(query_id, None)
        self._world.plans.pop(query_id, None)
        self._driver.remove(query_id)

    def source(self, name: str) -> DataSource | None:
        """The stream or table of that name, as it was declared."""
        sources = self._world.metastore.sources
        return sources.get(name) or sources.get(name.upper())

    # --- records ---------------------------------------------------------------------------

    def pipe(
        self,
        name: str,
        key: Any = None,
        value: Any = None,
        timestamp_ms: int | None = None,
        *,
        window: tuple[int, int] | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Write a record to a topic, named by itself or by a stream or table over it.

        Keys and values are given by names of columns, or as the value of the only column; bytes
        are written as they are. Raises ValueError for what does not fit the columns.
        """
        topic = self._topic(name)
        key_side, value_side = self._world.sides(topic)
        encoded = _encoded(key_side, key)
        if window is not None:
            kept = self._world.window(topic)
            is_session = kept is not None and kept.kind is WindowKind.SESSION
            encoded = with_window(encoded, WindowBounds(*window), is_session=is_session)
        at = self.now_ms if timestamp_ms is None else timestamp_ms
        record = TopicRecord(encoded, _encoded(value_side, value), at, tuple(headers))
        self._pipe(topic, record)

    def _pipe(self, topic: str, record: TopicRecord) -> None:
        self._world.now_ms = max(self.now_ms, record.timestamp_ms)
        # A test can read each record once; the world's own must stay as they are.
        self._driver.pipe(topic, replace(record))

    def read(self, name: str) -> list[OutputRecord]:
        """The records of a stream, table or topic since the last time it was read, in order."""
        topic = self._topic(name)
        records = self._driver.topics.get(topic, [])
        start = self._positions.get(topic, 0)
        self._positions[topic] = len(records)
        return [self._output(topic, record) for record in records[start:]]

    def read_one(self, name: str) -> OutputRecord | None:
        """The next record, or None; the ones after it can still be read."""
        topic = self._topic(name)
        records = self._driver.topics.get(topic, [])
        start = self._positions.get(topic, 0)
        if start >= len(records):
            return None
        self._positions[topic] = start + 1
        return self._output(topic, records[start])

    def table(self, name: str) -> list[OutputRecord]:
        """The rows that a table has now: the last record of each key, without deleted ones."""
        topic = self._topic(name)
        rows: dict[bytes | None, TopicRecord] = {}
        for record in self._driver.topics.get(topic, []):
            rows.pop(record.key, None)
            if record.value is not None:
                rows[record.key] = record
        return [self._output(topic, record) for record in rows.values()]

    def _topic(self, name: str) -> str:
        source = self.source(name)
        if source is not None:
            return source.topic
        if name in self._world.topics or name in self._driver.topics:
            return name
        raise ValueError(f"There is no stream, table or topic {name}")

    def _output(self, topic: str, record: TopicRecord) -> OutputRecord:
        key_side, value_side = self._world.sides(topic)
        read_key = key_reader(key_side.decode_values, self._world.window(topic))
        key, window = read_key(record.key)
        value = value_side.decode_values(record.value)
        return OutputRecord(
            _named(key_side.columns, key),
            _named(value_side.columns, value),
            record.timestamp_ms,
            None if window is None else (window.start_ms, window.end_ms),
        )


def _encoded(side: Side, given: Any) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    return side.encode_values(_row(side.columns, given))


def _row(columns: Sequence[Column], given: Any) -> Row:
    if not isinstance(given, Mapping):
        if len(columns) != 1:
            names = ", ".join(column.name for column in columns) or "none"
            raise ValueError(f"{given!r} is not a row: give a value for each column ({names})")
        given = {columns[0].name: given}
    rest = dict(given)
    row = []
    for column in columns:
        name = column.name if column.name in rest else _other_case(rest, column.name)
        try:
            row.append(value_of(rest.pop(name, None), column.type))
        except (SpecError, ArithmeticError, ValueError) as error:
            raise ValueError(f"{column.name}: {error}") from error
    if rest:
        raise ValueError(f"There is no column {', '.join(rest)}")
    return row


def _other_case(given: Mapping[str, Any], name: str) -> str:
    return next((other for other in given if other.upper() == name), name)


def _named(columns: Sequence[Column], row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {column.name: value for column, value in zip(columns, row, strict=True)}
