"""The structural check of records that are all of one size.

Sensors and benchmarks send such batches, and a producer that sends one sends many: the same
number of records of the same size, with keys of one size. All that the walk would look at then
lies at places known beforehand and must have values known beforehand, timestamps excepted, which
need only be of one byte. Places and values are kept as a plan; to hold a batch against it takes
one strided slice and one comparison, both in C, for each byte of a record's structure, however
many records there are.

A plan that does not fit proves nothing: what is not found uniform is walked (`walk.py`).
`bench/records.py` measures it.
"""

from typing import Final, NamedTuple

from barnabas.protocol.records.walk import DELTAS_SHORT_MAX, NULL

COUNT_MAX: Final = 2048
"""More records than this in a batch are walked, so that plans stay small."""
PLANS_MAX: Final = 256
RECORD_SIZE_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, two lengths, header count: one byte each."""
_WIDTHS: Final = (1, 2, 3)
"""Bytes of the varints of a record's length and its value's that plans are made for."""
_FIXED_SIZE_BYTES: Final = 3
"""Attributes, a timestamp delta of one byte, the number of headers."""


class _Plan(NamedTuple):
    """The common properties of batches of one layout."""

    columns: list[tuple[slice, bytes]]
    """Places in each record's structure, and the bytes that must be there."""
    timestamps: list[slice]
    """The first bytes of timestamp deltas; below 0x80, they are the only ones."""
    has_keys: bool


_plans: dict[tuple[int, int, int], _Plan] = {}
"""By size of all records, their number, and the byte of the first key's length. A memory only."""
_heads: dict[int, bytes] = {}
"""By size, what a record that is alone in its batch begins with, if it has no key."""


def is_uniform(data: bytes, count: int, *, keys_required: bool) -> bool:
    """Return whether `data` is exactly `count` well-formed records of one size, without headers.

    Offset deltas are 0, 1, 2 …; all have keys of one size, or none does and none is required.
    False says nothing about `data`.
    """
    size = len(data)
    if count == 1:
        head = _heads.get(size) or _learn_head(size)
        return data.startswith(head) and not data[-1] and not keys_required
    if size < count * RECORD_SIZE_BYTES_MIN:
        return False
    key = data[4] if data[0] < 0x80 else data[5] if data[1] < 0x80 else data[6]
    plan = _plans.get((size, count, key)) or _learn_plan(data, count, key)
    if plan is None or (keys_required and not plan[2]):
        return False
    for place, column in plan[0]:
        if data[place] != column:
            return False
    for place in plan[1]:  # noqa: SIM110  # a generator would cost as much as all the rest
        if not data[place].isascii():
            return False
    return True


def _learn_head(size: int) -> bytes:
    """The beginning of a single record of `size` bytes: all but the value and a last zero.

    If no record has that size, something longer than `size`.
    """
    split = _split(size, _FIXED_SIZE_BYTES + 2)
    if split is None:
        return bytes(size + 1)
    length, value = split
    if len(_heads) >= PLANS_MAX:
        _heads.clear()
    head = _heads[size] = length + bytes((0, 0, 0, NULL)) + value
    return head


def _learn_plan(data: bytes, count: int, key: int) -> _Plan | None:
    """The plan that `data` may fit, remembered if its first record does."""
    wide_count = max(0, count - DELTAS_SHORT_MAX)
    stride, rest = divmod(len(data) - wide_count, count)
    if rest or count > COUNT_MAX or (key & 0x81 and key != NULL):
        return None  # such a key is longer than 63 bytes, or shorter than null
    plan = _make_plan(count - wide_count, wide_count, stride, key)
    if plan is None or any(data[place.start] != column[0] for place, column in plan.columns):
        return None
    if len(_plans) >= PLANS_MAX:
        _plans.clear()
    _plans[len(data), count, key] = plan
    return plan


def _make_plan(count: int, wide_count: int, stride: int, key: int) -> _Plan | None:
    """For `count` records of `stride` bytes, then `wide_count` whose offset deltas take two."""
    plan = _Plan([], [], key != NULL)
    wide = range(count, count + wide_count)
    wide_start = count * stride
    if _add_run(plan, 0, stride, range(count), 1, key) and (
        not wide_count or _add_run(plan, wide_start, stride + 1, wide, 2, key)
    ):
        return plan
    return None


def _add_run(
    plan: _Plan, start: int, stride: int, indexes: range, delta_width: int, key: int
) -> bool:
    """Add the columns of records whose offset deltas are `indexes`, of that width."""
    length_width = _width_of_length(stride)
    key_at = length_width + 2 + delta_width
    key_size = 0 if key == NULL else key >> 1
    split = _split(stride, _FIXED_SIZE_BYTES + delta_width + 1 + key_size)
    if split is None:
        return False
    length, value = split
    count = len(indexes)
    end = start + count * stride
    deltas = [encode_varint(index) for index in indexes]
    constants = [
        *enumerate(length),
        (key_at, key),
        *enumerate(value, key_at + 1 + key_size),
        (stride - 1, 0),
    ]
    plan.columns.extend(
        (slice(start + at, end, stride), bytes([byte]) * count) for at, byte in constants
    )
    plan.columns.extend(
        (
            slice(start + length_width + 2 + at, end, stride),
            bytes([delta[at] for delta in deltas]),
        )
        for at in range(delta_width)
    )
    plan.timestamps.append(slice(start + length_width + 1, end, stride))
    return True


def _split(size: int, overhead: int) -> tuple[bytes, bytes] | None:
    """The varints of length and value length of a record of `size` bytes.

    `overhead` is what it holds beside these two and the value. None: no record has that
    size, or its varints are too long.
    """
    length_width = _width_of_length(size)
    if not length_width:
        return None
    left = size - length_width - overhead
    for width in _WIDTHS:
        value = encode_varint(left - width) if left >= width else b""
        if len(value) == width:
            return encode_varint(size - length_width), value
    return None


def _width_of_length(size: int) -> int:
    """The size of the length prefix in a record of `size` bytes; 0 if no prefix fits."""
    for width in _WIDTHS:
        if size > width and len(encode_varint(size - width)) == width:
            return width
    return 0


def encode_varint(value: int) -> bytes:
    """The zigzag varint of a value that is not negative."""
    raw = value << 1
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
