"""A query that shares a stream of Spark's with others, as the engine sees it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.base.clock import now_ms
from barnabas.spark.progress import batches_of
from barnabas.spark.supervision import Failure, QueryState
from barnabas.sql.engine.queries import BATCH_MS, MicroBatch, PersistentQuery
from barnabas.sql.query_failures import QueryFailure, failure_of
from barnabas.sql.spark.checkpoint import CheckpointError, delete_checkpoint
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.parcels import Notes
from barnabas.sql.spark.placement import place_plan
from barnabas.sql.spark.results import Tally
from barnabas.sql.spark.shared_members import Participant, placing, why_records_move
from barnabas.sql.spark.shared_stream import SharedStream
from barnabas.sql.spark.shared_worker import member_parcel

_FAILURES_MAX: Final = 100


class SharedHosted:
    """One query of a shared stream. Any thread may ask for its state."""

    def __init__(
        self, asked: PersistentQuery, options: SparkQueryOptions, stream: SharedStream
    ) -> None:
        self._asked = asked
        self._options = options
        self._stream = stream
        self.is_ended = False
        self._state = QueryState.PAUSED
        self._failures: deque[Failure] = deque(maxlen=_FAILURES_MAX)
        self._participant: Participant | None = None
        self._tally = Tally()
        self._lock = threading.RLock()
        """Held by the thread that starts it or ends it."""

    def is_of(self, asked: PersistentQuery) -> bool:
        """Return whether it runs this query."""
        return self._asked == asked

    def explain(self) -> str:
        """Spark's plan of the stream."""
        return self._stream.explain()

    # --- what the stream tells ---------------------------------------------------------------

    def took(self, batch_id: int, notes: Notes) -> None:
        """Count what one of its partitions has done."""
        self._tally.add(batch_id, notes)
        if notes.count:
            self._options.on_notes(notes.notes, notes.count)

    def failed(self, error: BaseException) -> None:
        """Note why it no longer runs."""
        self._failures.append(Failure(now_ms(), error))
        self._state = QueryState.ERROR

    # --- what the engine asks ----------------------------------------------------------------

    @property
    def state(self) -> QueryState:
        return self._state

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        return tuple(
            failure_of(one.error, self._asked.properties, one.timestamp_ms)
            for one in tuple(self._failures)
        )

    @property
    def figures(self) -> Mapping[str, float]:
        figures = self._tally.figures
        phases: Mapping[str, int] = self._stream.life.progress().get("durationMs", {})
        return {
            **figures.counts(),
            "stream_time_ms": figures.latest_ms,
            **{f"{BATCH_MS}{phase}": ms for phase, ms in phases.items()},
        }

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        participant = self._participant
        ends = {} if participant is None else dict(participant.ends)
        return {
            (topic, partition): (offset, max(offset, ends.get((topic, partition), offset)))
            for topic, offsets in self._stream.offsets_of(self._asked.query_id).items()
            for partition, offset in offsets.items()
        }

    def batches(self) -> Sequence[MicroBatch]:
        read = self._tally.read_of_batches
        recent = batches_of(self._stream.life.recent_progress())
        return [MicroBatch.of_progress(one, read) for one in recent if one["batchId"] in read]

    # --- life --------------------------------------------------------------------------------

    def pause(self) -> None:
        with self._lock:
            self._stream.leave(self._asked.query_id)
            self._state = QueryState.PAUSED

    def resume(self) -> None:
        with self._lock:
            # A failure of the start is the query's state.
            if self._state is QueryState.PAUSED:
                self._start()

    def restart(self) -> None:
        with self._lock:
            if self._state is QueryState.ERROR:
                self._start()

    def stop(self, *, forget: bool = False) -> None:
        self.is_ended = True
        self.pause()
        if forget:
            delete_checkpoint(self._options.checkpoint_of(self._asked.query_id))
            self._stream.forget(self._asked.query_id)

    def _start(self) -> None:
        try:
            participant = self._placed()
            self._participant, self._state = participant, QueryState.RUNNING
            self._stream.join(participant)
        except Exception as error:  # noqa: BLE001  it is the query's state
            self.failed(error)

    def _placed(self) -> Participant:
        """Raises CheckpointError, MissingTopicError, KafkaException."""
        query_id, options = self._asked.query_id, self._options
        placed = place_plan(self._asked.plan, placing(options), options.tasks_max)
        hosted = placed.hosted
        reason = why_records_move(hosted)
        if reason:
            raise CheckpointError(
                f"Query {query_id} shares micro-batches, and cannot any more: {reason}. Terminate "
                "it, and create it again"
            )
        is_exactly_once = options.guarantee is Guarantee.EXACTLY_ONCE
        first_offsets = self._stream.topics.first_offsets(
            placed.counts,
            from_start=options.auto_offset_reset == "earliest",
            is_exactly_once=is_exactly_once,
        )
        return Participant(
            query_id,
            self,
            member_parcel(hosted.hosting),
            hosted.topology.topics,
            hosted.sink.topic,
            hosted.topology.partitions,
            dict(placed.counts),
            placed.state_topics,
            hosted.hosting.state_name,
            first_offsets,
            self._stream.topics.ids(placed.counts),
            is_exactly_once,
        )
