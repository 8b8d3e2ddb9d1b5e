"""Java's string hash and integer arithmetic, and Kafka's murmur2: what placement depends on.

Source: String.hashCode; Kafka's Utils.abs and Utils.murmur2.
"""

import struct

INT32_MIN = -(1 << 31)


def java_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    data = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(data), 2):
        value = (31 * value + data[position] + (data[position + 1] << 8)) & 0xFFFFFFFF
    return as_int32(value)


def as_int32(value: int) -> int:
    """What is left of `value` in a Java int, which wraps around."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the smallest int, which has no absolute value, counts as 0."""
    return 0 if value == INT32_MIN else abs(value)


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 (unsigned)."""
    length = len(data)
    mixed = 0x9747B28C ^ length
    whole = length & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        k = (word * 0x5BD1E995) & 0xFFFFFFFF
        k = ((k ^ (k >> 24)) * 0x5BD1E995) & 0xFFFFFFFF
        mixed = ((mixed * 0x5BD1E995) & 0xFFFFFFFF) ^ k
    if length != whole:
        mixed = ((mixed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0x5BD1E995) & 0xFFFFFFFF
    return mixed ^ (mixed >> 15)
