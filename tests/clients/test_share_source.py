"""The share-group source of Spark, over a real broker: Spark's calls without Spark.

What is held against it: each record is in the committed batches, once as long as this query alone
reads from the group; and the broker holds it for acknowledged.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from barnabas.kafka.wire import GROUP_KEY, Brokers, Connection, WireError
from barnabas.protocol.apis import DESCRIBE_SHARE_GROUP_OFFSETS
from barnabas.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from barnabas.spark.datasource.share import ShareReader, read_options
from barnabas.spark.datasource.share_ranges import Partition
from barnabas.spark.datasource.share_records import close_readers
from barnabas.spark.datasource.share_session import Session, ShareSourceError
from barnabas.spark.datasource.share_verdicts import write_verdicts
from support.node_process import wait_until
from support.share_query import Row, ShareQuery, begin_at_the_start

Begin = Callable[..., ShareQuery]
ROOT = Path(__file__).parents[2]
KILLS = 3


class World:
    """A topic of one partition, a share group, and queries that read it."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.kafka, self.directory = kafka, directory
        self.topic, self.group = kafka.topic(), kafka.name("share")
        self.queries: list[ShareQuery] = []
        begin_at_the_start(kafka.admin, self.group)

    def options(self, **more: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "kafka.group.id": self.group,
            "subscribe": self.topic,
            **more,
        }

    def query(self, name: str = "query", **options: str) -> ShareQuery:
        query = ShareQuery(self.directory / name, self.options(**options))
        self.queries.append(query)
        return query

    def produce(self, count: int) -> None:
        self.kafka.produce(self.topic, [str(i) for i in range(count)])

    def close(self) -> None:
        for query in self.queries:
            query.reader.stop()
        close_readers()


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    world = World(kafka, tmp_path)
    yield world
    world.close()


def offsets(rows: list[Row]) -> list[int]:
    return sorted(row["offset"] for row in rows)


def nothing_owed(query: ShareQuery) -> None:
    """Wait until the broker has confirmed every acknowledgement."""
    running = query.reader._source()

    def is_confirmed() -> bool:
        query.reader.latestOffset()  # raises what failed
        return running._books.ledger.owed_count == 0

    wait_until(is_confirmed, "all acknowledgements")


def all_acknowledged(world: World, query: ShareQuery) -> None:
    """Wait until the group has no lag, however much the source knows.

    Of an acknowledgement whose answer was lost it never hears.
    """
    access = read_options(world.options()).access
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=world.group, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])

    def lag() -> int:
        query.reader.latestOffset()  # raises what failed
        answer: Any = coordinator.call(DESCRIBE_SHARE_GROUP_OFFSETS, request)
        ((partition,),) = [topic.partitions for topic in answer.groups[0].topics]
        return int(partition.lag)

    with contextlib.closing(Brokers(access)) as brokers:
        _, address = brokers.coordinator(world.group, GROUP_KEY)
        with contextlib.closing(Connection(access, *address)) as coordinator:
            wait_until(lambda: lag() == 0, "all acknowledgements")


def test_eight_readers_share_one_partition(world: World) -> None:
    world.produce(3000)
    query = world.query(readers="8", maxRecordsPerBatch="500")
    rows = query.run(3000)
    assert offsets(rows) == list(range(3000))
    assert [row["value"] for row in sorted(rows, key=lambda r: r["offset"])] == [
        str(i) for i in range(3000)
    ]
    assert {row["count"] for row in rows} == {1}
    assert max(Counter(batch for batch, _ in query.log("runs")).values()) == 1
    nothing_owed(query)
    query.reader.stop()
    assert world.query("other", readers="1").run(1, idle_max=10) == []


def test_a_batch_is_cut_into_as_many_tasks_as_there_are_readers(world: World) -> None:
    world.produce(64)
    reader = world.query(readers="8").reader
    start = reader.initialOffset()
    plans = []

    def is_planned() -> bool:
        plans.append(reader.latestOffset())
        return plans[-1] != start

    wait_until(is_planned, "records")
    assert [len(list(reader.read(p))) for p in reader.partitions(start, plans[-1])] == [1] * 8


def test_records_of_a_batch_that_did_not_commit_are_given_to_others(world: World) -> None:
    world.produce(10)
    first = world.query("first")

    def fail(batch: int, rows: list[Row]) -> None:
        raise RuntimeError("the query fails")

    with pytest.raises(RuntimeError, match="the query fails"):
        wait_until(lambda: first.step(fail) > 0, "a batch")
    first.reader.stop()
    second = world.query("second")
    rows = second.run(10)
    assert offsets(rows) == list(range(10))
    # The first query runs its batch again from its plan: these are the duplicates there can be.
    again = world.query("first")
    again.step()
    assert offsets(again.committed()) == list(range(10))
    assert again.step() == 0


def test_verdicts_release_and_reject_single_records(world: World, tmp_path: Path) -> None:
    world.produce(10)
    directory = str(tmp_path / "verdicts")
    query = world.query(verdicts=directory)

    def judge(batch: int, rows: list[Row]) -> None:
        judged = [
            (world.topic, 0, row["offset"], row["count"], name)
            for row in rows
            for offset, count, name in [(3, 1, "release"), (3, 2, "release"), (7, 1, "reject")]
            if (row["offset"], row["count"]) == (offset, count)
        ]
        write_verdicts(directory, batch, judged)

    wait_until(lambda: query.step(judge) == 10, "the first delivery")
    again: list[Row] = []

    def judge_again(batch: int, rows: list[Row]) -> None:
        again.extend(rows)
        judge(batch, rows)

    wait_until(lambda: not query.step(judge_again) and len(again) > 1, "both other deliveries")
    assert [(row["offset"], row["count"]) for row in again] == [(3, 2), (3, 3)]
    nothing_owed(query)
    assert query.step() == 0


def test_a_reader_whose_connection_is_cut_loses_and_repeats_nothing(world: World) -> None:
    world.produce(1000)
    query = world.query(readers="4", maxRecordsPerBatch="100")

    def cut(batch: int, rows: list[Row]) -> None:
        running = query.reader._source()
        sessions = [s for m in running._members._members for s in m.sessions.values()]
        for session in sessions if batch in (2, 5) else ():
            if session._connection is not None:
                with contextlib.suppress(OSError):  # being opened again
                    session._connection._socket.shutdown(socket.SHUT_RDWR)

    query.run(1000, work=cut)
    assert offsets(query.committed()) == list(range(1000))
    all_acknowledged(world, query)


def test_an_acknowledgement_whose_answer_is_lost_is_neither_repeated_nor_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.produce(300)
    query = world.query(readers="1", maxRecordsPerBatch="100")
    send = Session._send_acknowledgements
    lost: list[str] = []

    def lose(session: Session, *given: Any, **named: Any) -> frozenset[Partition]:
        answer = send(session, *given, **named)
        if not lost and not named:
            lost.append(session.name)
            raise WireError("the answer is lost")
        return answer

    monkeypatch.setattr(Session, "_send_acknowledgements", lose)
    rows = query.run(300)
    all_acknowledged(world, query)
    assert len(lost) == 1
    assert offsets(rows) == list(range(300))
    books = query.reader._source()._books
    with books.changed:
        assert books.ledger.owed_count > 0
        books.ledger.forget_old()
        books.ledger.forget_old()
        assert books.ledger.owed_count == 0


def test_a_plan_made_before_the_position_is_known_leaves_nothing_out(world: World) -> None:
    """The order of Spark's calls with Trigger.AvailableNow. Unacknowledged records come again."""
    world.produce(10)
    first = world.query()
    wait_until(lambda: first.step() == 10, "a batch")
    first.reader.stop()
    world.produce(5)
    reader = ShareReader(read_options(world.options()))
    last = first.offsets[-1]
    planned = reader.latestOffset()
    assert reader.partitions(last, last) == []
    rows = [
        r for p in reader.partitions(last, planned) for b in reader.read(p) for r in b.to_pylist()
    ]
    assert offsets(rows) == list(range(15))
    reader.latestOffset()
    reader.stop()
    assert world.query("other").run(1, idle_max=10) == []


def test_a_topic_that_does_not_exist_is_named(world: World) -> None:
    world.topic = "no-such-topic"
    with pytest.raises(ShareSourceError, match="no-such-topic: UNKNOWN_TOPIC_OR_PARTITION"):
        world.query().step()


def test_a_driver_that_is_killed_loses_nothing_and_repeats_only_its_last_batch(
    world: World,
) -> None:
    world.produce(2000)
    options = world.options(readers="3", maxRecordsPerBatch="100")
    arguments = [sys.executable, "-m", "support.share_query", str(world.directory / "killed")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT / "tests")])}
    random = Random(2)
    for _ in range(KILLS):
        driver = subprocess.Popen(
            [*arguments, json.dumps(options)], env=environment, stdout=subprocess.PIPE
        )
        with driver:
            assert driver.stdout is not None
            driver.stdout.read(random.randint(1, 6))
            driver.kill()
    query = world.query("killed", readers="3")
    rows = query.run(2000)
    assert offsets(rows) == list(range(2000))
    runs = Counter(batch for batch, _ in query.log("runs"))
    repeated = sum(len(read) for batch, read in query.log("runs") if runs[batch] > 1)
    assert sum(count - 1 for count in runs.values()) <= KILLS, f"{repeated} records in repeats"
    query.step()  # finishes the last batch
    query.reader.stop()
    assert world.query("other").run(1, idle_max=20) == []
