"""Tasks of the local engine on topics in memory."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import connect_task_plugins as plugins
import pytest

from barnabas.connect.connectors.file.reader import FileReader
from barnabas.connect.record import RawRecord
from barnabas.connect.tasks import sink_task, task
from barnabas.connect.tasks.memory import MemoryGroup, MemoryOutput
from barnabas.connect.tasks.task import BatchTask
from barnabas.connect.testing import ConnectKit, TaskLog
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from support.node_process import wait_until

PLUGINS = "connect_task_plugins:"
WORKER = {
    "key.converter": f"{PLUGINS}Text",
    "value.converter": f"{PLUGINS}Text",
    "header.converter": f"{PLUGINS}TextHeader",
}
NUMBERS = {"connector.class": f"{PLUGINS}NumberSource", "topic": "numbers", "count": "12"}
COLLECT = {"connector.class": f"{PLUGINS}CollectorSink", "topics": "in"}
UPPER = {"transforms": "up", "transforms.up.type": f"{PLUGINS}Upper"}


@pytest.fixture
def kit() -> Iterator[ConnectKit]:
    plugins.Collector.values.clear()
    plugins.Collector.calls.clear()
    plugins.Collector.trouble.clear()
    plugins.Upper.failures.clear()
    with ConnectKit(WORKER) as kit:
        yield kit


def collected() -> list[Any]:
    return [value for _, _, value in plugins.Collector.values]


def test_a_task_that_is_anothers_by_now_writes_nothing(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def confirm(_log: TaskLog) -> None:
        asked.append(True)
        raise ConnectError("it is another worker's by now")

    monkeypatch.setattr(TaskLog, "confirm", confirm)
    running = kit.start("n", NUMBERS, is_exactly_once=True)
    assert str(kit.wait_for_failure(running)) == "it is another worker's by now"
    wait_until(lambda: running.states == ["FAILED"], "the task's state")
    assert kit.topics.topics.get("numbers") is None
    kit.start("m", NUMBERS)
    wait_until(lambda: len(kit.records("numbers")) == 12, "records")
    assert len(asked) == 1, "at least once needs no such check"


def test_source_records_and_offsets_of_all_splits_are_written(kit: ConnectKit) -> None:
    running = kit.start("n", NUMBERS)
    records = kit.wait_for_records("numbers", 12)
    kit.wait_until(lambda: ({"all": True}, {"n": 12}) in kit.offsets("n"))
    running.stop()
    assert sorted(int(record.key or b"") for record in records) == list(range(12))
    assert list(kit.offsets("n")) == [
        ({"odd": 0}, {"n": 11}),
        ({"odd": 1}, {"n": 12}),
        ({"all": True}, {"n": 12}),
    ]
    assert running.states == ["STOPPED"]
    assert running.logs[0].topics == ["numbers"]
    assert running.tasks[0].metrics()["source-record-write-total"] == 12


def test_source_goes_on_where_its_offsets_say(kit: ConnectKit) -> None:
    kit.topics.store("n", [({"all": True}, {"n": 10})])
    kit.start("n", NUMBERS, is_exactly_once=True)
    assert [record.key for record in kit.wait_for_records("numbers", 2)] == [b"10", b"11"]


def test_paused_source_reads_nothing_until_it_is_resumed(kit: ConnectKit) -> None:
    running = kit.start("n", NUMBERS, is_paused=True)
    kit.wait_until(lambda: running.states == ["PAUSED"])
    assert kit.records("numbers") == []
    running.resume()
    kit.wait_for_records("numbers", 12)
    assert running.logs[0].states == ["RUNNING", "PAUSED", "RUNNING"]


def test_source_is_looked_at_soon_after_a_micro_batch_and_then_less_often(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def idle(running: BatchTask, seconds: float) -> None:
        waits.append(seconds)
        running.stopping.wait(0.001)

    monkeypatch.setattr(BatchTask, "idle", idle)
    running = kit.start("n", NUMBERS)
    kit.wait_until(lambda: len(waits) > 10)
    running.stop()
    # The time that the poll took is subtracted from the wait.
    assert waits[0] <= 0.005
    assert max(waits[:5]) < max(waits[5:]) <= task.IDLE_SECONDS


def test_sink_writes_and_commits(kit: ConnectKit) -> None:
    kit.create("in", 2)
    for number in range(6):
        kit.produce("in", f"v{number}".encode(), partition=number % 2)
    running = kit.start("c", COLLECT)
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 3, ("in", 1): 3})
    running.stop()
    assert sorted(collected()) == [f"v{number}" for number in range(6)]
    assert plugins.Collector.calls[-2:] == ["close [('in', 0), ('in', 1)]", "stop"]
    assert running.tasks[0].metrics()["sink-record-send-total"] == 6


def test_sink_polls_soon_after_records_and_then_less_often(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.create("in", 1)
    waits: list[float] = []
    poll = MemoryGroup.poll

    def polled(group: MemoryGroup, seconds: float) -> None:
        if seconds:
            waits.append(seconds)
        poll(group, min(seconds, 0.001))

    monkeypatch.setattr(MemoryGroup, "poll", polled)
    running = kit.start("c", COLLECT)
    kit.wait_until(lambda: len(waits) > 4)
    assert waits[:4] == [0.2, 0.4, 0.5, 0.5]
    kit.produce("in", b"v")
    kit.wait_until(lambda: 0.02 in waits and len(waits) - waits.index(0.02) > 7)
    running.stop()
    first = waits.index(0.02)
    assert waits[first : first + 7] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


def test_sink_tasks_share_partitions_and_take_over(kit: ConnectKit) -> None:
    kit.create("in", 4)
    running = kit.start("c", {**COLLECT, "tasks.max": "2"})
    kit.wait_until(lambda: [len(one.owned) for one in kit.topics.members.get("c", [])] == [2, 2])
    running.tasks[0].stop()
    assert running.tasks[0].join(30)
    kit.wait_until(lambda: len(kit.topics.members["c"][0].owned) == 4)


def test_topics_by_pattern(kit: ConnectKit) -> None:
    kit.produce("orders-eu", b"eu")
    kit.produce("other", b"no")
    kit.start(
        "c", {"connector.class": COLLECT["connector.class"], "topics.regex": r"orders-\p{L}+"}
    )
    kit.wait_until(lambda: kit.committed("c") == {("orders-eu", 0): 1})
    assert collected() == ["eu"]


@pytest.mark.parametrize(
    ("negate", "expected"), [("false", ["AB", "abc"]), ("true", ["ab", "ABC"])]
)
def test_predicates_choose_records(kit: ConnectKit, negate: str, expected: list[str]) -> None:
    kit.produce("in", b"ab")
    kit.produce("in", b"abc")
    kit.start(
        "c",
        {
            **COLLECT,
            **UPPER,
            "transforms.up.predicate": "short",
            "transforms.up.negate": negate,
            "predicates": "short",
            "predicates.short.type": f"{PLUGINS}IsShort",
            "predicates.short.letters": "2",
        },
    )
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 2})
    assert collected() == expected


def test_error_ends_the_task_by_default(kit: ConnectKit) -> None:
    kit.produce("in", b"boom")
    running = kit.start("c", {**COLLECT, **UPPER})
    error = kit.wait_for_failure(running)
    assert str(error) == "Tolerance exceeded in error handler"
    assert str(error.__cause__) == "boom is not allowed"
    assert kit.committed("c") == {}
    assert running.states == ["FAILED"]


def test_tolerated_errors_become_dead_letters(
    kit: ConnectKit, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (b"a", b"boom", b"drop", b"\xff", b"refused", b"b"):
        kit.produce("in", value, key=b"k", headers=[("h", b"1")], timestamp_ms=5)
    settings = {
        **COLLECT,
        **UPPER,
        "transforms.up.predicate": "short",
        "predicates": "short",
        "predicates.short.type": f"{PLUGINS}IsShort",
        "predicates.short.letters": "4",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with caplog.at_level(logging.ERROR):
        running = kit.start("c", settings)
        kit.wait_until(lambda: kit.committed("c") == {("in", 0): 6})
        running.stop()
    assert collected() == ["A", "B"]
    boom, wrong, refused = kit.records("dead")
    assert (boom.value, wrong.value, refused.value) == (b"boom", b"\xff", b"refused")
    headers = dict(boom.headers)
    trace = headers.pop("__connect.errors.exception.stacktrace")
    assert b"boom is not allowed" in (trace or b"")
    assert headers == {
        "h": b"1",
        "__connect.errors.topic": b"in",
        "__connect.errors.partition": b"0",
        "__connect.errors.offset": b"1",
        "__connect.errors.connector.name": b"c",
        "__connect.errors.task.id": b"0",
        "__connect.errors.stage": b"TRANSFORMATION",
        "__connect.errors.class.name": f"{PLUGINS}Upper".replace(":", ".").encode(),
        "__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "__connect.errors.exception.message": b"boom is not allowed",
    }
    assert dict(wrong.headers)["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert dict(refused.headers)["__connect.errors.stage"] == b"TASK_PUT"
    assert (
        "Error encountered in task c-0. Executing stage 'TRANSFORMATION' with class" in caplog.text
    )
    assert "where consumed record is {topic='in', partition=0, offset=1" in caplog.text
    figures = running.tasks[0].metrics()
    assert figures["total-records-skipped"] == 3
    assert figures["deadletterqueue-produce-requests"] == 3
    assert figures["total-errors-logged"] == 3


def test_dead_letter_that_cannot_be_written_is_told(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    letter = RawRecord(topic="dead", value=b"boom")
    monkeypatch.setattr(MemoryOutput, "flush", lambda *_: [(letter, OSError("too large"))])
    kit.produce("in", b"boom")
    dead = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    running = kit.start("c", {**COLLECT, **UPPER, **dead})
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})
    running.stop()
    assert "dead letter queue. topic=dead: too large" in caplog.text
    assert running.tasks[0].metrics()["deadletterqueue-produce-failures"] == 1


def test_retriable_errors_are_tried_again(kit: ConnectKit) -> None:
    kit.produce("in", b"flaky")
    running = kit.start("c", {**COLLECT, **UPPER, "errors.retry.timeout": "60000"})
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})
    assert collected() == ["FLAKY"]
    assert running.tasks[0].metrics()["total-retries"] == 1


def test_writer_that_may_be_called_again_is(kit: ConnectKit) -> None:
    plugins.Collector.trouble.append(RetriableError("the other system sleeps"))
    kit.produce("in", b"a")
    kit.start("c", {**COLLECT, "errors.retry.delay.max.ms": "1"})
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})
    assert collected() == ["a"]
    assert plugins.Collector.calls[:3] == ["open [('in', 0)]", "abort", "commit 1"]


def test_long_ranges_are_cut(kit: ConnectKit) -> None:
    for number in range(10):
        kit.produce("in", str(number).encode())
    kit.start("c", {**COLLECT, "barnabas.connect.batch.records.max": "4"})
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 10})
    commits = [call for call in plugins.Collector.calls if call.startswith("commit")]
    assert commits == ["commit 4", "commit 4", "commit 2"]


def fails_at_first(
    monkeypatch: pytest.MonkeyPatch, name: str, failures: int, is_due: Callable[[], Any]
) -> list[int]:
    """Let a call of the group fail so often once that is due; returns what counts them."""
    right = getattr(MemoryGroup, name)
    failed: list[int] = []

    def call(self: MemoryGroup, *given: Any) -> Any:
        if len(failed) < failures and is_due():
            failed.append(len(failed))
            raise RetriableError("the group is dealing out its partitions")
        return right(self, *given)

    monkeypatch.setattr(MemoryGroup, name, call)
    return failed


def test_commit_that_is_refused_is_repeated_though_nothing_is_new(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_task, "_TICK_SECONDS", 0.02)
    failed = fails_at_first(monkeypatch, "commit", 3, lambda: True)
    kit.produce("in", b"a")
    running = kit.start("c", COLLECT)
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})
    assert (len(failed), collected()) == (3, ["a"])
    assert running.tasks[0].metrics()["offset-commit-skip-total"] == 3


def test_commit_that_is_refused_is_repeated_while_the_task_holds_still(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_task, "_TICK_SECONDS", 0.02)
    running: Any = None
    fails_at_first(monkeypatch, "commit", 1000, lambda: running.states != ["PAUSED"])
    kit.produce("in", b"a")
    running = kit.start("c", COLLECT, is_paused=True)
    running.resume()
    kit.wait_until(collected)
    running.pause()
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})


def test_commit_that_is_refused_is_repeated_when_partitions_are_given_up(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_task, "_TICK_SECONDS", 1000.0)
    failed = fails_at_first(monkeypatch, "commit", 1, lambda: True)
    kit.produce("in", b"a")
    running = kit.start("c", COLLECT)
    kit.wait_until(lambda: failed)
    running.stop()
    assert kit.committed("c") == {("in", 0): 1}


def test_task_that_waits_for_the_other_system_stays_a_member_of_its_group(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "retry_delay_ms", lambda *_: 600_000)
    plugins.Collector.trouble.extend(RetriableError("it sleeps") for _ in range(100))
    kit.create("in", 2)
    for number in (0, 1):
        kit.produce("in", b"a", partition=number)
    running = kit.start("c", {**COLLECT, "tasks.max": "2"})
    kit.wait_until(lambda: all(one.metrics().get("retries-total") for one in running.tasks))
    (first, second) = kit.topics.members["c"]
    running.tasks[1].stop()
    kit.wait_until(lambda: len(first.owned) == 2)
    assert second.owned == {}


def test_micro_batch_runs_on_while_the_group_cannot_be_asked(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, begun = Event(), Event()

    def write(self: Any, records: Iterator[Any], where: Any) -> int:
        begun.set()
        assert released.wait(30)
        plugins.Collector.values += [(one.topic, one.original_offset, one.value) for one in records]
        return 1

    monkeypatch.setattr(plugins.Collector, "write", write)
    fails_at_first(monkeypatch, "poll", 1, begun.is_set)
    kit.produce("in", b"a")
    running = kit.start("c", COLLECT)
    kit.wait_until(lambda: running.tasks[0].metrics().get("retries-total") == 1)
    released.set()
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 1})
    assert collected() == ["a"]


def test_wrong_settings_fail_the_task(kit: ConnectKit) -> None:
    running = kit.start("c", {**COLLECT, "errors.tolerance": "some"})
    with pytest.raises(ConfigError, match=r"errors\.tolerance"):
        raise kit.wait_for_failure(running)
    other = kit.start("d", {**COLLECT, "value.converter": "no.such.Converter"})
    with pytest.raises(ConnectError, match=r"no\.such\.Converter"):
        raise kit.wait_for_failure(other)


def test_file_to_file(kit: ConnectKit, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"one\ntwo\r\nthree\rfour\nfi")
    running = kit.start(
        "from-file", {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"}
    )
    kit.start(
        "to-file", {"connector.class": "FileStreamSink", "file": str(target), "topics": "lines"}
    )
    kit.wait_until(lambda: kit.committed("to-file") == {("lines", 0): 4})
    assert target.read_text() == "one\ntwo\nthree\nfour\n"
    assert kit.offsets("from-file") == [({"filename": str(source)}, {"position": 20})]
    with source.open("ab") as file:
        file.write(b"ve\r\n")
    kit.wait_until(lambda: kit.committed("to-file") == {("lines", 0): 5})
    running.stop()
    assert target.read_text().endswith("four\nfive\n")


def test_standard_input_is_read_until_it_is_written(
    kit: ConnectKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = os.pipe()
    with os.fdopen(source) as typed, os.fdopen(target, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", typed)
        reader = FileReader(None, "t", 10, None)
        writer.write(b"one\ntwo\nthr")
        start, end = reader.initialOffset(), reader.latestOffset()
        for _ in range(2):  # what is not committed is read again
            (split,) = reader.partitions(start, end)
            assert [record.value for record in reader.read(split)] == ["one", "two"]
        reader.commit(end)
        writer.write(b"ee\n")
        (split,) = reader.partitions(end, reader.latestOffset())
        assert [record.value for record in reader.read(split)] == ["three"]


def test_tasks_may_start_at_the_same_time(kit: ConnectKit, monkeypatch: pytest.MonkeyPatch) -> None:
    start, others, failures = BatchTask.start, list[Thread](), list[BaseException]()

    def start_another() -> None:
        try:
            kit.start("second", {**NUMBERS, "topic": "others"})
        except RuntimeError as error:
            failures.append(error)

    def start_with_another(task: BatchTask) -> None:
        if not others:
            others.append(Thread(target=start_another))
            others[0].start()
            others[0].join(0.2)  # it has failed by then, or waits for this one
        start(task)

    monkeypatch.setattr(BatchTask, "start", start_with_another)
    kit.start("first", NUMBERS)
    others[0].join()
    assert not failures
    kit.wait_for_records("numbers", 12)
    kit.wait_for_records("others", 12)
