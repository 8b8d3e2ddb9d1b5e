"""Sizes and durations as people write them."""

import pytest

from barnabas.cli.units import format_bytes, parse_bytes, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("64k", 65536),
        ("1 KB", 1000),
        ("1.5GiB", 1610612736),
        ("2m", 2097152),
        ("1t", 1 << 40),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "k", "-1", "1x", "1 2", "1.2.3"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("1h30m", 5_400_000),
        ("7d", 604_800_000),
        ("1.5 h", 5_400_000),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "5", "ms", "1y", "-1s", "1h x"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_duration_ms(text)


def test_shown() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
