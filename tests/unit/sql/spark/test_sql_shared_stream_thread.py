"""The thread of a shared stream, without Spark: what it plans, and what it does about trouble."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import IsolationLevel, KafkaError

from barnabas.base.backoff import Pauses
from barnabas.spark.supervision import QueryState
from barnabas.sql.spark import shared_stream
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import (
    Closing,
    Notes,
    Range,
    Report,
    Turn,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.shared_ledger import Ledger
from barnabas.sql.spark.shared_members import Participant, records_max
from barnabas.sql.spark.shared_stream import SharedStream
from barnabas.sql.spark.topology import is_closing, member_of
from support.node_process import wait_until


class Query:
    """Notes what the stream tells it."""

    def __init__(self) -> None:
        self.read = 0
        self.failures: list[BaseException] = []

    def took(self, batch_id: int, notes: Notes) -> None:
        self.read += notes.read

    def failed(self, error: BaseException) -> None:
        self.failures.append(error)


class Life:
    """Spark's stream: it runs until it is stopped, and opens the ledger at each start."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.state = QueryState.PAUSED
        self.last_failure: BaseException | None = None
        self.stops = 0

    def start(self) -> None:
        world = self._world
        stream = world.stream
        stream._ledger = Ledger.open(
            stream.checkpoint, world.committed, world.offered, 2, decided=world.decided
        )
        stream._source = cast("Any", world)
        stream._publish()
        self.state = QueryState.RUNNING

    def stop(self) -> None:
        self.stops += 1
        self._world.is_hanging.clear()  # before another thread starts the stream again
        self.state = QueryState.PAUSED


class World:
    """A stream of one topic of two partitions; micro-batches are done at once, or hang until the
    stream is stopped."""

    def __init__(self, directory: Path) -> None:
        options = SparkQueryOptions("127.0.0.1:1", str(directory), is_shared=True, trigger_ms=1)
        self.stream = SharedStream(options, lambda: cast("Any", None))
        self.life = Life(self)
        self.stream.life = cast("Any", self.life)
        self.stream.topics.close()
        self.stream.topics.admin = self.stream._commits = cast("Any", self)
        self.committed = self.offered = self.decided = 0
        self.ends = {("t", 0): 0, ("t", 1): 0}
        self.errors: dict[tuple[str, int], KafkaError] = {}
        self.asked: list[set[tuple[str, int]]] = []
        self.isolations: set[IsolationLevel] = set()
        self.aborted: list[int] = []
        self.is_hanging = threading.Event()
        self.closings: list[Closing] = []
        self.late: dict[tuple[str, int], int] = {}
        """The numbers of records that come while the next micro-batch that lasts runs."""
        self.failure: str | None = None
        self.ranges: list[tuple[int, int, int, int]] = []
        """Share, partition, first and until of all that was done."""
        self.turns: list[tuple[int, Turn]] = []
        """Of which partition, and what it was told."""
        self.queries = {name: Query() for name in ("a", "b")}

    def join(self, name: str, *, is_exactly_once: bool = False) -> None:
        self.stream.join(
            Participant(
                name,
                self.queries[name],
                b"\x91\x07",
                {(0, 0): "t"},
                "sink",
                2,
                {"t": 2},
                {"t": 2},
                f"state of {name}",
                {"t": {0: 0, 1: 0}},
                {},
                is_exactly_once,
            )
        )

    # --- Spark's source and the cluster -------------------------------------------------------

    def offer(self, number: int, rows: list[tuple[int, bytes]]) -> None:
        self.offered = number
        batch = self.stream._batch
        assert batch is not None
        assert batch.number == number
        if self.is_hanging.is_set():
            return
        reports: dict[int, Report] = {}
        for label, parcel in rows:
            one = decode_parcel(parcel) if parcel != b"\x91\x07" else None
            if isinstance(one, Closing):
                assert is_closing(label)
                assert bool(one.lasts_ms) is bool(batch.ending)
                self.closings.append(one)
            if isinstance(one, Turn):
                self.turns.append((member_of(label)[1], one))
            if isinstance(one, Range):
                share, partition = member_of(label)
                self.ranges.append((share, partition, one.first, one.until))
                until = one.until
                if batch.ending:  # some came while it ran
                    until += self.late.pop((one.topic, one.partition), 0)
                notes = Notes(read=until - one.first)
                reports[label] = Report(label, notes, self.failure)
                if batch.ending and self.failure is None:
                    reports[label].reached[one.topic, one.partition] = until
        self.committed = number
        self.stream._take(batch, number, list(reports.values()))
        self.stream._publish()
        batch.done.set()

    def known_offsets(self, asked: dict[Any, Any], _: float, isolation: IsolationLevel) -> Any:
        self.isolations.add(isolation)
        places = {(one.topic, one.partition) for one in asked}
        self.asked.append(places)
        found = {place: self.ends[place] for place in places if place not in self.errors}
        return found, {place: self.errors[place] for place in places & self.errors.keys()}

    def describe(self, topics: set[str]) -> dict[str, Any]:
        part = type("Described", (), {"partitions": [0, 1], "topic_id": None})
        return dict.fromkeys(topics, part())

    def begin(self, ledger: Ledger) -> None:
        pass

    def abort(self, number: int) -> None:
        self.aborted.append(number)

    def commit(self, number: int, written: list[Written]) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(shared_stream, "_LEAVE_SECONDS", 0.05)
    made = World(tmp_path)
    monkeypatch.setattr(shared_stream, "committed_number", lambda _checkpoint: made.committed)
    yield made
    made.stream.close()


def hanging_batch(world: World) -> Any:
    """A micro-batch of query a that does not end by itself."""
    world.join("a")
    world.is_hanging.set()
    world.ends = {("t", 0): 3, ("t", 1): 5}
    wait_until(lambda: world.stream._batch is not None, "the micro-batch")
    batch = world.stream._batch
    assert batch is not None
    return batch


def test_each_query_gets_what_it_has_not_read(world: World) -> None:
    world.ends = {("t", 0): 3, ("t", 1): 5}
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 8, "all records")
    world.ends["t", 0] = 4
    world.join("b")
    wait_until(lambda: (world.queries["a"].read, world.queries["b"].read) == (9, 9), "the rest")
    assert (0, 0, 3, 4) in world.ranges
    assert world.stream.offsets_of("a") == world.stream.offsets_of("b") == {"t": {0: 4, 1: 5}}


def test_a_micro_batch_lasts_and_its_end_is_where_workers_came_to(world: World) -> None:
    world.ends = {("t", 0): 3, ("t", 1): 5}
    world.late = {("t", 0): 4}
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 12, "all records")
    assert (world.closings[0].lasts_ms, world.closings[0].round_ms) == (2_000, 1)
    assert world.stream.offsets_of("a") == {"t": {0: 7, 1: 5}}
    # Of the partition without new records some may come, too.
    world.ends = {("t", 0): 8, ("t", 1): 5}
    world.late = {("t", 1): 2}
    wait_until(lambda: world.queries["a"].read == 15, "the rest")
    assert (0, 1, 5, 5) in world.ranges
    reopened = Ledger.open(world.stream.checkpoint, world.committed, world.committed, 2)
    assert reopened.shares["a"].offsets == {"t": {0: 8, 1: 7}}


def test_a_micro_batch_that_spark_has_not_committed_is_read_again(tmp_path: Path) -> None:
    """The server ends after the ledger has what workers reached, and before Spark's commit."""
    directory = str(tmp_path)
    ledger = Ledger.open(directory, 0, 0, 2)
    ledger.join("a", "state of a", 1, {"t": {0: 3}})
    number = ledger.plan({})
    ledger.correct({"a": {("t", 0): 7}})
    assert Ledger.open(directory, number, number, 2).shares["a"].offsets == {"t": {0: 7}}
    assert Ledger.open(directory, number - 1, number, 2).shares["a"].offsets == {"t": {0: 3}}
    # Spark repeats it without rows, and commits it.
    assert Ledger.open(directory, number, number, 2).shares["a"].offsets == {"t": {0: 3}}


@pytest.mark.parametrize(
    ("queries", "count"), [(0, 200_000), (1, 200_000), (3, 66_666), (4, 50_000), (9, 50_000)]
)
def test_queries_share_the_records_of_a_micro_batch_that_ends(queries: int, count: int) -> None:
    assert records_max(SparkQueryOptions("127.0.0.1:1", "/state"), queries) == count


def test_with_an_exactly_once_query_a_micro_batch_ends_with_its_ranges(world: World) -> None:
    world.ends = {("t", 0): 3, ("t", 1): 5}
    world.join("a", is_exactly_once=True)
    world.join("b")
    wait_until(lambda: world.queries["a"].read == world.queries["b"].read == 8, "all records")
    assert {closing.lasts_ms for closing in world.closings} == {0}
    assert all(first < until for _, _, first, until in world.ranges)


def test_what_fails_in_a_micro_batch_that_lasts_is_read_again(world: World) -> None:
    world.ends = {("t", 0): 3, ("t", 1): 5}
    world.failure = "Traceback"
    world.join("a")
    wait_until(lambda: len(world.queries["a"].failures) == 1, "the failure")
    assert world.stream.offsets_of("a") == {"t": {0: 0, 1: 0}}
    world.failure = None
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 8, "its records, again")


def test_a_request_ends_a_micro_batch_that_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stream, "_LEAVE_SECONDS", 60.0)
    batch = hanging_batch(world)
    leaving = threading.Thread(target=world.stream.leave, args=("a",))
    leaving.start()
    wait_until(Path(batch.ending).exists, "the file that ends it")
    world.committed = batch.number
    batch.done.set()
    leaving.join()
    wait_until(lambda: not Path(batch.ending).exists(), "the file's end")
    assert world.life.stops == 0


def test_the_end_waits_for_a_micro_batch_that_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stream, "_LEAVE_SECONDS", 60.0)
    monkeypatch.setattr(shared_stream, "_COMMITTED_SECONDS", 60.0)
    batch = hanging_batch(world)
    closing = threading.Thread(target=world.stream.close)
    closing.start()
    wait_until(Path(batch.ending).exists, "the file that ends it")
    batch.done.set()
    assert world.life.stops == 0
    world.committed = batch.number
    closing.join()
    assert world.life.stops > 0


def test_the_end_does_not_wait_for_a_stream_that_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stream, "_LEAVE_SECONDS", 3_600.0)
    monkeypatch.setattr(shared_stream, "_LOOK_SECONDS", 0.01)
    batch = hanging_batch(world)
    closing = threading.Thread(target=world.stream.close, daemon=True)
    closing.start()
    wait_until(Path(batch.ending).exists, "the file that ends it")
    world.life.state = QueryState.ERROR
    closing.join(30)
    assert not closing.is_alive()


def test_the_stream_ends_even_if_its_checkpoint_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        world.join("a")
        broken.setattr(shared_stream, "committed_number", fails)
        with pytest.raises(OSError, match="Input/output"):
            world.stream.close()
    assert world.life.state is QueryState.PAUSED


def test_a_query_leaves_a_micro_batch_that_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stream, "_LOOK_SECONDS", 0.01)
    world.join("a")
    world.join("b")
    world.is_hanging.set()
    world.ends["t", 1] = 6
    wait_until(lambda: world.offered == 1, "the micro-batch")
    world.stream.leave("a")
    assert world.life.stops == 1
    wait_until(lambda: world.queries["b"].read == 6, "the records of the other")
    assert world.queries["a"].read == 0
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 6, "its own records")
    assert world.queries["a"].failures == world.queries["b"].failures == []


def test_what_could_not_be_written_down_is_read_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.join("a")
    with monkeypatch.context() as full:
        error = OSError(errno.ENOSPC, "No space left on device")

        def no_room(*_: Any) -> None:
            raise error

        full.setattr(Ledger, "_write", no_room)
        world.ends["t", 0] = 7
        wait_until(lambda: world.queries["a"].failures == [error], "the failure")
        wait_until(lambda: world.life.state is QueryState.PAUSED, "the end of the stream")
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 7, "the records")


def test_a_partition_without_a_leader_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stream.topics.silent = Pauses(0.05, 30.0)
    world.errors["t", 0] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    world.ends = {("t", 0): 2, ("t", 1): 3}
    world.join("a")
    wait_until(lambda: world.queries["a"].read == 3, "the records of the other partition")
    wait_until(lambda: sum(("t", 0) in asked for asked in world.asked) > 1, "another question")
    assert sum(("t", 0) not in asked for asked in world.asked) > 0, "not each time"
    del world.errors["t", 0]
    wait_until(lambda: world.queries["a"].read == 5, "its records")
    assert world.queries["a"].failures == []


def test_a_topic_that_is_refused_fails_its_queries(world: World) -> None:
    world.errors["t", 0] = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    world.join("a")
    wait_until(lambda: len(world.queries["a"].failures) == 1, "the failure")


def test_nothing_starts_after_the_end(world: World) -> None:
    world.stream.close()
    with pytest.raises(RuntimeError, match="closed"):
        world.join("a")
    world.stream.leave("a")
    assert world.life.state is QueryState.PAUSED


def test_what_was_decided_is_read_once_more_before_all_else(world: World) -> None:
    world.ends = {("t", 0): 3, ("t", 1): 0}
    world.join("a", is_exactly_once=True)
    wait_until(lambda: world.queries["a"].read == 3, "all records")
    assert world.turns == [(0, Turn(1, is_repeated=False))]
    assert world.isolations == {IsolationLevel.READ_COMMITTED}
    # Spark plans the next micro-batch, and its results are decided: then all ends.
    world.is_hanging.set()
    world.ends = {("t", 0): 5, ("t", 1): 4}
    wait_until(lambda: world.offered == 2, "the micro-batch")
    world.stream.leave("a")
    world.decided = 2
    world.life.stop()
    world.ends = {("t", 0): 9, ("t", 1): 4}
    world.ranges.clear()
    world.turns.clear()
    world.join("a", is_exactly_once=True)
    wait_until(lambda: world.queries["a"].read == 13, "the rest")
    assert world.ranges == [(0, 0, 3, 5), (0, 1, 0, 4), (0, 0, 5, 9)]
    repeated, last = Turn(3, is_repeated=True), Turn(4, is_repeated=False)
    assert world.turns == [(0, repeated), (1, repeated), (0, last)]


def test_a_range_is_read_once_more_when_all_its_leaders_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stream.topics.silent = Pauses(0.05, 30.0)
    world.is_hanging.set()
    world.ends = {("t", 0): 2, ("t", 1): 3}
    world.join("a", is_exactly_once=True)
    wait_until(lambda: world.offered == 1, "the micro-batch")
    world.stream.leave("a")
    world.decided = 1
    world.life.stop()
    world.errors["t", 0] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    world.join("a", is_exactly_once=True)
    wait_until(lambda: world.queries["a"].read == 3, "the records of the other partition")
    del world.errors["t", 0]
    wait_until(lambda: world.queries["a"].read == 5, "its records")
    assert all(turn.is_repeated for _, turn in world.turns)
    assert len(world.turns) == 2


def test_results_that_nobody_commits_fail_their_micro_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Spark would commit the state, and their records would not be read again."""
    monkeypatch.setattr(shared_stream, "batch_number", lambda _checkpoint, batch_id: batch_id)
    rows: list[bytes] = []
    world.stream._write(lambda: rows, 7)
    rows.append(encode_parcel(Report(0, Notes(), None)))
    with pytest.raises(RuntimeError, match="nobody waits for micro-batch 7"):
        world.stream._write(lambda: rows, 7)
    assert world.aborted == [7]
