"""Runs an engine's queries on Spark: a QueryRunner over SparkQuery."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from barnabas.spark.progress import batches_of
from barnabas.spark.session import SharedSession
from barnabas.spark.supervision import QueryState, why
from barnabas.sql.engine.queries import BATCH_MS, MicroBatch, PersistentQuery
from barnabas.sql.engine.shared_runner import SharedHosted
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.processing_log import Entry, NoteEntry, log_entry
from barnabas.sql.query_failures import QueryFailure, failure_of
from barnabas.sql.spark.checkpoint import delete_checkpoint, shape_of, why_not_replaced
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.parcels import Note
from barnabas.sql.spark.query import SparkQuery
from barnabas.sql.spark.reading import why_spark_reads
from barnabas.sql.spark.shared_members import has_begun_alone, why_alone
from barnabas.sql.spark.shared_stream import SharedStream
from barnabas.sql.spark.warming import warm

_log = logging.getLogger(__name__)
_OFFSET_RESET = "ksql.streams.auto.offset.reset"
_GUARANTEE = "ksql.streams.processing.guarantee"
_CLOSE_SECONDS = 10.0


class SparkQueryRunner:
    """`session` gives the session when the first query needs it; `options` hold for all queries."""

    def __init__(
        self,
        options: SparkQueryOptions,
        session: Callable[[], SparkSession],
        note: NoteEntry = log_entry,
        progress: Callable[[], str] = lambda: "",
    ) -> None:
        """`progress` returns what the start of the session does, in a line."""
        self._note = note
        self._progress = progress
        self._options = options
        self._session = SharedSession(session)
        self._stream = SharedStream(options, self._session)
        self._running: list[SparkHosted | SharedHosted] = []
        self._lock = threading.Lock()
        self._warming: threading.Thread | None = None
        self._is_closing = threading.Event()
        self._is_wanted = threading.Event()

    @property
    def progress(self) -> str:
        told = "" if self._session.started is not None else self._progress()
        return f"Spark is being started: {told}" if told else "being started on Spark"

    def warm(self, read_topic: str | None = None) -> None:
        """Start the session and its workers in the background, before a query asks for them.

        A query that starts while it warms waits until this has ended: side by side, both would take
        longer. One that is there before the session is ready is not kept waiting. A failure is
        logged, and the first query tries again. `read_topic`: one that exists.
        """
        self._warming = threading.Thread(
            target=self._warm, args=(read_topic,), name="warm-spark", daemon=True
        )
        self._warming.start()

    def _warm(self, read_topic: str | None) -> None:
        try:
            spark = self._session()
            if not self._is_closing.is_set():
                warm(spark, self._options, self._is_closing, self._is_wanted, read_topic)
            if self._options.is_shared and not self._is_closing.is_set():
                self._stream.start()
        except Exception as error:  # noqa: BLE001  the first query fails of it, too, and says so
            _log.warning("Spark was not started ahead of the first query: %s", why(error))

    def start(
        self, query: PersistentQuery, *, is_paused: bool = False
    ) -> SparkHosted | SharedHosted:
        options = self._options_of(query)
        self._is_wanted.set()
        if self._warming is not None:
            self._warming.join()
        session = self._session()
        hosted: SparkHosted | SharedHosted
        if self._why_alone(query.plan, options, session):
            hosted = SparkHosted(query, SparkQuery(query.plan, options, session), self._session)
        else:
            hosted = SharedHosted(query, options, self._stream)
        with self._lock:
            self._running = [one for one in self._running if not one.is_ended]
            self._running.append(hosted)
        if not is_paused:
            hosted.resume()
        return hosted

    def _options_of(self, query: PersistentQuery) -> SparkQueryOptions:
        return replace(
            self._options,
            on_notes=partial(self._take_notes, query.query_id),
            auto_offset_reset=str(query.properties.get(_OFFSET_RESET, "latest")).lower(),
            guarantee=_guarantee(query.properties),
            properties={
                name: value
                for name, value in query.properties.items()
                if isinstance(value, bool | int | float | str)
            },
        )

    def _why_alone(
        self, plan: QueryPlan, options: SparkQueryOptions, session: SparkSession | None
    ) -> str:
        """Return why a query does not share; one that has begun stays where it is."""
        if has_begun_alone(plan.query_id, options):
            return why_alone(plan, options, session) or "it began before it could share"
        return "" if self._stream.knows(plan.query_id) else why_alone(plan, options, session)

    def _take_notes(self, query_id: str, notes: Sequence[Note], _count: int) -> None:
        for _, step, text in notes:
            self._note(query_id, Entry(step or "", json.loads(text or "{}")))

    def describe(self, query: PersistentQuery) -> str:
        """The stages that each operator of Spark's runs, with their stores."""
        draft = HostedPlan.draft(query.plan, self._options.extension_directory)
        plan = draft.spread(replace(draft.hosting, partitions=2, tasks=2))
        lines = ["Topologies:"]
        for (stage, _), topic in sorted(plan.topology.topics.items()):
            lines.append(f"   Source: {topic} -> stage {stage}")
        for number, members in enumerate(plan.topology.operators):
            stores = [name for stage in sorted(members) for name in plan.stages[stage].stores]
            lines.append(f"   Operator: {number}, stages {sorted(members)}, stores {stores}")
        columns = plan.column_stages
        rows = [stage.index for stage in plan.stages if stage.index not in columns]
        lines.append(f"   As columns: stages {list(columns)}; record by record: stages {rows}")
        reason = why_spark_reads(self._options, self._session.started)
        lines.append(
            f"   Topics are read by Spark's source, record by record: {reason}"
            if reason
            else "   Topics are read by the workers, as columns"
        )
        alone = self._why_alone(query.plan, self._options_of(query), self._session.started)
        lines.append(
            f"   It has its own micro-batches: {alone}"
            if alone
            else "   It shares micro-batches with other queries"
        )
        lines.append(f"   Sink: {plan.sink.topic}")
        physical = self._physical_plan(query)
        return "\n".join(lines) + (f"\n\n{physical}" if physical else "")

    def _physical_plan(self, query: PersistentQuery) -> str:
        """Spark's plan, as long as Spark runs: it is not started for this."""
        running = [one for one in self._running if one.is_of(query)]
        if running:
            return running[-1].explain()
        spark = self._session.started
        return "" if spark is None else SparkQuery(query.plan, self._options, spark).explain()

    def forget(self, query: PersistentQuery) -> None:
        delete_checkpoint(self._options.checkpoint_of(query.query_id))
        self._stream.forget(query.query_id)

    def check_replacement(self, old: PersistentQuery, plan: QueryPlan) -> str:
        reason = why_not_replaced(*self._encoded(old.plan), *self._encoded(plan))
        if reason:
            raise AnalysisError(f"Query {old.query_id} cannot be replaced: {reason}")
        return (
            f"{old.query_id} goes on from its state and offsets. Results that were written stay "
            "as they are."
        )

    def _encoded(self, plan: QueryPlan) -> tuple[str, str]:
        draft = HostedPlan.draft(plan, self._options.extension_directory)
        return draft.hosting.plan, shape_of(draft.topology, draft.stages)

    def close(self) -> None:
        self._is_closing.set()
        # First: queries that share it would wait for its micro-batch.
        self._stream.close()
        for hosted in self._running:
            hosted.stop()
        self._running.clear()
        if self._warming is not None:
            # It may download packages; its process need not wait for them.
            self._warming.join(_CLOSE_SECONDS)


class SparkHosted:
    """One query on Spark, as the engine sees it. `session`: the one to start in."""

    def __init__(
        self, asked: PersistentQuery, query: SparkQuery, session: Callable[[], SparkSession]
    ) -> None:
        self._asked = asked
        self._query = query
        self._session = session
        self.is_ended = False
        self._earlier: Counter[str] = Counter()
        self._latest_ms = -1

    def is_of(self, asked: PersistentQuery) -> bool:
        """Return whether it runs this query."""
        return self._asked == asked

    def explain(self) -> str:
        """Spark's plan of the query."""
        return self._query.explain()

    @property
    def state(self) -> QueryState:
        return self._query.life.state

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        _ = self.state
        return tuple(
            failure_of(one.error, self._asked.properties, one.timestamp_ms)
            for one in self._query.life.failures
        )

    @property
    def figures(self) -> Mapping[str, float]:
        status = self._query.status()
        counts = Counter(self._earlier)
        counts.update(status.figures.counts())
        self._latest_ms = max(self._latest_ms, status.figures.latest_ms)
        return {
            **counts,
            "stream_time_ms": self._latest_ms,
            "state_bytes": status.state_bytes,
            "state_rows": status.state_pages,
            **{f"{BATCH_MS}{phase}": ms for phase, ms in status.batch_ms.items()},
        }

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        return self._query.status().positions

    def batches(self) -> Sequence[MicroBatch]:
        read = self._query.read_of_batches
        recent = batches_of(self._query.life.recent_progress())
        return [MicroBatch.of_progress(one, read) for one in recent]

    def pause(self) -> None:
        self._query.life.stop()

    def resume(self) -> None:
        # A failure of the start is the query's state.
        with self._counted(), suppress(Exception):
            self._query.move(self._session())
            self._query.life.resume()

    def restart(self) -> None:
        with self._counted():
            self._query.move(self._session())
            self._query.life.restart()

    def stop(self, *, forget: bool = False) -> None:
        self.is_ended = True
        if forget:
            self._query.delete()
        else:
            self._query.stop()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Keep the counts of the stream before, which a new one begins again."""
        before = self._query.figures
        yield
        if before.batches > self._query.figures.batches:
            self._earlier.update(before.counts())


def _guarantee(properties: Mapping[str, object]) -> Guarantee:
    guarantee = str(properties.get(_GUARANTEE, Guarantee.AT_LEAST_ONCE.value)).lower()
    return (
        Guarantee.EXACTLY_ONCE if guarantee.startswith("exactly_once") else Guarantee.AT_LEAST_ONCE
    )
