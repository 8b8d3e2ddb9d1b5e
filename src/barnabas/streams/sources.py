"""Where rows come from: topics, what cannot be read of them, and DataFrames of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from barnabas.streams.errors import PipelineError
from barnabas.streams.expressions import to_column
from barnabas.streams.formats import SCALAR_COLUMN, Format, Reader
from barnabas.streams.names import (
    DELETED,
    KEY,
    RECORD_COLUMNS,
    TIMESTAMP,
    WRITTEN,
    check_columns,
    check_duration,
    check_topic,
    check_word,
)
from barnabas.streams.steps import Building, Environment, Step, barrier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EXCEPTION: Final = "barnabas.streams.MalformedRecordError"
_EARLIEST: Final = "1900-01-01"
_LATEST: Final = "2200-01-01"
"""Event times must lie between: pandas, which timers need, ends in 2262."""
_NUMERIC: Final = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Parts:
    """Columns of a source's frame that only this module knows."""

    key: str = "_parsed_key"
    value: str = "_parsed_value"
    time: str = "_event_time"
    problem: str = "_problem"
    stage: str = "_stage"


_PARTS: Final = Parts()


class Source(Step):
    """A topic. In a table a null value is a row of nulls, in a stream it is passed over."""

    def __init__(
        self,
        topic: str,
        value_format: Format,
        key_format: Format,
        event_time: str | None = None,
        watermark: str | None = None,
        starting: str = "earliest",
        options: dict[str, Any] | None = None,
        *,
        is_table: bool = False,
    ) -> None:
        check_topic(topic)
        check_word("starting", starting, ("earliest", "latest"))
        if watermark is not None:
            check_duration("a watermark", watermark, may_be_long=True)
        self.topic = topic
        self.value_format = value_format
        self.key_format = key_format
        self.starting = starting
        self.options = options or {}
        self._event_time = event_time
        self._watermark = watermark
        self.is_table = is_table

    def columns(self) -> tuple[str, ...] | None:
        columns = self.value_format.columns()
        return None if columns is None else (*columns, *RECORD_COLUMNS)

    def check(self) -> None:
        super().check()
        if self._event_time is not None:
            name = self._event_time.partition(".")[0]
            check_columns(f"event_time of {self.topic}", [name], self.value_format.columns())

    def reads_like(self, other: Source) -> bool:
        """Return whether both find the same records malformed."""
        mine, theirs = (
            (one.topic, one.value_format, one.key_format, one._event_time, one.options)
            for one in (self, other)
        )
        return mine == theirs

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f

        key, value = self.readers(building)
        parsed = self._parsed(building, key, value)
        is_tick = f.col("tick").isNotNull() if "tick" in parsed.columns else f.lit(False)
        good = parsed.where(is_tick | self._is_good(building))
        columns: list[Any] = []
        if value.is_row:
            content = value.content(f.col(_PARTS.value))
            good = good.withColumn(_PARTS.value, content)
            columns += [f"{_PARTS.value}.*"]
        else:
            columns += [f.col(_PARTS.value).alias(SCALAR_COLUMN)]
        if self.is_table:
            columns += [f.col("value").isNull().alias(DELETED)]
        key_content = key.content(f.col(_PARTS.key)).alias(KEY)
        time = f.coalesce(f.col("tick"), _PARTS.time) if "tick" in parsed.columns else _PARTS.time
        rows = good.select(
            *columns,
            key_content,
            (f.col(time) if isinstance(time, str) else time).alias(TIMESTAMP),
            f.col("timestamp").alias(WRITTEN),
            f.col("topic").alias("_topic"),
            f.col("partition").alias("_partition"),
            f.col("offset").alias("_offset"),
            f.col("headers").alias("_headers"),
            *(["tick"] if "tick" in parsed.columns else []),
        )
        if self._watermark is not None:
            rows = barrier(rows.withWatermark(TIMESTAMP, self._watermark))
        if "tick" in parsed.columns:
            rows = rows.where("tick IS NULL").drop("tick")
        return rows

    def readers(self, building: Building) -> tuple[Reader, Reader]:
        """Return what reads keys and values."""
        environment = building.environment
        return (
            self.key_format.reader(environment.binding(self.topic, "key")),
            self.value_format.reader(environment.binding(self.topic, "value")),
        )

    def malformed(self, building: Building) -> DataFrame:
        """Stream what cannot be read: the record's columns, `problem` and `stage`."""
        from pyspark.sql import functions as f

        key, value = self.readers(building)
        return self._parsed(building, key, value).select(
            "key",
            "value",
            "topic",
            "partition",
            "offset",
            "timestamp",
            "headers",
            f.col(_PARTS.problem).alias("problem"),
            f.col(_PARTS.stage).alias("stage"),
        ).where("problem IS NOT NULL")  # fmt: skip

    def _parsed(self, building: Building, key: Reader, value: Reader) -> DataFrame:
        """Add what key and value say, the event time, and what is wrong with them."""
        from pyspark.sql import functions as f

        raw = building.environment.records(self)
        parsed = barrier(raw).withColumns(
            {
                _PARTS.key: f.when(f.col("key").isNotNull(), key.parsed(f.col("key"))),
                _PARTS.value: f.when(f.col("value").isNotNull(), value.parsed(f.col("value"))),
            }
        )
        key_problem = f.when(f.col("key").isNotNull(), key.problem(f.col("key"), f.col(_PARTS.key)))
        value_problem = f.when(
            f.col("value").isNotNull(), value.problem(f.col("value"), f.col(_PARTS.value))
        )
        parsed = barrier(parsed.withColumn(_PARTS.time, self._time(parsed, value)))
        time_problem = f.when(
            f.col("value").isNotNull()
            & ~f.coalesce(f.col(_PARTS.time).between(_EARLIEST, _LATEST), f.lit(False)),
            f.lit(f"no event time between {_EARLIEST} and {_LATEST}"),
        )
        if "tick" in raw.columns:
            time_problem = f.when(f.col("tick").isNull(), time_problem)
        stage = f.when(key_problem.isNotNull(), "KEY_CONVERTER").otherwise("VALUE_CONVERTER")
        return barrier(
            parsed.withColumns(
                {
                    _PARTS.problem: f.coalesce(key_problem, value_problem, time_problem),
                    _PARTS.stage: stage,
                }
            )
        )

    def _is_good(self, building: Building) -> Column:
        from pyspark.sql import functions as f

        problem = f.col(_PARTS.problem)
        has_value = f.lit(True) if self.is_table else f.col("value").isNotNull()
        if building.environment.dead_letters is not None:
            return problem.isNull() & has_value
        where = f.format_string("%s, partition %d, offset %d: %s", "topic", "partition", "offset",
                                problem)  # fmt: skip
        stop = f.raise_error(f.concat(f.lit("malformed record in "), where))
        return f.when(problem.isNull(), has_value).otherwise(stop.cast("boolean"))

    def _time(self, parsed: DataFrame, value: Reader) -> Column:
        """The event time: a column of the value, numbers being milliseconds; else the record's."""
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as f

        if self._event_time is None:
            return f.col("timestamp")
        time = value.content(f.col(_PARTS.value))
        if value.is_row:
            for name in self._event_time.split("."):
                time = time.getField(name)
        try:
            kind = parsed.select(time.alias("time")).schema[0].dataType.simpleString()
        except AnalysisException as error:
            raise PipelineError(
                f"{self.topic}: its values have no column {self._event_time} for event_time"
            ) from error
        return f.timestamp_millis(time) if kind in _NUMERIC else time.try_cast("timestamp")


def dead_letters(sources: Sequence[Source], environment: Environment, pipeline: str) -> DataFrame:
    """Stream what none of the sources can read: `key`, `value`, `timestamp`, `headers`.

    Each is the record as it was, with the headers of Kafka Connect's dead letter queues.
    """
    building = Building(environment)
    each: list[Source] = []
    for source in sources:
        if not any(source.reads_like(other) for other in each):
            each.append(source)
    frames = [_letters(source, building, pipeline) for source in each]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _letters(source: Source, building: Building, pipeline: str) -> DataFrame:
    from pyspark.sql import functions as f

    from barnabas.streams.dead_letters import PREFIX

    malformed = source.malformed(building)
    part = f.when(f.col("stage") == "KEY_CONVERTER", type(source.key_format).__name__)
    values = {
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "connector.name": f.lit(pipeline),
        "task.id": f.lit("0"),
        "stage": f.col("stage"),
        "class.name": part.otherwise(type(source.value_format).__name__),
        "exception.class.name": f.lit(EXCEPTION),
        "exception.message": f.col("problem"),
        "exception.stacktrace": f.lit(""),
    }
    headers = f.array(*(_header(f"{PREFIX}{name}", value) for name, value in values.items()))
    own = f.coalesce(f.col("headers"), f.array().cast("array<struct<key:string,value:binary>>"))
    return malformed.select("key", "value", "timestamp", f.concat(own, headers).alias("headers"))


def _header(name: str, value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(
        f.lit(name).alias("key"), f.encode(value.cast("string"), "UTF-8").alias("value")
    )


class GivenFrame(Step):
    """A DataFrame of the user's, or a function of the session that makes one."""

    def __init__(
        self,
        given: Any,
        key: Any,
        event_time: Any,
        watermark: str | None,
    ) -> None:
        self._given = given
        self._key = key
        self._event_time = event_time
        self._watermark = watermark

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as f

        given = self._given
        frame: DataFrame
        frame = given if isinstance(given, DataFrame) else given(building.environment.spark)
        if KEY not in frame.columns:
            key = f.lit(None).cast("string") if self._key is None else to_column(frame, self._key)
            frame = frame.withColumn(KEY, key)
        if TIMESTAMP not in frame.columns:
            time = (
                f.lit(None).cast("timestamp")
                if self._event_time is None
                else to_column(frame, self._event_time)
            )
            frame = frame.withColumn(TIMESTAMP, time)
            if self._event_time is not None and self._watermark is not None:
                frame = frame.withWatermark(TIMESTAMP, self._watermark)
        return frame
