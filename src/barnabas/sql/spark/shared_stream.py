"""One stream of Spark's that runs the micro-batches of many queries.

Spark's driver plans a micro-batch once for all of them. The server says which records are in it: a
thread asks for the ends of all topics, and gives each query the offsets that it has not read. At
least once, a micro-batch lasts: workers read on behind these, and report what they have reached.

    ends of topics ─▶ ledger ─▶ ranges of offsets, by label ─▶ operator ─▶ reports
                                                               (reads, runs, writes)

Exactly once, the operator leaves transactions open, and one decision commits those of all queries
when all reports of a micro-batch are there (`shared_commits`). If Spark has not committed a
micro-batch whose results were decided, its ranges are read once more, only for the state.

A label is of a partition of one query. Its worker fetches the records, runs all stages and writes
the results; Spark keeps the state by label. So queries come and go between two micro-batches, while
the stream runs. One that fails is left out from then on, and reads on from where it was when it is
started again. Where Spark itself fails, or a worker process dies, all queries stop, and start again
from the last micro-batch that was committed.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.kafka.admin import Listed
from barnabas.spark.interruption import interruptible
from barnabas.spark.pushed_rows import PushedRow, PushedRows, batch_number, committed_number
from barnabas.spark.session import cores_of
from barnabas.spark.small_batches import Collect, for_each_batch
from barnabas.spark.supervision import QueryState, SupervisedStream
from barnabas.sql.spark.checkpoint import locked
from barnabas.sql.spark.hosting import Hosting, RangeReading
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Closing, Left, Report, decode_parcel, encode_parcel
from barnabas.sql.spark.placement import AddedPartitionsError, MissingTopicError
from barnabas.sql.spark.processor import SharedProcessor
from barnabas.sql.spark.query import configure_session
from barnabas.sql.spark.shared_commits import SharedCommits
from barnabas.sql.spark.shared_ledger import Ledger, Offsets, known_queries
from barnabas.sql.spark.shared_members import Participant, ranges_of, records_max, rows_of
from barnabas.sql.spark.shared_topics import SharedTopics, ids_of
from barnabas.sql.spark.topology import closing_labels, member_labels, member_of, task_of
from barnabas.sql.spark.worker import PARCEL_COLUMN, SCHEMA

_log = logging.getLogger(__name__)
T = TypeVar("T")
DIRECTORY: Final = "shared-stream"
"""Of the checkpoint, among those of queries."""
_NAME: Final = "shared stream"
_ENDINGS: Final = "endings"
"""Of the checkpoint: files that end micro-batches, by number."""
_LEAVE_SECONDS: Final = 10.0
"""A query that is paused or terminated waits so long for the end of a micro-batch."""
_LOOK_SECONDS: Final = 0.5
"""Between looks at a stream whose micro-batch runs."""
_TOPICS_SECONDS: Final = 5.0
"""Between looks at topics: are they there, and how many partitions have they?"""
_COMMITTED_LOOK_SECONDS: Final = 0.02
_COMMITTED_SECONDS: Final = 2.0
"""At the end of the stream, for Spark's commit of a micro-batch that has just returned."""


class SharedQueryError(Exception):
    """A query's part of a micro-batch failed; the text is the traceback."""


@dataclass
class _Batch:
    number: int
    share_numbers: Mapping[int, Participant]
    began: Mapping[str, dict[tuple[int, str, int], int]]
    """By query and label's partition, topic and partition: where its reading began."""
    ending: str = ""
    """The file that ends it, if it lasts."""
    done: threading.Event = field(default_factory=threading.Event)


class SharedStream:
    """`options`: those of the server. `session` gives a session that runs. Any thread may call."""

    def __init__(self, options: SparkQueryOptions, session: Callable[[], SparkSession]) -> None:
        self._options = options
        self._session = session
        self.checkpoint = os.path.join(options.checkpoints, DIRECTORY)
        self._commits = SharedCommits(options, self.checkpoint)
        self.life = SupervisedStream(_NAME, self._begin, self._commits.close)
        self._source: PushedRows | None = None
        self._ledger: Ledger | None = None
        self._participants: dict[str, Participant] = {}
        self._requests: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = (
            queue.SimpleQueue()
        )
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._batch: _Batch | None = None
        self._lock: int | None = None
        """The file that other servers find locked."""
        self._next_look_s = 0.0
        self._known: frozenset[str] | None = None
        """The queries that have a share; None before the ledger is open."""
        self._reached: Mapping[str, Offsets] = {}
        self._is_waiting = False
        """True while the cluster does not answer."""
        self.topics = SharedTopics(_NAME, options.bootstrap_servers, options.clients)
        self._thread = threading.Thread(target=self._run, name=_NAME, daemon=True)
        self._is_started = False
        self._starting = threading.Lock()

    # --- members -----------------------------------------------------------------------------

    def start(self) -> None:
        """Start before a query asks for it. Raises CheckpointError, and what Spark raises."""
        self._ask(self._start)

    def join(self, participant: Participant) -> None:
        """Have a query take part from the next micro-batch on, from where it was.

        Raises CheckpointError, OSError, KafkaException, CoordinatorError, and what the start of a
        stream raises.
        """
        self._ask(lambda: self._join(participant))

    def leave(self, query_id: str) -> None:
        """Leave a query out; once this returns, no worker runs it."""
        self._ask(lambda: self._participants.pop(query_id, None), _LEAVE_SECONDS)

    def forget(self, query_id: str) -> None:
        """Leave a query out for good: its state is deleted, too.

        Raises CheckpointError, OSError, KafkaException, CoordinatorError.
        """
        if self.knows(query_id):
            self._ask(lambda: self._forget(query_id), _LEAVE_SECONDS)

    def knows(self, query_id: str) -> bool:
        """Return whether the stream has state and offsets of a query. Raises CheckpointError."""
        if self._known is None:
            return query_id in known_queries(self.checkpoint)
        return query_id in self._known

    def explain(self) -> str:
        """Spark's physical plan of the last micro-batch; empty before the first."""
        stream = self.life.stream
        execution = None if stream is None else stream._jsq.streamingQuery().lastExecution()
        if execution is None:
            return ""
        java: Any = self._session().sparkContext._jvm
        return str(java.PythonSQLUtils.explainString(execution, "formatted"))

    def offsets_of(self, query_id: str) -> Offsets:
        """Where a query reads on, by topic and partition; empty if it never took part."""
        return self._reached.get(query_id, {})

    def close(self) -> None:
        """End; a micro-batch that does not end by itself is planned again by the next start."""
        self._closing.set()
        self._wake.set()
        try:
            try:
                self._finish()
            finally:
                self.life.stop()
            if self._is_started:
                self._thread.join()
            self.life.stop()  # should a request have been starting it
        finally:
            self.topics.close()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _finish(self) -> None:
        """Let a micro-batch that lasts end, so that the next start does not repeat it."""
        batch, ledger = self._batch, self._ledger
        if batch is not None and batch.ending:
            self._end(batch)
            ends_s = time.monotonic() + _LEAVE_SECONDS
            # Nobody waits for it any more if the stream has failed.
            while self._batch is batch and not batch.done.is_set() and time.monotonic() < ends_s:
                batch.done.wait(_COMMITTED_LOOK_SECONDS)
        ends_s = time.monotonic() + _COMMITTED_SECONDS
        while (
            ledger is not None
            and self.life.state is QueryState.RUNNING
            and committed_number(self.checkpoint) < ledger.number
            and time.monotonic() < ends_s
        ):
            time.sleep(_COMMITTED_LOOK_SECONDS)

    def _ask(self, request: Callable[[], T], patience_s: float | None = None) -> T:
        """Run it between two micro-batches.

        A micro-batch that takes longer than `patience_s` is stopped, and planned again.
        """
        with self._starting:
            if not self._is_started:
                self._thread.start()
                self._is_started = True
        answer: Future[T] = Future()
        self._requests.put((request, answer))
        self._wake.set()
        batch = self._batch
        if batch is not None:
            self._end(batch)
        if self._closing.is_set():
            self._thread.join()
            self._answer()
        try:
            return answer.result(patience_s)
        except FutureTimeoutError:
            if answer.done():
                raise
        _log.warning("%s: a micro-batch of over %.0f s is stopped for a query", _NAME, patience_s)
        self.life.stop()
        return answer.result()

    def _join(self, participant: Participant) -> None:
        self._start()
        assert self._ledger is not None
        query_id = participant.query_id
        if participant.is_exactly_once:
            self._commits.begin(self._ledger)
        self._ledger.join(
            query_id,
            participant.state_name,
            participant.partitions,
            participant.first_offsets,
            is_exactly_once=participant.is_exactly_once,
        )
        self._ledger.extend(query_id, participant.counts)
        self._identify(query_id, participant.topic_ids)
        self._participants[query_id] = participant
        self._publish()

    def _forget(self, query_id: str) -> None:
        self._participants.pop(query_id, None)
        if self._ledger is None:
            self._ledger = self._open_ledger(1)
        self._ledger.leave(query_id)
        self._publish()

    def _publish(self) -> None:
        """Tell other threads who is known, and the offsets that were reached."""
        assert self._ledger is not None
        self._known = self._ledger.query_ids
        self._reached = {
            query_id: {topic: dict(of) for topic, of in share.offsets.items()}
            for query_id, share in self._ledger.shares.items()
        }

    # --- Spark's stream ----------------------------------------------------------------------

    def _start(self) -> None:
        """Raises CheckpointError, OSError, and what Spark raises."""
        if self._closing.is_set():
            raise RuntimeError(f"the {_NAME} is closed")
        if self.life.state is QueryState.ERROR:
            self.life.stop()
        if self.life.state is QueryState.PAUSED:
            self.life.start()

    def _begin(self) -> StreamingQuery:
        shutil.rmtree(os.path.join(self.checkpoint, _ENDINGS), ignore_errors=True)
        spark = self._session().newSession()
        cores = cores_of(str(spark.sparkContext.master))
        tasks = self._options.tasks_max or cores or spark.sparkContext.defaultParallelism
        ledger = self._open_ledger(tasks)
        self._ledger = ledger
        self._publish()
        configure_session(spark, ledger.tasks)
        # Between two questions to the source, which does not answer before it has to.
        spark.conf.set("spark.sql.streaming.pollingDelay", "1")
        self._source = source = PushedRows(spark, ledger.number, ledger.tasks)
        options = self._options
        clients = tuple(sorted(options.clients.items()))
        common = Hosting(
            *("", "", 1, 1),
            registry_urls=options.registry_urls,
            registry_user_info=options.registry_user_info,
            registry_tls=options.registry_tls,
            clients=clients,
        )
        reading = RangeReading(options.bootstrap_servers, clients)
        processor = SharedProcessor(common, reading, self._commits.of_workers(ledger))
        labels = source.frame.groupBy("label")
        made = labels.transformWithStateInPandas(processor, SCHEMA, "Append", "None")
        writer = made.writeStream.queryName(_NAME)
        return (
            for_each_batch(writer, spark, PARCEL_COLUMN, interruptible(self._write))
            .outputMode("append")
            .option("checkpointLocation", self.checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )

    def _open_ledger(self, tasks: int) -> Ledger:
        if self._lock is None:
            self._lock = locked(self.checkpoint)
        return self._commits.open_ledger(tasks)

    def _write(self, collect: Collect, batch_id: int) -> None:
        number = batch_number(self.checkpoint, batch_id)
        reports: list[Report] = []
        try:
            for data in collect():
                report = decode_parcel(data)
                assert isinstance(report, Report)
                reports.append(report)
        except BaseException:
            self._commits.abort(number)
            raise
        batch = self._batch
        if batch is None or number != batch.number:
            if reports:
                self._commits.abort(number)
                raise RuntimeError(f"nobody waits for micro-batch {number}")
            return  # Spark had planned it before its start, and it has no rows
        self._take(batch, batch_id, reports)
        self._publish()
        batch.done.set()

    def _take(self, batch: _Batch, batch_id: int, reports: Sequence[Report]) -> None:
        """Commit the results, and hand out the reports; what failed is read again."""
        assert self._ledger is not None
        moved: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        failures: dict[str, str] = {}
        for report in reports:
            number, label_partition = member_of(report.label)
            query_id = batch.share_numbers[number].query_id
            if report.failure is None:
                moved[query_id].update(report.reached)
                continue
            failures.setdefault(query_id, report.failure)
            for (of, topic, partition), offset in batch.began[query_id].items():
                if of == label_partition:
                    moved[query_id][topic, partition] = offset
        if any(moved.values()):
            # Before the decision, which is about what the ledger says.
            self._ledger.correct(moved)
        self._commits.commit(batch.number, [one for of in reports for one in of.written])
        for report in reports:
            participant = batch.share_numbers[member_of(report.label)[0]]
            if report.failure is None:
                try:
                    participant.reader.took(batch_id, report.notes)
                except Exception:  # noqa: BLE001  the micro-batch is done all the same
                    _log.exception("the notes of %s are lost", participant.query_id)
        for query_id, text in failures.items():
            self._fail(query_id, SharedQueryError(text))

    def _fail(self, query_id: str, error: BaseException) -> None:
        participant = self._participants.pop(query_id, None)
        if participant is not None:
            participant.reader.failed(error)

    # --- micro-batches -----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            due_s = time.monotonic() + self._options.trigger_ms / 1000
            try:
                self._step()
            except KafkaException as error:
                if not self._is_waiting:
                    _log.warning("%s: no micro-batch until the cluster answers: %s", _NAME, error)
                self._is_waiting = True
            except Exception as error:  # noqa: BLE001  all its queries stop of it, and say so
                self._fail_all(error)
                # The next start goes on from what Spark has committed.
                self._stop_stream()
            self._wait(due_s)
        self._answer()

    def _stop_stream(self) -> None:
        try:
            self.life.stop()
        except Exception:  # noqa: BLE001  this thread has to answer requests
            _log.exception("the %s could not be stopped", _NAME)

    def _wait(self, due_s: float) -> None:
        """Answer requests until the next micro-batch may begin."""
        self._answer()
        while not self._closing.is_set():
            left_s = due_s - time.monotonic()
            if self._has_work and left_s <= 0:
                return
            self._wake.wait(left_s if self._has_work else None)
            self._wake.clear()
            self._answer()

    @property
    def _has_work(self) -> bool:
        return bool(self._participants) or (self._ledger is not None and bool(self._ledger.left))

    def _answer(self) -> None:
        while True:
            try:
                request, answer = self._requests.get_nowait()
            except queue.Empty:
                return
            try:
                answer.set_result(request())
            except Exception as error:  # noqa: BLE001  it is the answer
                answer.set_exception(error)

    def _step(self) -> None:
        """Run a micro-batch if there is something to read. Raises KafkaException."""
        state = self.life.state
        if self._closing.is_set() or not self._has_work:
            return
        if state is QueryState.ERROR:
            self._fail_all(self.life.last_failure or RuntimeError(f"the {_NAME} has ended"))
            return
        if state is QueryState.PAUSED:  # stopped in the middle of a micro-batch
            self._start()
        ledger = self._ledger
        assert ledger is not None
        self._look_at_topics()
        all_ends = {
            is_exactly_once: self._ends(is_exactly_once) for is_exactly_once in (False, True)
        }
        self._is_waiting = False
        lasts_ms = 0 if self._has_to_end else self._options.commit_interval_ms
        count_max = records_max(self._options, len(self._participants))
        rows: list[PushedRow] = []
        reached: dict[str, dict[tuple[str, int], int]] = {}
        began: dict[str, dict[tuple[int, str, int], int]] = {}
        for participant in self._participants.values():
            share = ledger.shares[participant.query_id]
            ends = all_ends[participant.is_exactly_once]
            self._note_ends(participant, ends)
            after = self.topics.offsets_after(is_exactly_once=participant.is_exactly_once)
            found = ranges_of(participant, share, ends, count_max, after, is_lasting=bool(lasts_ms))
            ranges = list(found)
            if not ranges:
                continue
            rows += rows_of(participant, share, ranges, ledger.tasks, ledger.number + 1)
            read = reached.setdefault(participant.query_id, {})
            starts = began.setdefault(participant.query_id, {})
            for one in ranges:
                read[one.topic, one.partition] = one.until
                at = one.partition % participant.partitions, one.topic, one.partition
                starts[at] = one.first
        is_idle = all(
            reached[query_id][topic, partition] == first
            for query_id, starts in began.items()
            for (_, topic, partition), first in starts.items()
        )
        if is_idle and not ledger.left:
            return
        for share in ledger.left:
            labels = member_labels(share.number, share.partitions, ledger.tasks)
            rows += [(label, encode_parcel(Left())) for label in labels]
        members = {
            ledger.shares[query_id].number: self._participants[query_id] for query_id in reached
        }
        # Workers report the ends of a micro-batch that lasts, and the ledger notes them then.
        number = ledger.plan({} if lasts_ms else reached)
        batch = _Batch(number, members, began, self._ending_of(number) if lasts_ms else "")
        closing = encode_parcel(Closing(lasts_ms, batch.ending, self._options.trigger_ms))
        labels = closing_labels(ledger.tasks)
        tasks = {task_of(label, ledger.tasks) for label in {label for label, _ in rows}}
        rows += [(labels[task], closing) for task in sorted(tasks)]
        self._run_batch(batch, rows)

    @property
    def _has_to_end(self) -> bool:
        """True if a micro-batch must end with what there is at its beginning.

        Exactly once, readers see results only when it ends. Ranges that are read once more must end
        where they ended before.
        """
        assert self._ledger is not None
        shares = self._ledger.shares
        return any(
            one.is_exactly_once or bool(shares[one.query_id].repeating)
            for one in self._participants.values()
        )

    def _ending_of(self, number: int) -> str:
        """The file that ends a micro-batch which lasts."""
        # Absolute: workers of a cluster are in another directory.
        return os.path.abspath(os.path.join(self.checkpoint, _ENDINGS, str(number)))

    def _run_batch(self, batch: _Batch, rows: Sequence[PushedRow]) -> None:
        assert self._source is not None
        if batch.ending:
            os.makedirs(os.path.dirname(batch.ending), exist_ok=True)
        self._batch = batch
        try:
            if not self._requests.empty() or self._closing.is_set():
                self._end(batch)
            self._source.offer(batch.number, rows)
            while not batch.done.wait(_LOOK_SECONDS):
                if self.life.state is not QueryState.RUNNING:
                    return
        finally:
            self._batch = None
            if batch.ending:
                with suppress(OSError):  # it ends no other micro-batch
                    os.unlink(batch.ending)

    @staticmethod
    def _end(batch: _Batch) -> None:
        """End a micro-batch that lasts: its tasks look for the file after each round."""
        if batch.ending and not batch.done.is_set():
            try:
                with open(batch.ending, "wb"):
                    pass
            except OSError as error:
                _log.warning("%s: a micro-batch ends at its own time: %s", _NAME, error)

    def _fail_all(self, error: BaseException) -> None:
        for query_id in list(self._participants):
            self._fail(query_id, error)

    # --- topics ------------------------------------------------------------------------------

    def _ends(self, is_exactly_once: bool) -> Listed:
        """The ends of partitions whose leaders answer, for queries of one guarantee.

        Queries of a topic that is gone, or refused, fail. Raises KafkaException.
        """
        counts: dict[str, int] = {}
        for participant in self._participants.values():
            if participant.is_exactly_once is is_exactly_once:
                for topic, count in participant.counts.items():
                    counts[topic] = max(count, counts.get(topic, 0))
        found, refused = self.topics.ends(counts, is_exactly_once=is_exactly_once)
        for topic, error in refused.items():
            for participant in list(self._participants.values()):
                if topic in participant.counts:
                    self._fail(participant.query_id, error)
        return found

    def _look_at_topics(self) -> None:
        """Find topics that are gone, were created again or have got partitions."""
        if time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + _TOPICS_SECONDS
        assert self._ledger is not None
        participants = list(self._participants.values())
        described = self.topics.described(
            {topic for of in participants for topic in (*of.counts, of.sink)}
        )
        for participant in participants:
            query_id = participant.query_id
            topics = [*participant.counts, participant.sink]
            if any(topic not in described for topic in topics):
                gone = next(topic for topic in topics if topic not in described)
                text = f"Topic {gone} of query {query_id} is missing"
                self._fail(query_id, MissingTopicError(text))
                continue
            answered = {
                topic: of for topic in participant.counts if (of := described[topic]) is not None
            }
            counts = {topic: len(of.partitions) for topic, of in answered.items()}
            moved = [
                topic
                for topic, count in participant.state_topics.items()
                if counts.get(topic, count) > count
            ]
            if moved:
                # Its keys may be elsewhere now; the next start checks that.
                error = AddedPartitionsError(moved[0], participant.state_topics[moved[0]])
                self._fail(query_id, error)
                continue
            participant.counts.update(counts)
            self._ledger.extend(query_id, participant.counts)
            self._identify(query_id, ids_of(answered))

    def _identify(self, query_id: str, topic_ids: Mapping[str, str]) -> None:
        """Have topics that were deleted and created again read from their beginning."""
        assert self._ledger is not None
        for topic in self._ledger.identify(query_id, topic_ids):
            _log.warning("%s reads %s from its beginning: it was created again", query_id, topic)

    @staticmethod
    def _note_ends(participant: Participant, ends: Listed) -> None:
        for place, end in ends.items():
            if place[0] in participant.counts:
                participant.ends[place] = end
