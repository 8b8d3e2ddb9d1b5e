"""The ranges of a query that shares micro-batches, where these end with their ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from barnabas.kafka.admin import Listed
from barnabas.spark.time_slices import Place
from barnabas.sql.spark.shared_ledger import Offsets, Share
from barnabas.sql.spark.shared_members import Participant, ranges_of

LOGS: Mapping[Place, list[int]] = {
    ("s", 0): list(range(100, 200)),
    ("s", 1): list(range(100, 200)),
    ("t", 0): list(range(60)),
    ("t", 1): list(range(90, 120)),
}
ENDS: Listed = {place: len(times) for place, times in LOGS.items()}


def after(time_ms: int, places: Collection[Place]) -> Listed:
    return {
        place: next((n for n, at in enumerate(LOGS[place]) if at > time_ms), -1) for place in places
    }


def never(_time_ms: int, _places: Collection[Place]) -> Listed:
    pytest.fail("no time is looked up")


def participant() -> Participant:
    places = {(0, 0): "s", (1, 0): "t"}
    counts = {"s": 2, "t": 2}
    reader = cast("Any", None)
    return Participant("q", reader, b"", places, "sink", 2, counts, counts, "state", {}, {})


def share(redo: Offsets) -> Share:
    return Share(0, "state", 2, {"s": {0: 0, 1: 0}, "t": {0: 0, 1: 0}}, redo=redo)


def test_ranges_of_several_topics_are_slices_of_time() -> None:
    query, its = participant(), share({})
    sizes = []
    while its.offsets["t"] != {0: 60, 1: 30} or its.offsets["s"] != {0: 100, 1: 100}:
        ranges = list(ranges_of(query, its, ENDS, 40, after))
        for one in ranges:
            assert one.first == its.offsets[one.topic][one.partition] < one.until
            its.offsets[one.topic][one.partition] = one.until
        sizes.append(sum(one.until - one.first for one in ranges))
        left = [at for (topic, n), log in LOGS.items() for at in log[its.offsets[topic][n] :]]
        taken = [LOGS[one.topic, one.partition][one.until - 1] for one in ranges]
        assert max(taken) < min(left, default=200)
    assert max(sizes) <= 80
    assert all(size >= 20 for size in sizes[:-1])


def test_no_time_is_looked_up_where_all_is_taken_or_the_micro_batch_lasts() -> None:
    ranges = list(ranges_of(participant(), share({}), ENDS, 200, never))
    assert {(one.topic, one.partition): one.until for one in ranges} == ENDS
    ranges = list(ranges_of(participant(), share({}), ENDS, 40, never, is_lasting=True))
    assert [one.until for one in ranges] == [20, 20, 20, 20]


def test_what_is_read_once_more_ends_where_it_ended_before() -> None:
    ranges = list(ranges_of(participant(), share({"s": {0: 70}, "t": {0: 3}}), ENDS, 20, after))
    found = {(one.topic, one.partition): one.until for one in ranges}
    assert found.pop(("s", 0)) == 70
    assert found.pop(("t", 0)) == 3
    # Of the other partition of the state, a slice: the stream begins 10 ms after the table.
    until = found["t", 1]
    assert 10 <= until <= 20
    assert found == {("t", 1): until} | ({("s", 1): until - 10} if until > 10 else {})


@pytest.mark.parametrize("is_lasting", [False, True])
@pytest.mark.parametrize("topic", ["s", "t"])
def test_a_partition_without_a_known_end_holds_up_those_that_are_joined_to_it(
    topic: str, *, is_lasting: bool
) -> None:
    known = {place: end for place, end in ENDS.items() if place != (topic, 0)}
    query, its = participant(), share({})
    places = set()
    for _ in range(4):
        for one in ranges_of(query, its, known, 40, after, is_lasting=is_lasting):
            its.offsets[one.topic][one.partition] = one.until
            places.add((one.topic, one.partition))
    assert places == {("s", 1), ("t", 1)}
