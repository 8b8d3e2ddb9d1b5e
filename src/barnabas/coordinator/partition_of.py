"""Which partition of an internal topic coordinates a key. Source: Java's String.hashCode."""

from functools import lru_cache

KEYS_REMEMBERED_MAX = 1024


def java_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    data = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(data), 2):
        value = (31 * value + data[position] + (data[position + 1] << 8)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


@lru_cache(KEYS_REMEMBERED_MAX)
def partition_of(key: str, partition_count: int) -> int:
    """The partition for a group, a transactional id or a share key.

    Kafka's Utils.abs takes the smallest integer, which has no absolute value, for 0.
    """
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
