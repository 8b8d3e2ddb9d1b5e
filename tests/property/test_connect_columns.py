"""Records that pass a task many at once arrive as those that pass it one by one."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.connect.connectors.base import SinkRange, SourceReader
from barnabas.connect.connectors.file import reader as file_reader
from barnabas.connect.connectors.file.reader import FileReader
from barnabas.connect.connectors.file.writer import FileStreamWriter
from barnabas.connect.record import RawRecord, SourceColumn, SourceRecord
from barnabas.connect.tasks import chain, memory
from barnabas.connect.tasks.flow import FlowSpec
from barnabas.connect.tasks.memory import MemoryTopics, MemoryTransport
from barnabas.connect.tasks.runner import LocalBatchRunner, SinkFailedError
from barnabas.schemas.data.builder import OPTIONAL_STRING
from barnabas.schemas.data.errors import ConnectError
from support.effort import examples

NOW_NS = 1_700_000_000_123_000_000
STORAGE = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
INTEGERS = "org.apache.kafka.connect.converters.IntegerConverter"
Told = dict[str, Any]

converters = st.sampled_from(
    [
        {"": STORAGE},
        {"": STORAGE, ".converter.encoding": "ISO-8859-1"},
        {"": STORAGE, ".converter.encoding": "no such"},
        {"": JSON},
        {"": JSON, ".schemas.enable": "false"},
        {"": BYTES},
        {"": INTEGERS},
    ]
)
policies = st.sampled_from(
    [
        {},
        {"errors.tolerance": "all"},
        {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"},
        {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "letters",
            "errors.deadletterqueue.context.headers.enable": "true",
            "errors.log.enable": "true",
        },
    ]
)
pieces = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"a", b"line", b"\xc3\xa9", b"\xe2\x82", b"\xff", b"\xf0\x9f\x98\x80"]
)
contents = st.lists(pieces, max_size=40).map(b"".join)
json_texts = st.sampled_from(
    [
        b"{}",
        b'"a text"',
        b"{",
        b"7",
        b'"\\ud800"',
        b'{"schema":{"type":"string","optional":false},"payload":"x"}',
        b'{"schema":{"type":"string","optional":true},"payload":null}',
        b'{"schema":{"type":"int32","optional":false},"payload":5}',
        b'{"schema":null,"payload":{"a":[1,2.5,null]}}',
    ]
)
data = st.none() | json_texts | st.binary(max_size=5)
headers = st.just(()) | st.lists(st.tuples(st.just("h"), st.none() | st.binary(max_size=3)))
raw_records = st.builds(
    RawRecord,
    topic=st.just("in"),
    partition=st.just(0),
    key=st.none() | data,
    value=data,
    headers=headers,
    timestamp_ms=st.integers(0, 10**12),
)


def worker(key: Told, value: Told) -> dict[str, str]:
    return {
        **{f"key.converter{name}": text for name, text in key.items()},
        **{f"value.converter{name}": text for name, text in value.items()},
    }


def both_ways(run: Callable[[], Told]) -> tuple[Told, Told]:
    """Return the results of a run with columns, and of one without."""
    with patch("time.time_ns", lambda: NOW_NS):
        at_once = run()
        with patch.object(chain, "_PURE", ()):
            return at_once, run()


def sourced(make: Callable[[], SourceReader], spec: FlowSpec) -> Told:
    """Run a source until nothing is new; an error ends it."""
    topics = MemoryTopics()
    runner = LocalBatchRunner(spec, MemoryTransport(topics, "c", spec.settings), Event())
    reader, told = make(), Told(done=[], error=None)
    try:
        runner.prepare_source()
        start = reader.initialOffset()
        while (end := reader.latestOffset()) != start:
            done, offsets = runner.run_source(reader, reader.partitions(start, end), ())
            for one in done:
                one.seconds = 0
            told["done"].append((done, offsets))
            start = end
    except ConnectError as error:
        told["error"] = texts_of(error)
    told["written"] = {
        topic: [replace(one, headers=list(one.headers)) for one in records]
        for topic, records in topics.written.items()
    }
    return told


def texts_of(error: BaseException | None) -> list[str]:
    texts = []
    while error is not None:
        texts.append(f"{type(error).__name__} {error}")
        error = error.__cause__
    return texts


@settings(max_examples=examples(45), deadline=None)
@given(contents, converters, converters, policies, st.integers(1, 4), st.integers(1, 9))
@example(b"a\r\n\xe2\x82\nb\r", {"": STORAGE}, {"": STORAGE}, {}, 1, 2)
@example(b"\n" * 30, {"": JSON}, {"": JSON}, {}, 2, 3)
@example(b"\xff\n\n", {"": STORAGE}, {"": BYTES}, {"errors.tolerance": "all"}, 2, 9)
def test_lines_of_a_file(
    content: bytes, key: Told, value: Told, policy: Told, batch: int, chunk: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "in.txt"
        file.write_bytes(content)
        spec = FlowSpec("c", 0, policy, worker(key, value))
        with (
            patch.object(file_reader, "_CHUNK_BYTES", chunk),
            patch.object(file_reader, "_WAIT_SECONDS", 0),
            patch.object(file_reader, "BATCHES_MAX", 1),
        ):
            at_once, one_by_one = both_ways(
                lambda: sourced(lambda: FileReader(str(file), "t", batch, None), spec)
            )
    assert at_once == one_by_one
    if value == {"": STORAGE} and key[""] != INTEGERS and ".converter.encoding" not in key:
        wanted = lines_of(content)
        found = [(one.value.decode(), one.timestamp_ms) for one in at_once["written"].get("t", ())]
        assert found == [(line, NOW_NS // 1_000_000) for line, _ in wanted]
        ends = [offsets[-1][1]["position"] for _, offsets in at_once["done"]]
        assert set(ends) <= {end for _, end in wanted}
        assert ends[-1:] == [end for _, end in wanted][-1:]


def lines_of(content: bytes) -> list[tuple[str, int]]:
    """Lines with their ends, by the plainest of ways; a carriage return at the end waits."""
    found = re.finditer(rb"([^\r\n]*)(\r\n|\n|\r(?!\Z))", content)
    return [(one[1].decode("utf-8", "replace"), one.end()) for one in found]


class Columns(SourceReader):
    """Values in columns, some of which no converter takes."""

    def __init__(self, columns: list[list[Any]]) -> None:
        self._columns = columns

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return {"n": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return {"n": 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[None]:
        return [None]

    def read(self, partition: None) -> Iterator[SourceRecord]:
        for column in self.read_columns(partition):
            yield from column.records()

    def read_columns(self, partition: None) -> Iterator[SourceColumn]:
        for number, values in enumerate(self._columns):
            offsets = [{"at": at} for at in range(len(values))]
            yield SourceColumn(
                topic=f"t{number % 2}",
                schema=None if number % 3 else OPTIONAL_STRING,
                values=values,
                timestamp_ms=None if number % 2 else 5,
                source_partition={"column": number % 3},
                offsets=lambda offsets=offsets: offsets,  # type: ignore[misc]
                end=offsets[-1],
            )


@settings(max_examples=examples(45), deadline=None)
@given(
    st.lists(
        st.lists(
            st.none() | st.text(max_size=3) | st.just("\ud800") | st.integers() | st.binary(),
            min_size=1,
            max_size=4,
        ),
        max_size=6,
    ),
    converters,
    converters,
    policies,
)
def test_columns_of_any_values(
    columns: list[list[Any]], key: Told, value: Told, policy: Told
) -> None:
    spec = FlowSpec("c", 0, policy, worker(key, value))
    at_once, one_by_one = both_ways(lambda: sourced(lambda: Columns(columns), spec))
    assert at_once == one_by_one


def sunk(records: list[RawRecord], spec: FlowSpec, file: Path) -> Told:
    """Run a sink over all records."""
    topics = MemoryTopics()
    for record in records:
        topics.put("in", record)
    runner = LocalBatchRunner(spec, MemoryTransport(topics, "c", spec.settings), Event())
    file.unlink(missing_ok=True)
    told = Told(done=(), error=None)
    try:
        runner.prepare_sink()
        done = runner.run_sink(FileStreamWriter(str(file)), [SinkRange("in", 0, 0, len(records))])
        for one in done:
            one.seconds = 0
        told["done"] = done
    except (ConnectError, SinkFailedError) as error:
        told["error"] = texts_of(error)
    told["letters"] = topics.written.get("letters")
    lines = file.read_text() if file.exists() else None
    # Java's text of an array has its address.
    told["lines"] = lines and re.sub(r"\[B@[0-9a-f]+", "[B@", lines)
    return told


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(raw_records, min_size=1, max_size=12),
    converters,
    converters,
    policies,
    st.integers(1, 5),
)
@example(  # a text that UTF-8 cannot hold
    [RawRecord(topic="in", partition=0, value=data) for data in (None, b'"\\ud800"')],
    {"": STORAGE},
    {"": JSON, ".schemas.enable": "false"},
    {},
    2,
)
def test_values_of_a_topic(
    records: list[RawRecord], key: Told, value: Told, policy: Told, piece: int
) -> None:
    spec = FlowSpec("c", 0, {"topics": "in", **policy}, worker(key, value))
    with (
        tempfile.TemporaryDirectory() as directory,
        patch.object(memory, "_COLUMN_RECORDS_MAX", piece),
    ):
        file = Path(directory) / "out.txt"
        at_once, one_by_one = both_ways(lambda: sunk(records, spec, file))
    assert at_once == one_by_one
