"""Schema parameters for the types of columns, as Debezium's connector writes them."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.postgres.catalog import source_parameters


@pytest.mark.parametrize(
    ("name", "modifier", "length", "scale"),
    [
        ("int4", -1, "10", "0"),
        ("float8", -1, "17", "17"),
        ("numeric", (10 << 16 | 2) + 4, "10", "2"),
        ("numeric", -1, "0", None),
        ("varchar", 9, "5", "0"),
        ("varchar", -1, "2147483647", "0"),
        ("bpchar", 7, "3", "0"),
        ("bit", 3, "3", "0"),
        ("date", -1, "13", "0"),
        ("time", 3, "12", "3"),
        ("timestamp", 0, "22", "0"),
        ("timestamptz", -1, "35", "6"),
        ("_varchar", 11, "7", "0"),
        ("text", -1, "2147483647", "0"),
    ],
)
def test_lengths_and_scales(name: str, modifier: int, length: str, scale: str | None) -> None:
    prefix = "__debezium.source.column."
    told = dict(source_parameters("c", name, name, modifier))
    assert told.pop(f"{prefix}type") == name.upper()
    assert told.pop(f"{prefix}name") == "c"
    assert told.pop(f"{prefix}length") == length
    assert told.pop(f"{prefix}scale", None) == scale
    assert not told
