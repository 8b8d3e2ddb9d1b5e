"""Steps of a pipeline as data: each knows those before it, and makes a DataFrame when it is built.

The rows of a stream have the columns of its values, and those of `names.RECORD_COLUMNS`: where the
row comes from. `_timestamp` is its event time and carries Spark's watermark, so steps keep it as it
is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from barnabas.streams.errors import PipelineError
from barnabas.streams.names import RECORD_COLUMNS, Makes, check_columns, value_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.streams.dead_letters import FailedRows
    from barnabas.streams.formats import Binding


class ReadTopic(Protocol):
    """A topic that a source reads: what an environment must know of it."""

    topic: str
    starting: str
    """`earliest` or `latest`: where the first start begins."""
    options: dict[str, Any]
    """Those of Spark's Kafka source."""
    is_table: bool


class Environment(Protocol):
    """The environment in which steps are built: a running pipeline, or a test of one."""

    @property
    def spark(self) -> SparkSession:
        """The session of the frames."""

    def records(self, source: ReadTopic) -> DataFrame:
        """Stream a topic: `key`, `value`, `topic`, `partition`, `offset`, `timestamp`, `headers`.

        A test's frames have `tick` too: a time that passes without a record; null in records.
        """

    def records_now(self, source: ReadTopic) -> DataFrame:
        """Read a topic to its end, once: the same columns."""

    def binding(self, topic: str, part: str) -> Binding:
        """Return what binds a format to a topic; `part` is `key` or `value`."""

    def first_ends(self, topic: str) -> dict[int, int]:
        """Return where the partitions of a topic ended when the pipeline was started first."""

    @property
    def dead_letters(self) -> str | None:
        """The topic for malformed records; None where they stop the pipeline."""


@dataclass(frozen=True)
class Building:
    """The context of building a step. `is_timed`: a step below uses the watermark of `_timestamp`.

    `failed_rows` takes rows for which a function fails; None: the query fails.
    """

    environment: Environment
    is_timed: bool = False
    failed_rows: FailedRows | None = None

    def timed(self) -> Building:
        """For the steps before one that counts on the watermark."""
        return replace(self, is_timed=True)


OfFrame: TypeAlias = "Callable[[DataFrame], DataFrame]"
Emission = Literal["changes", "final", "either"]
"""Each time that they change; once, when they are final; or as suits the query."""


class Step(ABC):
    """One step. Steps are compared by identity."""

    parents: tuple[Step, ...] = ()
    has_state = False
    """True if Spark keeps state for it from one micro-batch to the next."""

    @abstractmethod
    def frame(self, building: Building) -> DataFrame:
        """Make the DataFrame, a new one at each call: a stream can be joined with itself."""

    def walk(self) -> Iterator[Step]:
        """This step and all before it."""
        yield self
        for parent in self.parents:
            yield from parent.walk()

    def columns(self) -> tuple[str, ...] | None:
        """The columns of its rows, as far as that is known without Spark; else None."""
        return None

    def check(self) -> None:
        """Raise PipelineError for a column that this or an earlier step names and has not."""
        for parent in self.parents:
            parent.check()

    def emission(self) -> Emission | None:
        """Return when the results of a step are given; None for one that gives each row once."""
        return None


class Change(Step):
    """A step without state: a function of the frame before it."""

    def __init__(
        self,
        parent: Step,
        change: Callable[[DataFrame], DataFrame],
        uses: Sequence[str] = (),
        makes: Makes = lambda _: None,
        called: str = "transform",
    ) -> None:
        """`uses` are the columns that it names, `makes` says which come of those before it.

        `called` is the method of a Stream that made it.
        """
        self.parents = (parent,)
        self._change = change
        self._uses = uses
        self._makes = makes
        self._called = called

    def columns(self) -> tuple[str, ...] | None:
        before = self.parents[0].columns()
        made = None if before is None else self._makes(value_columns(list(before)))
        return None if made is None else (*made, *RECORD_COLUMNS)

    def check(self) -> None:
        super().check()
        check_columns(self._called, self._uses, self.parents[0].columns())

    def frame(self, building: Building) -> DataFrame:
        return self._change(self.parents[0].frame(building))


class Union(Step):
    """Rows of several streams with the same columns, and the record columns that all have."""

    def __init__(self, *parents: Step) -> None:
        self.parents = parents

    def columns(self) -> tuple[str, ...] | None:
        return self.parents[0].columns()

    def check(self) -> None:
        super().check()
        all_columns = [parent.columns() for parent in self.parents]
        first, *others = [value_columns([*one]) for one in all_columns if one is not None] or [[]]
        for other in others:
            if {name.lower() for name in other} != {name.lower() for name in first}:
                raise PipelineError(
                    f"union: one stream has the columns {', '.join(first)}, another "
                    f"{', '.join(other)}: make them the same with .select(…) or .rename(…)"
                )

    def frame(self, building: Building) -> DataFrame:
        frames = [parent.frame(building) for parent in self.parents]
        common = set.intersection(*(set(frame.columns) for frame in frames))
        lost = [name for name in RECORD_COLUMNS if name not in common]
        first, *others = (frame.drop(*lost) for frame in frames)
        for other in others:
            first = first.unionByName(other)
        return first


def barrier(frame: DataFrame) -> DataFrame:
    """Return the same rows, and keep Spark from moving what follows before what comes before.

    Spark moves filters towards the source, with all that they are computed of: a record would be
    parsed again for each mention of a column, and what a filter drops would not count for the
    watermark. It moves nothing across a filter that is not deterministic.
    """
    from pyspark.sql import functions as f

    return frame.where(f.spark_partition_id() >= 0)
