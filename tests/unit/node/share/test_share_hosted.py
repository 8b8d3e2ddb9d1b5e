"""One share partition at work: loading, writing, waiting, and when it must not go on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from barnabas.node.coordinator.share.state import ShareState, StateBatch
from barnabas.node.share.settings import OffsetReset, ResetStrategy
from barnabas.node.share.share_partition_host import first_offset
from barnabas.protocol.errors import ErrorCode
from support.logs import NOW_MS, LogBench, make_batch
from support.remote_log import Bucket
from support.share_host import LOCK_MS, NOBODY, RELEASE, ShareHost, Waiter, settled

ACKNOWLEDGED, AVAILABLE = 2, 0
SEEN_AS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The errors that members get for the persister's (Kafka's SharePartition)."""
PASSING = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR}
"""After these a share partition goes on."""


@pytest.fixture
async def host() -> AsyncIterator[ShareHost]:
    """A broker whose partition has two batches of five records."""
    host = ShareHost()
    host.append(5)
    host.append(5)
    yield host
    await host.close()


# -- loading


async def test_who_fetches_while_it_loads_is_woken_when_it_is_there(host: ShareHost) -> None:
    host.persister.is_held = True
    host.persister.kept = ShareState(1, 0, (StateBatch(0, 4, ACKNOWLEDGED, 1),))
    hosted = await host.open()
    assert host.fetch(hosted) == []
    assert host.acknowledge(hosted, 0, 4) == [ErrorCode.INVALID_RECORD_STATE]
    waiter = Waiter(hosted)
    assert waiter.seen == []
    asked = await host.persister.answer()
    assert (asked.what, asked.leader_epoch) == ("read", 0)
    assert waiter.seen == [ErrorCode.NONE]
    assert host.fetch(hosted) == [(5, 9, 1)]


@pytest.mark.parametrize(("error", "seen"), SEEN_AS.items(), ids=lambda error: error.name)
async def test_a_failed_load_is_told_and_tried_anew_by_the_next(
    host: ShareHost, error: ErrorCode, seen: ErrorCode
) -> None:
    host.persister.is_held = True
    hosted = await host.open()
    waiter = Waiter(hosted)
    await host.persister.answer(error)
    assert waiter.seen == [seen]
    assert hosted.error_message == error.name
    assert host.fetch(hosted) == []
    again = await host.open()
    assert again is not hosted
    await host.persister.answer()
    assert host.fetch(again) == [(0, 9, 1)]


async def test_what_makes_no_sense_is_not_gone_on_from(host: ShareHost) -> None:
    host.persister.kept = ShareState(1, 5, (StateBatch(0, 4, ACKNOWLEDGED, 1),))
    hosted = await host.open()
    assert hosted.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert host.find() is None


async def test_our_own_fault_closes_it(host: ShareHost) -> None:
    host.persister.is_held = True
    hosted = await host.open()
    waiter = Waiter(hosted)
    await host.persister.answer(RuntimeError("a fault"))
    assert waiter.seen == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert not hosted.is_busy


async def test_leadership_lost_while_it_loads(host: ShareHost) -> None:
    host.persister.is_held = True
    hosted = await host.open()
    waiter = Waiter(hosted)
    host.lead(NOBODY)
    assert waiter.seen == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    await host.persister.answer()
    assert hosted.machine is None, "what was read no longer counts"
    assert host.fetch(hosted) == []


# -- writing


async def test_changes_that_come_meanwhile_are_one_write(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    assert host.fetch(hosted) == [(0, 9, 1)]
    told = [host.acknowledge(hosted, 0, 1)]
    await settled()
    told.append(host.acknowledge(hosted, 4, 4))
    told.append(host.acknowledge(hosted, 2, 3, RELEASE))
    assert told == [[], [], []]
    first = await host.persister.answer()
    assert first.batches == ((0, 1, ACKNOWLEDGED, 1),)
    assert told == [[ErrorCode.NONE], [], []]
    second = await host.persister.answer()
    assert second.batches == ((2, 3, AVAILABLE, 1), (4, 4, ACKNOWLEDGED, 1))
    assert second.start_offset == 2, "as it is when the write leaves"
    assert told == [[ErrorCode.NONE]] * 3
    assert host.fetch(hosted, "n") == [(2, 3, 2)]


async def test_changes_of_the_same_records_are_written_one_after_the_other(
    host: ShareHost,
) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    assert host.fetch(hosted) == [(0, 9, 1)]
    host.acknowledge(hosted, 0, 0)
    await settled()
    host.clock.advance(LOCK_MS)
    assert host.fetch(hosted, "n") == [(1, 9, 2)], "free at once, before that is written"
    told = host.acknowledge(hosted, 1, 9, member="n")
    writes = [(await host.persister.answer()).batches for _ in range(3)]
    assert writes == [
        ((0, 0, ACKNOWLEDGED, 1),),
        ((1, 9, AVAILABLE, 1),),
        ((1, 9, ACKNOWLEDGED, 2),),
    ]
    assert told == [ErrorCode.NONE]


async def test_nobody_gets_records_whose_change_is_not_written(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    host.acknowledge(hosted, 0, 4, RELEASE)
    waiter = Waiter(hosted)
    assert host.fetch(hosted, "n") == []
    assert waiter.seen == []
    await host.persister.answer()
    assert waiter.seen == [ErrorCode.NONE]
    assert host.fetch(hosted, "n") == [(0, 4, 2)]


@pytest.mark.parametrize(
    ("error", "seen"),
    [(error, seen) for error, seen in SEEN_AS.items() if seen in PASSING],
    ids=lambda error: error.name,
)
async def test_an_error_that_passes_gives_the_records_back_to_their_holder(
    host: ShareHost, error: ErrorCode, seen: ErrorCode
) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    told = host.acknowledge(hosted, 0, 9)
    await host.persister.answer(error)
    assert told == [seen]
    assert not hosted.is_closed
    assert host.fetch(hosted, "n") == [], "they are still locked"
    again = host.acknowledge(hosted, 0, 9)
    assert (await host.persister.answer()).batches == ((0, 9, ACKNOWLEDGED, 1),)
    assert again == [ErrorCode.NONE]
    assert host.find() is hosted


@pytest.mark.parametrize(
    ("error", "seen"),
    [(error, seen) for error, seen in SEEN_AS.items() if seen not in PASSING],
    ids=lambda error: error.name,
)
async def test_after_a_fatal_error_it_does_not_go_on(
    host: ShareHost, error: ErrorCode, seen: ErrorCode
) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    told = host.acknowledge(hosted, 0, 4)
    await settled()
    behind = host.acknowledge(hosted, 5, 9)
    waiter = Waiter(hosted)
    await host.persister.answer(error)
    assert (told, behind) == ([seen], [])
    assert waiter.seen == [seen]
    assert host.find() is None
    await host.persister.answer(error)
    assert behind == [seen], "nobody is left without an answer"
    assert host.fetch(hosted, "n") == []
    assert not hosted.is_busy


async def test_a_fault_while_writing_answers_all(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    told = host.acknowledge(hosted, 0, 4)
    await settled()
    behind = host.acknowledge(hosted, 5, 9)
    await host.persister.answer(RuntimeError("a fault"))
    assert told == behind == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert hosted.error == ErrorCode.UNKNOWN_SERVER_ERROR


# -- in flight while leadership moves


async def test_leadership_lost_and_regained_with_records_in_flight(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    assert host.fetch(hosted) == [(0, 9, 1)]
    done = host.acknowledge(hosted, 0, 4)
    await settled()
    host.lead(NOBODY)
    assert hosted.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.find() is None
    assert await host.open() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert done == [], "what is being written has its end"
    await host.persister.answer()
    assert done == [ErrorCode.NONE]

    host.lead()
    again = await host.open()
    assert again is not hosted
    asked = await host.persister.answer()
    assert (asked.what, asked.leader_epoch) == ("read", host.placed().leader_epoch)
    assert asked.leader_epoch > hosted.leader_epoch
    assert host.fetch(again, "n") == [(5, 9, 1)], "nothing that is done comes again"
    assert host.acknowledge(again, 5, 9) == [ErrorCode.INVALID_RECORD_STATE], "m holds them no more"
    told = host.acknowledge(again, 5, 9, member="n")
    assert (await host.persister.answer()).leader_epoch == again.leader_epoch
    assert told == [ErrorCode.NONE]


async def test_the_former_one_does_not_touch_its_successor(host: ShareHost) -> None:
    hosted = await host.open()
    host.persister.is_held = True
    host.fetch(hosted)
    late = host.acknowledge(hosted, 0, 4)
    await settled()
    host.lead(NOBODY)
    host.lead()
    again = await host.open()
    await host.persister.answer(ErrorCode.FENCED_LEADER_EPOCH)
    assert late == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert host.find() is again
    assert not again.is_closed
    await host.persister.answer()
    assert host.fetch(again) == [(0, 9, 1)], "what was refused did not happen"


async def test_who_waits_learns_from_the_partition_that_it_is_led_elsewhere(
    host: ShareHost,
) -> None:
    hosted = await host.open()
    host.fetch(hosted)
    waiter = Waiter(hosted)
    host.partition().become_follower(replace(host.placed(), leader=NOBODY, leader_epoch=1))
    hosted.partitions_advanced([host.partition()])
    assert waiter.seen == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert hosted not in host.partition().read_waiters


# -- waiting and locks


async def test_the_partition_knows_only_who_waits(host: ShareHost) -> None:
    hosted = await host.open()
    host.fetch(hosted)
    partition = host.partition()
    first, second = Waiter(hosted), Waiter(hosted)
    hosted.leave(first)
    assert hosted in partition.read_waiters
    hosted.leave(second)
    assert hosted not in partition.read_waiters


async def test_the_partition_does_not_know_what_is_closed(host: ShareHost) -> None:
    hosted = await host.open()
    host.fetch(hosted)

    class Patient(Waiter):
        def look_again(self) -> None:
            self.seen.append(self.hosted.error)

    waiter = Patient(hosted)
    hosted.close(ErrorCode.KAFKA_STORAGE_ERROR)
    hosted.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert waiter.seen == [ErrorCode.KAFKA_STORAGE_ERROR], "the first reason stays"
    assert hosted not in host.partition().read_waiters


async def test_new_records_wake_those_who_wait(host: ShareHost) -> None:
    hosted = await host.open()
    host.fetch(hosted)
    waiter = Waiter(hosted)
    host.append(3)
    await settled()
    assert waiter.seen == [ErrorCode.NONE]
    assert host.fetch(hosted) == [(10, 12, 1)]


async def test_records_that_are_locked_too_long_are_free_for_those_who_wait(
    host: ShareHost,
) -> None:
    hosted = await host.open()
    assert host.fetch(hosted) == [(0, 9, 1)]
    waiter = Waiter(hosted)
    host.clock.advance(LOCK_MS - 1)
    assert waiter.seen == []
    host.clock.advance(1)
    assert waiter.seen == [ErrorCode.NONE]
    await settled()
    assert host.persister.writes == [((0, 9, AVAILABLE, 1),)]
    assert host.fetch(hosted, "n") == [(0, 9, 2)]


async def test_what_the_log_has_lost_is_passed_over(host: ShareHost) -> None:
    hosted = await host.open()
    host.partition().raise_log_start(5)
    assert host.fetch(hosted) == [], "the first look finds out"
    assert host.fetch(hosted) == [(5, 9, 1)]


# -- what lies in a bucket


@pytest.fixture
def bucket(host: ShareHost) -> Bucket:
    """What the host has so far is remote; a third batch is not."""
    whole = LogBench().log
    for _ in range(2):
        whole.append_as_leader(make_batch(*"01234"), leader_epoch=0, now_ms=NOW_MS)
    log = host.partition().log
    log.roll(NOW_MS)
    host.append(5)
    log.tail.clear(log.log_end_offset)
    del log.segments[0]
    bucket = Bucket(whole)
    log.remote = bucket
    return bucket


async def test_what_is_remote_is_given_out_when_it_has_come(
    host: ShareHost, bucket: Bucket
) -> None:
    hosted = await host.open()
    assert host.fetch(hosted) == []
    waiter = Waiter(hosted)
    assert host.fetch(hosted, "n") == []
    assert (waiter.seen, bucket.asked) == ([], 1), "one read serves all who wait"
    bucket.arrive()
    assert waiter.seen == [ErrorCode.NONE]
    assert host.fetch(hosted) == [(0, 9, 1)]
    assert host.fetch(hosted) == [(10, 14, 1)], "the rest is local"
    assert (bucket.asked, bucket.abandoned) == (0, 0)


async def test_a_remote_read_that_fails_is_told_and_tried_anew(
    host: ShareHost, bucket: Bucket
) -> None:
    hosted = await host.open()
    assert host.fetch(hosted) == []
    bucket.error = ErrorCode.UNKNOWN_SERVER_ERROR
    bucket.arrive()
    bucket.error = ErrorCode.NONE
    read = hosted.read(1 << 20, min_one_batch=True)
    assert read is not None
    assert read.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert host.fetch(hosted) == []
    bucket.arrive()
    assert host.fetch(hosted) == [(0, 9, 1)]


async def test_a_closed_share_partition_abandons_its_remote_read(
    host: ShareHost, bucket: Bucket
) -> None:
    hosted = await host.open()
    assert host.fetch(hosted) == []
    hosted.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (bucket.asked, bucket.abandoned) == (0, 1)


@pytest.mark.parametrize(
    ("error", "start"),
    [(ErrorCode.NONE, 0), (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
async def test_a_group_that_begins_by_time_waits_for_the_bucket(
    host: ShareHost, bucket: Bucket, error: ErrorCode, start: int | ErrorCode
) -> None:
    reset = OffsetReset(ResetStrategy.BY_DURATION, 10)
    begin = asyncio.ensure_future(first_offset(host.partition(), reset, NOW_MS))
    await settled()
    assert not begin.done()
    bucket.error = error
    bucket.arrive()
    assert await begin == start
