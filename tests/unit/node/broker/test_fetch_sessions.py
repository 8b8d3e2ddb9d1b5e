"""Fetch sessions (KIP-227)."""

from collections.abc import Callable
from itertools import count

import pytest

from barnabas.node.broker.fetch.sessions import (
    EVICTION_REST_MS,
    FetchSession,
    FetchSessionCache,
    FetchTarget,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import EPOCH_MAX


def numbers() -> Callable[[], int]:
    """Session ids 1, 2, 3 ... in place of random ones."""
    sequence = count(1)
    return lambda: next(sequence)


def targets(*indexes: int) -> list[FetchTarget]:
    return [FetchTarget("t", index, 0, 100) for index in indexes]


def open_session(cache: FetchSessionCache, *indexes: int, now_ms: int = 0) -> FetchSession:
    session = cache.create(False, now_ms)
    assert session is not None
    session.update(targets(*indexes), [])
    return session


def test_a_session_continues_epoch_by_epoch() -> None:
    cache = FetchSessionCache(10, numbers())
    session = open_session(cache, 0, 1)
    assert cache.resume(session.session_id, 1, False, 5) is session
    assert cache.resume(session.session_id, 2, False, 6) is session


@pytest.mark.parametrize(
    ("session_id", "epoch", "by_id", "error"),
    [
        (99, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        (1, 2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_what_does_not_continue_is_refused(
    session_id: int, epoch: int, by_id: bool, error: ErrorCode
) -> None:
    cache = FetchSessionCache(10, numbers())
    open_session(cache, 0)
    assert cache.resume(session_id, epoch, by_id, 0) == error


def test_partitions_are_added_changed_and_forgotten() -> None:
    session = open_session(FetchSessionCache(10, numbers()), 0, 1)
    session.targets["t", 0].high_watermark_sent = 7
    changed = FetchTarget("t", 0, 42, 9)
    session.update([changed, FetchTarget("t", 5, 0, 1)], [("t", 1), ("unknown", 1)])
    assert list(session.targets) == [("t", 0), ("t", 5)]
    assert session.targets["t", 0].fetch_offset == 42
    assert session.targets["t", 0].high_watermark_sent == 7


@pytest.mark.parametrize(
    ("asked", "is_told_again"),
    [
        (FetchTarget("t", 0, 10, 1, 5), False),
        (FetchTarget("t", 0, 12, 1, 5), False),
        (FetchTarget("t", 0, 10, 1, 6), True),
        (FetchTarget("t", 0, 9, 1, 5), True),
    ],
    ids=["the same", "further on", "a new leader epoch", "after a truncation"],
)
def test_a_dropped_answer_is_told_again(asked: FetchTarget, is_told_again: bool) -> None:
    """A follower that is paused over a change of the epoch drops what it was sent before."""
    target = FetchTarget("t", 0, 10, 1, 5)
    target.high_watermark_sent, target.log_start_offset_sent = 10, 0
    target.update(asked)
    assert (target.high_watermark_sent == -1) is is_told_again
    assert (target.log_start_offset_sent == -1) is is_told_again


def test_partitions_that_were_served_come_last() -> None:
    session = open_session(FetchSessionCache(10, numbers()), 0, 1, 2)
    session.served([session.targets["t", 0], session.targets["t", 1]])
    assert [target.index for target in session.ready] == [2, 0, 1]


def test_a_full_cache_gives_the_place_of_one_that_rested() -> None:
    cache = FetchSessionCache(2, numbers())
    first = open_session(cache, 0)
    second = open_session(cache, 0, now_ms=10)
    assert cache.create(False, EVICTION_REST_MS - 1) is None
    cache.resume(first.session_id, 1, False, 20)
    third = open_session(cache, 0, now_ms=EVICTION_REST_MS + 10)
    assert len(cache) == 2
    assert cache.resume(second.session_id, 1, False, 0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.resume(third.session_id, 1, False, 0) is third


def test_a_follower_takes_a_consumers_place_and_not_another_followers() -> None:
    cache = FetchSessionCache(2, numbers())
    follower = cache.create(True, 0, is_follower=True)
    consumer = cache.create(True, 0)
    assert follower is not None
    assert consumer is not None
    another = cache.create(True, 0, is_follower=True)
    assert another is not None
    assert cache.resume(consumer.session_id, 1, True, 0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.resume(follower.session_id, 1, True, 0) is follower
    assert cache.create(True, 0, is_follower=True) is None


def test_no_slots_mean_no_sessions() -> None:
    assert FetchSessionCache(0, numbers()).create(False, 0) is None


def test_the_epoch_wraps_past_the_reserved_ones() -> None:
    cache = FetchSessionCache(1, numbers())
    session = open_session(cache, 0)
    session.epoch = EPOCH_MAX
    assert cache.resume(session.session_id, EPOCH_MAX, False, 0) is session
    assert session.epoch == 1
