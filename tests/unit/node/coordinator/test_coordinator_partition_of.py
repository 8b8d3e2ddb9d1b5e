"""Which partition coordinates a key. The hashes are those that a JVM printed."""

import pytest

from barnabas.java.hash import java_hash
from barnabas.node.coordinator.runtime import partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("consumer-group-1", 147483020),
        ("connect-cluster", 1440343063),
        ("orders", -1008770331),
        ("grüppe", -1233264812),
        ("\U0001f600", 1772899),
        ("spark-kafka-source", -877681262),
        ("polygenelubricants", -2147483648),
    ],
)
def test_java_hash(text, expected):
    assert java_hash(text) == expected


def test_the_smallest_hash_has_no_absolute_value():
    assert partition_of("polygenelubricants", 50) == 0


def test_negative_hashes_count_by_absolute_value():
    assert partition_of("orders", 50) == 1008770331 % 50
