"""Values, keys and records as bytes: they come back, sort as they should, and stay readable."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.java.hash import murmur2
from barnabas.sql.runtime.driver import MemoryStore
from barnabas.sql.runtime.rows_encoding import (
    EncodingError,
    decode_key,
    encode_key,
    encode_keys,
    pack,
    partition_of,
    unpack,
)
from support.effort import examples

longs = st.integers(-(2**63), 2**63 - 1)
of_one_scale = st.decimals(-(10**12), 10**12, places=3)
decimals = of_one_scale | st.builds(
    lambda sign, digits, scale: Decimal((sign, digits, -scale)),
    st.integers(0, 1),
    st.lists(st.integers(0, 9), min_size=1, max_size=30).map(tuple),
    st.integers(0, 20),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    longs,
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    decimals,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=examples(15))
@given(values)
def test_values_come_back(value: Any) -> None:
    assert repr(unpack(pack(value))) == repr(with_lists(value))


def with_lists(value: Any) -> Any:
    """The value with lists in place of its tuples."""
    if isinstance(value, list | tuple):
        return [with_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: with_lists(item) for key, item in value.items()}
    return value


@settings(max_examples=examples(15))
@given(values)
def test_equal_values_have_equal_bytes(value: Any) -> None:
    assert pack(unpack(pack(value))) == pack(value)


def test_shared_parts_do_not_change_the_bytes() -> None:
    text = "".join(["sha", "red"])
    assert pack([text, text]) == pack(["shared", "".join(["shar", "ed"])])


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, "01c0"),
        ([1, "a", None, True], "019401a161c0c3"),
        ([1.5, b"x"], "0192cb3ff8000000000000c40178"),
        ({"k": 2**40}, "0181a16bcf0000010000000000"),
        ([Decimal("1.20")], "0191d601312e3230"),
        (2**64, "01c7140231383434363734343037333730393535313631" + "36"),
    ],
)
def test_stored_bytes_stay_readable(value: Any, data: str) -> None:
    """Never change these: state and checkpoints hold such, written by any version of Python."""
    assert unpack(bytes.fromhex(data)) == value
    assert pack(value).hex() == data


@pytest.mark.parametrize(
    "data",
    [b"", b"\x03", b"\x01", b"\x01\xd9", b"\x01\xd4\x07\x00", b"\x01\xd4\x01x", b"\x01\xc0\xc0"],
)
def test_bytes_that_are_no_value(data: bytes) -> None:
    with pytest.raises(EncodingError):
        unpack(data)


def test_values_of_no_sql_type() -> None:
    with pytest.raises(EncodingError, match="object is not a SQL value"):
        pack([object()])


@settings(max_examples=examples(15))
@given(st.lists(values, max_size=4))
def test_keys_come_back(parts: list[Any]) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, Decimal) and not value:
            return value.copy_abs()  # Java's decimals have no -0
        return value

    assert repr(decode_key(encode_key(parts))) == repr(tuple(plain(parts)))


@pytest.mark.parametrize(
    "kind", [longs, st.floats(allow_nan=False), st.text(), st.binary(), of_one_scale, st.booleans()]
)
def test_keys_sort_as_their_parts(kind: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=examples(15))
    @given(st.lists(st.tuples(kind, kind), max_size=8))
    def check(keys: list[tuple[Any, Any]]) -> None:
        by_bytes = sorted(keys, key=encode_key)
        assert by_bytes == sorted(by_bytes)

    check()


def test_a_key_sorts_before_those_that_it_begins() -> None:
    keys: list[tuple[Any, ...]] = [("a",), ("a", 1), ("a", 2), ("a\x00",), ("aa",), ("b",)]
    reversed_keys = keys[::-1]
    assert sorted(reversed_keys, key=encode_key) == keys


def test_decimals_of_different_scale_are_different_keys() -> None:
    assert encode_key((Decimal("1.0"),)) != encode_key((Decimal("1.00"),))


@pytest.mark.parametrize("text", ["-0", "-0.00", "-0E+3"])
def test_a_decimal_zero_has_no_sign(text: str) -> None:
    """Java's decimals have none: -0 is the key 0 of its scale, and comes back as it."""
    key = encode_key((Decimal(text),))
    assert key == encode_key((Decimal(text).copy_abs(),))
    assert repr(decode_key(key)) == repr((Decimal(text).copy_abs(),))


def test_every_nan_is_one_key() -> None:
    assert encode_key((math.nan,)) == encode_key((-math.nan,))
    assert encode_key((0.0,)) != encode_key((-0.0,))


@given(
    st.lists(st.tuples(st.text() | st.just("\x00") | st.just("\ud800")))
    | st.lists(st.tuples(st.text(max_size=3) | st.none() | longs))
    | st.lists(st.tuples(st.text(max_size=3), longs))
    | st.lists(st.tuples(longs, st.text(max_size=3), longs, st.booleans() | longs))
    | st.lists(st.tuples())
)
def test_many_keys_are_encoded_as_each_is(keys: list[tuple[Any, ...]]) -> None:
    assert encode_keys(keys) == [encode_key(key) for key in keys]


@pytest.mark.parametrize("part", [2**63, object(), Decimal("NaN")])
def test_what_cannot_be_part_of_a_key(part: Any) -> None:
    with pytest.raises(EncodingError):
        encode_key((part,))
    with pytest.raises(EncodingError):
        encode_keys([("a", part), ("b", part)])


@pytest.mark.parametrize("data", [b"\x00", b"\x7f", b"\x09abc", b"\x04\x00", b"\x0b\x01"])
def test_bytes_that_are_no_key(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_key(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data: bytes, expected: int) -> None:
    """Facts: Kafka's UtilsTest."""
    assert murmur2(data) == expected & 0xFFFFFFFF


def test_partitions_spread() -> None:
    counts = [0] * 8
    for number in range(8000):
        counts[partition_of((number,), 8)] += 1
    assert min(counts) > 850


@settings(max_examples=examples(15))
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.none() | longs), max_size=40),
    st.tuples(st.integers(0, 5)) | st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.integers(0, 6)) | st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_a_store_in_memory_is_a_sorted_dictionary(
    puts: list[tuple[int, int, int | None]], low: tuple[int, ...], high: tuple[int, ...]
) -> None:
    store = MemoryStore()
    model: dict[tuple[int, int], int] = {}
    for first, second, value in puts:
        store.put((first, second), value)
        if value is None:
            model.pop((first, second), None)
        else:
            model[first, second] = value
    assert len(store) == len(model)
    assert all(store.get(key) == value for key, value in model.items())
    assert store.get((9, 9)) is None
    assert list(store.range(low, high)) == sorted(
        (key, value) for key, value in model.items() if low <= key < high
    )
