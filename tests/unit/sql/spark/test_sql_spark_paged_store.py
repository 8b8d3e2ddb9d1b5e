"""Ordered stores over a map of bytes, compared with a store in memory."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.driver import MemoryStore
from barnabas.sql.spark import paged_store
from barnabas.sql.spark.paged_store import PagedStore
from barnabas.sql.spark.state import ChunkedPages
from support.effort import examples


class Counted:
    """A map of bytes that counts its calls."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.gets = self.puts = self.removes = 0

    def get(self, key: bytes) -> bytes | None:
        self.gets += 1
        return self.data.get(key)

    def put(self, key: bytes, data: bytes) -> None:
        self.puts += 1
        self.data[key] = data

    def remove(self, key: bytes) -> None:
        self.removes += 1
        del self.data[key]


PARTS = st.one_of(st.integers(0, 40), st.text(max_size=3))
KEYS = st.tuples(st.integers(0, 3), PARTS)
VALUES = st.one_of(st.none(), st.integers(), st.text(max_size=300), st.just([Decimal("1.50"), "a"]))
PUT = st.tuples(st.just("put"), KEYS, VALUES)
MANY = st.lists(st.tuples(KEYS, VALUES), max_size=60, unique_by=lambda entry: repr(entry[0]))
OTHER = st.one_of(
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("get all"), st.lists(KEYS, max_size=60)),
    st.tuples(st.just("put all"), MANY),
    st.tuples(st.just("range"), KEYS, KEYS),
    st.tuples(st.just("drop"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["flush", "reopen"])),
)


@settings(max_examples=examples(23))
@given(st.lists(st.one_of(PUT, PUT, PUT, OTHER), max_size=150))
def test_it_is_a_store_like_the_one_in_memory(steps: list[tuple[Any, ...]]) -> None:
    pages = Counted()
    model, store = MemoryStore(), PagedStore("s", pages)
    for step in steps:
        if step[0] == "put":
            model.put(step[1], step[2])
            store.put(step[1], step[2])
        elif step[0] == "get":
            assert store.get(step[1]) == model.get(step[1])
        elif step[0] == "get all":
            assert store.get_all(step[1]) == model.get_all(step[1])
        elif step[0] == "put all":
            keys, values = [key for key, _ in step[1]], [value for _, value in step[1]]
            model.put_all(keys, values)
            store.put_all(keys, values)
        elif step[0] == "range":
            assert list(store.range(*step[1:])) == list(model.range(*step[1:]))
        elif step[0] == "drop":
            for key, _ in list(model.range((step[1],), (step[1] + 1,))):
                model.put(key, None)
                store.put(key, None)
        else:
            store.flush()
            if step[0] == "reopen":
                store = PagedStore("s", pages)
    store.flush()
    everything = list(model.range((), (9,)))
    assert list(store.range((), (9,))) == everything
    assert list(PagedStore("s", pages).range((), (9,))) == everything
    for data in pages.data.values():
        assert len(data) <= paged_store.PAGE_BYTES_MAX


TEXTS = st.sampled_from(("", "a", "a\x00", "b"))
PLACES = st.tuples(st.integers(0, 1), TEXTS, st.integers(-20, 20), st.integers(0, 9))


@settings(max_examples=examples(15))
@given(
    st.sets(PLACES, max_size=200),
    st.dictionaries(TEXTS, st.tuples(st.integers(-25, 25), st.integers(-25, 25))),
)
def test_entries_with_numbers_are_found_for_many_keys(
    places: set[tuple[int, str, int, int]], spans: dict[str, tuple[int, int]]
) -> None:
    pages = Counted()
    stores = MemoryStore(), PagedStore("s", pages)
    for place in places:
        for store in stores:
            store.put(place, f"{place} {'long' * 40}")
    stores[1].flush()
    lows, highs = [low for low, _ in spans.values()], [high for _, high in spans.values()]
    expected = [
        [
            (time, number, f"{(1, text, time, number)} {'long' * 40}")
            for segment, text, time, number in sorted(places)
            if segment == 1 and text == key and low <= time <= high
        ]
        for key, (low, high) in spans.items()
    ]
    for store in (*stores, PagedStore("s", pages)):
        assert store.numbered((1,), [(key,) for key in spans], lows, highs) == expected


@pytest.mark.parametrize("asked", [10, 2_000], ids=["few", "most"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_many_keys_are_found_together(asked: int, is_kept: bool) -> None:
    pages = Counted()
    store = PagedStore("s", pages)
    keys = [(f"key-{number}",) for number in range(3_000)]
    store.put_all(keys, [[number, "row"] for number in range(3_000)])
    store.put_all(keys[::3], [None] * 1_000)
    store.flush()
    if not is_kept:
        store = PagedStore("s", pages)
    found = store.get_all([*keys[:asked], ("other",)])
    expected = [[number, "row"] if number % 3 else None for number in range(asked)]
    assert found == [*expected, None]
    assert found == [store.get(key) for key in [*keys[:asked], ("other",)]]


def test_neighbours_cost_a_call_per_page() -> None:
    pages = Counted()
    store = PagedStore("windows", pages)
    for window in range(10):
        for key in range(1_000):
            store.put((window, f"key-{key:04}"), [window, key])
    store.flush()
    pages.gets = pages.puts = pages.removes = 0
    again = PagedStore("windows", pages)
    for key in range(1_000):
        place = (9, f"key-{key:04}")
        again.put(place, [again.get(place)[1] + 1])
    again.flush()
    assert pages.gets < 40
    assert pages.puts < 40
    for place, _ in again.range((0,), (9,)):
        again.put(place, None)
    again.flush()
    assert len(list(again.range((), (10,)))) == 1_000
    assert len(pages.data) < 40


def test_what_is_kept_in_memory_is_not_read_again() -> None:
    pages = Counted()
    store = PagedStore("s", pages)
    store.put(("a",), 1)
    store.flush()
    store.put(("a",), 2)
    store.flush()
    assert (pages.gets, pages.puts) == (1, 2)


@given(st.lists(st.integers(0, 40_000), max_size=6))
def test_long_pages_are_cut(lengths: list[int]) -> None:
    plain = Counted()
    pages = ChunkedPages(plain)
    for length in lengths:
        data = bytes(length % 251 for _ in range(length))
        pages.put(b"k", data)
        assert ChunkedPages(plain).get(b"k") == data
    assert all(len(data) <= 8_001 for data in plain.data.values())
    if lengths:
        pages.remove(b"k")
    assert pages.get(b"k") is None
    assert not plain.data
