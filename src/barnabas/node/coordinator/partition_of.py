"""The partition of an internal topic that coordinates a key. Source: Java's String.hashCode."""

from functools import lru_cache

from barnabas.java.hash import java_abs, java_hash

KEYS_REMEMBERED_MAX = 1024


@lru_cache(KEYS_REMEMBERED_MAX)
def partition_of(key: str, partition_count: int) -> int:
    """The partition for a group, a transactional id or a share key."""
    return java_abs(java_hash(key)) % partition_count
