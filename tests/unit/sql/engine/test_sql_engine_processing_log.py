"""The processing log: what its entries say, and that queries write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.schemas.errors import FormatError
from barnabas.sql.engine.session import Session
from barnabas.sql.processing_log import (
    Entry,
    UnreadableError,
    UnwritableError,
    encode_entry,
    entry_of,
    logger_name,
    production_error,
    query_error,
)
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.processing_topic import ProcessingLogSettings, ProcessingTopic
from support.node_process import wait_until
from support.sql_server_world import SqlWorld

BROKEN = FormatError("not JSON")
MEMBERS = [
    "deserializationError",
    "recordProcessingError",
    "productionError",
    "serializationError",
    "kafkaStreamsThreadError",
]
UNREADABLE = {"target": "value", "errorMessage": "not JSON", "cause": [], "topic": "s"}
UNWRITABLE = {"target": "key", "errorMessage": "not JSON", "cause": [], "topic": "t"}
ENTRIES: list[tuple[Entry, int, dict[str, Any]]] = [
    (
        entry_of("", None, UnreadableError("value", "s", b"{", BROKEN), rows=False),
        0,
        {**UNREADABLE, "recordB64": None},
    ),
    (
        entry_of("", None, UnreadableError("value", "s", b"{", BROKEN), rows=True),
        0,
        {**UNREADABLE, "recordB64": "ew=="},
    ),
    (
        entry_of("Error computing X", ["a", 1], ZeroDivisionError("by zero"), rows=False),
        1,
        {"errorMessage": "Error computing X", "record": None, "cause": ["by zero"]},
    ),
    (
        entry_of("Skipped", ["a", b"\x00", None], None, rows=True),
        1,
        {"errorMessage": "Skipped", "record": '["a", "AA==", null]', "cause": []},
    ),
    (production_error("too large"), 2, {"errorMessage": "too large"}),
    (
        entry_of("", ["a"], UnwritableError("key", "t", BROKEN), rows=True),
        3,
        {**UNWRITABLE, "record": '["a"]'},
    ),
    (
        query_error("gone\nbecause", "CTAS_T_1"),
        4,
        {"errorMessage": "gone", "threadName": "CTAS_T_1", "cause": ["because"]},
    ),
]


@pytest.mark.parametrize(("entry", "kind", "member"), ENTRIES)
def test_entries_are_ksqldb_s(entry: Entry, kind: int, member: dict[str, Any]) -> None:
    found = json.loads(encode_entry("CTAS_T_1", entry, 7))
    assert (found["level"], found["time"]) == ("ERROR", 7)
    assert found["logger"].startswith("processing.CTAS_T_1")
    others = dict.fromkeys(MEMBERS)
    assert found["message"] == {"type": kind, **others, MEMBERS[kind]: member}


def test_an_entry_fits_into_a_record() -> None:
    data = b"x" * 10_000_000
    entry = entry_of("m" * 10_000_000, None, UnreadableError("key", "s", data, BROKEN), rows=True)
    assert len(encode_entry("q", entry, 0)) < 1_000_000
    entry = entry_of("m" * 10_000_000, ["v" * 10_000_000], ValueError("w" * 10_000_000), rows=True)
    assert len(encode_entry("q", entry, 0)) < 1_000_000


class Noted:
    def __init__(self) -> None:
        self.entries: list[tuple[str, Entry]] = []

    def __call__(self, query_id: str, entry: Entry) -> None:
        self.entries.append((query_id, entry))


STREAM = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
)


async def test_queries_note_what_is_wrong_and_go_on() -> None:
    world = SqlWorld()
    world.note = noted = Noted()
    await world.restart()
    await world.ksql(STREAM + "CREATE STREAM c AS SELECT k, 10 / v AS q FROM s;")
    world.cluster.write("s", TopicRecord(b"a", b"nonsense", 0))
    world.write("s", "a", {"V": 0})
    world.write("s", "a", {"V": 5})
    assert json.loads(world.cluster.records["C"][-1].value or b"") == {"Q": 2}
    assert [query_id for query_id, _ in noted.entries] == ["CSAS_C_1"] * 2
    unreadable, divided = (entry for _, entry in noted.entries)
    assert logger_name("q", unreadable.step) == "processing.q.KsqlTopic.Source.deserializer"
    assert unreadable.message["deserializationError"]["recordB64"] is None
    assert divided.message["type"] == 1
    assert "Error computing" in divided.text

    await world.rows("SELECT 10 / v AS q FROM s EMIT CHANGES LIMIT 2;")
    pushed = noted.entries[2:]
    assert {query_id.rpartition("_")[0] for query_id, _ in pushed} == {"transient_S"}
    assert [entry.message["type"] for _, entry in pushed] == [0, 1]
    del noted.entries[2:]

    (running,) = world.engine.queries.values()
    assert running.hosted is not None
    running.hosted._fail(ValueError("broken"))  # type: ignore[attr-defined]
    wait_until(lambda: len(noted.entries) == 3, "an entry of the failure")
    assert noted.entries[-1][1].message["kafkaStreamsThreadError"]["errorMessage"] == "broken"
    await world.close()


class Recorded:
    """A fake producer that records values."""

    def __init__(self, produced: list[bytes]) -> None:
        self._produced = produced

    def produce(self, topic: str, value: bytes, **_: object) -> None:
        self._produced.append(value)

    def poll(self, timeout_s: float) -> None:
        pass


async def test_the_stream_over_the_log_reads_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SqlWorld()
    settings = ProcessingLogSettings(
        {
            "ksql.service.id": "x_",
            "ksql.logging.processing.topic.auto.create": "true",
            "ksql.logging.processing.stream.auto.create": "true",
        }
    )
    log = ProcessingTopic(settings, {"bootstrap.servers": "127.0.0.1:1"})
    log.make_topic(world.cluster)
    assert settings.topic in world.cluster.topics()
    for _ in range(2):
        log.make_stream(world.engine)
    for entry, _, _ in ENTRIES:
        world.cluster.write(settings.topic, TopicRecord(None, encode_entry("q", entry, 5), 0))
    rows = await world.rows(
        "SELECT logger, time, message->`TYPE`, message->serializationError->target, "
        "message->kafkaStreamsThreadError->cause FROM ksql_processing_log;"
    )
    assert [row[2] for row in rows] == [kind for _, kind, _ in ENTRIES]
    assert rows[-1] == ["processing.q", 5, 4, None, ["because"]]
    await world.ksql("CREATE STREAM c AS SELECT 1 / (time - 5) AS q FROM ksql_processing_log;")
    produced: list[bytes] = []
    monkeypatch.setattr(log, "_producer", Recorded(produced))
    (query_id,) = world.engine.queries
    log.note(query_id, ENTRIES[0][0])
    assert produced == []
    log.note("other", ENTRIES[0][0])
    assert len(produced) == 1
    monkeypatch.undo()
    # No broker answers: the entries wait, but not the code that noted them.
    log.note("q", ENTRIES[0][0])
    await world.close()


def test_without_settings_nothing_is_made_or_written() -> None:
    settings = ProcessingLogSettings({})
    assert (settings.creates_topic, settings.creates_stream, settings.is_written) == (False,) * 3
    assert settings.topic == "default_ksql_processing_log"
    log = ProcessingTopic(settings, {})
    log.note("q", ENTRIES[0][0])
    log.close()
    assert (log.written, log.dropped) == (0, 0)


async def test_sessions_may_not_have_rows_shown() -> None:
    world = SqlWorld()
    error = await world.error("SET 'ksql.logging.processing.rows.include'='true';")
    assert "Cannot override property" in error["message"]
    assert not Session(world.engine.settings).settings["ksql.logging.processing.rows.include"]
    await world.close()
