"""Partitions of keys, by the names of librdkafka's partitioners.

Our producers use Java's, so that every client sends a key to the same partition.
"""

from __future__ import annotations

import random
from typing import Final
from zlib import crc32

from barnabas.java.hash import murmur2

JAVA_PARTITIONER: Final = {"partitioner": "murmur2_random"}
"""For the configuration of confluent-kafka's Producer, whose own default is CRC-32 of the key."""
_POSITIVE: Final = 0x7FFFFFFF
_FNV_PRIME: Final = 0x01000193
_FNV_START: Final = 0x811C9DC5
_KINDS: Final = (
    "random",
    *("consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"),
)


class Partitioner:
    """Chooses partitions by key. Source: librdkafka's rd_kafka_msg_partitioner_*."""

    def __init__(self, kind: str) -> None:
        """Raises KafkaException for a name that librdkafka does not have."""
        if kind not in _KINDS:
            from confluent_kafka import KafkaError, KafkaException

            reason = f"partitioner {kind} is none of {', '.join(_KINDS)}"
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, reason))
        self._hash, _, rest = kind.partition("_")
        self._spreads = bool(rest) or kind == "random"
        self._random = random.Random()

    def of(self, key: bytes | None, partitions: int) -> int:
        """Return a partition. Records without a key are spread over all where the name says so."""
        is_keyless = not key if self._hash == "consistent" else key is None
        if self._hash == "random" or (self._spreads and is_keyless):
            return self._random.randrange(partitions)
        if self._hash == "murmur2":
            return (murmur2(key or b"") & _POSITIVE) % partitions
        if self._hash == "fnv1a":
            return _fnv1a(key or b"") % partitions
        return crc32(key or b"") % partitions


def _fnv1a(data: bytes) -> int:
    """32-bit FNV-1a as Sarama's hash partitioner takes it: the absolute value of a signed one."""
    mixed = _FNV_START
    for byte in data:
        mixed = ((mixed ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return (1 << 32) - mixed if mixed & 0x80000000 else mixed
