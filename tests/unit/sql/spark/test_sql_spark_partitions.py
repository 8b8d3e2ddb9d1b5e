"""Topics that get more partitions: keys may move to another one, and their state does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.java.hash import murmur2
from barnabas.sql.query_failures import USER, failure_type
from barnabas.sql.spark import placement
from barnabas.sql.spark.checkpoint import CheckpointError
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.placement import AddedPartitionsError
from barnabas.sql.spark.query import SparkQuery
from support.sql_queries import plans_of

SOURCES = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');"
    "CREATE TABLE u (k STRING PRIMARY KEY, w INT) WITH (kafka_topic='u', value_format='JSON');"
)
COUNT = "CREATE TABLE o AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
JOIN = "CREATE STREAM o AS SELECT s.k, v, w FROM s JOIN u ON s.k = u.k;"
BY_VALUE = "CREATE TABLE o AS SELECT v, COUNT(*) AS n FROM s GROUP BY v;"
FILTER = "CREATE STREAM o AS SELECT * FROM s WHERE v > 1;"


class World:
    """Topics whose partitions a test sets, and a query that is started again and again."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, directory: Path, statement: str, **more: Any
    ) -> None:
        self.counts: dict[str, int] = {}
        (plan,) = plans_of(SOURCES + statement, {"s": 2, "u": 2, "O": 2})
        context = SimpleNamespace(master="local[4]")
        spark: Any = SimpleNamespace(newSession=lambda: SimpleNamespace(sparkContext=context))
        options = SparkQueryOptions("h:1", str(directory), **more)
        self.query = SparkQuery(replace(plan, query_id="Q"), options, spark)
        admin = SimpleNamespace(partition_counts=lambda: {**self.counts, "O": 1})
        monkeypatch.setattr(placement, "Admin", lambda *_: admin)

    def start(self, **counts: int) -> Hosting:
        """Start with so many partitions of each topic."""
        self.counts = counts
        return self.query._host().hosting


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def test_a_query_does_not_look_for_state_where_it_is_not(
    patch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(patch, tmp_path, COUNT)
    first = world.start(s=3)
    assert world.start(s=3) == first
    with pytest.raises(CheckpointError, match="Topic s has 4 partitions, and had 3") as refused:
        world.start(s=4)
    assert failure_type(f"CheckpointError: {refused.value}") == USER
    assert world.start(s=6) == first  # all keys of a partition are in it or in the one 3 behind
    assert world.start(s=3) == first


@pytest.mark.parametrize(
    ("first", "second", "topic"),
    [
        ({"s": 2, "u": 2}, {"s": 2, "u": 3}, "u"),
        ({"s": 2, "u": 2}, {"s": 3, "u": 3}, "s"),
        ({"s": 2, "u": 2}, {"s": 4, "u": 2}, None),
        ({"s": 2, "u": 2}, {"s": 2, "u": 6}, None),
        # Keys were sent to partitions of the state's own, and are still.
        ({"s": 2, "u": 3}, {"s": 3, "u": 3}, None),
        ({"s": 2, "u": 3}, {"s": 5, "u": 3}, None),
    ],
)
def test_both_topics_of_a_join_keep_their_place(
    patch: pytest.MonkeyPatch,
    tmp_path: Path,
    first: Mapping[str, int],
    second: Mapping[str, int],
    topic: str | None,
) -> None:
    world = World(patch, tmp_path, JOIN)
    before = world.start(**first)
    if topic is None:
        assert world.start(**second) == before
        return
    with pytest.raises(CheckpointError, match=f"Topic {topic} has"):
        world.start(**second)


@pytest.mark.parametrize("statement", [BY_VALUE, FILTER])
def test_a_query_whose_state_is_not_by_its_topics_partitions_goes_on(
    patch: pytest.MonkeyPatch, tmp_path: Path, statement: str
) -> None:
    world = World(patch, tmp_path, statement)
    world.start(s=3)
    world.start(s=4)
    assert not world.query._counts


def test_one_partition_of_state_has_all_keys(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(patch, tmp_path, COUNT)
    assert world.start(s=1) == world.start(s=3)


def test_partitions_that_do_not_divide_each_other_are_compared_as_they_were(
    patch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(patch, tmp_path, COUNT, partitions=2)
    first = world.start(s=3)
    assert first.partitions == 2
    assert world.start(s=3) == first
    with pytest.raises(CheckpointError, match="had 3"):
        world.start(s=6)


def test_a_checkpoint_of_before_takes_the_numbers_as_they_are(
    patch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(patch, tmp_path, COUNT)
    first = world.start(s=3)
    path = tmp_path / "Q" / "plan.json"
    stored = json.loads(path.read_text())
    del stored["topic_partitions"]
    path.write_text(json.dumps(stored))
    assert world.start(s=3) == first
    with pytest.raises(CheckpointError, match="had 3"):
        world.start(s=4)


@pytest.mark.parametrize(("first", "second"), [(3, 6), (2, 8), (4, 12)])
def test_keys_of_multiples_stay(first: int, second: int) -> None:
    for number in range(1_000):
        place = murmur2(b"key %d" % number) & 0x7FFFFFFF
        assert place % second % first == place % first


def test_a_partition_that_is_added_meanwhile_ends_the_query_for_its_restart(
    patch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(patch, tmp_path, COUNT)
    world.start(s=3)
    written: list[int] = []
    sink: Any = SimpleNamespace(write=lambda _, batch: written.append(batch))
    world.query._sink = sink
    rows: Any = None
    (tmp_path / "Q" / "offsets").mkdir()

    def run(batch: int, partitions: int) -> None:
        ends = json.dumps({"s": {str(number): 5 for number in range(partitions)}})
        (tmp_path / "Q" / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{ends}\n")
        world.query._write(rows, batch)

    run(0, 3)
    with pytest.raises(AddedPartitionsError, match="Topic s has more than 3 partitions now"):
        run(1, 4)
    assert written == [0]
    world.start(s=6)
    run(1, 6)
    assert written == [0, 1]
