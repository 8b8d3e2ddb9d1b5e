"""The sink of one file: it writes only whole lines, even if the disk fails."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.file.writer import FileStreamWriter
from barnabas.connect.record import SinkRecord
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.builder import DATE_SCHEMA, FLOAT32, FLOAT64, struct_of
from barnabas.schemas.data.errors import ConnectError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING}


def record(value: Any, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord(
        topic="t",
        value_schema=schema,
        partition=0,
        offset=0,
        original_topic="t",
        original_partition=0,
        original_offset=0,
        value=value,
    )


def test_a_full_disk_is_waited_for_and_leaves_no_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write, room = os.write, [5, 2]

    def cramped(descriptor: int, data: memoryview) -> int:
        if not room:
            return write(descriptor, data)
        if room[0]:
            fits, room[0] = room[0], 0
            return write(descriptor, data[:fits])
        room.pop(0)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", cramped)
    file = tmp_path / "out.txt"
    with ConnectKit(WORKER) as kit:
        for value in (b"one", b"two", b"three"):
            kit.produce("lines", value)
        settings = {"connector.class": "FileStreamSink", "file": str(file), "topics": "lines"}
        kit.start("out", {**settings, "errors.retry.delay.max.ms": "300"})
        kit.wait_until(lambda: kit.committed("out") == {("lines", 0): 3})
    assert not room
    assert file.read_text() == "one\ntwo\nthree\n"
    assert f"cannot write to '{file}': No space left on device; trying again in" in caplog.text


def test_a_device_that_is_full_is_waited_for_too() -> None:
    with pytest.raises(RetriableError, match="No space left on device"):
        FileStreamWriter("/dev/full").write(iter([record("one")]), SinkRange("t", 0, 0, 1))


def test_a_range_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before\n")

    def records() -> Iterator[SinkRecord]:
        yield record("x" * 100_000)
        raise ConnectError("cannot be read")

    with pytest.raises(ConnectError, match="cannot be read"):
        FileStreamWriter(str(file)).write(records(), SinkRange("t", 0, 0, 2))
    assert file.read_text() == "before\n"


def test_tasks_that_share_a_file_do_not_mix_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"

    def write(letter: str) -> None:
        for _ in range(20):
            lines = [record(letter * 9_000) for _ in range(5)]
            FileStreamWriter(str(file)).write(iter(lines), SinkRange("t", 0, 0, 5))

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abc"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    lines = file.read_text().splitlines()
    assert sorted(lines) == sorted(letter * 9_000 for letter in "abc" for _ in range(100))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="Couldn't find or create file"):
        FileStreamWriter(str(tmp_path / "none/out.txt")).write(iter(()), SinkRange("t", 0, 0, 0))


def test_lines_are_what_java_prints(tmp_path: Path) -> None:
    point = struct_of({"x": FLOAT32, "at": DATE_SCHEMA}, name="Point")
    given = [
        record(1e16, FLOAT64),
        record(Struct(point, [0.1, date(2024, 1, 2)]), point),
        record({"a": [None, True]}),
        record("half a pair: \ud800"),
    ]
    file = tmp_path / "lines"
    FileStreamWriter(str(file)).write(iter(given), SinkRange("t", 0, 0, 4))
    assert file.read_text().splitlines() == [
        "1.0E16",
        "Struct{x=0.1,at=Tue Jan 02 00:00:00 UTC 2024}",
        "{a=[null, true]}",
        "half a pair: ?",
    ]
