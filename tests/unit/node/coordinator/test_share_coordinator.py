"""The share coordinator: what it refuses, what it writes, and what it prunes."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.record_codec import decode_record
from barnabas.node.coordinator.share.operations import (
    DELETE,
    INITIALIZE,
    PART_QUESTIONS_MAX,
    READ,
    SUMMARY,
    WRITE,
    Operation,
    serve,
)
from barnabas.node.coordinator.share.state import (
    DONE,
    Failure,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateBatch,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_state
from barnabas.protocol.messages.share_state import (
    SHARE_RECORDS,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from barnabas.protocol.records.records import decode_records
from support.group_world import Call
from support.share_world import OTHER_TOPIC, TOPIC, ShareWorld, key

REFUSALS: list[tuple[str, Any, str]] = [
    ("initialize a negative partition", lambda c: c.initialize(key(-1), 1, 0), "INVALID_REQUEST"),
    ("initialize an older state", lambda c: c.initialize(key(), 4, 0), "FENCED_STATE_EPOCH"),
    (
        "initialize what is not a topic",
        lambda c: c.initialize(key(3), 5, 0),
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    ("read a negative partition", lambda c: c.read(key(-1), 1), "INVALID_REQUEST"),
    ("read what was never initialized", lambda c: c.read(key(1), 1), "INVALID_REQUEST"),
    ("read as a former leader", lambda c: c.read(key(), 6), "FENCED_LEADER_EPOCH"),
    ("write a negative partition", lambda c: c.write(key(-1), (5, 7), 0, 0, []), "INVALID_REQUEST"),
    (
        "write what was never initialized",
        lambda c: c.write(key(1), (5, 7), 0, 0, []),
        "INVALID_REQUEST",
    ),
    ("write as a former leader", lambda c: c.write(key(), (5, 6), 0, 0, []), "FENCED_LEADER_EPOCH"),
    ("write an older state", lambda c: c.write(key(), (4, 7), 0, 0, []), "FENCED_STATE_EPOCH"),
    ("sum up a negative partition", lambda c: c.summary(key(-1)), "INVALID_REQUEST"),
    ("sum up what is not a topic", lambda c: c.summary(key(3)), "UNKNOWN_TOPIC_OR_PARTITION"),
    ("delete a negative partition", lambda c: c.delete(key(-1)), "INVALID_REQUEST"),
    ("delete what is not a topic", lambda c: c.delete(key(3)), "UNKNOWN_TOPIC_OR_PARTITION"),
]


def read_state(world: ShareWorld, place: SharePartitionKey | None = None) -> ShareState:
    state: Any = Call(world.coordinator.read(place or key(), -1)).response
    assert isinstance(state, ShareState)
    return state


def done(outcome: Any) -> None:
    assert Call(outcome).response is DONE


@pytest.fixture
def world() -> ShareWorld:
    """`key()` is initialized in state epoch 5 and was read by a leader of epoch 7."""
    world = ShareWorld(updates_per_snapshot=3)
    done(world.coordinator.initialize(key(), 5, 10))
    assert isinstance(Call(world.coordinator.read(key(), 7)).response, ShareState)
    return world


@pytest.mark.parametrize(
    ("call", "error"), [row[1:] for row in REFUSALS], ids=[r[0] for r in REFUSALS]
)
def test_refuses(world: ShareWorld, call: Any, error: str) -> None:
    written = world.log[0].end_offset
    outcome: Any = Call(call(world.coordinator)).response
    assert isinstance(outcome, Failure)
    assert outcome.error is ErrorCode[error]
    assert world.log[0].end_offset == written


@pytest.mark.parametrize("name", ["read", "write"])
def test_refuses_topics_that_are_gone(world: ShareWorld, name: str) -> None:
    del world.topics[TOPIC]
    outcome: Any = Call(
        world.coordinator.read(key(), 7)
        if name == "read"
        else world.coordinator.write(key(), (5, 7), 0, 0, [])
    ).response
    assert isinstance(outcome, Failure)
    assert outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_epochs_of_minus_one_are_not_compared(world: ShareWorld) -> None:
    done(world.coordinator.write(key(), (-1, -1), 12, 1, [StateBatch(13, 14, 2, 1)]))
    done(world.coordinator.initialize(key(), -1, 3))
    assert read_state(world).start_offset == 3


def test_a_late_request_to_begin_takes_nothing_back(world: ShareWorld) -> None:
    done(world.coordinator.write(key(), (5, 7), 10, 1, [StateBatch(10, 11, 2, 1)]))
    written = world.log[0].end_offset
    done(world.coordinator.initialize(key(), 5, -1))
    assert world.log[0].end_offset == written
    assert read_state(world).batches == (StateBatch(10, 11, 2, 1),)
    done(world.coordinator.initialize(key(), 5, 3))  # an administrator's
    assert (read_state(world).start_offset, read_state(world).batches) == (3, ())
    done(world.coordinator.initialize(key(), 6, -1))
    assert read_state(world).start_offset == -1


def test_a_late_write_does_not_take_the_start_back(world: ShareWorld) -> None:
    late = (5, 7), 10, 2, [StateBatch(10, 11, 2, 1), StateBatch(13, 13, 0, 1)]
    done(world.coordinator.write(key(), *late))
    done(world.coordinator.write(key(), (5, 7), 12, 1, [StateBatch(14, 14, 2, 1)]))
    done(world.coordinator.write(key(), *late))
    kept = (StateBatch(13, 13, 0, 1), StateBatch(14, 14, 2, 1))
    assert (read_state(world).start_offset, read_state(world).batches) == (12, kept)
    summary: Any = Call(world.coordinator.summary(key())).response
    assert summary.delivery_complete_count == 1
    world.move()
    assert (read_state(world).start_offset, read_state(world).batches) == (12, kept)


def test_writes_updates_and_then_a_snapshot(world: ShareWorld) -> None:
    for offset in range(3):
        batch = StateBatch(20 + offset, 20 + offset, 2, 1)
        done(world.coordinator.write(key(), (5, 7), 11 + offset, offset, [batch]))
    kinds = [type(record.key) for record in share_records(world)]
    assert kinds == [ShareSnapshotKey, *[ShareUpdateKey] * 3, ShareSnapshotKey]
    snapshot = share_records(world)[-1].value
    assert isinstance(snapshot, ShareSnapshotValue)
    assert (snapshot.snapshot_epoch, snapshot.state_epoch, snapshot.leader_epoch) == (1, 5, 7)
    assert (snapshot.start_offset, snapshot.delivery_complete_count) == (13, 2)
    assert [(b.first_offset, b.last_offset) for b in snapshot.state_batches] == [(20, 22)]
    done(world.coordinator.write(key(), (5, 7), -1, 2, []))
    update = share_records(world)[-1].value
    assert isinstance(update, ShareUpdateValue)
    assert (update.snapshot_epoch, update.start_offset) == (1, -1)


def test_a_new_leader_is_written_down_once_before_it_reads() -> None:
    world = ShareWorld()
    done(world.coordinator.initialize(key(), 1, -1))
    for leader_epoch, records in ((0, 1), (3, 2), (3, 2), (-1, 2), (4, 3)):
        Call(world.coordinator.read(key(), leader_epoch)).response  # noqa: B018
        assert world.log[0].end_offset == records


def test_answers_wait_for_the_commit(world: ShareWorld) -> None:
    world.log.holds_commits = True
    write: Call[Any] = Call(world.coordinator.write(key(), (5, 7), 11, 1, []))
    read: Call[Any] = Call(world.coordinator.read(key(), 7))
    assert not write.is_done
    assert not read.is_done
    world.log.commit()
    assert write.response is DONE
    assert read.response == ShareState(5, 11)


def test_a_summary_of_nothing_is_no_error(world: ShareWorld) -> None:
    assert Call(world.coordinator.summary(key(1))).response == ShareSummary(0, 0, -1, -1)
    assert Call(world.coordinator.summary(key())).response == ShareSummary(5, 7, 10, 0)


def test_deleting_leaves_a_tombstone_once(world: ShareWorld) -> None:
    done(world.coordinator.delete(key()))
    assert share_records(world)[-1].value is None
    written = world.log[0].end_offset
    done(world.coordinator.delete(key()))
    assert world.log[0].end_offset == written
    world.move()
    assert not world.shard.entries


def test_topics_that_are_gone_are_forgotten(world: ShareWorld) -> None:
    other = key(0, topic_id=OTHER_TOPIC)
    done(world.coordinator.initialize(other, 1, 0))
    world.coordinator.on_topics_deleted([TOPIC])
    assert list(world.shard.entries) == [other]
    world.move()
    assert list(world.shard.entries) == [other]


def test_prunes_what_snapshots_have_made_redundant(world: ShareWorld) -> None:
    done(world.coordinator.initialize(key(1), 1, 0))  # offset 2; offsets 0 and 1 are of key()
    world.coordinator.prune()
    assert len(world.log[0].batches) == 3, "the snapshot of key() is the oldest in use"
    for offset in range(2):
        done(world.coordinator.write(key(), (5, 7), 11 + offset, offset, []))
    done(world.coordinator.write(key(), (5, 7), 14, 0, []))  # a snapshot
    before = {place: entry.kept for place, entry in world.shard.entries.items()}
    world.coordinator.prune()
    assert len(world.log[0].batches) == 4, "what lies before the snapshot of key(1) is gone"
    world.move()
    assert {place: entry.kept for place, entry in world.shard.entries.items()} == before


def test_cold_snapshots_let_the_log_be_pruned(world: ShareWorld) -> None:
    done(world.coordinator.initialize(key(1), 1, 0))
    world.coordinator.snapshot_cold()
    assert world.log[0].end_offset == 3, "they are not old yet"
    world.clock.advance(world.config.cold_snapshot_interval_ms)
    world.coordinator.snapshot_cold()
    assert world.log[0].end_offset == 5
    world.clock.advance(world.config.cold_snapshot_interval_ms)
    world.coordinator.snapshot_cold()
    assert world.log[0].end_offset == 5, "all is quiet"
    world.coordinator.prune()
    assert len(world.log[0].batches) == 1


def test_nobody_is_asked_who_does_not_coordinate(world: ShareWorld) -> None:
    world.coordinator.unload(0)
    outcome: Any = Call(world.coordinator.read(key(), 7)).response
    assert isinstance(outcome, Failure)
    assert outcome.error is ErrorCode.NOT_COORDINATOR


REQUESTS: list[tuple[Operation, Any]] = [
    (
        INITIALIZE,
        share_state.InitializeShareGroupStateRequest(
            group_id="g",
            topics=[
                share_state.InitializeStateData(
                    topic_id=TOPIC,
                    partitions=[
                        share_state.InitializeShareGroupStatePartitionData(
                            partition=1, state_epoch=2, start_offset=3
                        ),
                        share_state.InitializeShareGroupStatePartitionData(
                            partition=9, state_epoch=2, start_offset=3
                        ),
                    ],
                )
            ],
        ),
    ),
    (
        READ,
        share_state.ReadShareGroupStateRequest(
            group_id="g",
            topics=[
                share_state.ReadStateData(
                    topic_id=TOPIC,
                    partitions=[
                        share_state.ReadShareGroupStatePartitionData(partition=0, leader_epoch=7),
                        share_state.ReadShareGroupStatePartitionData(partition=9, leader_epoch=7),
                    ],
                )
            ],
        ),
    ),
    (
        WRITE,
        share_state.WriteShareGroupStateRequest(
            group_id="g",
            topics=[
                share_state.WriteStateData(
                    topic_id=TOPIC,
                    partitions=[
                        share_state.WriteShareGroupStatePartitionData(
                            partition=0, state_epoch=5, leader_epoch=7, start_offset=11
                        ),
                        share_state.WriteShareGroupStatePartitionData(
                            partition=9, state_epoch=5, leader_epoch=7, start_offset=11
                        ),
                    ],
                )
            ],
        ),
    ),
    (
        DELETE,
        share_state.DeleteShareGroupStateRequest(
            group_id="g",
            topics=[
                share_state.DeleteStateData(
                    topic_id=TOPIC,
                    partitions=[
                        share_state.DeleteShareGroupStatePartitionData(partition=0),
                        share_state.DeleteShareGroupStatePartitionData(partition=9),
                    ],
                )
            ],
        ),
    ),
    (
        SUMMARY,
        share_state.ReadShareGroupStateSummaryRequest(
            group_id="g",
            topics=[
                share_state.ReadStateSummaryData(
                    topic_id=TOPIC,
                    partitions=[
                        share_state.ReadShareGroupStateSummaryPartitionData(
                            partition=0, leader_epoch=-1
                        ),
                        share_state.ReadShareGroupStateSummaryPartitionData(
                            partition=9, leader_epoch=-1
                        ),
                    ],
                )
            ],
        ),
    ),
]


@pytest.mark.parametrize(
    ("operation", "request_"), REQUESTS, ids=[operation.name for operation, _ in REQUESTS]
)
def test_a_request_is_answered_partition_by_partition(
    world: ShareWorld, operation: Operation, request_: Any
) -> None:
    response: Any = serve(operation, world.coordinator, request_)
    ((topic_id, results),) = [(topic.topic_id, topic.partitions) for topic in response.results]
    assert topic_id == TOPIC
    good, bad = results
    assert not good.error_code
    assert bad.partition == 9
    assert bad.error_code
    assert bad.error_message
    request_ = type(request_)(group_id="", topics=request_.topics)
    assert serve(operation, world.coordinator, request_) == operation.response()
    assert serve(operation, world.coordinator, type(request_)(group_id="g")) == operation.response()


async def test_a_long_request_lets_others_be_served(world: ShareWorld) -> None:
    questions = [
        share_state.ReadShareGroupStateSummaryPartitionData(partition=number)
        for number in range(2 * PART_QUESTIONS_MAX + 1)
    ]
    topic = share_state.ReadStateSummaryData(topic_id=TOPIC, partitions=questions)
    request = share_state.ReadShareGroupStateSummaryRequest(group_id="g", topics=[topic])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    response: Any = await cast("Awaitable[Any]", serve(SUMMARY, world.coordinator, request))
    beside.cancel()
    assert turns >= 4
    (result,) = response.results
    assert [one.partition for one in result.partitions] == list(range(len(questions)))


def share_records(world: ShareWorld) -> list[CoordinatorRecord]:
    """Everything that was written."""
    found = []
    for batch in world.log[0].batches:
        for raw in decode_records(batch):
            record = decode_record(raw, SHARE_RECORDS)
            assert record is not None
            found.append(record)
    return found
