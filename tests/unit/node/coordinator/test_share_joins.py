"""Joining members of share groups whose answers are held until there is something to tell."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.coordinator.share.joins import HOLD_MS_MAX
from barnabas.node.coordinator.share.share_group_service import ShareGroupService
from barnabas.node.coordinator.share.state import ShareStateError
from barnabas.node.loop.promise import Promise
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from support.consumer_world import topic_id
from support.group_world import Call
from support.share_group_world import ShareGroupWorld

CLIENT = ClientInfo("c", "10.0.0.1", ANONYMOUS, 1)
INTERVAL_MS = 1_000


class SlowPersister:
    """Initialises what it is asked for when it is let."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[None]] = []
        self.places: list[tuple[Uuid, int]] = []
        """Of all that was ever asked for."""

    async def initialize(
        self, _group_id: str, topic_id: Uuid, partition: int, _epoch: int, _start: int
    ) -> None:
        self.places.append((topic_id, partition))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append(future)
        await future

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """All that was asked is done, or has failed."""
        asked, self.asked = self.asked, []
        for future in asked:
            if error:
                future.set_exception(ShareStateError(error))
            else:
                future.set_result(None)


class Setting:
    """A group's service over partitions in memory, with topics `t` of two partitions and `u`."""

    def __init__(self) -> None:
        self.world = ShareGroupWorld(group_share_assignment_interval_ms=INTERVAL_MS)
        self.world.set_topics({"t": 2, "u": 1})
        self.persister = SlowPersister()
        unused: Any = None
        self.service = ShareGroupService(
            self.world.coordinator, cast("Any", self.persister), unused, unused, self.world.clock
        )

    def beat(
        self, member_id: str, epoch: int = 0, topics: Sequence[str] = ("t",)
    ) -> Call[ShareGroupHeartbeatResponse]:
        """Send a heartbeat; with epoch 0 the member joins."""
        request = ShareGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=None if epoch else list(topics),
        )
        return Call(self.service.heartbeat(request, CLIENT))

    async def initialized(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The share coordinators answer, and the group hears of it."""
        await settled()
        assert self.persister.asked
        self.persister.answer(error)
        await settled()


async def settled() -> None:
    """Let tasks go on as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def partitions(response: ShareGroupHeartbeatResponse) -> list[int]:
    """Return the partitions of `t` that a member is assigned."""
    assert response.error_code == ErrorCode.NONE
    assert response.assignment is not None
    topics = response.assignment.topic_partitions
    assert {topic.topic_id for topic in topics} <= {topic_id("t")}
    return sorted(number for topic in topics for number in topic.partitions)


@pytest.fixture
async def setting() -> Setting:
    """Made on the running loop."""
    return Setting()


async def test_the_first_member_is_answered_with_partitions(setting: Setting) -> None:
    call = setting.beat("m")
    await setting.initialized()
    assert not call.is_done, "the next assignment is put off"
    setting.world.clock.advance(INTERVAL_MS - 1)
    assert not call.is_done
    setting.world.clock.advance(1)
    assert partitions(call.response) == [0, 1]
    follow_up = setting.beat("m", call.response.member_epoch).response
    assert follow_up.error_code == ErrorCode.NONE
    assert follow_up.assignment is None, "there is nothing that it was not told"


async def test_a_member_that_missed_an_answer_is_told_again_what_it_has(setting: Setting) -> None:
    call = setting.beat("m")
    await settled()
    setting.world.clock.advance(HOLD_MS_MAX)
    assert partitions(call.response) == []
    await setting.initialized()
    former = call.response.member_epoch
    missed = setting.beat("m", former).response
    assert partitions(missed) == [0, 1]
    again = setting.beat("m", former).response
    assert again.member_epoch == missed.member_epoch > former
    assert partitions(again) == [0, 1]


async def test_members_that_join_meanwhile_wait_too(setting: Setting) -> None:
    calls = [setting.beat(f"m{number}") for number in range(2)]
    await setting.initialized()
    setting.world.clock.advance(INTERVAL_MS)
    told = [partitions(call.response) for call in calls]
    assert sorted(told) == [[0], [1]]


async def test_a_member_of_the_group_never_waits(setting: Setting) -> None:
    setting.beat("m")
    assert setting.beat("m", 2).is_done


async def test_an_answer_is_not_held_for_long(setting: Setting) -> None:
    call = setting.beat("m")
    await settled()
    setting.world.clock.advance(HOLD_MS_MAX - 1)
    assert not call.is_done
    setting.world.clock.advance(1)
    assert partitions(call.response) == []
    await setting.initialized()
    heard = setting.beat("m", call.response.member_epoch).response
    assert partitions(heard) == [0, 1]


async def test_a_failed_initialisation_is_not_waited_for_again(setting: Setting) -> None:
    call = setting.beat("m")
    await setting.initialized(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert partitions(call.response) == []
    assert not setting.persister.asked


async def test_what_is_being_initialised_is_not_asked_for_again(setting: Setting) -> None:
    first = [(topic_id("t"), number) for number in range(2)]
    setting.beat("m")
    await settled()
    retry_ms = setting.world.config.get_int("group.share.initialize.retry.interval.ms")
    setting.world.clock.advance(retry_ms)
    other = setting.beat("other", topics=("t", "u"))
    await settled()
    assert setting.persister.places == [*first, (topic_id("u"), 0)]
    setting.persister.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await settled()
    setting.beat("other", other.response.member_epoch)
    await settled()
    assert sorted(setting.persister.places[3:]) == sorted([*first, (topic_id("u"), 0)])


async def test_a_member_that_left_meanwhile_gets_the_answer_that_it_had(setting: Setting) -> None:
    call = setting.beat("m")
    assert setting.beat("m", -1).is_done
    await setting.initialized()
    assert partitions(call.response) == []
    assert call.response.member_epoch == 2


async def test_a_coordinator_that_moves_answers_with_what_it_had(setting: Setting) -> None:
    call = setting.beat("m")
    setting.world.coordinator.unload(0)
    await setting.initialized()
    assert partitions(call.response) == []


async def test_a_coordinator_that_moves_later_answers_with_what_it_had(setting: Setting) -> None:
    call = setting.beat("m")
    await setting.initialized()
    setting.world.coordinator.unload(0)
    setting.world.clock.advance(INTERVAL_MS)
    assert partitions(call.response) == []
    assert call.response.member_epoch == 2


async def test_a_member_that_has_partitions_does_not_wait_for_more(setting: Setting) -> None:
    setting.beat("m")
    await setting.initialized()
    setting.world.clock.advance(2 * INTERVAL_MS)
    again = setting.beat("m", topics=("t", "u"))
    await settled()
    assert setting.persister.asked, "what is new is being initialised"
    assert partitions(again.response) == [0, 1]


async def test_closing_answers_all_and_holds_none_any_more(setting: Setting) -> None:
    call = setting.beat("m")
    await settled()
    setting.persister.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await setting.service.close()
    assert partitions(call.response) == []
    assert setting.beat("other").is_done


async def test_nothing_to_wait_for_is_answered_at_once(setting: Setting) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=["nothing"]
    )
    outcome = setting.service.heartbeat(request, CLIENT)
    assert not isinstance(outcome, Promise)
