"""Records that a join of streams keeps together, as entries of its stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.stream_joins.joining import keep
from barnabas.sql.columns.stream_joins.meeting import Arrivals
from barnabas.sql.columns.vectors import of_values
from barnabas.sql.runtime.bundles import BUNDLE_RECORDS_MAX, bundle_of, bundled, entries_of
from barnabas.sql.runtime.driver import MemoryStore
from barnabas.sql.runtime.layout import joiner
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stream_joins import LEFT, StreamStreamJoinNode
from barnabas.sql.syntax.tree import Within
from barnabas.sql.types import INTEGER, STRING, Value
from support.effort import examples

KEYS = ("a", "b", "a\x00")


class Kept:
    """A join's left side, whose records come by columns or one by one."""

    def __init__(self, within: Within) -> None:
        self.stores: dict[str, MemoryStore] = defaultdict(MemoryStore)
        self.node = StreamStreamJoinNode(
            "join", within, joiner(2, 0, None), (False, False), has_sessions=False
        )
        self.node.bind(self.stores.__getitem__)
        self.expected: list[tuple[str, int, int, list[int | str]]] = []

    def batch(self, records: list[tuple[str, int]]) -> None:
        """Keep a batch's records, given by key and timestamp, as columns."""
        numbers = self.node.count + 1 + np.arange(len(records))
        times = np.array([time_ms for _, time_ms in records], np.int64)
        codes = np.array([KEYS.index(key) for key, _ in records], np.int64)
        values = [
            [number, f"{time_ms}"]
            for number, (_, time_ms) in zip(numbers.tolist(), records, strict=True)
        ]
        frame = Frame(
            np.arange(len(records)),
            [
                of_values(INTEGER, [number for number, _ in values]),
                of_values(STRING, [text for _, text in values]),
            ],
            [of_values(STRING, [key for key, _ in records])],
            None,
            times,
            np.zeros(len(records), np.bool_),
        )
        arrivals = Arrivals(np.arange(len(records)), times, codes)
        keep(self.node, LEFT, arrivals, numbers, [(key,) for key in KEYS], frame)
        self.node.count += len(records)
        self._expect(records)

    def one(self, key: str, time_ms: int) -> None:
        """Keep a record as the row engine does."""
        self.node.process_left(Record([key], [self.node.count + 1, f"{time_ms}"], time_ms))
        self._expect([(key, time_ms)])

    def _expect(self, records: list[tuple[str, int]]) -> None:
        for key, time_ms in records:
            number = len(self.expected) + 1
            self.expected.append((key, time_ms, number, [number, f"{time_ms}"]))

    def check(self, key: str, from_ms: int, until_ms: int) -> None:
        """Compare what the join finds with all records that are still in retention."""
        node = self.node
        first_ms = max(from_ms, node.segments.horizon(node.latest(LEFT)))
        want = sorted(
            (time_ms, number, row)
            for of, time_ms, number, row in self.expected
            if of == key and first_ms <= time_ms <= until_ms
        )
        assert node.kept((key,), LEFT, first_ms, until_ms) == want
        (entries,) = node.kept_of([(key,)], LEFT, [first_ms], [until_ms])
        found = [one for entry in entries for one in entries_of(*entry)]
        assert sorted(one for one in found if first_ms <= one[0] <= until_ms) == want


RECORDS = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 12)), min_size=1, max_size=20)
BATCHES = st.tuples(st.booleans(), st.sampled_from((0, 0, 5, 40_000)), RECORDS)
"""Whether they come as columns, how much later than those before, and records from then on."""
WITHINS = (Within(0, 0, 20), Within(3, 2, 30), Within(7, 0, None), Within(40_000, 40_000, 0))


@settings(max_examples=examples(36), deadline=None)
@given(
    within=st.sampled_from(WITHINS),
    first_ms=st.sampled_from((0, 59_990, 119_995)),
    batches=st.lists(BATCHES, max_size=5),
    asked=st.lists(st.tuples(st.sampled_from(KEYS), st.integers(-1, 15), st.integers(0, 9))),
)
def test_all_records_of_a_span_are_found(
    within: Within,
    first_ms: int,
    batches: list[tuple[bool, int, list[tuple[str, int]]]],
    asked: list[tuple[str, int, int]],
) -> None:
    kept = Kept(within)
    now_ms = first_ms
    for is_batch, later_ms, records in batches:
        now_ms += later_ms
        at = [(key, now_ms + after_ms) for key, after_ms in records]
        if is_batch:
            kept.batch(at)
        else:
            for record in at:
                kept.one(*record)
        for key in KEYS:
            kept.check(key, 0, now_ms + 12)
        for key, after_ms, length_ms in asked:
            kept.check(key, now_ms + after_ms, now_ms + after_ms + length_ms)


def test_a_batch_adds_an_entry_for_each_key() -> None:
    kept = Kept(Within(5_000, 5_000, 1_000))
    for first in (0, 200):
        kept.batch([(KEYS[number % 2], 20_000 + number) for number in range(first, first + 200)])
    entries = list(kept.stores["join-left"].range((), (1 << 62,)))
    assert [place for place, _ in entries] == [
        (0, "a", 20_198, 199),
        (0, "a", 20_398, 399),
        (0, "b", 20_199, 200),
        (0, "b", 20_399, 400),
    ]
    kept.check("a", 20_100, 20_300)


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        pytest.param([5] * 600, [BUNDLE_RECORDS_MAX, BUNDLE_RECORDS_MAX, 88], id="many"),
        pytest.param([6_998, 6_999, 7_000, 7_001, 7_002], [2, 3], id="of two spans"),
        pytest.param([59_999, 60_000], [1, 1], id="of two segments in a span"),
        pytest.param([7_001, 6_999, 7_000], [1, 2], id="not in order"),
    ],
)
def test_bundles_end(times: list[int], sizes: list[int]) -> None:
    kept = Kept(Within(4_000, 3_000, 1_000))
    kept.batch([("a", time_ms) for time_ms in times])
    entries = list(kept.stores["join-left"].range((), (1 << 62,)))
    assert [len(entries_of(place[-2], place[-1], value)) for place, value in entries] == sizes
    kept.check("a", 0, max(times))


def test_records_past_retention_are_not_kept() -> None:
    kept = Kept(Within(5_000, 5_000, 1_000))
    kept.batch([("a", 1), ("a", 400_000), ("b", 2)])
    entries = list(kept.stores["join-left"].range((), (1 << 62,)))
    assert [place for place, _ in entries] == [(6, "a", 400_000, 2)]
    kept.batch([("b", 3)])
    assert len(list(kept.stores["join-left"].range((), (1 << 62,)))) == 1


def test_bundles_of_rows_without_columns() -> None:
    assert entries_of(7, 3, bundled([2, 0], [1, 0], [])) == [(5, 2, []), (7, 3, [])]


@pytest.mark.parametrize("row", [[[1], None], ([1], None)])
def test_a_row_is_a_bundle_of_one(row: Sequence[Value]) -> None:
    assert bundle_of(7, 3, row) == ((7,), (3,), [([1],), (None,)])
    assert entries_of(7, 3, row) == [(7, 3, [[1], None])]
