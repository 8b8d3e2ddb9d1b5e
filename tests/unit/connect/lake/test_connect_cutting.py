"""Where files end and how directories are named: pure parts of the sinks of files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.storage.cutting import (
    Compatibility,
    CutRules,
    Cutter,
    Pace,
    Progress,
)
from barnabas.connect.connectors.storage.partitioners import (
    DefaultPartitioner,
    FieldPartitioner,
    Partitioner,
    RecordExtractor,
    RecordFieldExtractor,
    TimeBasedPartitioner,
)
from barnabas.connect.connectors.storage.time_path import (
    TimePath,
    next_by_day,
    to_ms,
    truncated,
    zone_of,
)
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConfigError, DataError, SchemaProjectorError
from barnabas.schemas.data.schema import Schema, Struct

ROW = builder.struct_of({"city": builder.OPTIONAL_STRING, "at": builder.OPTIONAL_STRING})
OSLO = zone_of("Europe/Oslo")
HOUR_MS = 3_600_000


def record(offset: int, ms: int = 0, value: Any = None, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord(
        topic="t",
        partition=0,
        offset=offset,
        original_topic="t",
        original_partition=0,
        original_offset=offset,
        timestamp_ms=ms,
        value=value,
        value_schema=schema,
    )


def ms(*parts: int) -> int:
    return to_ms(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2026/month=03/day=07/hour=09"),
        ("yy-M-d", "26-3-7"),
        ("MMM MMMM EEE EEEE", "Mar March Sat Saturday"),
        ("D ww xxxx e", "66 10 2026 6"),
        ("hh:mm:ss.SSS a k K", "09:05:06.123 AM 9 9"),
        ("Z ZZ ZZZ", "+0100 +01:00 Europe/Oslo"),
        ("'o''clock'''", "o'clock'"),
    ],
)
def test_times_are_written_as_joda_writes_them(pattern, text):
    when = ms(2026, 3, 7, 8, 5, 6) + 123
    assert TimePath(pattern, OSLO).text(when) == text


@pytest.mark.parametrize("pattern", ["'open", "q"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern):
    with pytest.raises(ConfigError, match="Illegal pattern"):
        TimePath(pattern, OSLO)


def test_spans_and_schedules_follow_the_zone_s_clocks():
    day = 24 * HOUR_MS
    # The day on which clocks go forward has 23 hours.
    assert truncated(ms(2026, 3, 29, 20), day, OSLO) == ms(2026, 3, 28, 23)
    assert next_by_day(ms(2026, 3, 29, 20), day, OSLO) == ms(2026, 3, 29, 22)
    assert next_by_day(ms(2026, 3, 7, 8), 7 * HOUR_MS, zone_of("+01:00")) == ms(2026, 3, 7, 13)
    with pytest.raises(ConfigError, match="not recognised"):
        zone_of("Mars/Base")


def cuts(cutter: Cutter, records: list[SinkRecord]) -> list[list[int]]:
    """The offsets in each set of files."""
    sets: list[list[int]] = [[]]
    for one in records:
        placed = cutter.place(one, 0)
        if placed.cuts_before:
            sets.append([])
        sets[-1].append(one.offset)
        if cutter.written(placed.directory):
            cutter.cut()
            sets.append([])
    return sets


def test_a_file_ends_at_a_record_that_is_later_or_for_another_directory():
    hourly = TimeBasedPartitioner(HOUR_MS, "HH", "UTC", RecordExtractor())
    records = [record(n, minutes * 60_000) for n, minutes in enumerate([0, 20, 31, 59, 60, 70])]
    rules = CutRules(flush_size=100, rotate_interval_ms=30 * 60_000)
    assert cuts(Cutter(rules, hourly), records) == [[0, 1], [2, 3], [4, 5]]
    loose = CutRules(100, 30 * 60_000, cuts_at_new_directory=False)
    assert cuts(Cutter(loose, hourly), records) == [[0, 1], [2, 3, 4], [5]]
    assert cuts(Cutter(CutRules(100), hourly), records) == [[0, 1, 2, 3, 4, 5]]


def test_files_end_when_too_many_are_open():
    by_city = FieldPartitioner(["city"], "/")
    values = [Struct(ROW, [city, None]) for city in "aabcab"]
    records = [record(n, value=value, schema=ROW) for n, value in enumerate(values)]
    assert cuts(Cutter(CutRules(100, files_max=2), by_city), records) == [[0, 1, 2], [3, 4], [5]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10)), max_size=60), st.data())
def test_reading_again_from_where_files_began_gives_the_same_files(rows, data):
    """Wherever a failure falls: what is cut behind it is what was cut before."""
    size = data.draw(st.integers(1, 8))
    interval = data.draw(st.sampled_from([-1, 3, 20]))

    def cutter() -> Cutter:
        by: Partitioner = TimeBasedPartitioner(5, "S", "UTC", RecordExtractor())
        return Cutter(CutRules(size, interval), by)

    records = [record(n, at) for n, (_, at) in enumerate(rows)]
    whole = [one for one in cuts(cutter(), records) if one]
    start = data.draw(st.sampled_from([0, *(one[0] for one in whole)]))
    again = [one for one in cuts(cutter(), records[start:]) if one]
    assert again == [one for one in whole if one[0] >= start]


def test_schemas_are_compatible_as_storage_says():
    def version(number: int, **more: Schema) -> Schema:
        return builder.struct_of({"id": builder.INT32, **more}, name="Row", version=number)

    one, two = version(1), version(2, tip=builder.OPTIONAL_INT32)
    required = version(3, tip=builder.INT32)
    table = {
        ("NONE", one, two): True,
        ("BACKWARD", one, two): False,
        ("BACKWARD", two, one): True,
        ("FORWARD", one, two): True,
        ("FORWARD", two, one): False,
        ("FULL", one, two): False,
        ("FULL", one, required): True,
    }
    for (kind, schema, current), expected in table.items():
        assert Compatibility(kind).needs_new_file(schema, current) is expected, (kind, schema)
    value = Struct(one, [7])
    assert Compatibility.FULL.projected(one, value, two).values == [7, None]
    with pytest.raises(SchemaProjectorError, match="Schema version required"):
        Compatibility.FULL.needs_new_file(ROW, one)


def test_times_are_found_in_fields():
    extractor = RecordFieldExtractor("at")
    texts = {
        "1700000000000": 1_700_000_000_000,
        "2026-03-07T08:00:00Z": ms(2026, 3, 7, 8),
        "2026-03-07T08:00:00+01:00": ms(2026, 3, 7, 7),
        "2026-03-07": ms(2026, 3, 7),
    }
    for text, expected in texts.items():
        assert extractor.time_ms(record(0, value=Struct(ROW, [None, text])), 0) == expected
    assert extractor.time_ms(record(0, value={"at": 5}), 0) == 5
    assert extractor.time_ms(record(0, value={"at": 10**400}), 0) == 10**400
    for wrong in ({"at": None}, {"at": "soon"}, {"at": float("nan")}, "text"):
        with pytest.raises(DataError, match=r"Error (extracting timestamp|encoding partition)"):
            extractor.time_ms(record(0, value=wrong), 0)


def test_reading_waits_until_files_can_be_full_and_costs_little():
    pace = Pace(flush_size=10, has_timed_files=False)
    progress = Progress(pace, 0, 5, 0)
    assert progress.plan("t", 0, 0) is None
    progress.see(12, 1)
    planned = progress.plan("t", 0, 1)
    assert planned is not None
    assert (planned.start, planned.end, planned.is_last) == (0, 12, False)
    progress.finished(done=10, tried=12, records_open=2, cost_ms=1)
    progress.see(19, 2)
    assert progress.plan("t", 0, 2) is None
    progress.see(20, 3)
    assert isinstance(progress.plan("t", 0, 3), SinkRange)

    timed = Progress(Pace(1000, has_timed_files=True), 0, 5, 0)
    assert timed.plan("t", 0, 0) is not None
    timed.finished(done=0, tried=5, records_open=5, cost_ms=5000)
    assert timed.plan("t", 0, 9_000) is None, "there is nothing new"
    timed.see(6, 9_000)
    assert timed.plan("t", 0, 9_000) is not None
    timed.finished(done=0, tried=6, records_open=6, cost_ms=5000)
    timed.see(7, 10_000)
    assert timed.plan("t", 0, 28_999) is None
    assert timed.plan("t", 0, 29_000) is not None


def test_what_the_schedule_wanted_is_still_due_after_a_failure():
    pace = Pace(1000, has_timed_files=False, schedule_ms=100, zone=UTC)
    progress = Progress(pace, 0, 5, 0)
    assert progress.plan("t", 0, 50) is None
    planned = progress.plan("t", 0, 100)
    assert planned is not None
    assert planned.is_last
    progress.failed(planned)
    assert progress.plan("t", 0, 101) == planned


def test_arrivals_say_when_records_were_first_seen():
    progress = Progress(Pace(4, has_timed_files=False), 0, 2, 100)
    progress.see(4, 200)
    planned = progress.plan("t", 0, 300)
    assert planned is not None
    assert [planned.seen_ms(offset) for offset in range(4)] == [100, 100, 200, 200]


def test_default_directories_are_the_partition_s():
    assert DefaultPartitioner().encode(record(0), 0) == "partition=0"
