"""The runtime: responses at commit, failed appends, loading and leadership."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.node.coordinator.decision import Decision
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.record_codec import decode_record, encode_record
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.groups import ListGroupsRequest
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, encode_batch
from support.group_world import GroupWorld


def test_a_response_waits_for_the_commit():
    world = GroupWorld()
    world.log.holds_commits = True
    call = world.commit({("t", 0): 5})
    assert not call.is_done
    world.log.commit()
    assert call.response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_what_reads_waits_for_the_writes_before_it():
    world = GroupWorld()
    world.log.holds_commits = True
    world.commit({("t", 0): 5})
    fetch = world.fetch(("t", 0))
    listing = world.coordinator.list_groups(ListGroupsRequest())
    assert not fetch.is_done
    assert isinstance(listing, Promise)
    assert not listing.is_settled
    world.log.commit()
    assert fetch.response.topics[0].partitions[0].committed_offset == 5
    assert listing.is_settled


def test_a_continuation_that_a_shard_does_not_know_is_a_bug(monkeypatch):
    world = GroupWorld()
    monkeypatch.delattr(GroupShard, "stored")
    decision = Decision(response="heard", continuation="next")
    with pytest.raises(AssertionError, match="GroupShard gives next"):
        world.coordinator.runtime.run(0, lambda *_: decision, lambda error: error.name)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("is_soft", [False, True])
def test_a_decision_without_records_is_continued(waits, is_soft):
    world = GroupWorld()
    world.log.holds_commits = waits
    world.commit({("t", 0): 5})
    stored: list[ErrorCode] = []
    continuation = SimpleNamespace(stored=lambda _step, _groups, error, _: stored.append(error))
    decision = Decision(response="heard", continuation=continuation, is_soft=is_soft)
    response = world.coordinator.runtime.run(0, lambda *_: decision, lambda error: error.name)
    if waits:
        assert isinstance(response, Promise)
        assert not stored
        world.log.commit()
    else:
        assert response == "heard"
    assert stored == [ErrorCode.NONE]


def test_an_append_that_fails_changes_nothing():
    world = GroupWorld()
    world.commit({("t", 0): 5})
    world.log.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert world.commit_error({("t", 0): 6}) is ErrorCode.NOT_COORDINATOR
    assert world.offsets() == {("t", 0): 5}


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_how_failures_of_the_log_look(failure, expected):
    world = GroupWorld()
    world.log.append_error = failure
    assert world.commit_error({("t", 0): 6}) is expected
    assert world.join("a").error is expected
    assert len(world.shard.groups) == 0


def test_a_commit_that_takes_too_long_is_answered():
    world = GroupWorld(offsets_commit_timeout_ms=5_000)
    world.log.holds_commits = True
    call = world.commit({("t", 0): 5})
    world.clock.advance(4_999)
    assert not call.is_done
    world.clock.advance(1)
    error = call.response.topics[0].partitions[0].error_code
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.commit()
    assert world.offsets() == {("t", 0): 5}


def test_a_commit_whose_fate_is_unknown_is_answered():
    world = GroupWorld()
    world.log.holds_commits = True
    call = world.commit({("t", 0): 5})
    world.log.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    error = call.response.topics[0].partitions[0].error_code
    assert error == ErrorCode.NOT_COORDINATOR


def test_a_batch_that_is_too_large_is_refused_whole():
    world = GroupWorld()
    world.log.batch_size_max = 1_000
    offsets = {("t", partition): 1 for partition in range(100)}
    assert world.commit_error(offsets) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.offsets() == {}


def test_what_need_not_be_atomic_is_written_in_parts():
    world = GroupWorld()
    for partition in range(100):
        world.commit({("t", partition): 1})
    world.log.batch_size_max = 1_000
    before = len(world.log[0].batches)
    world.coordinator.on_topics_deleted(["t"])
    assert world.offsets() == {}
    assert len(world.log[0].batches) > before + 3
    assert all(len(batch) <= 1_000 for batch in world.log[0].batches[before:])


# Rebalances whose record fails or is late


def to_sync(world: GroupWorld) -> tuple[str, str]:
    a, _ = world.join_fully("a")
    b, _ = world.join_fully("b")
    world.clock.advance(6_000)
    return a, b


def test_nobody_sees_an_assignment_before_it_is_committed():
    world = GroupWorld()
    a, b = to_sync(world)
    world.log.holds_commits = True
    leader = world.sync(a, 1, {a: b"1", b: b"2"})
    follower = world.sync(b, 1)
    assert not leader.is_done
    assert not follower.is_done
    world.log.commit()
    assert (leader.response.assignment, follower.response.assignment) == (b"1", b"2")


def test_an_assignment_that_cannot_be_stored_sends_all_back_to_join():
    world = GroupWorld()
    a, b = to_sync(world)
    follower = world.sync(b, 1)
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    leader = world.sync(a, 1, {a: b"1", b: b"2"})
    assert leader.error is follower.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group().state is GroupState.PREPARING_REBALANCE
    world.log.append_error = None
    call = world.join("a", a)
    world.join("b", b)
    assert call.response.generation_id == 2


def test_an_assignment_that_is_overtaken_by_a_rebalance_is_void():
    world = GroupWorld()
    a, b = to_sync(world)
    world.log.holds_commits = True
    leader = world.sync(a, 1, {a: b"1", b: b"2"})
    world.join("c", version=3)
    assert leader.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.log.commit()
    assert world.group().state is GroupState.PREPARING_REBALANCE
    assert world.group().members[a].assignment == b""


def test_a_static_member_whose_new_id_cannot_be_stored_keeps_the_old_one():
    world = GroupWorld()
    first = world.join("s", instance_id="one")
    world.clock.advance(3_000)
    old = first.response.member_id
    world.sync(old, 1, {old: b"mine"})
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.join("s", instance_id="one").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(world.group().members) == [old]
    assert world.heartbeat(old, 1, instance_id="one").error is ErrorCode.NONE
    world.log.append_error = None
    assert world.join("s", instance_id="one").error is ErrorCode.NONE


def test_a_group_that_cannot_be_stored_is_forgotten():
    world = GroupWorld()
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.join("a", version=3).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(world.shard.groups) == 0
    world.log.append_error = None
    world.clock.advance(10_000)
    call = world.join("a", version=3)
    world.clock.advance(3_000)
    assert call.error is ErrorCode.NONE


# Leadership


def test_moving_away_answers_who_waits():
    world = GroupWorld()
    a, b = to_sync(world)
    waiting = world.sync(b, 1)
    _, joining = world.join_fully("c", group_id="other")
    world.log.holds_commits = True
    committing = world.commit({("t", 0): 1}, group_id="third")
    world.coordinator.unload(0, 5)
    assert waiting.error is joining.error is ErrorCode.NOT_COORDINATOR
    error = committing.response.topics[0].partitions[0].error_code
    assert error == ErrorCode.NOT_COORDINATOR
    assert world.heartbeat(a, 1).error is ErrorCode.NOT_COORDINATOR
    assert world.fetch(("t", 0)).error is ErrorCode.NOT_COORDINATOR
    world.log.commit()


def test_an_old_leaders_epoch_unloads_nothing():
    world = GroupWorld()
    world.coordinator.load(0, 7)
    world.coordinator.unload(0, 6)
    assert world.commit_error({("t", 0): 1}) is ErrorCode.NONE


def test_members_go_on_after_the_group_has_moved():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    world.reload()
    assert world.group().state is GroupState.STABLE
    assert world.heartbeat(a, 1).error is ErrorCode.NONE
    assert world.sync(b, 1).response.assignment == b.encode()
    assert world.commit_error({("t", 0): 1}, b, 1) is ErrorCode.NONE
    world.clock.advance(10_000)
    assert world.group().state is GroupState.EMPTY


def test_while_a_large_partition_loads_requests_are_put_off():
    world = GroupWorld()
    (a,) = world.stable_group("a")
    for partition in range(3_000):
        world.commit({("t" * 400, partition): 1}, group_id="filler")
    world.coordinator.unload(0)
    world.coordinator.load(0, 9)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.join("a", a).error is loading
    assert world.heartbeat(a, 1).error is ErrorCode.NONE
    assert world.sync(a, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.commit_error({("t", 0): 1}) is loading
    assert world.fetch().error is loading
    assert world.coordinator.list_groups(ListGroupsRequest()).error_code == loading
    world.clock.advance(1)
    assert world.sync(a, 1).error is ErrorCode.NONE
    assert len(world.offsets("filler")) == 3_000


def test_a_partition_that_is_damaged_is_not_served():
    world = GroupWorld()
    world.log[0].batches.append(encode_batch([Record(key=b"\x00", value=b"")]))
    world.reload()
    assert world.commit_error({("t", 0): 1}) is ErrorCode.NOT_COORDINATOR


def test_a_partition_with_a_flipped_bit_is_not_served():
    world = GroupWorld()
    world.commit({("t", 0): 1})
    world.commit({("t", 0): 2})
    world.log[0].batches[0][-2] ^= 1  # of the time of the commit
    world.reload()
    assert world.commit_error({("t", 0): 1}) is ErrorCode.NOT_COORDINATOR


def test_record_types_of_a_later_kafka_are_left_out():
    world = GroupWorld()
    world.commit({("t", 0): 1})
    batch = encode_batch([Record(key=b"\x00\x63what", value=b"\x00\x00")])
    world.log.append(0, batch)
    world.reload()
    assert world.offsets() == {("t", 0): 1}


def test_transactions_are_replayed():
    world = GroupWorld()
    world.commit({("t", 0): 1})
    template = world.log[0].batches[0]
    assert template
    raw = [
        Record(timestamp=0, key=key, value=value)
        for key, value in map(encode_record, world.log.records())
    ]
    for producer_id, is_commit in ((7, True), (8, False), (9, None)):
        raw[0].key = (raw[0].key or b"")[:-4] + producer_id.to_bytes(4, "big")
        world.log.append(
            0,
            encode_batch(raw, producer_id=producer_id, producer_epoch=0, is_transactional=True),
        )
        if is_commit is not None:
            world.log.append(
                0,
                encode_end_txn(
                    is_commit=is_commit,
                    coordinator_epoch=0,
                    producer_id=producer_id,
                    producer_epoch=0,
                    timestamp_ms=0,
                ),
            )
    world.reload()
    assert world.offsets() == {("t", 0): 1, ("t", 7): 1}
    assert world.shard.offsets.is_unstable("g", "t", 9)


@pytest.mark.parametrize(
    ("record_key", "record_value"),
    [
        (None, b""),
        (b"\x00", b""),
        (b"\x00\x02", b"\x00\x00"),
        (b"\x00\x02\x00\x01g", b"\x00"),
        (b"\x00\x02\x00\x01g", b"\x00\x63"),
        (b"\x00\x02\x00\x01g", b"\x00\x03"),
        (b"\x00\x02\x00\x01g!", None),
    ],
)
def test_malformed_records_are_one_error(record_key, record_value):
    with pytest.raises(DecodeError):
        decode_record(Record(key=record_key, value=record_value), RECORD_TYPES)


# Closing, and promises


async def test_closing_answers_who_waits():
    world = GroupWorld()
    _, joining = world.join_fully("a")
    await world.coordinator.close()
    assert joining.error is ErrorCode.NOT_COORDINATOR
    assert world.join("b").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.coordinator.load(0, 99)
    assert world.fetch().error is ErrorCode.NOT_COORDINATOR
    listing = world.coordinator.list_groups(ListGroupsRequest())
    assert listing.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_promise_is_awaited():
    promise: Promise[int] = Promise()
    waiting = asyncio.ensure_future(_await(promise))
    given_up = asyncio.ensure_future(_await(promise))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    promise.settle(5)
    promise.settle(6)
    assert await waiting == 5
    assert await promise == 5


async def _await(promise: Promise[int]) -> int:
    return await promise
