"""Pauses that grow with failures."""

import random

import pytest

from barnabas.base.backoff import JITTER, Doubling, ExponentialBackoff, Pauses, doubled


@pytest.mark.parametrize(
    ("first", "longest", "times", "pause"),
    [
        (10, 300, 0, 10),
        (10, 300, 1, 20),
        (10, 300, 4, 160),
        (10, 300, 5, 300),
        (10, 300, 10_000, 300),
        (0.25, 60, 3, 2),
        (500, 300, 0, 300),
        (0, 300, 9, 0),
    ],
)
def test_doubled(first: float, longest: float, times: int, pause: float) -> None:
    assert doubled(first, longest, times) == pause


def test_a_time_doubles_until_it_is_reset() -> None:
    pause = Doubling(0.02, 0.1)
    assert [pause.next() for _ in range(5)] == [0.02, 0.04, 0.08, 0.1, 0.1]
    pause.reset()
    assert [pause.next() for _ in range(2)] == [0.02, 0.04]


def test_random_factors_stay_around_the_doubled_time() -> None:
    backoff = ExponentialBackoff(100, 10_000, random.Random(1))
    for failures in range(20):
        middle = doubled(100, 10_000, failures)
        drawn = [backoff.after(failures) for _ in range(50)]
        assert min(drawn) >= (1 - JITTER) * middle - 1
        assert max(drawn) <= min((1 + JITTER) * middle + 1, 10_000)


def test_a_least_time_that_is_not_below_the_longest_is_constant() -> None:
    assert ExponentialBackoff(500, 300, random.Random(1)).after(9) == 300


def test_a_key_that_failed_is_left_out_longer_each_time() -> None:
    pauses: Pauses[str] = Pauses(1.0, 3.0)
    assert pauses.is_over("a", 0.0)
    assert "a" not in pauses
    assert pauses.failed("a", 10.0) == (1.0, 0)
    assert "a" in pauses
    assert [pauses.is_over("a", now) for now in (10.9, 11.0)] == [False, True]
    assert pauses.is_over("b", 10.0)
    assert pauses.failed("a", 11.0) == (2.0, 1)
    assert pauses.failed("a", 13.0) == (3.0, 2)
    assert not pauses.is_over("a", 15.9)
    pauses.succeeded("a")
    pauses.succeeded("b")
    assert pauses.is_over("a", 14.0)
    assert pauses.failed("a", 14.0) == (1.0, 0)
