"""Failed records: tries, pauses, counts, and what log, status and dead letters tell."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from typing import Any

import pytest

from barnabas.connect.config.providers import Hiding
from barnabas.connect.errors.reports import DeadLetters, LogReporter, trace_of
from barnabas.connect.errors.tolerance import (
    Dropped,
    ErrorCounts,
    ErrorPolicy,
    Failure,
    Stage,
    StoppedError,
    Tolerance,
    java_class,
)
from barnabas.connect.plugins import load
from barnabas.connect.record import RawRecord
from barnabas.schemas.data.errors import ConnectError, DataError, RetriableError

RECORD = RawRecord(topic="t", partition=3, key=b"k", value=b"secret", offset=7)


class World:
    """A clock that goes on with pauses only, and an operation that fails so many times."""

    def __init__(self, failures: int, error: Exception, **policy: Any) -> None:
        self.now_ms = 0.0
        self.pauses_ms: list[float] = []
        self.failures = failures
        self.error = error
        self.reported: list[Failure] = []
        self.tolerance = Tolerance(
            ErrorPolicy(**policy),
            [self.reported.append],
            now_ms=lambda: self.now_ms,
            pause=self.pause,
        )

    def pause(self, seconds: float) -> None:
        self.pauses_ms.append(seconds * 1000)
        self.now_ms += seconds * 1000

    def run(self) -> Any:
        return self.tolerance.run(Stage.TRANSFORMATION, self, RECORD, self.operate, "x")

    def operate(self, given: str) -> str:
        if self.failures:
            self.failures -= 1
            raise self.error
        return given


def test_pauses_double_up_to_the_longest_and_end_with_the_time() -> None:
    world = World(99, RetriableError("later"), retry_timeout_ms=2000, retry_delay_max_ms=10_000)
    with pytest.raises(ConnectError, match=r"^Tolerance exceeded in error handler$"):
        world.run()
    assert world.pauses_ms == [300, 600, 1100]
    [failure] = world.reported
    assert failure.attempts == 4
    counts = world.tolerance.counts
    assert (counts.failures, counts.retries, counts.errors, counts.skipped) == (4, 3, 1, 0)


def test_what_works_in_time_is_no_error() -> None:
    world = World(3, RetriableError("later"), retry_timeout_ms=-1, retry_delay_max_ms=1000)
    assert world.run() == "x"
    assert world.pauses_ms[:2] == [300, 600]
    assert 0 <= world.pauses_ms[2] <= 1000
    assert world.reported == []


def test_without_time_for_it_nothing_is_tried_again() -> None:
    world = World(1, RetriableError("later"), tolerates_all=True)
    with pytest.raises(Dropped):
        world.run()
    assert world.pauses_ms == []
    assert world.tolerance.counts.skipped == 1


def test_another_error_while_trying_again_fails_the_record_at_once() -> None:
    world = World(1, RetriableError("later"), retry_timeout_ms=-1, tolerates_all=True)
    errors = iter([RetriableError("later"), DataError("never")])

    def operate(_: str) -> None:
        raise next(errors)

    with pytest.raises(Dropped):
        world.tolerance.run(Stage.VALUE_CONVERTER, world, RECORD, operate, "x")
    [failure] = world.reported
    assert (str(failure.error), failure.attempts) == ("never", 2)


def test_a_task_that_stops_tries_no_more_and_leaves_out_nothing() -> None:
    world = World(9, RetriableError("later"), retry_timeout_ms=-1, tolerates_all=True)
    world.tolerance.stopping.set()
    with pytest.raises(StoppedError, match="stopped before another try: later"):
        world.run()
    assert world.pauses_ms == []
    assert world.reported == []
    assert world.tolerance.counts.skipped == 0


def test_counts_of_processes_are_added() -> None:
    names = [field.name for field in fields(ErrorCounts)]
    one = ErrorCounts(**{name: place for place, name in enumerate(names)})
    one.add(ErrorCounts(**dict.fromkeys(names, 100)))
    assert one == ErrorCounts(
        **{name: 100 + place for place, name in enumerate(names)} | {"last_error_ms": 100}
    )
    assert sorted(one.as_metrics().values()) == sorted(getattr(one, name) for name in names)


def failure(error: Exception) -> Failure:
    return Failure(Stage.VALUE_CONVERTER, "my.Class", error, RECORD)


@pytest.mark.parametrize(("logs", "logs_messages"), [(False, True), (True, False), (True, True)])
def test_the_log_tells_of_records_only_where_it_may(
    caplog: pytest.LogCaptureFixture, *, logs: bool, logs_messages: bool
) -> None:
    counts = ErrorCounts()
    reporter = LogReporter("c-0", ErrorPolicy(logs=logs, logs_messages=logs_messages), counts)
    with caplog.at_level(logging.ERROR):
        reporter(failure(DataError("no text")))
    assert counts.last_error_ms > 1_700_000_000_000
    assert counts.logged == int(logs)
    assert len(caplog.records) == int(logs)
    if logs:
        where = ", where consumed record is {topic='t', partition=3, offset=7" in caplog.text
        assert where is logs_messages
        assert "stage 'VALUE_CONVERTER' with class 'my.Class'" in caplog.text


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (DataError("wrong"), "org.apache.kafka.connect.errors.DataException"),
        (KeyError("wrong"), "KeyError"),
        (json.JSONDecodeError("wrong", "", 0), "json.decoder.JSONDecodeError"),
    ],
)
def test_dead_letters_and_status_name_errors_alike(error: Exception, name: str) -> None:
    sent: list[RawRecord] = []
    policy = ErrorPolicy(dead_letter_has_context=True)
    DeadLetters("c", 2, policy, ErrorCounts(), sent.append)(failure(error))
    assert ("__connect.errors.exception.class.name", name.encode()) in sent[0].headers
    assert trace_of(error).startswith(f"{name}: ")


def test_secrets_are_neither_logged_nor_in_dead_letters(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[RawRecord] = []
    policy = ErrorPolicy(dead_letter_topic="dead", dead_letter_has_context=True, logs=True)
    hide = Hiding(["hush-hush"])
    wrong = failure(DataError("no login with hush-hush"))
    DeadLetters("c", 2, policy, ErrorCounts(), sent.append, hide)(wrong)
    LogReporter("c-0", policy, ErrorCounts(), hide)(wrong)
    told = dict(sent[0].headers)
    assert told["__connect.errors.exception.message"] == b"no login with [hidden]"
    assert "DataError: no login with [hidden]" in caplog.text
    assert "hush" not in f"{told}{caplog.text}"


def test_dead_letters_have_a_question_mark_for_half_a_pair_of_utf_16() -> None:
    sent: list[RawRecord] = []
    policy = ErrorPolicy(dead_letter_topic="dead", dead_letter_has_context=True)
    DeadLetters("c", 2, policy, ErrorCounts(), sent.append)(failure(DataError("wrong: \ud800")))
    assert dict(sent[0].headers)["__connect.errors.exception.message"] == b"wrong: ?"


def test_dead_letters_are_the_record_with_its_story() -> None:
    sent: list[RawRecord] = []
    policy = ErrorPolicy(dead_letter_topic="dead", dead_letter_has_context=True)
    letters = DeadLetters("c", 2, policy, ErrorCounts(), sent.append)
    letters(failure(DataError("wrong")))
    [letter] = sent
    assert (letter.topic, letter.partition, letter.key, letter.value) == (
        "dead",
        None,
        b"k",
        b"secret",
    )
    told = {name.removeprefix("__connect.errors."): text for name, text in letter.headers}
    trace = told.pop("exception.stacktrace")
    assert trace is not None
    assert b"wrong" in trace
    assert told == {
        "topic": b"t",
        "partition": b"3",
        "offset": b"7",
        "connector.name": b"c",
        "task.id": b"2",
        "stage": b"VALUE_CONVERTER",
        "class.name": b"my.Class",
        "exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "exception.message": b"wrong",
    }


def test_traces_begin_with_the_newest_frame_and_end_with_the_cause() -> None:
    def outer() -> None:
        try:
            inner()
        except ValueError as error:
            raise DataError("wrong") from error

    def inner() -> None:
        raise ValueError

    try:
        outer()
    except DataError as error:
        lines = trace_of(error).splitlines()
    assert lines[0] == "org.apache.kafka.connect.errors.DataException: wrong"
    assert lines[1].startswith("\tat outer(test_connect_tolerance.py:")
    assert lines[2].startswith("\tat test_traces_begin")
    assert lines[3] == "Caused by: ValueError"
    assert lines[4].startswith("\tat inner(")


def test_what_failed_is_named_as_in_configurations() -> None:
    name = "org.apache.kafka.connect.transforms.Cast$Key"
    assert java_class(load(name)()) == name
    assert java_class(World(0, ValueError())).endswith("test_connect_tolerance.World")
