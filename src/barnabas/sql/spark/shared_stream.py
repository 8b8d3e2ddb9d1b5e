"""One stream of Spark's that runs the micro-batches of many queries.

Spark's driver plans a micro-batch once for all of them. The server says which records are in it: a
thread asks for the ends of all topics, and gives each query the offsets that it has not read.

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

import fcntl
import logging
import os
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec, TopicDescription
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.base.backoff import doubled
from barnabas.kafka.admin import Admin, Listed
from barnabas.spark.interruption import interruptible
from barnabas.spark.pushed_rows import PushedRow, PushedRows, batch_number
from barnabas.spark.session import cores_of
from barnabas.spark.small_batches import Collect, for_each_batch
from barnabas.spark.supervision import QueryState, SupervisedStream
from barnabas.sql.spark.checkpoint import CheckpointError
from barnabas.sql.spark.hosting import Hosting, RangeReading
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Left, Report, decode_parcel, encode_parcel
from barnabas.sql.spark.placement import AddedPartitionsError, MissingTopicError
from barnabas.sql.spark.processor import SharedProcessor
from barnabas.sql.spark.query import configure_session
from barnabas.sql.spark.shared_commits import SharedCommits
from barnabas.sql.spark.shared_ledger import Ledger, Offsets, known_queries
from barnabas.sql.spark.shared_members import Participant, ranges_of, rows_of
from barnabas.sql.spark.topology import member_labels, member_of
from barnabas.sql.spark.worker import PARCEL_COLUMN, SCHEMA

_log = logging.getLogger(__name__)
T = TypeVar("T")
DIRECTORY: Final = "shared-stream"
"""Of the checkpoint, among those of queries."""
_NAME: Final = "shared stream"
_REFUSALS: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
)
"""They are of one topic, and its queries fail of them."""
_ENDS_SECONDS: Final = 3.0
"""For the ends of all partitions."""
_SILENT_SECONDS: Final = 1.0
_SILENT_SECONDS_MAX: Final = 30.0
"""A partition whose leader did not answer is asked again so much later: longer each time."""
_LEAVE_SECONDS: Final = 10.0
"""A query that is paused or terminated waits so long for the end of a micro-batch."""
_LOOK_SECONDS: Final = 0.5
"""Between looks at a stream whose micro-batch runs."""
_COUNTS_EVERY: Final = 50
"""So many looks for records to one for partitions that topics have got."""


class SharedQueryError(Exception):
    """A query's part of a micro-batch failed; the text is the traceback."""


@dataclass
class _Batch:
    number: int
    share_numbers: Mapping[int, Participant]
    began: Mapping[str, dict[tuple[int, str, int], int]]
    """By query and label's partition, topic and partition: where its reading began."""
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
        self._looks = 0
        self._silent: dict[tuple[str, int], tuple[float, int]] = {}
        """Partitions whose leaders did not answer: until when they are not asked, and how often
        they did not."""
        self._known: frozenset[str] | None = None
        """The queries that have a share; None before the ledger is open."""
        self._reached: Mapping[str, Offsets] = {}
        self._is_waiting = False
        """True while the cluster does not answer."""
        servers = {"bootstrap.servers": options.bootstrap_servers}
        self._admin = Admin({**options.clients, **servers})
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

    def first_offsets(
        self, counts: Mapping[str, int], *, from_start: bool, is_exactly_once: bool
    ) -> Offsets:
        """The offsets at which a new query begins. Raises KafkaException."""
        spec = OffsetSpec.earliest() if from_start else OffsetSpec.latest()
        found: Offsets = {topic: {} for topic in counts}
        isolation = _isolation(is_exactly_once)
        listed = self._admin.offsets(_places(counts, spec), isolation=isolation)
        for (topic, partition), offset in listed.items():
            found[topic][partition] = offset
        return found

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of topics that exist; brokers before 2.8 give none. Raises KafkaException."""
        return _ids(self._admin.describe(topics))

    def close(self) -> None:
        """End; a micro-batch that runs is planned again by the next start."""
        self._closing.set()
        self._wake.set()
        try:
            self.life.stop()
            if self._is_started:
                self._thread.join()
            self.life.stop()  # should a request have been starting it
        finally:
            self._admin.close()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

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
            self._lock = _locked(self.checkpoint)
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
        back: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        failures: dict[str, str] = {}
        for report in reports:
            if report.failure is None:
                continue
            number, label_partition = member_of(report.label)
            query_id = batch.share_numbers[number].query_id
            failures.setdefault(query_id, report.failure)
            for (of, topic, partition), offset in batch.began[query_id].items():
                if of == label_partition:
                    back[query_id][topic, partition] = offset
        if back:
            # Before the decision, which is about what the ledger says.
            self._ledger.take_back(back)
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
        self._look_at_partitions()
        all_ends = {
            is_exactly_once: self._ends(is_exactly_once) for is_exactly_once in (False, True)
        }
        self._is_waiting = False
        rows: list[PushedRow] = []
        reached: dict[str, dict[tuple[str, int], int]] = {}
        began: dict[str, dict[tuple[int, str, int], int]] = {}
        for participant in self._participants.values():
            share = ledger.shares[participant.query_id]
            ends = all_ends[participant.is_exactly_once]
            self._note_ends(participant, ends)
            ranges = list(ranges_of(participant, share, ends))
            if not ranges:
                continue
            rows += rows_of(participant, share, ranges, ledger.tasks, ledger.number + 1)
            read = reached.setdefault(participant.query_id, {})
            starts = began.setdefault(participant.query_id, {})
            for one in ranges:
                read[one.topic, one.partition] = one.until
                at = one.partition % participant.partitions, one.topic, one.partition
                starts[at] = one.first
        for share in ledger.left:
            labels = member_labels(share.number, share.partitions, ledger.tasks)
            rows += [(label, encode_parcel(Left())) for label in labels]
        if not rows:
            return
        members = {
            ledger.shares[query_id].number: self._participants[query_id] for query_id in reached
        }
        self._run_batch(_Batch(ledger.plan(reached), members, began), rows)

    def _run_batch(self, batch: _Batch, rows: Sequence[PushedRow]) -> None:
        assert self._source is not None
        self._batch = batch
        try:
            self._source.offer(batch.number, rows)
            while not batch.done.wait(_LOOK_SECONDS):
                if self.life.state is not QueryState.RUNNING:
                    return
        finally:
            self._batch = None

    def _fail_all(self, error: BaseException) -> None:
        for query_id in list(self._participants):
            self._fail(query_id, error)

    # --- topics ------------------------------------------------------------------------------

    def _ends(self, is_exactly_once: bool) -> Listed:
        """The ends of partitions whose leaders answer, for queries of one guarantee; the others are
        asked again later.

        Queries of a topic that is gone, or refused, fail. Raises KafkaException.
        """
        counts: dict[str, int] = {}
        for participant in self._participants.values():
            if participant.is_exactly_once is is_exactly_once:
                for topic, count in participant.counts.items():
                    counts[topic] = max(count, counts.get(topic, 0))
        now_s = time.monotonic()
        asked = {
            place: spec
            for place, spec in _places(counts, OffsetSpec.latest()).items()
            if self._silent.get((place.topic, place.partition), (now_s, 0))[0] <= now_s
        }
        if not asked:
            return {}
        found, errors = self._admin.known_offsets(asked, _ENDS_SECONDS, _isolation(is_exactly_once))
        for place in found.keys() & self._silent.keys():
            del self._silent[place]
        for place, error in errors.items():
            if error.code() not in _REFUSALS:
                _, failures = self._silent.get(place, (0.0, 0))
                pause_s = doubled(_SILENT_SECONDS, _SILENT_SECONDS_MAX, failures)
                self._silent[place] = time.monotonic() + pause_s, failures + 1
                _log.warning("%s: the end of %s-%d is not known: %s", _NAME, *place, error.str())
                continue
            for participant in list(self._participants.values()):
                if place[0] in participant.counts:
                    self._fail(participant.query_id, KafkaException(error))
        return found

    def _look_at_partitions(self) -> None:
        """Find topics that are gone, were created again or have got partitions."""
        self._looks += 1
        if self._looks % _COUNTS_EVERY:
            return
        assert self._ledger is not None
        participants = list(self._participants.values())
        described = self._described(
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
            self._identify(query_id, _ids(answered))

    def _described(self, topics: Iterable[str]) -> dict[str, TopicDescription | None]:
        """Topics that exist; None for those that cannot be asked for."""
        try:
            return dict(self._admin.describe(topics))
        except KafkaException as error:
            _log.warning("%s: topics cannot be described: %s", _NAME, error)
        return dict.fromkeys(topics)

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


def _isolation(is_exactly_once: bool) -> IsolationLevel:
    """Exactly once, records of transactions that are open or aborted are not read."""
    return IsolationLevel.READ_COMMITTED if is_exactly_once else IsolationLevel.READ_UNCOMMITTED


def _places(counts: Mapping[str, int], spec: OffsetSpec) -> dict[TopicPartition, OffsetSpec]:
    return {
        TopicPartition(topic, partition): spec
        for topic, count in counts.items()
        for partition in range(count)
    }


def _ids(described: Mapping[str, TopicDescription]) -> dict[str, str]:
    return {topic: str(of.topic_id) for topic, of in described.items() if of.topic_id}


def _locked(directory: str) -> int:
    """Keep other servers of the service from a checkpoint. Raises CheckpointError."""
    os.makedirs(directory, exist_ok=True)
    file = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise CheckpointError(
            f"{directory} is in use by another server: queries that share micro-batches cannot "
            "move between servers"
        ) from error
    return file
