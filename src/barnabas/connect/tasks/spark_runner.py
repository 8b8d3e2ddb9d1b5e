"""Micro-batches as Spark jobs: one job each, a task of it per split or range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any

from barnabas.connect.connectors.base import SinkRange, SinkWriter, SourceReader
from barnabas.connect.errors.spark import spark_errors, spark_failure
from barnabas.connect.tasks.flow import FlowSpec, SourceFlow
from barnabas.connect.tasks.jobs import RangeDone, SplitDone, merged_offsets
from barnabas.connect.tasks.kafka_transport import KafkaTransport
from barnabas.connect.tasks.runner import LocalBatchRunner, SinkFailedError
from barnabas.connect.tasks.source_transactions import Boundary
from barnabas.connect.tasks.spark_exactly_once import (
    BatchCommits,
    TransactionPlace,
    sink_options,
)
from barnabas.connect.tasks.spark_jobs import Failed, RangeJob, SplitJob, in_arrow
from barnabas.connect.tasks.transport import Offsets
from barnabas.schemas.data.errors import RetriableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POOL = "spark.scheduler.pool"


class SparkBatchRunner(LocalBatchRunner):
    """Carries out the micro-batches of one task; what is not worth distributing, in this process.

    Exactly once, the two ways commit under different transactional ids. Each run takes both before
    it begins, and finishes what an earlier one has decided. A micro-batch is committed whole before
    the next begins, whichever way that goes.
    """

    def __init__(
        self,
        spec: FlowSpec,
        transport: KafkaTransport,
        stopping: Event,
        boundary: Boundary | None,
        session: Callable[[], SparkSession],
        add_packages: Callable[[], None],
        *,
        is_distributed: bool,
    ) -> None:
        """All micro-batches are done in this process, unless `is_distributed`."""
        super().__init__(spec, transport, stopping, boundary)
        self._kafka = transport
        self._session = session
        self._add_packages = add_packages
        self._is_distributed = is_distributed
        self._commits: BatchCommits | None = None

    def prepare_source(self) -> None:
        """Check settings, and see that no earlier run of the task writes any more."""
        SourceFlow(self._spec).close()
        self._add_packages()
        if self._boundary is not None:
            self._commits = BatchCommits(self._kafka, sink_options(self._kafka))
            self._commits.take_over()
        super().prepare_source()

    def prepare_sink(self) -> None:
        """Check settings, and start Spark with what the connector needs."""
        super().prepare_sink()
        self._add_packages()
        if self._is_distributed:
            self._session()

    def run_source(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> tuple[Sequence[SplitDone], Offsets]:
        """Write the records of splits."""
        if not (self._is_distributed and reader.is_worth_distributing(splits)):
            if self._commits is not None:
                self._commits.finish()
            return super().run_source(reader, splits, more)
        place = None if self._commits is None else self._commits.next_place()
        job = SplitJob(self._spec, self._kafka, reader, list(splits), place)
        results = self._run(job, len(splits))
        done: list[SplitDone] = [one for one in results if not isinstance(one, Failed)]
        failed = [one for one in results if isinstance(one, Failed)]
        if self._commits is not None and place is not None:
            self._commit(self._commits, place, done, failed, more)
            return done, ()
        if failed:
            raise failed[0].as_error()
        return done, merged_offsets(done, more)

    def _commit(
        self,
        commits: BatchCommits,
        place: TransactionPlace,
        done: Sequence[SplitDone],
        failed: Sequence[Failed],
        more: Offsets,
    ) -> None:
        prepared = [prepared for one in done for prepared in one.prepared]
        if failed:
            commits.drop(prepared)
            raise failed[0].as_error()
        commits.commit(place, prepared, merged_offsets(done, more))

    def run_sink(self, writer: SinkWriter, ranges: Sequence[SinkRange]) -> Sequence[RangeDone]:
        """Write ranges."""
        if not self._is_distributed:
            return super().run_sink(writer, ranges)
        job = RangeJob(self._spec, self._kafka, writer, list(ranges))
        try:
            results = self._run(job, len(ranges))
        except RetriableError as error:
            raise SinkFailedError(()) from error
        done: list[RangeDone] = [one for one in results if not isinstance(one, Failed)]
        for one in results:
            if isinstance(one, Failed):
                raise SinkFailedError([each.message for each in done]) from one.as_error()
        return done

    def close(self) -> None:
        """Close what it holds open."""
        try:
            super().close()
        finally:
            if self._commits is not None:
                self._commits.close()

    def _run(self, job: Callable[[int], Any], count: int) -> list[Any]:
        """Return the results, in order. Raises RetriableError where Spark could not do the job."""
        if not count:
            return []
        session = self._session()
        trouble: tuple[type[Exception], ...] = (*spark_errors(), OSError, EOFError)
        try:
            if is_connect(session):
                return _run_arrow(session, job, count)
            context = session.sparkContext
            context.setLocalProperty(_POOL, f"connect-{self._spec.connector}")
            description = f"connector {self._spec.connector}, task {self._spec.task}"
            context.setJobDescription(description)
            return context.parallelize(range(count), count).map(job).collect()
        except trouble as error:  # or Spark itself is lost
            raise RetriableError(spark_failure("a Spark job failed", error)) from error


def _run_arrow(session: SparkSession, job: Callable[[int], Any], count: int) -> list[Any]:
    """Through Spark Connect there are DataFrames only."""
    from pyspark.serializers import CPickleSerializer

    rows = session.range(0, count, 1, count).mapInArrow(in_arrow(job), "done binary").collect()
    from_bytes: Callable[[bytes], Any] = CPickleSerializer().loads
    return [from_bytes(bytes(row.done)) for row in rows]


def is_connect(session: SparkSession) -> bool:
    """Return whether Spark is another process, reached through Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")
