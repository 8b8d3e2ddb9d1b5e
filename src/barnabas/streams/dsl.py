"""Streams and tables, and the steps between them: what a pipeline is written with.

    from barnabas.streams import Pipeline, f, json, stream, table

    stations = table("stations", schema="name STRING, city STRING")
    energy = (
        stream("charging", schema="station STRING, kwh DOUBLE, at TIMESTAMP", event_time="at")
        .filter("kwh > 0")
        .join(stations, on="station")
        .window("1 minute")
        .group_by("station", "city")
        .agg(kwh=f.sum("kwh"))
        .to("energy-per-minute", key="station")
    )
    pipeline = Pipeline("energy", energy)

Names are PySpark's in Python's spelling (`filter`, `select`, `with_columns`, `group_by`, `agg`,
`join`). Each step is a new Stream, and has Spark's DataFrame in `df`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from barnabas.streams.avro_format import avro
from barnabas.streams.errors import PipelineError
from barnabas.streams.expressions import ColumnLike, named, selected, selection, to_column
from barnabas.streams.formats import Format, as_format, json, string
from barnabas.streams.names import KEY, Makes, check_columns, value_columns, without
from barnabas.streams.outputs import Output, ReadOn
from barnabas.streams.schemas import SchemaLike
from barnabas.streams.sources import GivenFrame, Source
from barnabas.streams.steps import Building, Change, OfFrame, Step, Union
from barnabas.streams.windows import Aggregated, Window, hopping, session, tumbling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.streams.processor import Processor

How = Literal["inner", "left"]
Emit = Literal["changes", "final"]
Starting = Literal["earliest", "latest"]
DEFAULT_WATERMARK = "10 seconds"


def stream(
    topic: str,
    *,
    schema: SchemaLike | Format | None = None,
    key_schema: SchemaLike | Format | None = None,
    event_time: str | None = None,
    watermark: str = DEFAULT_WATERMARK,
    starting: Starting = "earliest",
    **options: Any,
) -> Stream:
    """Read a topic.

    `schema` says what values are: DDL or a dataclass (JSON objects), a format (`json(…)`,
    `avro(…)`, `string()`, `binary()`); without one it is Avro of the registry's subject
    `<topic>-value`. `key_schema` does the same for keys; without one they are strings.
    `event_time` names the column that says when it happened: a timestamp, or milliseconds; without
    one it is the record's timestamp. Rows may come later than the latest by `watermark`.
    `starting` counts at the first start only. `options` are those of Spark's Kafka source.
    """
    return Stream(
        Source(
            topic,
            as_format(schema) if schema is not None else avro(),
            as_format(key_schema) if key_schema is not None else string(),
            event_time,
            watermark,
            starting,
            options,
        )
    )


def table(
    topic: str,
    *,
    schema: SchemaLike | Format | None = None,
    key_schema: SchemaLike | Format | None = None,
) -> Table:
    """Read a compacted topic as a table: the last value of each key; a null value deletes.

    `schema` and `key_schema` are those of `stream`.
    """
    source = Source(
        topic,
        as_format(schema) if schema is not None else avro(),
        as_format(key_schema) if key_schema is not None else string(),
        is_table=True,
    )
    return Table(source, columns=source.columns())


def from_dataframe(
    frame: DataFrame | Callable[[SparkSession], DataFrame],
    *,
    key: ColumnLike | None = None,
    event_time: ColumnLike | None = None,
    watermark: str | None = DEFAULT_WATERMARK,
) -> Stream:
    """Start from any DataFrame of Spark's, or from a function that makes one of the session."""
    return Stream(GivenFrame(frame, key, event_time, watermark))


class Stream:
    """Rows that come in. Its methods return new streams; nothing runs before the pipeline does."""

    def __init__(self, step: Step) -> None:
        self.step = step

    @property
    def df(self) -> DataFrame:
        """Spark's DataFrame up to here, a new one at each access.

        It reads the cluster that `connect` or the environment variables name. Record columns
        (`_key`, `_timestamp`, `_topic`, `_partition`, `_offset`, `_headers`) are among its columns.
        """
        from barnabas.streams.environment import current

        return self.step.frame(Building(current()))

    def filter(self, condition: ColumnLike) -> Stream:
        """Keep the rows for which a condition is true."""
        return self._changed(
            "filter", lambda frame: frame.where(to_column(frame, condition)), named([condition])
        )

    def where(self, condition: ColumnLike) -> Stream:
        """Keep the rows for which a condition is true: `filter`'s other name in SQL and Spark."""
        return self.filter(condition)

    def select(self, *columns: ColumnLike, **more: ColumnLike) -> Stream:
        """Keep these columns and no others; `name=expression` makes one."""
        return self._changed(
            "select", lambda frame: selected(frame, columns, more), *selection(columns, more)
        )

    def with_columns(self, **more: ColumnLike) -> Stream:
        """Add columns, or replace those of the same name."""
        return self._changed(
            "with_columns",
            lambda frame: frame.withColumns(
                {name: to_column(frame, column) for name, column in more.items()}
            ),
            named(more.values()),
            lambda before: [*without(before, list(more)), *more],
        )

    def drop(self, *names: str) -> Stream:
        """Leave columns out."""
        return self._changed(
            "drop", lambda frame: frame.drop(*names), (), lambda before: without(before, names)
        )

    def rename(self, **new_to_old: str) -> Stream:
        """Rename columns: `rename(new="old")`."""
        old_to_new = {old: new for new, old in new_to_old.items()}
        return self._changed(
            "rename",
            lambda frame: frame.withColumnsRenamed(old_to_new),
            list(old_to_new),
            lambda before: [old_to_new.get(name, name) for name in before],
        )

    def with_key(self, key: ColumnLike) -> Stream:
        """Give rows another key."""
        return self._changed(
            "with_key", lambda frame: frame.withColumn(KEY, to_column(frame, key)), named([key])
        )

    def transform(self, change: Callable[[DataFrame], DataFrame]) -> Stream:
        """Apply a function of your own to Spark's DataFrame; keep `_timestamp` as it is."""
        return Stream(Change(self.step, change))

    def _changed(
        self, called: str, change: OfFrame, uses: Sequence[str], makes: Makes = list
    ) -> Stream:
        return Stream(Change(self.step, change, uses, makes, called))

    def map(self, function: Callable[[dict[str, Any]], Any], schema: SchemaLike) -> Stream:
        """Make of each row another, in Python: `function(row) -> row`, of columns of `schema`.

        Rows are dicts; a dataclass may be returned. None leaves the row out, a list gives several.
        A row for which it raises, or returns what does not fit the schema, is a dead letter.
        """
        from barnabas.streams.mapping import Mapped

        return Stream(Mapped(self.step, function, schema))

    def union(self, *others: Stream) -> Stream:
        """Put streams of the same columns together."""
        return Stream(Union(self.step, *(other.step for other in others)))

    def distinct(self, *columns: str) -> Stream:
        """Drop rows whose columns were there before, within the watermark's delay."""
        from barnabas.streams.joins import Distinct

        return Stream(Distinct(self.step, columns))

    def group_by(self, *columns: ColumnLike, **named: ColumnLike) -> Grouped:
        """Group rows for `agg`, `count`, a window, or a Processor."""
        return Grouped(self.step, columns, named, None)

    def window(self, size: str, *, every: str | None = None) -> Grouped:
        """Group rows into windows of event time; they overlap where `every` is less than `size`."""
        return Grouped(self.step, (), {}, hopping(size, every) if every else tumbling(size))

    def session_window(self, gap: str) -> Grouped:
        """Group rows into sessions that end after a gap; needs a `group_by`."""
        return Grouped(self.step, (), {}, session(gap))

    def join(
        self,
        other: Stream | Table,
        on: str | Sequence[str],
        *,
        how: How = "inner",
        within: str | None = None,
        before: str | None = None,
        after: str | None = None,
    ) -> Stream:
        """Join rows with a table, or with the rows of a stream.

        A table: `on` names the column that is its key; each row joins what the table has at that
        time. A stream: rows join that agree in the columns `on` and whose event times are `within`
        of each other; or its rows are at most `before` before, and `after` after, ours.
        """
        columns = [on] if isinstance(on, str) else list(on)
        if isinstance(other, Table):
            from barnabas.streams.table_join import TableJoined

            if within or before or after:
                raise PipelineError("a join with a table has no time bounds")
            if len(columns) != 1:
                raise PipelineError("a join with a table is on one column, which is its key")
            rows = (other.source, other.change, other.columns)
            return Stream(TableJoined(self.step, *rows, on=columns[0], how=how))
        from barnabas.streams.joins import StreamJoined

        if within is None and before is None and after is None:
            raise PipelineError("a join of streams needs a bound in time: within='5 minutes'")
        return Stream(
            StreamJoined(
                self.step,
                other.step,
                columns,
                how,
                before or within or "0 seconds",
                after or within or "0 seconds",
            )
        )

    def to(
        self,
        topic: str,
        *,
        schema: Format | None = None,
        key: ColumnLike | Sequence[ColumnLike] | None = None,
        key_schema: Format | None = None,
    ) -> Output:
        """Write rows to a topic: as JSON, or as `schema` says (`avro()`).

        `key` is the column of the records' key, several become one JSON object; without one it is
        what the rows were grouped by, else the key that they were read with.
        The partition follows from the key as for Java's producers.
        """
        return Output(self.step, topic, schema or json(), key, key_schema)

    def through(
        self,
        topic: str,
        *,
        schema: Format | None = None,
        key: ColumnLike | Sequence[ColumnLike] | None = None,
    ) -> Relay:
        """Write rows to a topic and read on from it: `.read(schema=…)`. A separate query."""
        return Relay(self.to(topic, schema=schema, key=key))


class Relay:
    """A topic between two queries of a pipeline."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def read(self, **how: Any) -> Stream:
        """Read on; takes what `stream` takes after the topic."""
        return Stream(ReadOn(stream(self._output.topic, **how).step, self._output))


class Table:
    """A compacted topic: the last row of each key."""

    def __init__(
        self,
        source: Source,
        change: Callable[[DataFrame], DataFrame] = lambda frame: frame,
        columns: Sequence[str] | None = None,
    ) -> None:
        """`columns` are those that come of `change`, as far as they are known without Spark."""
        self.source = source
        self.change = change
        self.columns = columns

    @property
    def df(self) -> DataFrame:
        """The table as it is now: a DataFrame that is not a stream, with its key in `_key`."""
        from barnabas.streams.environment import current
        from barnabas.streams.table_join import snapshot

        return self.change(snapshot(self.source, current()))

    def select(self, *columns: ColumnLike, **more: ColumnLike) -> Table:
        """Keep these columns and no others; `name=expression` makes one."""
        uses, makes = selection(columns, more)
        check_columns(f"select of {self.source.topic}", uses, self.columns)
        return Table(
            self.source,
            lambda frame: selected(self.change(frame), columns, more),
            None if self.columns is None else makes(value_columns([*self.columns])),
        )


class Grouped:
    """Rows in groups: by columns, by windows of event time, or by both."""

    def __init__(
        self,
        step: Step,
        columns: tuple[ColumnLike, ...],
        named: dict[str, ColumnLike],
        window: Window | None,
    ) -> None:
        self._step = step
        self._columns = columns
        self._named = named
        self._window = window

    def group_by(self, *columns: ColumnLike, **named: ColumnLike) -> Grouped:
        """Group by these columns too."""
        both = {**self._named, **named}
        return Grouped(self._step, (*self._columns, *columns), both, self._window)

    def window(self, size: str, *, every: str | None = None) -> Grouped:
        """Group by windows of event time too; they overlap where `every` is less than `size`."""
        return self._windowed(hopping(size, every) if every else tumbling(size))

    def session_window(self, gap: str) -> Grouped:
        """Group into sessions that end after a gap."""
        return self._windowed(session(gap))

    def count(self, name: str = "count", *, emit: Emit | None = None) -> Stream:
        """Count the rows of each group."""
        return self._aggregated({name: "count(*)"}, emit)

    def agg(self, *, emit: Emit | None = None, **named: ColumnLike) -> Stream:
        """Aggregate each group: `agg(kwh=f.sum("kwh"), last="max_by(state, at)")`.

        Windows add the columns `window_start` and `window_end`. `emit="changes"`: a result each
        time it changes (once per micro-batch). `emit="final"`: one result, when the watermark has
        passed the window's end. Without it: changes where Spark can, which is where this is the one
        step with state of its query and no session window; else final.
        """
        return self._aggregated(named, emit)

    def process(self, processor: Processor[Any, Any, Any]) -> Stream:
        """Give each row to a Processor of yours, which has state and timers for each group."""
        from barnabas.streams.processor_step import Processed

        if self._window is not None:
            raise PipelineError("a processor has its own timers: it takes no window")
        return Stream(Processed(self._step, self._columns, self._named, processor))

    def _windowed(self, window: Window) -> Grouped:
        if self._window is not None:
            raise PipelineError("rows are in windows already")
        return Grouped(self._step, self._columns, self._named, window)

    def _aggregated(self, named: dict[str, ColumnLike], emit: Emit | None) -> Stream:
        return Stream(Aggregated(self._step, self._columns, self._named, self._window, named, emit))
