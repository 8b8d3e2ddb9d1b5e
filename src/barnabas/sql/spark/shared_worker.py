"""What a Spark worker runs of a shared stream: all labels of a task, each of one of its queries.

A micro-batch either has ranges of offsets and ends with them, or lasts: then the task polls the
topics' partitions, and runs what came through the queries in rounds. A record waits for the next
round then, and not for the next micro-batch.

    poll ─▶ columns ─▶ stages of each label, results are written ─▶ poll … ─▶ state, reports

Labels that are at the same offset get the same columns: these are fetched and decoded once.

A query that fails must not stop the others. What it fails of is caught and reported, as long as
it has put nothing into Spark's state: the micro-batch ends without it, and its records are read
again. At least once, its results up to there may be written twice. Exactly once, each label writes
in its own transaction: it is aborted then, and otherwise left open for the driver to commit.
"""

from __future__ import annotations

import os
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from barnabas.kafka.wire_reader import (
    POLL_SIZE_BYTES_MAX,
    Place,
    ReadError,
)
from barnabas.spark.datasource.committer import task_prefix
from barnabas.spark.datasource.options import SinkOptions, options_of
from barnabas.spark.datasource.protocol import Prepared
from barnabas.spark.datasource.task import TaskPlace
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.plan.steps import TableSource
from barnabas.sql.runtime.rows_encoding import pack, unpack
from barnabas.sql.spark.hosted import HostedPlan, Placed, forgotten_on_failure
from barnabas.sql.spark.hosting import Hosting, RangeReading, SharedResults
from barnabas.sql.spark.parcels import (
    Closing,
    Incoming,
    Left,
    Member,
    Notes,
    Parcel,
    Range,
    Raw,
    Report,
    Results,
    Turn,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import PolledColumns, poll_topics, read_range
from barnabas.sql.spark.results import ExactlyOnce, ResultRecords, TaskResults, write_from_task
from barnabas.sql.spark.state import MapStatePages, PartitionState, partition_state
from barnabas.sql.spark.topology import member_of

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

IDLE_WAIT_MS: Final = 100
"""A poll waits so long for records: it does not learn of the micro-batch's end in between."""

_OF_STAGES: Final = ("ksql.functions.", "ksql.timestamp.", "ksql.logging.processing.")
"""Settings that the stages of a plan read; others may be secrets."""
_TOLD: Final = (
    "query_id",
    "plan",
    "partitions",
    "tasks",
    "is_copartitioned",
    "emits_every_change",
    "state_name",
    "extension_directory",
    "sink_servers",
    "sink_partitions",
    "columns_from",
)
"""Of a query's hosting; all of a stream's queries have the rest in common."""


def member_parcel(hosting: Hosting) -> bytes:
    """The description of a member for workers, without secrets: Spark writes it to files."""
    properties = tuple(
        (name, value) for name, value in hosting.properties if name.startswith(_OF_STAGES)
    )
    return encode_parcel(Member(pack((properties, *(getattr(hosting, name) for name in _TOLD)))))


def _hosting_of(member: Member, common: Hosting) -> Hosting:
    properties, *told = unpack(member.hosting)
    return replace(
        common,
        properties=tuple((name, value) for name, value in properties),
        **dict(zip(_TOLD, told, strict=True)),
    )


class LabelStates:
    """Spark's map of pages, for one label after the other. `turn_to` selects a label in Spark."""

    def __init__(self, state: Any, turn_to: Callable[[int], None]) -> None:
        self._state = state
        self._turn_to = turn_to
        self._label: int | None = None

    def of(self, label: int) -> Any:
        """The map of a label's pages, until another label is asked for."""
        if label != self._label:
            self._label = None  # should it fail
            self._turn_to(label)
            self._label = label
        return self._state


class _LabelState:
    """The pages of one label, as a map."""

    def __init__(self, states: LabelStates, label: int) -> None:
        self._states = states
        self._label = label

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802  Spark's name
        found: tuple[Any, ...] | None = self._states.of(self._label).getValue(key)
        return found

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        self._states.of(self._label).updateValue(key, value)

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        self._states.of(self._label).removeKey(key)


def run_members(
    common: Hosting,
    reading: RangeReading,
    results: SharedResults,
    states: LabelStates,
    gathered: Mapping[int, Sequence[bytes]],
) -> pd.DataFrame:
    """Run the parcels of all labels of a task, the closing one among them."""
    import pandas as pd  # here, as the module is read where pandas is not

    closing = Closing()
    members: list[_Member] = []
    for label, data in sorted(gathered.items()):
        parcels = [decode_parcel(one) for one in data]
        if any(isinstance(one, Left) for one in parcels):
            states.of(label).clear()
        closing = next((one for one in parcels if isinstance(one, Closing)), closing)
        of_query = next((one for one in parcels if isinstance(one, Member)), None)
        if of_query is not None:
            hosting = _hosting_of(of_query, common)
            access = replace(reading, is_committed_only=hosting.sink_servers is None)
            members.append(_Member(label, hosting, access, results, states, parcels))
    if closing.lasts_ms:
        _run_rounds(reading, members, closing)
    else:
        _run_ranges(members)
    reports = [report for one in members if (report := one.report()) is not None]
    return pd.DataFrame(
        {
            "label": pd.Series([report.label for report in reports], dtype="int32"),
            "parcel": [encode_parcel(report) for report in reports],
        }
    )


class _Member:
    """A partition of a query, in a micro-batch."""

    def __init__(
        self,
        label: int,
        hosting: Hosting,
        reading: RangeReading,
        results: SharedResults,
        states: LabelStates,
        parcels: Sequence[Parcel],
    ) -> None:
        self.label = label
        self.reading = reading
        self.ranges = [one for one in parcels if isinstance(one, Range)]
        turns = (one for one in parcels if isinstance(one, Turn))
        self._turn = next(turns, Turn(0, is_repeated=False))
        self.offsets = {(one.topic, one.partition): one.first for one in self.ranges}
        """By topic and partition, the next offset to read."""
        self._reached: dict[Place, int] = {}
        self._times: dict[Place, int] = {}
        """Of each partition, the latest timestamp that was taken."""
        self._ends: dict[Place, int] = {}
        """The ends of partitions, as last heard of; only of a query of several topics."""
        self._is_joining = len({topic for topic, _ in self.offsets}) > 1
        self._hosting = hosting
        self._results = results
        _, self._partition = member_of(label)
        self._pages = MapStatePages(_LabelState(states, label))
        self._state: PartitionState | None = None
        self._notes = Notes()
        self._prepared: Sequence[Prepared] = ()
        self._undo = ExitStack()
        self._has_run = False
        self.failure: str | None = None

    def run(self, read: Callable[[Range], Iterable[RawColumns]]) -> None:
        """Run all stages on what `read` gives for each range; puts nothing into Spark's state."""
        began = time.perf_counter()
        self._has_run = True
        try:
            with ExitStack() as undo, forgotten_on_failure(self._hosting) as plan:
                if self._state is None and plan.topology.operators:
                    name = f"{self._hosting.state_name}/0"
                    self._state = partition_state(name, self._partition, PartitionState)
                    self._state.attach(self._pages)
                transaction = _transaction(
                    plan, self.reading, self._results, self._turn, self.label
                )
                undo.callback(transaction.abort)
                for results in self._processed(plan, read):
                    if self._turn.is_repeated:
                        continue
                    if self._hosting.sink_servers is None:
                        transaction.write(results)
                    else:
                        to = ResultRecords.of_plan(plan)
                        servers, clients = self._hosting.sink_servers, self._hosting.clients
                        write_from_task(servers, to, results, clients)
                    self._notes.written += len(results.keys)
                self._prepared = transaction.prepare()
                self._notes.add(plan.take_notes())
                self._undo = undo.pop_all()
        except (Exception, SystemExit):  # noqa: BLE001  it is reported, and the query stops of it
            self.failure = traceback.format_exc()
        self._notes.seconds += time.perf_counter() - began

    def tables(self) -> set[Place]:
        """The partitions of topics that the query reads as tables; empty if its plan fails."""
        try:
            with forgotten_on_failure(self._hosting) as plan:
                return {
                    (one.topic, one.partition)
                    for one in self.ranges
                    if isinstance(plan.stages[one.stage].inputs[one.place], TableSource)
                }
        except (Exception, SystemExit):  # noqa: BLE001  it is reported, and the query stops of it
            self.failure = traceback.format_exc()
        return set()

    def take(self, polled: Mapping[Place, PolledColumns]) -> bool:
        """Run the records of a round; returns whether there are any for this member now."""
        came = self._in_time(polled) if self._is_joining else polled
        came = {place: one for place, one in came.items() if one.next > self.offsets[place]}
        if not came:
            return False
        self.run(
            lambda one: came[place].records if (place := (one.topic, one.partition)) in came else ()
        )
        if self.failure is None:
            self._reached.update({place: one.next for place, one in came.items()})
            self.offsets.update(self._reached)
            if self._is_joining:
                for place, one in came.items():
                    self._times[place] = max(self._time_of(place, one), self._times.get(place, -1))
        return True

    def _in_time(self, polled: Mapping[Place, PolledColumns]) -> Mapping[Place, PolledColumns]:
        """Leave out records that may be later than some that are still to come.

        These had no room in an answer, or their leader did not answer. They may be as early as the
        last record before them. Without this, a stream's record would be joined before older rows
        of the table are there. Kafka Streams also takes the earliest record of all partitions of a
        task first, and waits for partitions that have more (KIP-695).
        """
        self._ends.update({place: one.end for place, one in polled.items()})
        nexts = {**self.offsets, **{place: one.next for place, one in polled.items()}}
        behind = [place for place, end in self._ends.items() if nexts[place] < end]
        if not behind:
            return polled
        until_ms = min(self._time_of(place, polled.get(place)) for place in behind)
        return {place: one.until(until_ms) for place, one in polled.items()}

    def _time_of(self, place: Place, polled: PolledColumns | None) -> int:
        """The latest timestamp of a partition with these records; -1 if none is known."""
        latest_ms = None if polled is None else polled.latest_ms
        return self._times.get(place, -1) if latest_ms is None else latest_ms

    def fail(self, error: Exception) -> None:
        """Leave it out."""
        self.failure = "".join(traceback.format_exception(error))

    def report(self) -> Report | None:
        """Write the state, and return what became of it; None if there was nothing to do."""
        if self.failure is not None:
            return Report(self.label, Notes(), self.failure)
        if not self._has_run:
            return None
        with self._undo as undo:
            if self._state is not None:
                self._state.flush()
            undo.pop_all()
        self._notes.calls = self._pages.calls
        task = TaskContext.get()
        was_retried = task is not None and task.attemptNumber() > 0
        written = tuple(Written(one, was_retried) for one in self._prepared)
        return Report(self.label, self._notes, None, written, self._reached)

    def _processed(
        self, plan: HostedPlan, read: Callable[[Range], Iterable[RawColumns]]
    ) -> Iterator[Results]:
        placed: list[Placed] = []
        for one in self.ranges:
            for records in read(one):
                placed += plan.from_source(Raw(one.stage, one.place, records))
        made = [one for one in placed if one[1] is None]
        incoming: list[Incoming] = []
        for target, number, parcel in placed:
            if number is not None:
                assert (target, number) == (self._partition, 0), "records stay where they are"
                assert isinstance(parcel, Incoming)
                incoming.append(parcel)
        if self._state is not None:
            made += plan.run_operator(0, self._partition, incoming, self._state.open)
        for _, _, result in made:
            assert isinstance(result, Results), "nothing leaves but results"
            yield result


# --- reading -------------------------------------------------------------------------------------


def _run_ranges(members: Sequence[_Member]) -> None:
    """Run each label on its ranges; one that several labels have is fetched once."""
    left = Counter(_named(member, one) for member in members for one in member.ranges)
    kept: dict[tuple[Any, ...], list[RawColumns]] = {}

    def read(member: _Member, one: Range) -> Iterable[RawColumns]:
        name = _named(member, one)
        left[name] -= 1
        records = kept.pop(name, None)
        if records is None:
            found = read_range(member.reading, one.topic, one.partition, one.first, one.until)
            if not left[name]:
                return found
            records = list(found)
        if left[name]:
            kept[name] = records
        return records

    for member in members:
        member.run(partial(read, member))


def _named(member: _Member, one: Range) -> tuple[Any, ...]:
    return member.reading.is_committed_only, one.topic, one.partition, one.first, one.until


def _run_rounds(reading: RangeReading, members: Sequence[_Member], closing: Closing) -> None:
    """Run labels at least once, as records come, until the micro-batch ends or one fails."""
    if not members:  # the task has states to delete
        return
    ends_s = time.monotonic() + closing.lasts_ms / 1000
    # A stream's record is joined to the table's rows that were there when it was written.
    tables = set().union(*(member.tables() for member in members))
    wait_ms = 0
    while True:
        began_s = time.monotonic()
        count, is_behind = _run_round(reading, members, tables, wait_ms)
        now_s = time.monotonic()
        if any(one.failure for one in members):
            # The server learns of it, and starts the next one, when all tasks have ended.
            with suppress(OSError):  # they end at their own time
                Path(closing.ending).touch()
            return
        if now_s >= ends_s or os.path.exists(closing.ending):
            return
        left_ms = int(1000 * (ends_s - now_s))
        # A poll does not wait while no partition can be asked.
        lasts_ms = closing.round_ms if count else wait_ms
        wait_ms = 0 if count else max(1, min(left_ms, IDLE_WAIT_MS))
        if not is_behind:
            _rest(min(began_s + lasts_ms / 1000, ends_s), closing.ending)


def _rest(until_s: float, ending: str) -> None:
    """Wait for the next round, or the file that ends the micro-batch."""
    while (left_s := until_s - time.monotonic()) > 0 and not os.path.exists(ending):
        time.sleep(min(left_s, IDLE_WAIT_MS / 1000))


def _run_round(
    reading: RangeReading, members: Sequence[_Member], tables: Collection[Place], wait_ms: int
) -> tuple[int, bool]:
    """Run the records that topics have; returns how many, and whether there are more."""
    places: dict[Place, set[int]] = defaultdict(set)
    for member in members:
        for place, offset in member.offsets.items():
            places[place].add(offset)
    polls = max(map(len, places.values()), default=0)
    size_max = POLL_SIZE_BYTES_MAX // max(1, polls)
    at_offsets = {place: sorted(offsets) for place, offsets in places.items()}
    found: dict[tuple[Place, int], PolledColumns] = {}
    errors: dict[tuple[Place, int], ReadError] = {}
    for number in range(polls):
        # Labels of a partition that are at several offsets take several requests. Their answers
        # are in memory together.
        asked = {
            place: offsets[number] for place, offsets in at_offsets.items() if number < len(offsets)
        }
        polled, refused = poll_topics(
            reading, asked, wait_ms if polls == 1 else 0, tables, size_max
        )
        found.update({(place, asked[place]): one for place, one in polled.items()})
        errors.update({(place, asked[place]): error for place, error in refused.items()})
    is_behind = False
    for member in members:
        if member.failure is not None:
            continue
        error = next((errors[at] for at in member.offsets.items() if at in errors), None)
        if error is not None:
            member.fail(error)
            continue
        came = {
            place: found[place, offset]
            for place, offset in member.offsets.items()
            if (place, offset) in found
        }
        # One that only waits for another topic does not ask again at once.
        if member.take(came):
            is_behind |= any(member.offsets[place] < one.end for place, one in came.items())
    count = sum(len(records) for one in found.values() for records in one.records)
    return count, is_behind


def _transaction(
    plan: HostedPlan, reading: RangeReading, results: SharedResults, turn: Turn, label: int
) -> TaskResults:
    """The transaction of a label, which nothing begins but a result that is written to it."""
    to = ExactlyOnce(
        _sink_options(reading.bootstrap_servers, reading.clients),
        f"{results.service_id}{plan.hosting.query_id}",
        plan.hosting.state_name,
        results.marks_all,
    )
    place = TaskPlace(task_prefix(results.sink), turn.number, label)
    return TaskResults(to, ResultRecords.of_plan(plan), place)


@lru_cache(maxsize=1)
def _sink_options(servers: str, clients: tuple[tuple[str, Any], ...]) -> SinkOptions:
    return options_of(servers, dict(clients))
