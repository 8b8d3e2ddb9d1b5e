"""Places in a log as people name them."""

from __future__ import annotations

import datetime

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.records.positions import Kind, Position, list_offsets, parse_position
from support.stale_admin import StaleAdmin

NOW_MS = 1_760_000_000_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position(Kind.EARLIEST)),
        ("beginning", Position(Kind.EARLIEST)),
        ("latest", Position(Kind.LATEST)),
        ("end", Position(Kind.LATEST)),
        ("0", Position(Kind.OFFSET, 0)),
        ("12", Position(Kind.OFFSET, 12)),
        ("-10", Position(Kind.BEFORE_END, 10)),
        ("+10", Position(Kind.AFTER_START, 10)),
        ("@123", Position(Kind.TIME, 123)),
        ("2025-10-09T08:53:20Z", Position(Kind.TIME, NOW_MS)),
        ("2025-10-09T10:53:20+02:00", Position(Kind.TIME, NOW_MS)),
        ("90m", Position(Kind.TIME, NOW_MS - 5_400_000)),
        ("7d", Position(Kind.TIME, NOW_MS - 604_800_000)),
    ],
)
def test_positions(text: str, position: Position) -> None:
    assert parse_position(text, NOW_MS) == position


def test_a_date_is_local() -> None:
    midnight = datetime.datetime(2026, 1, 31).astimezone()
    expected = Position(Kind.TIME, int(midnight.timestamp() * 1000))
    assert parse_position("2026-01-31", NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "soon", "1.5", "--3", "@", "2026-13-01", "5 parsecs"])
def test_no_positions(text: str) -> None:
    with pytest.raises(ValueError, match="not a position"):
        parse_position(text, NOW_MS)


def test_an_offset_that_no_leader_told_is_no_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection("127.0.0.1:1", {}, 5.0)
    StaleAdmin.begin(OFFSET_INVALID, -1)
    places = [TopicPartition("t", 0)]
    monkeypatch.setattr(Connection, "admin", StaleAdmin())
    with pytest.raises(CliError, match="t-0: the partition's leader did not answer") as raised:
        list_offsets(connection, places, Position(Kind.LATEST))
    assert raised.value.code == ExitCode.UNREACHABLE
    monkeypatch.setattr(Connection, "admin", StaleAdmin())
    assert list_offsets(connection, places, Position(Kind.TIME, NOW_MS)) == {("t", 0): -1}
