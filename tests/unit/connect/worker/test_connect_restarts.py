"""Automatic restarts of failed connectors and tasks, after growing pauses."""

import pytest

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.restarts import (
    RestartPolicy,
    Restarts,
    can_heal,
    read_policy,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError

TASK = TaskId("a", 0)
BROKEN = ConnectError("it broke")


def book(**policy: int | bool) -> Restarts:
    return Restarts(lambda _connector: RestartPolicy(**policy))  # type: ignore[arg-type]


def test_pauses_grow() -> None:
    restarts, now_ms, pauses = book(backoff_ms=1_000, backoff_ms_max=5_000), 0, []
    for _ in range(5):
        attempt = restarts.failed(TASK, BROKEN, now_ms)
        assert attempt is not None
        pauses.append(attempt.due_ms - now_ms)
        assert restarts.next_due_ms() == attempt.due_ms
        assert restarts.take_due(attempt.due_ms - 1) == []
        assert restarts.take_due(attempt.due_ms) == [attempt]
        now_ms = attempt.due_ms
        restarts.started(TASK, now_ms)
    assert pauses == [1_000, 2_000, 4_000, 5_000, 5_000]


def test_what_ran_long_begins_anew() -> None:
    restarts = book(backoff_ms=1_000, backoff_ms_max=5_000)
    restarts.failed(TASK, BROKEN, 0)
    restarts.failed(TASK, BROKEN, 0)
    restarts.started(TASK, 0)
    attempt = restarts.failed(TASK, BROKEN, 5_001)
    assert attempt is not None
    assert attempt.number == 1


def test_attempts_end() -> None:
    restarts = book(attempts_max=2)
    first, second = (restarts.failed("a", BROKEN, 0) for _ in range(2))
    assert first is not None
    assert second is not None
    assert second.note == "Connector a restarts at 1970-01-01T00:00:20+00:00 (attempt 2 of 2)"
    assert restarts.failed("a", BROKEN, 0) is None
    assert restarts.next_due_ms() is None


def test_errors_of_the_configuration_wait_for_another() -> None:
    wrapped = ConnectError("Failed to start connector: a")
    wrapped.__cause__ = ConfigError("Missing required configuration")
    restarts = book()
    assert not can_heal(wrapped)
    assert restarts.failed("a", wrapped, 0) is None
    assert restarts.failed("a", BROKEN, 0) is not None


def test_it_can_be_switched_off() -> None:
    assert book(is_enabled=False).failed(TASK, BROKEN, 0) is None


def test_other_starts_and_configurations_clear_it() -> None:
    restarts = book()
    restarts.failed(TASK, BROKEN, 0)
    restarts.started(TASK, 1)
    assert restarts.next_due_ms() is None
    restarts.failed(TASK, BROKEN, 2)
    restarts.failed("a", BROKEN, 2)
    restarts.failed("b", BROKEN, 3)
    restarts.forget("a")
    assert [attempt.name for attempt in restarts.take_due(10**9)] == ["b"]
    again = restarts.failed(TASK, BROKEN, 2)
    assert again is not None
    assert again.number == 1


def test_a_task_that_waits_is_not_forgotten_with_its_connectors_failures() -> None:
    restarts = book()
    for name in (TASK, "a", "b"):
        restarts.failed(name, BROKEN, 0)
    restarts.renew("a")
    assert {attempt.name for attempt in restarts.take_due(10**9)} == {TASK, "b"}
    again = restarts.failed(TASK, BROKEN, 2)
    assert again is not None
    assert again.number == 1


def test_what_is_another_workers_is_dropped_alone() -> None:
    restarts = book()
    for name in (TASK, "a"):
        restarts.failed(name, BROKEN, 0)
    restarts.drop("a")
    assert [attempt.name for attempt in restarts.take_due(10**9)] == [TASK]


def test_a_connectors_settings_win() -> None:
    prefix = "barnabas.connect.restart."
    policy = read_policy(
        {prefix + "backoff.ms": "50", prefix + "enabled": "false"}, {prefix + "enabled": "TRUE"}
    )
    assert policy == RestartPolicy(backoff_ms=50)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("enabled", "yes", "Expected value to be either true or false"),
        ("backoff.ms", "0", "Value must be at least 1"),
        ("max.attempts", "many", "Not a number of type INT"),
        ("max.attempts", "1_0", "Not a number of type INT"),
        ("backoff.max.ms", "2147483648", "Not a number of type INT"),
    ],
)
def test_settings_are_checked(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_policy({}, {f"barnabas.connect.restart.{name}": value})
