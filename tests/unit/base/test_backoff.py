"""Pauses that grow with failures."""

import random

import pytest

from barnabas.base.backoff import JITTER, Doubling, ExponentialBackoff, doubled


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
