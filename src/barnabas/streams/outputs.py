"""Topics that a pipeline writes: which records rows become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.streams.errors import PipelineError
from barnabas.streams.expressions import (
    ColumnLike,
    Expression,
    named,
    struct_of_columns,
    to_column,
)
from barnabas.streams.formats import SCALAR_COLUMN, Format, Writer, binary, json, string
from barnabas.streams.names import KEY, TIMESTAMP, check_columns, check_topic, value_columns
from barnabas.streams.sources import Source
from barnabas.streams.steps import Building, Environment, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from barnabas.streams.dead_letters import FailedRows


class Output:
    """One topic that is written, by one query of Spark's."""

    def __init__(
        self,
        step: Step,
        topic: str,
        value_format: Format,
        key: ColumnLike | Sequence[ColumnLike] | None,
        key_format: Format | None,
    ) -> None:
        check_topic(topic)
        self.step = step
        self.topic = topic
        self._value_format = value_format
        self._key_format = key_format
        self._keys: Sequence[ColumnLike] | None
        if key is None or isinstance(key, str | Expression) or not isinstance(key, Sequence):
            self._keys = None if key is None else [key]
        else:
            self._keys = key

    def feeders(self) -> list[Output]:
        """Return the outputs of this pipeline that write what it reads on from."""
        return [step.feeder for step in self.step.walk() if isinstance(step, ReadOn)]

    def check(self) -> None:
        """Raise PipelineError for a column that is named, here or before, and does not exist."""
        self.step.check()
        check_columns(f"the key of {self.topic}", named(self._keys or ()), self.step.columns())

    @property
    def df(self) -> DataFrame:
        """Spark's DataFrame of the records: `key` and `value` in binary, `timestamp`."""
        from barnabas.streams.environment import current

        return self.records(current())[0]

    def mode(self) -> str:
        """Return Spark's output mode: `append`, or `update` where results change.

        Raises PipelineError for what Spark cannot do.
        """
        with_state = [step for step in self.step.walk() if step.has_state]
        emissions = [step.emission() for step in with_state]
        if "changes" in emissions and len(with_state) > 1:
            raise PipelineError(
                f"{self.topic}: results that change can be the only state of a query in Spark. "
                "Say emit='final' of the window, or cut the pipeline in two with .through(topic)"
            )
        return "update" if emissions in (["changes"], ["either"]) else "append"

    def records(
        self, environment: Environment, failed_rows: FailedRows | None = None
    ) -> tuple[DataFrame, Writer, Writer]:
        """Return the frame of records, and what writes keys and values."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        rows = self.step.frame(Building(environment, failed_rows=failed_rows))
        columns = value_columns(rows.columns)
        if not columns:
            raise PipelineError(f"{self.topic}: there is no column to write")
        keys = [KEY] if self._keys is None else self._keys
        made = [to_column(rows, key) for key in keys]
        key = made[0] if len(made) == 1 else f.struct(*made)
        key_type = rows.select(key.alias("key")).schema[0].dataType
        key_row = key_type if isinstance(key_type, StructType) else None
        key_format = self._key_format or _natural(key_type)
        key_writer = key_format.writer(environment.binding(self.topic, "key"), key_row)

        is_scalar = columns == [SCALAR_COLUMN] and _is_scalar(self._value_format)
        value = f.col(SCALAR_COLUMN) if is_scalar else struct_of_columns(columns)
        value_row = None if is_scalar else rows.select(value.alias("row")).schema[0].dataType
        assert value_row is None or isinstance(value_row, StructType)
        binding = environment.binding(self.topic, "value")
        value_writer = self._value_format.writer(binding, value_row)
        time = f.col(TIMESTAMP) if TIMESTAMP in rows.columns else f.lit(None).cast("timestamp")
        frame = rows.select(
            key_writer.encoded(key).alias("key"),
            value_writer.encoded(value).alias("value"),
            time.alias("timestamp"),
        )
        return frame, key_writer, value_writer


class ReadOn(Step):
    """Rows of a topic that another output of the pipeline, its feeder, writes."""

    def __init__(self, source: Step, feeder: Output) -> None:
        self.parents = (source,)
        self.feeder = feeder

    def columns(self) -> tuple[str, ...] | None:
        return self.parents[0].columns()

    def frame(self, building: Building) -> DataFrame:
        return self.parents[0].frame(building)


def sources_of(outputs: Sequence[Output]) -> list[Source]:
    """Return the topics that are read, each once."""
    sources: dict[int, Source] = {}
    for output in outputs:
        for step in output.step.walk():
            if isinstance(step, Source):
                sources[id(step)] = step
    return list(sources.values())


def _is_scalar(value_format: Format) -> bool:
    from barnabas.streams.formats import Binary, Text

    return isinstance(value_format, Binary | Text)


def _natural(kind: DataType) -> Format:
    """The format of a key without one: bytes as they are, rows as JSON, all else as text."""
    from pyspark.sql.types import BinaryType, StructType

    if isinstance(kind, BinaryType):
        return binary()
    return json() if isinstance(kind, StructType) else string()
