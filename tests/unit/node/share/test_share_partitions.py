"""The share partitions of a node: opened when asked for, closed in time, their locks kept."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.loop.promise import Promise
from barnabas.node.share.sessions import SessionKey, ShareSession
from barnabas.node.share.share_partition_host import HostedSharePartition
from barnabas.protocol.errors import ErrorCode
from support.consumer_world import topic_id
from support.share_host import LOCK_MS, NOBODY, ShareHost, Waiter, settled

ACKNOWLEDGED, AVAILABLE = 2, 0
M = SessionKey("g", "m")


@pytest.fixture
async def host() -> AsyncIterator[ShareHost]:
    """A broker whose partitions have five records each."""
    host = ShareHost()
    host.append(5)
    host.append(5, 1)
    host.append(5, 0, "u")
    yield host
    await host.close()


def join(host: ShareHost, key: SessionKey, connection: object, *indexes: int) -> None:
    """Open a member's session with partitions of `t`."""
    named: list[tuple[tuple[Uuid, int], str | None]] = [
        ((topic_id("t"), index), "t") for index in indexes
    ]
    assert isinstance(host.shares.sessions.open(key, named, connection), ShareSession)


# -- opening


async def test_it_is_opened_once_for_each_group_and_partition(host: ShareHost) -> None:
    first = await host.open()
    assert await host.open() is first is host.find()
    others = [await host.open("h"), await host.open(index=1), await host.open(topic="u")]
    assert len({id(hosted) for hosted in [first, *others]}) == 4
    assert host.fetch(first) == host.fetch(others[0]) == [(0, 4, 1)], "groups do not share"


async def test_what_is_not_here_is_not_opened(host: ShareHost) -> None:
    assert await host.open(topic="none") == ErrorCode.UNKNOWN_TOPIC_ID
    assert await host.open(index=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    host.lead(NOBODY)
    assert await host.open() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.find() is None


# -- what happens to partitions


async def test_only_what_another_node_leads_is_closed(host: ShareHost) -> None:
    lost = [await host.open(), await host.open("h")]
    kept = [await host.open(index=1), await host.open(topic="u")]
    waiters = [Waiter(hosted) for hosted in (*lost, *kept)]
    host.lead(NOBODY)
    assert [waiter.seen for waiter in waiters] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 2 + [
        []
    ] * 2
    assert host.find() is host.find("h") is None
    assert host.find(index=1) is kept[0]


async def test_a_new_epoch_of_the_same_leader_closes_nothing(host: ShareHost) -> None:
    hosted = await host.open()
    assert host.fetch(hosted) == [(0, 4, 1)]
    host.lead()
    assert host.placed().leader_epoch == 1
    told = host.acknowledge(hosted, 0, 4)
    await settled()
    assert told == [ErrorCode.NONE]
    assert host.find() is hosted


async def test_a_deleted_topic(host: ShareHost) -> None:
    gone, kept = await host.open(), await host.open(topic="u")
    host.persister.is_held = True
    host.fetch(gone)
    told = host.acknowledge(gone, 0, 4)
    waiter = Waiter(gone)
    await settled()
    host.delete_topic()
    assert waiter.seen == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert not kept.is_closed
    assert await host.open() == ErrorCode.UNKNOWN_TOPIC_ID
    await host.persister.answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert told == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert not gone.is_busy


async def test_a_deleted_group_begins_anew(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    told = host.acknowledge(hosted, 0, 4)
    await host.persister.answer(ErrorCode.GROUP_ID_NOT_FOUND)
    assert told == [ErrorCode.GROUP_ID_NOT_FOUND]
    again = await host.open()
    assert again is not hosted
    await host.persister.answer(ErrorCode.GROUP_ID_NOT_FOUND)
    assert again.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert host.find() is None


# -- what happens to members


async def test_the_end_of_a_session_gives_back_what_it_held(host: ShareHost) -> None:
    hosted = await host.open()
    join(host, M, object(), 0, 1)
    assert host.fetch(hosted) == [(0, 4, 1)]
    host.acknowledge(hosted, 0, 0)
    await settled()
    host.persister.is_held = True
    released = host.shares.release_session(M)
    assert isinstance(released, Promise)
    await settled()
    assert not released.is_settled
    await host.persister.answer()
    assert released.is_settled
    assert host.fetch(hosted, "n") == [(1, 4, 2)]
    assert host.shares.release_session(M) is None, "it has ended"


async def test_a_lost_connection_frees_what_its_members_held(host: ShareHost) -> None:
    hosted = await host.open()
    mine, other = object(), object()
    join(host, M, mine, 0)
    join(host, SessionKey("g", "n"), other, 0)
    host.fetch(hosted)
    waiter = Waiter(hosted)
    host.shares.connection_lost(mine)
    await settled()
    assert waiter.seen == [ErrorCode.NONE]
    assert host.fetch(hosted, "n") == [(0, 4, 2)]
    assert not hosted.is_closed, "the group has members"


async def test_a_group_without_members_is_closed_once_all_is_written(host: ShareHost) -> None:
    hosted, other = await host.open(), await host.open("h")
    connection = object()
    join(host, M, connection, 0)
    host.fetch(hosted)
    host.persister.is_held = True
    host.shares.connection_lost(connection)
    await settled()
    assert not hosted.is_closed
    write = await host.persister.answer()
    assert write.batches == ((0, 4, AVAILABLE, 1),)
    assert hosted.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not other.is_closed


async def test_the_connection_of_a_member_that_has_left_ends_an_empty_group(
    host: ShareHost,
) -> None:
    hosted = await host.open()
    connection = object()
    join(host, M, connection, 0)
    host.shares.release_session(M)
    assert not hosted.is_closed
    host.shares.connection_lost(connection)
    assert hosted.is_closed


async def test_closing_one_may_close_others(host: ShareHost) -> None:
    """A listener may remove itself, and with it its group."""
    hosted = [await host.open(group) for group in ("g", "h")]
    connection = object()
    for group in ("g", "h"):
        join(host, SessionKey(group, "m"), connection, 0)

    class Leaver(Waiter):
        def look_again(self) -> None:
            super().look_again()
            host.shares.connection_lost(connection)

    waiters = [Leaver(each) for each in hosted]
    host.lead(NOBODY)
    assert [waiter.seen for waiter in waiters] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 2
    assert host.find() is host.find("h") is None


# -- locks


async def test_one_timer_serves_all_locks(host: ShareHost) -> None:
    first, second = await host.open(), await host.open(index=1)
    host.fetch(first)
    host.clock.advance(LOCK_MS // 2)
    host.fetch(second)
    timers = [timer for timer in host.clock.timers if not timer.is_cancelled]
    assert len(timers) == 1
    host.clock.advance(LOCK_MS // 2)
    assert host.fetch(second) == []
    host.clock.advance(LOCK_MS // 2)
    assert host.fetch(second) == host.fetch(first) == [(0, 4, 2)]


async def test_what_is_closed_has_no_locks(host: ShareHost) -> None:
    hosted = await host.open()
    host.fetch(hosted)
    host.lead(NOBODY)
    host.clock.advance(2 * LOCK_MS)
    await settled()
    assert host.persister.writes == []


# -- the end

Case = Callable[[ShareHost], Awaitable[tuple[HostedSharePartition, list[ErrorCode]]]]


async def loading(host: ShareHost) -> tuple[HostedSharePartition, list[ErrorCode]]:
    host.persister.is_held = True
    return await host.open(), []


async def writing(host: ShareHost) -> tuple[HostedSharePartition, list[ErrorCode]]:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    told = host.acknowledge(hosted, 0, 1)
    await settled()
    host.acknowledge(hosted, 2, 4)
    return hosted, told


async def writing_still(host: ShareHost) -> tuple[HostedSharePartition, list[ErrorCode]]:
    hosted, told = await writing(host)
    host.lead(NOBODY)
    return hosted, told


@pytest.mark.parametrize("case", [loading, writing, writing_still])
async def test_closing_leaves_nothing_running(host: ShareHost, case: Case) -> None:
    hosted, told = await case(host)
    waiter = Waiter(hosted)
    await host.shares.close()
    assert hosted.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not hosted.is_busy
    assert told == ([] if case is loading else [ErrorCode.COORDINATOR_NOT_AVAILABLE])
    assert waiter.seen in ([], [ErrorCode.NOT_LEADER_OR_FOLLOWER])
    assert await host.open(index=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [timer for timer in host.clock.timers if not timer.is_cancelled] == []
