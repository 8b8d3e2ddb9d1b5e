"""State in a worker's memory: whose it stays, and for how long."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from barnabas.sql.spark import state
from barnabas.sql.spark.state import PARTITIONS_KEPT_MAX, UNUSED_SECONDS, partition_state


class Clock:
    """Gives the time that a test sets."""

    now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(state, "time", made)
    monkeypatch.setattr(state, "_partitions", OrderedDict())
    return made


def test_state_that_nothing_uses_any_more_leaves_the_memory(clock: Clock) -> None:
    ended = partition_state("ended/0", 1)
    used = partition_state("used/0", 1)
    clock.now_s += UNUSED_SECONDS
    assert partition_state("used/0", 1) is used
    assert list(state._partitions.values()) == [ended, used]
    clock.now_s += 1
    assert partition_state("used/0", 1) is used
    assert list(state._partitions.values()) == [used]


def test_of_too_many_partitions_those_stay_that_were_used_last(clock: Clock) -> None:
    for number in range(PARTITIONS_KEPT_MAX):
        partition_state("query/0", number)
    first = partition_state("query/0", 0)
    partition_state("query/0", PARTITIONS_KEPT_MAX)
    kept = [number for _, number in state._partitions]
    assert kept == [*range(2, PARTITIONS_KEPT_MAX), 0, PARTITIONS_KEPT_MAX]
    assert partition_state("query/0", 0) is first
