"""COUNT and COUNT_DISTINCT.

ksqlDB estimates COUNT_DISTINCT by HyperLogLog with 2^14 registers. So do we from 513 distinct
values on; up to 512 we count exactly, by a sorted list of 64-bit hashes. Few groups have more
values, and their state is then a few bytes in place of 16 KiB to read and write for each record.
"""

from __future__ import annotations

import math
import operator
import struct
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from barnabas.sql.functions.aggregates.base import Fold
from barnabas.sql.functions.catalog import aggregate
from barnabas.sql.types import BIGINT, BYTES, SqlType, Value

EXACT_MAX = 512
_REGISTER_BITS = 14
_REGISTERS = 1 << _REGISTER_BITS
_HASH_BYTES = 8
_REST_BITS = 8 * _HASH_BYTES - _REGISTER_BITS
_RANKS = struct.Struct(f">{_REST_BITS + 2}H")
"""After the registers stand how many of them have each rank, so that an estimate need not look at
them all."""


@aggregate(
    "COUNT",
    "(value T) -> BIGINT",
    description="Counts records, or those in which a column is not NULL.",
)
def count(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Fold:
    return Fold(BIGINT, 0, operator.add, operator.sub, measure=lambda value: 1)


@aggregate(
    "COUNT_DISTINCT",
    "(value T) -> BIGINT",
    description="Counts the distinct values of a column; NULLs do not count. Exact up to "
    "512 values, then an estimate with a standard error below 1 %.",
)
class CountDistinct:
    """State: sorted hashes of eight bytes each, or (longer than all of those) a byte for each
    register and then the counts of ranks."""

    state_type: SqlType = BYTES
    result_type: SqlType = BIGINT

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        pass

    def initial(self) -> Value:
        return b""

    def add(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        return _with(state, blake2b(_identity(value), digest_size=_HASH_BYTES).digest())

    def merge(self, left: Value, right: Value) -> Value:
        if len(left) < len(right):
            left, right = right, left
        if len(right) > _REGISTERS:
            return _with_ranks(bytes(map(max, left[:_REGISTERS], right[:_REGISTERS])))
        for place in range(0, len(right), _HASH_BYTES):
            left = _with(left, right[place : place + _HASH_BYTES])
        return left

    def result(self, state: Value) -> Value:
        if len(state) < _REGISTERS:
            return len(state) // _HASH_BYTES
        return _estimate(_RANKS.unpack_from(state, _REGISTERS))


def _identity(value: Value) -> bytes:
    """Bytes that are equal for equal values of one type, and different for others."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    return repr(_ordered(value)).encode()


def _ordered(value: Value) -> Value:
    """The value with the entries of maps in order of their keys."""
    if isinstance(value, dict):
        return [(key, _ordered(value[key])) for key in sorted(value)]
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


def _with(state: bytes, hashed: bytes) -> bytes:
    if len(state) > _REGISTERS:
        return _registered(state, hashed)
    low, high = 0, len(state) // _HASH_BYTES
    while low < high:
        middle = (low + high) // 2
        if state[middle * _HASH_BYTES : (middle + 1) * _HASH_BYTES] < hashed:
            low = middle + 1
        else:
            high = middle
    place = low * _HASH_BYTES
    if state[place : place + _HASH_BYTES] == hashed:
        return state
    grown = state[:place] + hashed + state[place:]
    return grown if len(grown) <= EXACT_MAX * _HASH_BYTES else _registers(grown)


def _registers(hashes: bytes) -> bytes:
    registers = bytearray(_REGISTERS)
    for place in range(0, len(hashes), _HASH_BYTES):
        index, rank = _place(hashes[place : place + _HASH_BYTES])
        registers[index] = max(registers[index], rank)
    return _with_ranks(bytes(registers))


def _with_ranks(registers: bytes) -> bytes:
    counts = Counter(registers)
    return registers + _RANKS.pack(*(counts[rank] for rank in range(_REST_BITS + 2)))


def _registered(state: bytes, hashed: bytes) -> bytes:
    index, rank = _place(hashed)
    before = state[index]
    if before >= rank:
        return state
    changed = bytearray(state)
    changed[index] = rank
    counts = [*_RANKS.unpack_from(state, _REGISTERS)]
    counts[before] -= 1
    counts[rank] += 1
    _RANKS.pack_into(changed, _REGISTERS, *counts)
    return bytes(changed)


def _place(hashed: bytes) -> tuple[int, int]:
    """The register of a hash, and the place of the first 1 among the bits that are left."""
    number = int.from_bytes(hashed, "big")
    rest = number & ((1 << _REST_BITS) - 1)
    return number >> _REST_BITS, _REST_BITS - rest.bit_length() + 1


def _estimate(counts: Sequence[int]) -> int:
    """The estimate of Flajolet et al. (2007); 64-bit hashes need no correction for large counts."""
    alpha = 0.7213 / (1 + 1.079 / _REGISTERS)
    harmonic = math.fsum(count * 2.0**-rank for rank, count in enumerate(counts) if count)
    estimate = alpha * _REGISTERS**2 / harmonic
    empty = counts[0]
    if estimate <= 2.5 * _REGISTERS and empty:
        estimate = _REGISTERS * math.log(_REGISTERS / empty)
    return round(estimate)
