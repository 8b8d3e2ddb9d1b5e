"""Each anomaly that the history is checked for is found when it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.history import History, Place, Token

Log = dict[Place, Token]


def sound() -> tuple[History, Log]:
    """Two writers, ten records each, all acknowledged and seen."""
    history = History()
    log: dict[Any, Any] = {}
    for number in range(10):
        for writer in ("a", "b"):
            token, place = Token(writer, 0, number), (0, len(log))
            history.sent[writer, 0] = number + 1
            history.acknowledge(token, place, float(len(log)))
            history.see(token, place, in_group=True)
            log[place] = token
    return history, log


def lose(history: History, log: Log) -> None:
    history.seen.pop((0, 19))
    log.pop((0, 19))


def lose_without_a_place(history: History, log: Log) -> None:
    lose(history, log)
    history.acknowledged[Token("b", 0, 9)] = None


def store_twice(history: History, log: Log) -> None:
    log[0, 20] = log[0, 19]
    history.seen_by_group.add((0, 20))


def swap(history: History, log: Log) -> None:
    log[0, 16], log[0, 18] = log[0, 18], log[0, 16]
    history.seen.clear()
    history.acknowledged.clear()


def replace(history: History, log: Log) -> None:
    history.see(Token("a", 0, 3), (0, 19))


def replace_later(history: History, log: Log) -> None:
    history.seen[0, 20] = Token("a", 0, 10)


def invent(history: History, log: Log) -> None:
    log[0, 20] = Token("a", 0, 10)
    history.seen_by_group.add((0, 20))


def overlook(history: History, log: Log) -> None:
    history.seen_by_group.discard((0, 7))


@pytest.mark.parametrize(
    ("spoil", "anomaly"),
    [
        (lose, "lost-write"),
        (lose_without_a_place, "lost-write"),
        (store_twice, "duplicate"),
        (swap, "nonmonotonic-send"),
        (replace, "inconsistent-offsets"),
        (replace_later, "inconsistent-offsets"),
        (invent, "invented"),
        (overlook, "unseen"),
    ],
)
def test_an_anomaly_is_found(spoil: Callable[[History, Log], None], anomaly: str) -> None:
    history, log = sound()
    spoil(history, log)
    with pytest.raises(AssertionError, match=f"(?m)^{anomaly}"):
        history.check(log)


def test_a_sound_history_passes() -> None:
    history, log = sound()
    history.check(log)
    assert history.longest_silence_s() == 1.0
