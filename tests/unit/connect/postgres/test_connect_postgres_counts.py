"""The driver counts a transaction's events by their messages; executors count what they write."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.cdc.changes import ChangeRecords, LogSplit, counts_after
from barnabas.connect.cdc.tables import Column, Table, TypeName
from barnabas.connect.connectors.postgres.log import LogStart, PostgresLog
from barnabas.connect.connectors.postgres.positions import LogPosition
from barnabas.connect.connectors.postgres.settings import PostgresSettings

GIVEN = {
    "topic.prefix": "p",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.dbname": "d",
    "provide.transaction.metadata": "true",
    "message.prefix.include.list": "wanted",
}
TABLE = Table(
    *(1, "public", "t", "p.public.t"),
    columns=(
        Column("id", TypeName("numeric"), is_optional=False),
        Column("part", TypeName("int4"), is_optional=True),
        Column("name", TypeName("text"), is_optional=True),
    ),
    kept=(0, 1, 2),
    key=("id", "part"),
)
BEGIN = struct.pack(">cQqI", b"B", 200, 5, 700)
COMMIT = struct.pack(">cBQQq", b"C", 0, 200, 240, 5)
Values = tuple["str | None", ...]


def row(values: Values) -> bytes:
    def value(text: str | None) -> bytes:
        if text is None:
            return b"n"
        if text == "unchanged":
            return b"u"
        return b"t" + struct.pack(">I", len(text)) + text.encode()

    return struct.pack(">H", len(values)) + b"".join(map(value, values))


def change(kind: str, table: int, old_tag: str, old: Values, new: Values) -> bytes:
    """A message of a row: `old_tag` is K, O, or empty for a change without its old row."""
    before = old_tag.encode() + row(old) if old_tag else b""
    after = b"N" + row(new) if kind != "D" else b""
    return kind.encode() + struct.pack(">I", table) + before + after


def message(prefix: str) -> bytes:
    head = struct.pack(">cBQ", b"M", 1, 5)
    return head + prefix.encode() + b"\0" + struct.pack(">I", 1) + b"x"


def truncate(*tables: int) -> bytes:
    return struct.pack(f">cIB{len(tables)}I", b"T", len(tables), 0, *tables)


KEYS = st.tuples(
    st.sampled_from(["1", "1.0", "2"]), st.sampled_from(["1", "2", None]), st.just("a")
)
NEW_KEYS = st.tuples(
    st.sampled_from(["1", "1.0", "unchanged"]),
    st.sampled_from(["1", None]),
    st.sampled_from(["b", "unchanged"]),
)
MESSAGES = st.one_of(
    st.builds(change, st.just("I"), st.integers(1, 2), st.just(""), KEYS, KEYS),
    st.builds(change, st.just("U"), st.just(1), st.sampled_from(["", "K", "O"]), KEYS, NEW_KEYS),
    st.builds(change, st.just("D"), st.just(1), st.sampled_from(["K", "O"]), KEYS, KEYS),
    st.builds(message, st.sampled_from(["wanted", "other"])),
    st.sampled_from([truncate(1), truncate(1, 2), BEGIN, COMMIT]),
)


@pytest.mark.parametrize("skipped", ["none", "c,d", "u,t,m"])
@given(messages=st.lists(MESSAGES, max_size=12))
def test_both_count_the_same(skipped: str, messages: list[bytes]) -> None:
    settings = PostgresSettings.parse({**GIVEN, "skipped.operations": skipped})
    log = PostgresLog(settings, time)
    items: list[Any] = [(100 + at, one, at) for at, one in enumerate([BEGIN, *messages])]
    split = LogSplit(LogStart(LogPosition(1), None), {1: TABLE, 2: None}, items, counts={})
    reader = ChangeRecords(settings, 0, log, time)
    records = list(reader.read(split))
    assert reader._counts is not None
    assert counts_after(split, log, settings) == reader._counts.by_collection
    whole = [one.value for one in records if one.topic == "p.transaction"]
    assert all(value.get("event_count") is not None for value in whole if value.values[0] == "END")


@pytest.mark.parametrize(("transforms", "why"), [("", "'4711x'"), ("mask", ": ValueError;")])
def test_the_log_quotes_a_value_that_cannot_be_read_unless_a_transform_may_mask_it(
    caplog: pytest.LogCaptureFixture, transforms: str, why: str
) -> None:
    settings = PostgresSettings.parse({**GIVEN, "transforms": transforms})
    log = PostgresLog(settings, time)
    insert = change("I", 1, "", (), ("1", "4711x", "a"))
    split = LogSplit(
        LogStart(LogPosition(1), None), {1: TABLE}, [(1, BEGIN, 0), (2, insert, 1)], counts={}
    )
    found = [one for one in ChangeRecords(settings, 0, log, time).read(split) if one.value]
    assert "p.public.t" in [one.topic for one in found]
    assert "public.t.part has a value that cannot be read: " in caplog.text
    assert why in caplog.text
    assert ("4711x" in caplog.text) is (not transforms)


def test_keys_that_are_equal_though_their_texts_differ_are_no_move() -> None:
    settings = PostgresSettings.parse({**GIVEN, "decimal.handling.mode": "double"})
    log = PostgresLog(settings, time)
    update = change("U", 1, "O", ("1", "1", "a"), ("1.0", "1", "b"))
    split = LogSplit(
        LogStart(LogPosition(1), None), {1: TABLE}, [(1, BEGIN, 0), (2, update, 1)], counts={}
    )
    assert counts_after(split, log, settings) == {"public.t": 1}
    reader = ChangeRecords(settings, 0, log, time)
    assert [one.value.get("op") for one in reader.read(split) if one.topic == "p.public.t"] == ["u"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # PostgreSQL logs the old key beside a large one that an update leaves alone.
        (("1", "1", None), ("unchanged", "1", "b"), [("u", ("1", 1), "b")]),
        (("1", "1", None), ("unchanged", "unchanged", "unchanged"), [("u", ("1", 1), "?")]),
        (
            ("1", "1", None),
            ("unchanged", "2", "b"),
            [("d", ("1", 1), None), (None, ("1", 1), None), ("c", ("1", 2), "b")],
        ),
    ],
)
def test_the_old_key_fills_an_unchanged_column_of_the_new_one(
    old: Values, new: Values, expected: list[Any]
) -> None:
    settings = PostgresSettings.parse(
        {**GIVEN, "decimal.handling.mode": "string", "unavailable.value.placeholder": "?"}
    )
    log = PostgresLog(settings, time)
    update = change("U", 1, "K", old, new)
    split = LogSplit(
        LogStart(LogPosition(1), None), {1: TABLE}, [(1, BEGIN, 0), (2, update, 1)], counts={}
    )
    found = []
    for one in ChangeRecords(settings, 0, log, time).read(split):
        if one.topic == "p.public.t":
            after = one.value.get("after") if one.value is not None else None
            name = after.get("name") if after is not None else None
            op = one.value.get("op") if one.value is not None else None
            found.append((op, tuple(one.key.values), name))
    assert found == expected
    events = sum(op is not None for op, _key, _name in expected)
    assert counts_after(split, log, settings) == {"public.t": events}
