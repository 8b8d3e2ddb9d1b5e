"""Transaction boundaries of exactly-once sources (KIP-618), on topics in memory."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.connect.connectors.base import TransactionContext
from barnabas.connect.record import SourceRecord
from barnabas.connect.tasks.base import TaskId, TaskPlan
from barnabas.connect.tasks.memory import MemoryOffsets
from barnabas.connect.tasks.source_transactions import (
    ConnectorsOwn,
    Interval,
    Verdict,
    interval_ms,
    make_boundary,
    open_ms,
)
from barnabas.connect.tasks.spark import SparkEngine
from barnabas.connect.testing import ConnectKit, KitConnector, TaskLog
from barnabas.schemas.data.errors import ConfigError, IllegalStateError
from support.connect import step_source as plugins
from support.connect.web_service import Answer, Asked, WebService

STEPS = {"connector.class": "support.connect.step_source:StepSource", "topic": "out"}
LONG = {"transaction.boundary": "INTERVAL", "transaction.boundary.interval.ms": "600000"}
OWN = {"transaction.boundary": "connector"}


@pytest.fixture
def kit() -> Iterator[ConnectKit]:
    plugins.Steps.failed.clear()
    plugins.Steps.committed.clear()
    with ConnectKit() as kit:
        yield kit


def start(kit: ConnectKit, text: str, more: Mapping[str, str]) -> KitConnector:
    return kit.start("s", {**STEPS, "text": text, **more}, is_exactly_once=True)


def polled(running: KitConnector) -> float:
    return running.tasks[0].metrics().get("source-record-poll-total", 0)


def written(kit: ConnectKit) -> str:
    return b"".join(value or b"" for value in kit.values("out")).decode()


def step_of(kit: ConnectKit) -> int | None:
    stored = MemoryOffsets(kit.topics, "s").offset({"steps": 0})
    return None if stored is None else int(stored["n"])


def test_each_micro_batch_is_a_transaction(kit: ConnectKit) -> None:
    start(kit, "ab c", {})
    kit.wait_until(lambda: plugins.Steps.committed == [1, 2])
    assert (written(kit), step_of(kit)) == ("abc", 2)


def test_micro_batches_of_an_interval_are_one_transaction(kit: ConnectKit) -> None:
    running = start(kit, "ab c d", LONG)
    kit.wait_until(lambda: polled(running) == 4)
    assert (written(kit), step_of(kit), plugins.Steps.committed) == ("", None, [])
    running.stop()
    assert (written(kit), step_of(kit), plugins.Steps.committed) == ("abcd", 3, [3])


def test_interval_ends_though_nothing_is_new(kit: ConnectKit) -> None:
    start(kit, "ab c d", {**LONG, "transaction.boundary.interval.ms": "300"})
    kit.wait_until(lambda: plugins.Steps.committed == [3])
    assert (written(kit), step_of(kit)) == ("abcd", 3)


def test_task_that_is_paused_leaves_no_transaction_open(kit: ConnectKit) -> None:
    running = start(kit, "ab c", LONG)
    kit.wait_until(lambda: polled(running) == 3)
    running.pause()
    kit.wait_until(lambda: running.states == ["PAUSED"])
    assert (written(kit), step_of(kit)) == ("abc", 2)


def test_reader_that_waits_for_its_commit_gets_it(kit: ConnectKit) -> None:
    start(kit, "ab c", {**LONG, "goes.on": "false"})
    kit.wait_until(lambda: plugins.Steps.committed == [1, 2])
    assert written(kit) == "abc"


def test_reader_that_waits_for_its_commit_says_so_once(
    kit: ConnectKit, caplog: pytest.LogCaptureFixture
) -> None:
    start(kit, "ab c", {**LONG, "goes.on": "false"})
    kit.wait_until(lambda: plugins.Steps.committed == [1, 2])
    [line] = [text for text in caplog.messages if "with each micro-batch" in text]
    assert line.startswith("s-0: transactions end with each micro-batch")


def test_tables_are_read_on_while_a_transaction_is_open(kit: ConnectKit, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (id integer primary key)")
        connection.executemany("insert into t values (?)", [(n,) for n in range(2500)])
    settings = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": f"jdbc:sqlite:{path}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "of-",
        "poll.interval.ms": "10",
    }
    running = kit.start("s", {**settings, **LONG}, is_exactly_once=True)
    kit.wait_until(lambda: polled(running) == 2500)  # a micro-batch has 1000
    assert (kit.values("of-t"), kit.offsets("s")) == ([], [])
    running.stop()
    assert len(kit.values("of-t")) == 2500
    assert kit.offsets("s")[0][1]["incrementing"] == 2499


@pytest.mark.parametrize("deletes", [False, True])
def test_files_are_read_on_while_a_transaction_is_open_unless_they_are_deleted(
    kit: ConnectKit, tmp_path: Path, *, deletes: bool
) -> None:
    settings = {
        "connector.class": "barnabas.connect.FilesSource",
        "files.directory": str(tmp_path),
        "files.poll.interval.ms": "10",
        "files.delete": str(deletes),
        "topic": "of-files",
    }
    running = kit.start("s", {**settings, **LONG}, is_exactly_once=True)
    for number in range(1, 4):
        (tmp_path / f"{number}.json").write_text('{"a": 1}\n')
        kit.wait_until(lambda number=number: polled(running) == number)
        assert len(kit.values("of-files")) == (number if deletes else 0)
    running.stop()
    assert len(kit.values("of-files")) == len(kit.offsets("s")) == 3
    assert len(list(tmp_path.iterdir())) == (0 if deletes else 3)


def test_pages_are_read_on_while_a_transaction_is_open(kit: ConnectKit) -> None:
    def answer(asked: Asked) -> Answer:
        number = int(asked.parameters["offset"])
        return Answer(body=[number] if number < 3 else [])

    with WebService(answer) as service:
        settings = {
            "connector.class": "barnabas.connect.HttpSource",
            "http.url": service.url,
            "topic": "of-pages",
            "paging.mode": "offset",
        }
        running = kit.start("s", {**settings, **LONG}, is_exactly_once=True)
        kit.wait_until(lambda: polled(running) == 3)
        assert (kit.values("of-pages"), kit.offsets("s")) == ([], [])
        running.stop()
    assert len(kit.values("of-pages")) == 3
    assert kit.offsets("s")[0][1] == {"position": 3, "skip": 0}


def test_transaction_of_several_micro_batches_that_fails_is_no_success(kit: ConnectKit) -> None:
    running = start(kit, "ab c?d e", LONG)
    error = kit.wait_for_failure(running)
    assert str(error) == "a transaction of several micro-batches was aborted: not now"
    running.stop()
    assert (written(kit), step_of(kit), plugins.Steps.committed) == ("", None, [])


def test_first_micro_batch_of_a_transaction_is_done_again(kit: ConnectKit) -> None:
    running = start(kit, "a?b c", LONG)
    kit.wait_until(lambda: polled(running) == 3)
    running.stop()
    assert (written(kit), step_of(kit)) == ("abc", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab|c|", "abc"),
        ("ab|c", "ab"),  # nobody else commits what the connector leaves open
        ("ab|cd!e|", "abe"),
        ("a b;| c", "ab"),
        ("a b;! c;|", "c"),
        ("a|b;|", "ab"),
    ],
)
def test_connector_says_where_transactions_end(kit: ConnectKit, text: str, expected: str) -> None:
    running = start(kit, text, OWN)
    letters = sum(letter.isalpha() for letter in text)
    kit.wait_until(lambda: polled(running) == letters)
    running.stop()
    assert written(kit) == expected


def test_offsets_of_records_that_the_connector_took_back_are_stored(kit: ConnectKit) -> None:
    start(kit, "ab!", OWN)
    kit.wait_until(lambda: step_of(kit) is None and kit.offsets("s"))
    assert kit.offsets("s") == [({"text": 0}, {"n": 0, "letter": 1})]
    assert written(kit) == ""


def test_micro_batch_that_is_committed_in_part_is_not_done_again(kit: ConnectKit) -> None:
    running = start(kit, "a|b?c|", OWN)
    error = kit.wait_for_failure(running)
    assert str(error) == "a part of a micro-batch is committed: not now"
    assert written(kit) == "a"


def test_connector_that_waits_for_commits_cannot_leave_a_transaction_open(kit: ConnectKit) -> None:
    running = start(kit, "a b;|", {**OWN, "goes.on": "false"})
    assert "leaves a transaction open" in str(kit.wait_for_failure(running))


def test_connector_that_cannot_say_is_refused(kit: ConnectKit) -> None:
    running = start(kit, "a", {**OWN, "can.define": "false"})
    with pytest.raises(ConfigError, match="does not support connector-defined transaction"):
        raise kit.wait_for_failure(running)


def test_what_is_written_is_not_written_again_for_want_of_a_confirmation(kit: ConnectKit) -> None:
    unconfirmed = {"connector.class": "support.connect.step_source:UnconfirmedSource"}
    running = start(kit, "a b", unconfirmed)
    assert "cannot be confirmed: the other" in str(kit.wait_for_failure(running))
    assert written(kit) == "a"


@pytest.mark.parametrize("kind", ["interval", "connector"])
def test_spark_refuses_what_it_cannot_do(kind: str) -> None:
    settings = {**STEPS, "text": "a", "transaction.boundary": kind}
    log = TaskLog()
    engine = SparkEngine(lambda: pytest.fail("Spark is not needed for that"))
    offsets = ConnectKit().topics
    plan = TaskPlan(TaskId("s", 0), settings, {}, {}, "offsets", is_exactly_once=True)
    engine.start_task(plan, log, MemoryOffsets(offsets, "s"), offsets.store)
    engine.close()
    assert isinstance(log.error, ConfigError)
    assert str(log.error).startswith(f"transaction.boundary={kind} needs ")


def test_interval_is_the_connectors_or_the_workers() -> None:
    worker = {"offset.flush.interval.ms": "7"}
    assert [interval_ms(LONG, worker), interval_ms({}, worker), interval_ms({}, {})] == [
        *(600_000, 7, 60_000)
    ]
    assert [open_ms({}, worker), open_ms(LONG, worker)] == [0, 600_000]
    for wrong in ({**LONG, "transaction.boundary.interval.ms": "x"}, {"transaction.boundary": "x"}):
        with pytest.raises(ConfigError, match=r"transaction\.boundary"):
            make_boundary(plugins.StepSource(), {"transaction.boundary": "interval", **wrong}, {})


def test_interval_begins_with_its_last_commit() -> None:
    now = 0.0
    interval = Interval(10, lambda: now)
    found = []
    for later in (9, 10, 19, 21, 22):
        now = later
        found.append(interval.after_batch())
    on, commit = Verdict.GO_ON, Verdict.COMMIT
    assert found == [on, commit, on, commit, on]
    now = 30
    assert (interval.at_end(), interval.after_batch()) == (commit, on)


def test_wishes_that_contradict_each_other() -> None:
    own = ConnectorsOwn()
    context: TransactionContext = own
    record = SourceRecord(source_partition={}, source_offset={}, topic="t", value=1)
    context.commit_transaction(record)
    context.abort_transaction(record)
    with pytest.raises(IllegalStateError, match="commit and abort of same record"):
        own.after_record(record)
    context.commit_transaction()
    context.abort_transaction()
    with pytest.raises(IllegalStateError, match="commit and abort of same transaction"):
        own.after_batch()
    with pytest.raises(TypeError, match="only in the worker's process"):
        pickle.dumps(own)
