"""A leader verifies transactions with the coordinator, with markers before, during and after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from barnabas.node.coordinator.transaction.verifier import NOT_NEEDED, Verdict
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from support.logs import TOPIC_PARTITION
from support.verifier_world import EPOCH, PRODUCER_ID, TRANSACTIONAL_ID, VerifierWorld

NONE = ErrorCode.NONE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH


async def ask(world: VerifierWorld) -> Verdict:
    producer = PRODUCER_ID, EPOCH
    verdict = world.verifier.ask(
        TRANSACTIONAL_ID, producer, world.begin, adds=True, knows_abortable=True
    )
    return await verdict if isinstance(verdict, Awaitable) else verdict


def write(world: VerifierWorld) -> ErrorCode:
    """Append the first batch of the next transaction; return its error code."""
    verdict = asyncio.run(ask(world))
    refused = verdict.errors.get(TOPIC_PARTITION)
    return refused or world.append(verdict.verifications.get(TOPIC_PARTITION))


def test_a_marker_that_came_before_is_none_of_its_business() -> None:
    world = VerifierWorld(NONE)
    world.mark()
    assert write(world) is NONE


def test_a_marker_that_is_waited_for() -> None:
    world = VerifierWorld(CONCURRENT, NONE)
    world.completing = [world.mark]
    assert write(world) is NONE


def test_a_marker_that_comes_while_the_question_is_under_way() -> None:
    """The coordinator may know of it, and be through, before it gets the question."""
    world = VerifierWorld(NONE, NONE)
    world.between = [world.mark]
    assert write(world) is NONE
    assert not world.answers


def test_a_refusal_stays_one_whatever_came_meanwhile() -> None:
    world = VerifierWorld(FENCED)
    world.between = [world.mark]
    assert write(world) is FENCED


def test_the_producer_waits_when_the_broker_has_waited_enough() -> None:
    world = VerifierWorld(*[CONCURRENT] * 20)
    pause_ms = world.config.retry_backoff_ms
    world.completing = [lambda: world.log.clock.advance(pause_ms)] * 20
    assert write(world) is CONCURRENT
    assert len(world.answers) == 20 - (world.config.retry_backoff_max_ms // pause_ms + 1)


def test_questions_end_though_something_happens_during_each() -> None:
    world = VerifierWorld(*[NONE] * 20)

    def happen() -> None:
        world.mark()
        world.log.clock.advance(50)

    world.between = [happen] * 20
    assert write(world) is CONCURRENT
    assert world.answers


@pytest.mark.parametrize("answer", [NONE, CONCURRENT])
def test_nothing_more_is_asked_when_the_transaction_is_under_way(answer: ErrorCode) -> None:
    """The same batch came by another connection, and was let in."""
    world = VerifierWorld(answer)

    def let_in() -> None:
        world.mark()
        assert world.append(world.begin()[TOPIC_PARTITION]) is NONE

    world.between = [let_in]
    assert asyncio.run(ask(world)) == NOT_NEEDED


def test_no_coordinator_is_known() -> None:
    world = VerifierWorld()
    world.verifier._image = MetadataImage
    assert write(world) is ErrorCode.COORDINATOR_NOT_AVAILABLE
