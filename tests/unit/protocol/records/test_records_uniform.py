"""Batches of records that are all of one size: what is found uniform would pass the walk."""

import random

import pytest

from barnabas.protocol.records.batch import HEADER_SIZE_BYTES
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.records.uniform import COUNT_MAX, PLANS_MAX, is_uniform
from barnabas.protocol.records.walk import BadRecordError, walk_records

VALUE_SIZES = (0, 1, 50, 56, 57, 58, 59, 60, 63, 64, 1000, 8180, 8185, 8186, 8191, 8192, 20_000)
COUNTS = (1, 2, 3, 16, 63, 64, 65, 150)


def _records(count: int, value_size: int, key_size: int | None = None, **rest: object) -> bytes:
    chance = random.Random(count)
    records = [
        Record(
            timestamp=1000 + number // 5,
            key=None if key_size is None else chance.randbytes(key_size),
            value=chance.randbytes(value_size),
            **rest,  # type: ignore[arg-type]  # headers only
        )
        for number in range(count)
    ]
    return bytes(encode_batch(records)[HEADER_SIZE_BYTES:])


def _is_well_formed(data: bytes, count: int, *, keys_required: bool = False) -> bool:
    try:
        walk_records(data, count, keys_required=keys_required)
    except BadRecordError:
        return False
    return True


@pytest.mark.parametrize("key_size", [None, 0, 1, 16, 63])
@pytest.mark.parametrize("count", COUNTS)
def test_records_of_one_size_are_found_uniform(count: int, key_size: int | None) -> None:
    if count == 1 and key_size is not None:
        pytest.skip("a single record with a key is walked")
    for value_size in VALUE_SIZES:
        data = _records(count, value_size, key_size)
        first = is_uniform(data, count, keys_required=False)
        assert is_uniform(data, count, keys_required=False) is first, "learnt or remembered"
        assert _is_well_formed(data, count)
        # The second byte of an offset delta may widen the record's length too: sizes then differ
        # by two, and the walk has to look.
        narrow, wide = (
            len(_records(number + 1, value_size, key_size))
            - len(_records(number, value_size, key_size))
            for number in (1, 64)
        )
        assert first is (count <= 64 or wide == narrow + 1), value_size


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("key_size", [None, 4])
def test_required_keys_are_seen(count: int, key_size: int | None) -> None:
    data = _records(count, 100, key_size)
    is_uniform(data, count, keys_required=False)
    found = is_uniform(data, count, keys_required=True)
    assert found is (key_size is not None and count > 1)


@pytest.mark.parametrize(
    ("count", "value_size", "key_size"),
    [(1, 20, None), (1, 100, None), (2, 0, None), (7, 5, None), (16, 100, 3), (66, 2, None)],
)
def test_no_changed_byte_is_taken_for_uniform_unless_the_walk_allows_it(
    count: int, value_size: int, key_size: int | None
) -> None:
    data = _records(count, value_size, key_size)
    is_uniform(data, count, keys_required=False)
    for place in range(len(data)):
        for byte in {0, 1, 2, data[place] ^ 1, data[place] ^ 2, data[place] ^ 0x80, 0xFF}:
            changed = data[:place] + bytes([byte]) + data[place + 1 :]
            for required in (False, True):
                if is_uniform(changed, count, keys_required=required):
                    assert _is_well_formed(changed, count, keys_required=required), place


@pytest.mark.parametrize("count", [1, 2, 16, 70])
def test_what_is_too_long_or_too_short_is_not_uniform(count: int) -> None:
    data = _records(count, 100)
    assert is_uniform(data, count, keys_required=False)
    for wrong in (b"", data[:-1], data + b"\0", data + data, data[: len(data) // count]):
        if len(wrong) != len(data) and not (wrong and _is_well_formed(wrong, count)):
            assert not is_uniform(wrong, count, keys_required=False)
    for other in (count + 1, count * 2):
        assert not is_uniform(data, other, keys_required=False)


def test_what_differs_is_left_to_the_walk() -> None:
    of_two_sizes = _records(1, 10) + _records(2, 20)[31:]
    for data, count in (
        (_records(3, 10, headers=[("name", b"value")]), 3),
        (_records(COUNT_MAX + 1, 10), COUNT_MAX + 1),
        (_records(5, 10, 64), 5),
        (of_two_sizes, 2),
        (bytes(encode_batch([Record(timestamp=1), Record(timestamp=1)])[61:]), 2),
        (bytes(encode_batch([Record(timestamp=99, value=b"a"), Record(value=b"a")])[61:]), 2),
    ):
        assert not is_uniform(data, count, keys_required=False)


def test_plans_are_forgotten_in_time() -> None:
    for size in range(2 * PLANS_MAX + 10):
        assert is_uniform(_records(3, size), 3, keys_required=False)
        assert is_uniform(_records(1, size), 1, keys_required=False)
    for size in range(2 * PLANS_MAX + 10):
        assert is_uniform(_records(3, size), 3, keys_required=False)
