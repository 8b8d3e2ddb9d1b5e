"""Answers that are kept, and asking while the console ends."""

from __future__ import annotations

import pytest

from barnabas.console.services.asking import AwayError, ClusterAccess, Kept, RefusedError


def test_an_answer_is_used_again_for_a_while() -> None:
    now, asked = [0.0], []

    def ask() -> int:
        asked.append(now[0])
        return len(asked)

    kept = Kept(ask, 2.0, lambda: now[0])
    assert [kept.get(), kept.get()] == [1, 1]
    now[0] = 1.0
    kept.forget(older_s=1.5)
    assert kept.get() == 1
    kept.forget(older_s=0.5)
    assert kept.get() == 2
    now[0] = 4.0
    assert kept.get() == 3


def test_failures_are_answers_of_their_own() -> None:
    access = ClusterAccess("127.0.0.1:1", {})

    def ask(number: int) -> int:
        if number == 2:
            raise RefusedError("not two")
        return number

    found = access.each(ask, [1, 2, 3])
    assert (found[1], found[3]) == (1, 3)
    assert isinstance(found[2], RefusedError)
    access.close()
    with pytest.raises(AwayError, match="the console ends"):
        access.each(ask, [1])
