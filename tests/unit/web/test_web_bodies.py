"""Bodies of requests are taken in whole, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from barnabas.web import bodies as http_bodies
from barnabas.web.bodies import BodyBudget, Receive, SlowBodyError, TooManyBodiesError


def sent(*parts: bytes, ends: bool = True) -> Receive:
    """What a server gives to an application; nothing more comes if it does not end."""
    left = list(parts)

    async def receive() -> MutableMapping[str, Any]:
        if not left:
            if not ends:
                await asyncio.get_running_loop().create_future()
            return {"type": "http.disconnect"}
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left) or not ends}

    return receive


async def test_a_body_comes_in_one_piece() -> None:
    body = await BodyBudget().take(sent(b"a", b"b", b"c"))
    assert await body.receive() == {"type": "http.request", "body": b"abc", "more_body": False}
    assert await body.receive() == {"type": "http.disconnect"}


async def test_a_client_that_leaves_is_passed_on() -> None:
    body = await BodyBudget().take(sent())
    assert await body.receive() == {"type": "http.disconnect"}


async def test_a_long_body_is_passed_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_bodies, "BODY_BYTES_MAX", 3)
    body = await BodyBudget().take(sent(b"ab", b"cd", b"ef"))
    assert await body.receive() == {"type": "http.request", "body": b"abcd", "more_body": True}
    assert await body.receive() == {"type": "http.request", "body": b"ef", "more_body": False}


async def test_a_body_has_a_time() -> None:
    with pytest.raises(SlowBodyError):
        await BodyBudget(0.01).take(sent(b"a", ends=False))


async def test_bodies_are_bounded_in_all_and_give_room_back() -> None:
    budget = BodyBudget(bytes_max=10)
    first = await budget.take(sent(b"123456"))
    with pytest.raises(TooManyBodiesError):
        await budget.take(sent(b"123", b"45", b"6"))
    second = await budget.take(sent(b"1234"))
    first.release()
    second.release()
    await budget.take(sent(b"1234567890"))


async def test_the_largest_body_under_way_is_given_up_for_others() -> None:
    budget = BodyBudget(bytes_max=10)
    large = asyncio.create_task(budget.take(sent(b"12345678", ends=False)))
    await asyncio.sleep(0)
    small = await budget.take(sent(b"123"))
    assert (await small.receive())["body"] == b"123"
    with pytest.raises(TooManyBodiesError):
        await large


async def test_a_body_whose_time_is_over_is_given_up_for_others_without_a_fault() -> None:
    """Its time has ended, and its task has not run since, when another body grows."""
    budget = BodyBudget(60, bytes_max=10)
    slow = asyncio.create_task(budget.take(sent(b"a" * 8, ends=False)))
    await asyncio.sleep(0)
    limit = next(iter(budget._under_way.values()))
    limit.reschedule(0)
    grown: list[object] = []

    async def grow() -> None:
        grown.append(await budget.take(sent(b"b" * 5)))

    await asyncio.create_task(grow())
    assert grown
    with pytest.raises((SlowBodyError, TooManyBodiesError)):
        await slow
