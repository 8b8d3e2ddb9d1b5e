"""Known schemas: a bounded cache of a registry's answers, and the requests that fill it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.node.broker.schemas import known_schemas
from barnabas.node.broker.schemas.known_schemas import FALSE_TTL_MS, TRUE_TTL_MS
from barnabas.node.broker.schemas.registry import Claim
from barnabas.node.log.config import TOPIC_NAME_STRATEGY
from support.schema_world import SchemaWorld, id_of, settle


def claim(number: int) -> Claim:
    return Claim(id_of(number), TOPIC_NAME_STRATEGY, "t", is_key=False)


def learn(world: SchemaWorld, *numbers: int, within_ms: int = 10_000) -> asyncio.Future[None]:
    claims = [claim(number) for number in numbers]
    return asyncio.ensure_future(world.known.learn(claims, world.clock.time_ms + within_ms))


async def test_true_claims_are_remembered_and_confirmed_in_the_background() -> None:
    world = SchemaWorld()
    world.register(1, "t-value")
    assert world.known.is_true(claim(1)) is None
    await learn(world, 1)
    world.clock.advance(TRUE_TTL_MS // 2 - 1)
    assert world.known.is_true(claim(1)) is True
    assert len(world.asked) == 1
    world.clock.advance(1)
    assert world.known.is_true(claim(1)) is True
    await settle()
    assert len(world.asked) == 2
    world.registered.clear()
    world.clock.advance(TRUE_TTL_MS // 2)
    assert world.known.is_true(claim(1)) is True
    await settle()
    assert world.known.is_true(claim(1)) is False
    world.clock.advance(TRUE_TTL_MS)
    assert world.known.is_true(claim(1)) is None


async def test_false_claims_are_forgotten_soon() -> None:
    world = SchemaWorld()
    await learn(world, 1)
    assert world.known.is_true(claim(1)) is False
    world.clock.advance(FALSE_TTL_MS)
    assert world.known.is_true(claim(1)) is None
    world.register(1, "t-value")
    await learn(world, 1)
    assert world.known.is_true(claim(1)) is True


async def test_each_claim_is_asked_once_at_a_time() -> None:
    world = SchemaWorld(is_slow=True)
    waiting = [learn(world, 1) for _ in range(50)]
    await settle()
    assert len(world.asked) == 1
    world.answer_now()
    await asyncio.gather(*waiting)
    assert len(world.asked) == 1


async def test_questions_have_their_turns() -> None:
    world = SchemaWorld(is_slow=True)
    waiting = learn(world, *range(1, 30))
    await settle()
    assert len(world.asked) == known_schemas.ASKED_AT_ONCE_MAX
    world.answer_now()
    await waiting
    assert len(world.asked) == 29


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_schemas, "CLAIMS_MAX", 3)
    world = SchemaWorld()
    for number in (1, 2, 3, 4):
        await learn(world, number)
    assert [world.known.is_true(claim(number)) for number in (1, 2, 3, 4)] == [None, *[False] * 3]


async def test_too_many_questions_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_schemas, "OPEN_MAX", 1)
    world = SchemaWorld(is_slow=True)
    first, second = learn(world, 1), learn(world, 2)
    await settle()
    await world.pass_time(known_schemas.PAUSE_FIRST_MS)
    assert second.done()
    assert not first.done()
    world.answer_now()
    await first


async def test_a_slow_registry_is_waited_for_until_the_deadline() -> None:
    world = SchemaWorld(is_slow=True)
    waiting = learn(world, 1, within_ms=500)
    await world.pass_time(450)
    assert not waiting.done()
    await world.pass_time(50)
    assert waiting.done()
    world.answer_now()
    await settle()


async def test_a_failing_registry_is_asked_ever_less_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = SchemaWorld(failure="it is down")
    world.register(1, "t-value")
    with caplog.at_level(logging.INFO):
        for _ in range(100):
            await asyncio.gather(
                *(learn(world, 1, 2, 3, within_ms=600) for _ in range(3)), world.pass_time(600)
            )
        assert 5 < len(world.asked) < 60
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "it is down" in caplog.text
        world.failure = None
        waiting = learn(world, 1, within_ms=60_000)
        await world.pass_time(10_000)
        assert waiting.done()
        assert world.known.is_true(claim(1)) is True
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_without_a_registry_nothing_is_known() -> None:
    world = SchemaWorld()
    world.known.use(None)
    await learn(world, 1)
    assert world.known.is_true(claim(1)) is None


async def test_another_registry_is_asked_anew() -> None:
    world, other = SchemaWorld(is_slow=True), SchemaWorld()
    world.register(1, "t-value")
    waiting = learn(world, 1)
    await settle()
    world.known.use(other)
    world.answer_now()
    await waiting
    assert world.known.is_true(claim(1)) is None, "what the other one said does not count"
    await learn(world, 1)
    assert world.known.is_true(claim(1)) is False
    assert len(other.asked) == 1


async def test_a_fault_of_ours_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SchemaWorld()

    async def fail(_: Claim) -> bool:
        raise RuntimeError

    monkeypatch.setattr(world, "holds", fail)
    await learn(world, 1)
    assert world.known.is_true(claim(1)) is None


async def test_the_end_releases_who_waits() -> None:
    world = SchemaWorld(is_slow=True)
    waiting = learn(world, 1)
    await settle()
    world.known.close()
    await waiting
    await learn(world, 2)
    assert len(world.asked) == 1
    world.answer_now()
    await settle()
