"""The labels of a task, without Spark: ranges, and rounds of a micro-batch that lasts."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.kafka.wire_reader import (
    POLL_SIZE_BYTES_MAX,
    Place,
    ReadError,
)
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark import hosted, shared_worker
from barnabas.sql.spark import state as worker_state
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting, RangeReading, SharedResults
from barnabas.sql.spark.parcels import (
    NOTES_CHARS_MAX,
    Closing,
    Left,
    Parcel,
    Range,
    Report,
    Results,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import PolledColumns
from barnabas.sql.spark.results import ResultRecords
from barnabas.sql.spark.shared_worker import LabelStates, member_parcel, run_members
from barnabas.sql.spark.topology import closing_labels, is_closing, member_labels, task_of
from support.sql_columns import decoded_parts
from support.sql_queries import plans_of

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='other', value_format='JSON');
CREATE STREAM other (k STRING KEY, v INT) WITH (kafka_topic='other', value_format='JSON');
"""
COUNT = "CREATE TABLE q AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k;"
FILTER = "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 4;"
JOIN = "CREATE STREAM q AS SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k;"
OF_OTHER = "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM other GROUP BY k;"
SHOWS_ROWS = (("ksql.logging.processing.rows.include", "true"),)
TASKS = 2
Map = dict[bytes, bytes]


class World:
    """Topics of one partition, Spark's state by label, and the sinks of the queries."""

    def __init__(self) -> None:
        self.topics: dict[str, list[TopicRecord]] = {"s": [], "other": []}
        self.states: dict[int, Map] = {}
        self.at: int | None = None
        """The label that the state means."""
        self.results: dict[str, list[TopicRecord]] = {}
        self.errors: dict[Place, ReadError] = {}
        self.damaged: dict[Place, int] = {}
        """The offset at which a batch of a partition is damaged."""
        self.fails: set[str] = set()
        """Topics of sinks that cannot be written."""
        self.polls: list[dict[Place, int]] = []
        self.waits_ms: list[int] = []
        self.sizes: list[int] = []
        """The longest answer that is allowed."""
        self.silent: dict[str, range] = {}
        """The polls that a topic's leader does not answer, from 1."""
        self.room = 1_000_000
        """The most records of a partition that an answer holds."""
        self.coming: list[int] = []
        """How many records of `s` are there at each poll; the last of them ends the micro-batch."""
        self.ending: Path | None = None
        self.tables: set[Place] = set()
        self.fetched: list[Any] = []
        self.given: list[RawColumns] = []

    # --- Spark's state ------------------------------------------------------------------------

    def turn_to(self, label: int) -> None:
        self.at = label

    @property
    def pages(self) -> Map:
        assert self.at is not None
        return self.states.setdefault(self.at, {})

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:  # noqa: N802  Spark's name
        found = self.pages.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:  # noqa: N802
        self.pages[key[0]] = value[0]

    def removeKey(self, key: tuple[bytes]) -> None:  # noqa: N802
        self.pages.pop(key[0], None)

    def clear(self) -> None:
        self.pages.clear()

    # --- the cluster --------------------------------------------------------------------------

    def poll(
        self,
        _: RangeReading,
        offsets: Mapping[Place, int],
        wait_ms: int,
        last: Collection[Place],
        size_bytes_max: int,
    ) -> tuple[dict[Place, PolledColumns], dict[Place, ReadError]]:
        self.polls.append(dict(offsets))
        self.waits_ms.append(wait_ms)
        self.sizes.append(size_bytes_max)
        assert last == self.tables
        is_last = len(self.coming) == 1
        end = self.coming[0] if is_last else self.coming.pop(0)
        if is_last and self.ending is not None:
            self.ending.touch()
        found = {}
        for (topic, partition), first in offsets.items():
            ends = end if topic == "s" else len(self.topics[topic])
            is_silent = len(self.polls) in self.silent.get(topic, ())
            if first < ends and not is_silent and (topic, partition) not in self.errors:
                until = min(ends, first + self.room)
                columns = [self.columns(topic, first, until)] if until > first else []
                found[topic, partition] = PolledColumns(until, ends, columns)
        errors = {place: of for place, of in self.errors.items() if place in offsets}
        for place, offset in self.damaged.items():
            if offsets.get(place) == offset:
                del found[place]
                errors[place] = ReadError("damaged")
        return found, errors

    def read(
        self, _: RangeReading, topic: str, partition: int, first: int, until: int
    ) -> Iterator[RawColumns]:
        self.fetched.append((topic, partition, first, until))
        if (topic, partition) in self.errors:
            raise self.errors[topic, partition]
        yield self.columns(topic, first, until)

    def columns(self, topic: str, first: int, until: int) -> RawColumns:
        records = self.topics[topic][first:until]
        made = RawColumns.of_lists(
            0,
            range(first, until),
            [record.timestamp_ms for record in records],
            [record.key for record in records],
            [record.value for record in records],
        )
        self.given.append(made)
        return made

    def write(self, _: str, to: ResultRecords, results: Results, __: Any) -> int:
        if to.topic in self.fails:
            raise OSError("no room")
        for key, value, at_ms in zip(*results.lists(), strict=True):
            self.results.setdefault(to.topic, []).append(TopicRecord(key, value, at_ms))
        return len(results.keys)

    def last(self, sink: str) -> dict[bytes | None, bytes | None]:
        return {record.key: record.value for record in self.results.get(sink, ())}

    # --- tasks --------------------------------------------------------------------------------

    def run(
        self,
        queries: Mapping[int, tuple[str, int]],
        until: int,
        lasts_ms: int = 0,
        left: tuple[int, ...] = (),
        round_ms: int = 0,
        properties: tuple[tuple[str, str], ...] = (),
    ) -> dict[int, Report]:
        """Run a micro-batch of queries and where they begin, by member; the reports by member."""
        gathered: dict[int, list[bytes]] = {}
        labels = {member: member_labels(member, 1, TASKS)[0] for member in (*queries, *left)}
        for member, (statement, first) in queries.items():
            (plan,) = plans_of(
                SOURCES + statement.replace(" q ", f" q{member} "), {"s": 1, "other": 1}
            )
            inputs = {"JOIN": ("s", "other"), "other": ("other",)}
            topics = next((of for word, of in inputs.items() if word in statement), ("s",))
            hosting = Hosting(
                *(f"query {member}", encode_plan(plan), 1, TASKS),
                emits_every_change=True,
                state_name=f"state of {member}",
                sink_servers="brokers",
                columns_from=4,
                properties=properties,
            )
            places = {of: place for place, of in HostedPlan(hosting).topology.topics.items()}
            ranges = [Range(*places[of], of, 0, first, max(first, until)) for of in topics]
            gathered[labels[member]] = [member_parcel(hosting), *map(encode_parcel, ranges)]
        for member in left:
            gathered[labels[member]] = [encode_parcel(Left())]
        self.ending = None if not lasts_ms else self.directory / "ending"
        closing = Closing(lasts_ms, "" if self.ending is None else str(self.ending), round_ms)
        gathered[closing_labels(TASKS)[0]] = [encode_parcel(closing)]
        common = Hosting("", "", 1, 1)
        states = LabelStates(self, self.turn_to)
        reading = RangeReading("brokers")
        frame = run_members(common, reading, SharedResults("sink"), states, gathered)
        reports: dict[int, Report] = {}
        for label, data in zip(frame["label"], frame["parcel"], strict=True):
            report: Parcel = decode_parcel(data)
            assert isinstance(report, Report)
            assert report.label == label
            (member,) = (name for name, of in labels.items() if of == label)
            reports[member] = report
        return reports

    directory: Path


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()
    made.directory = tmp_path
    random = Random(7)
    for topic in made.topics.values():
        topic.extend(
            TopicRecord(b"k%d" % random.randrange(5), b'{"V": %d}' % random.randrange(10), number)
            for number in range(60)
        )
    monkeypatch.setattr(shared_worker, "poll_topics", made.poll)
    monkeypatch.setattr(shared_worker, "read_range", made.read)
    monkeypatch.setattr(shared_worker, "write_from_task", made.write)
    worker_state._partitions.clear()
    return made


def counted(records: list[TopicRecord]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for record in records:
        assert record.key is not None
        found[record.key] = found.get(record.key, 0) + 1
    return found


def counts(results: Mapping[bytes | None, bytes | None]) -> dict[bytes | None, int]:
    return {
        key: int((value or b"").split(b'"N":')[1].split(b",")[0].rstrip(b"}"))
        for key, value in results.items()
    }


@pytest.mark.parametrize("seed", range(6))
def test_rounds_give_what_one_range_gives(world: World, seed: int) -> None:
    """However the records come: no round counts one twice, or leaves one out."""
    random = Random(seed)
    ends = sorted(random.randrange(61) for _ in range(5))
    world.coming = [*ends, 60]
    reports = world.run({0: (COUNT, 0), 1: (FILTER, 0)}, 0, lasts_ms=60_000)
    in_rounds = {name: list(of) for name, of in world.results.items()}
    assert {member: report.reached for member, report in reports.items()} == {
        0: {("s", 0): 60},
        1: {("s", 0): 60},
    }
    assert [report.notes.read for report in reports.values()] == [60, 60]
    assert reports[0].notes.written == len(in_rounds["Q0"]) == 60
    assert counts(world.last("Q0")) == counted(world.topics["s"])
    world.results.clear()
    world.states.clear()
    worker_state._partitions.clear()
    again = world.run({0: (COUNT, 0), 1: (FILTER, 0)}, 60)
    assert world.results == in_rounds
    assert [report.reached for report in again.values()] == [{}, {}]


def test_state_is_by_label_and_outlives_the_task(world: World) -> None:
    world.coming = [20, 30]
    queries = {0: (COUNT, 0), 1: (OF_OTHER, 0)}
    world.run(queries, 0, lasts_ms=60_000)
    assert len(world.states) == 2
    assert set(map(len, world.states.values())) != {0}
    worker_state._partitions.clear()  # another worker has them
    world.directory.joinpath("ending").unlink()
    world.coming = [60]
    world.run({0: (COUNT, 30), 1: (OF_OTHER, 60)}, 0, lasts_ms=60_000)
    assert counts(world.last("Q0")) == counted(world.topics["s"])
    assert counts(world.last("Q1")) == counted(world.topics["other"])


def test_labels_at_one_offset_get_the_same_columns(world: World) -> None:
    world.coming = [10, 10, 30]
    world.run({0: (COUNT, 0), 1: (FILTER, 0), 2: (FILTER, 0)}, 0, lasts_ms=60_000)
    assert len(world.given) == 2
    world.given.clear()
    world.run({0: (COUNT, 30), 1: (FILTER, 30), 2: (FILTER, 0)}, 40)
    assert world.fetched == [("s", 0, 30, 40), ("s", 0, 0, 40)]


def test_labels_at_one_offset_decode_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "_hosted", OrderedDict())
    world.coming = [10, 30]
    with decoded_parts(monkeypatch) as decoded:
        world.run({0: (COUNT, 0), 1: (FILTER, 0), 2: (FILTER, 0)}, 0, lasts_ms=60_000)
    assert decoded == ["s-key", "s-value"] * 2, "in each of two rounds"


def test_labels_at_several_offsets_come_together(world: World) -> None:
    world.coming = [40]
    reports = world.run({0: (FILTER, 0), 1: (FILTER, 25)}, 0, lasts_ms=60_000)
    assert [report.notes.read for report in reports.values()] == [40, 15]
    assert world.polls == [{("s", 0): 0}, {("s", 0): 25}]
    assert world.waits_ms == [0, 0]
    assert sum(world.sizes) == POLL_SIZE_BYTES_MAX, "their answers are in memory together"


def test_rounds_keep_no_more_notes_than_one_micro_batch(world: World) -> None:
    """Their texts may be whole records."""
    world.topics["s"][:] = [
        TopicRecord(b"k", b"{%d" % number + b"x" * 100_000, number) for number in range(20)
    ]
    world.coming = list(range(21))
    reports = world.run({0: (COUNT, 0)}, 0, lasts_ms=60_000, properties=SHOWS_ROWS)
    notes = reports[0].notes
    lengths = [len(text or "") for _, _, text in notes.notes]
    assert (notes.read, notes.count) == (20, 20)
    assert sum(lengths[:-1]) < NOTES_CHARS_MAX <= sum(lengths)


def test_an_idle_task_waits_in_its_polls_and_reports_nothing(world: World) -> None:
    world.coming = [0, 0, 0]
    assert world.run({0: (COUNT, 0)}, 0, lasts_ms=60_000) == {}
    first, *others = world.waits_ms
    assert first == 0
    assert others
    assert set(others) == {shared_worker.IDLE_WAIT_MS}
    assert world.states == {}


def test_polls_that_do_not_wait_are_not_repeated_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls are immediate without a leader for any partition, or with labels at several offsets."""
    pauses: list[float] = []
    monkeypatch.setattr(
        shared_worker, "_rest", lambda until_s, _: pauses.append(until_s - time.monotonic())
    )
    monkeypatch.setattr(shared_worker, "IDLE_WAIT_MS", 60_000)
    world.coming = [0, 0, 0, 0]
    assert world.run({0: (COUNT, 0)}, 0, lasts_ms=600_000) == {}
    assert len(world.polls) == 4
    # The first poll, which was not to wait, is followed by the second at once.
    assert [pause > 30 for pause in pauses] == [False, True, True]


@pytest.mark.parametrize(("room", "pauses"), [(9, 0), (10, 3)])
def test_full_answers_are_followed_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch, room: int, pauses: int
) -> None:
    found: list[float] = []
    monkeypatch.setattr(shared_worker, "_rest", lambda until_s, _: found.append(until_s))
    world.coming = [10, 20, 30, 40]
    world.room = room
    world.run({0: (COUNT, 0)}, 0, lasts_ms=60_000)
    assert (len(world.polls), len(found)) == (4, pauses)


def test_a_request_does_not_wait_for_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`barnabas.sql.spark.trigger.ms` may be long."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            world.directory.joinpath("ending").touch()

    monkeypatch.setattr("barnabas.sql.spark.shared_worker.time.sleep", sleep)
    world.coming = [10, 20, 30]
    reports = world.run({0: (COUNT, 0)}, 0, lasts_ms=3_600_000, round_ms=3_600_000)
    assert reports[0].reached["s", 0] == 20, "one more round, which looks for the file"
    assert slept == [shared_worker.IDLE_WAIT_MS / 1000] * 3


def test_a_task_that_only_deletes_states_does_not_last(world: World) -> None:
    world.run({0: (COUNT, 0)}, 20)
    label = member_labels(0, 1, TASKS)[0]
    assert world.states[label]
    assert world.run({}, 0, lasts_ms=60_000, left=(0,)) == {}
    assert (world.states[label], world.polls) == ({}, [])


def test_a_micro_batch_ends_with_its_time(world: World) -> None:
    world.coming = [10]
    reports = world.run({0: (COUNT, 0)}, 0, lasts_ms=1)
    assert reports[0].reached == {("s", 0): 10}


@pytest.mark.parametrize("lasts_ms", [0, 60_000])
def test_what_fails_leaves_the_others_and_its_state(world: World, lasts_ms: int) -> None:
    world.fails = {"Q1"}
    world.coming = [20, 60]
    reports = world.run({0: (COUNT, 0), 1: (COUNT, 0), 2: (COUNT, 0)}, 20, lasts_ms)
    failure = reports[1].failure
    assert failure is not None
    assert "no room" in failure
    assert reports[1].reached == {}
    assert [reports[member].failure for member in (0, 2)] == [None, None]
    assert [reports[member].notes.read for member in (0, 2)] == [20, 20]
    assert len(world.polls) == bool(lasts_ms), "its server learns of it at once"
    assert world.directory.joinpath("ending").exists() == bool(lasts_ms), "and other tasks end"
    failed = world.states.get(member_labels(1, 1, TASKS)[0], {})
    assert failed == {}
    world.fails = set()
    again = world.run({0: (COUNT, 20), 1: (COUNT, 0), 2: (COUNT, 20)}, 60)
    assert {member: report.failure for member, report in again.items()} == dict.fromkeys(range(3))
    for sink in ("Q0", "Q1", "Q2"):
        assert counts(world.last(sink)) == counted(world.topics["s"])


@pytest.mark.parametrize("lasts_ms", [0, 60_000])
def test_a_topic_that_cannot_be_read_fails_its_queries(world: World, lasts_ms: int) -> None:
    world.errors = {("other", 0): ReadError("cannot read topic other")}
    world.coming = [20]
    reports = world.run({0: (COUNT, 0), 1: (OF_OTHER, 0)}, 20, lasts_ms)
    assert reports[0].failure is None
    assert "cannot read topic other" in (reports[1].failure or "")
    assert counts(world.last("Q0")) == counted(world.topics["s"][:20])


def test_damaged_records_fail_only_the_queries_that_have_come_to_them(world: World) -> None:
    world.damaged = {("s", 0): 10}
    world.coming = [40]
    reports = world.run({0: (FILTER, 10), 1: (FILTER, 25)}, 0, lasts_ms=60_000)
    assert "damaged" in (reports[0].failure or "")
    assert (reports[1].failure, reports[1].reached) == (None, {("s", 0): 40})


def test_tables_are_polled_after_the_streams_that_are_joined_to_them(world: World) -> None:
    world.coming = [10]
    world.topics["other"][:] = [TopicRecord(b"k0", b'{"V": 1}', 0)]
    world.tables = {("other", 0)}
    world.run({0: (JOIN, 0)}, 0, lasts_ms=60_000)
    assert world.polls[0] == {("s", 0): 0, ("other", 0): 0}
    joined = [record.key for record in world.topics["s"][:10]].count(b"k0")
    assert len(world.results["Q0"]) == joined


@pytest.mark.parametrize("seed", range(8))
def test_a_join_takes_nothing_before_what_is_earlier_in_the_other_topic(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little of each topic finds room, and while a leader does not answer."""
    reached: dict[str, int] = {}

    def rest(_: float, ending: str) -> None:
        if min(reached.values(), default=0) == 60:
            Path(ending).touch()

    monkeypatch.setattr(shared_worker, "_rest", rest)
    random = Random(seed)
    times = random.sample(range(1_000), 120)
    for topic, own in ("s", times[:60]), ("other", times[60:]):
        world.topics[topic][:] = [
            TopicRecord(b"k%d" % random.randrange(5), b'{"V": %d}' % number, at_ms)
            for number, at_ms in enumerate(sorted(own))
        ]
    world.tables = {("other", 0)}
    world.run({0: (JOIN, 0)}, 60)
    at_once = world.results.pop("Q0")
    world.states.clear()
    worker_state._partitions.clear()
    world.room = random.choice((1, 2, 7, 30))
    world.silent = {random.choice(("s", "other")): range(2 * random.randrange(1, 9), 40)}
    world.coming = [60] * 2_000
    take = shared_worker._Member.take

    def noted(member: Any, polled: Any) -> bool:
        has_taken = take(member, polled)
        reached.update({f"{member.label} {place}": at for place, at in member.offsets.items()})
        return has_taken

    monkeypatch.setattr(shared_worker._Member, "take", noted)
    reports = world.run({0: (JOIN, 0), 1: (FILTER, 0)}, 0, lasts_ms=60_000)
    assert world.results["Q0"] == at_once
    assert reports[0].reached == {("s", 0): 60, ("other", 0): 60}
    assert reports[1].reached == {("s", 0): 60}


def test_a_plan_that_cannot_be_built_fails_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = hosted.HostedPlan

    def built(hosting: Hosting) -> Any:
        if hosting.query_id == "query 1":
            raise ImportError("no function f")
        return broken(hosting)

    monkeypatch.setattr(hosted, "HostedPlan", built)
    hosted._hosted.clear()
    world.coming = [10]
    reports = world.run({0: (COUNT, 0), 1: (COUNT, 0)}, 0, lasts_ms=60_000)
    assert reports[0].failure is None
    assert "no function f" in (reports[1].failure or "")


def test_the_state_of_a_query_that_left_is_deleted(world: World) -> None:
    world.run({0: (COUNT, 0), 1: (COUNT, 0)}, 20)
    labels = [member_labels(member, 1, TASKS)[0] for member in (0, 1)]
    assert all(world.states[label] for label in labels)
    world.run({1: (COUNT, 20)}, 30, left=(0,))
    assert not world.states[labels[0]]
    assert world.states[labels[1]]


def test_each_task_has_a_label_behind_all_others() -> None:
    for tasks in (1, 2, 7, 200):
        labels = closing_labels(tasks)
        assert [task_of(label, tasks) for label in labels] == list(range(tasks))
        assert all(map(is_closing, labels))
        assert max(labels) < 2**31
    assert not is_closing(member_labels(999, 2_000, 16)[-1])
