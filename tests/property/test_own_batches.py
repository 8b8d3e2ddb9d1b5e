"""What a coordinator writes by a short way is, byte for byte, what the general codecs write."""

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.offset_record import OffsetRecord, offset_record
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.repeated_commit import RepeatedCommit
from barnabas.node.coordinator.record_codec import decode_record, encode_record
from barnabas.node.coordinator.transaction.states import TransactionState
from barnabas.node.coordinator.transaction.transaction import Transaction, from_value, to_record
from barnabas.node.log.producers.replay import read_marker
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.transactions import TRANSACTION_RECORDS, TransactionLogValue
from barnabas.protocol.records.batch import patch, read_header
from barnabas.protocol.records.control import (
    EndTxn,
    encode_control_batch,
    encode_end_txn,
    read_end_txn,
)
from barnabas.protocol.records.own_batch import encode_own_batch
from barnabas.protocol.records.records import Record, encode_batch

blobs = st.binary(max_size=80) | st.binary(min_size=250, max_size=260) | st.just(bytes(9000))
int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.integers(-1, 2**62)
LIKE_A_VALUE = "\0\4" + "\0" * 12 + "\1" + "\0" * 9
"""The bytes of a committed offset whose numbers are 0; a group may be called so."""


@given(
    records=st.lists(st.tuples(blobs, st.none() | blobs), min_size=1, max_size=5),
    timestamp=timestamps,
    epoch=st.integers(-1, 2**31 - 1),
    producer=st.none() | st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)),
)
@example([(b"k", b"v")] * 300, 0, 0, None)
def test_a_batch_of_ones_own_is_what_any_batch_would_be(
    records: list[tuple[bytes, bytes | None]],
    timestamp: int,
    epoch: int,
    producer: tuple[int, int] | None,
) -> None:
    general = [Record(timestamp=timestamp, key=key, value=value) for key, value in records]
    if producer is None:
        own = encode_own_batch(records, timestamp, partition_leader_epoch=epoch)
        assert own == encode_batch(general, partition_leader_epoch=epoch)
        return
    producer_id, producer_epoch = producer
    own = encode_own_batch(
        records,
        timestamp,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    assert own == encode_batch(
        general,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )


@given(
    is_commit=st.booleans(),
    coordinator_epoch=st.integers(-(2**31), 2**31 - 1),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    timestamp=timestamps,
    offset=st.integers(0, 2**62),
)
def test_a_marker_is_what_the_general_way_writes_and_reads(
    is_commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    offset: int,
) -> None:
    own = encode_end_txn(
        is_commit=is_commit,
        coordinator_epoch=coordinator_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timestamp_ms=timestamp,
        partition_leader_epoch=3,
    )
    marker = EndTxn(is_commit, coordinator_epoch)
    assert own == encode_control_batch(
        [marker],
        timestamp_ms=timestamp,
        partition_leader_epoch=3,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    patch(own, 0, offset, 4)
    header = read_header(own)
    assert read_end_txn(header, own, 0) == marker
    assert read_marker(own, 0) == (marker, header.base_timestamp)


@given(place=st.integers(61, 77), byte=st.integers(0, 255))
def test_what_is_read_as_a_marker_is_one(place: int, byte: int) -> None:
    batch = encode_end_txn(
        is_commit=True, coordinator_epoch=1, producer_id=1, producer_epoch=1, timestamp_ms=5
    )
    batch[place] = byte
    marker = read_end_txn(read_header(batch), batch, 0)
    if marker is not None:
        assert read_marker(batch, 0) == (marker, 5)


@st.composite
def some_transactions(draw: st.DrawFn) -> Transaction:
    state = draw(st.sampled_from(list(TransactionState)[:6]))
    partitions = st.builds(TopicPartition, st.text(max_size=9), st.integers(0, 2**31 - 1))
    held = draw(st.lists(partitions, max_size=4)) if state else []
    return Transaction(
        producer_id=draw(int64s),
        producer_epoch=draw(st.integers(-1, 2**15 - 1)),
        timeout_ms=draw(st.integers(0, 2**31 - 1)),
        state=state,
        last_update_ms=draw(timestamps),
        start_ms=draw(timestamps),
        partitions=dict.fromkeys(held),
        last_producer_epoch=draw(st.integers(-1, 2**15 - 1)),
        previous_producer_id=draw(int64s),
        next_producer_id=draw(int64s),
        client_version=draw(st.integers(0, 2)),
    )


@given(some_transactions())
def test_a_transaction_is_what_is_read_of_its_record(transaction: Transaction) -> None:
    record = to_record("id", transaction, 1)
    key, value = encode_record(record)
    read = decode_record(Record(key=key, value=value), TRANSACTION_RECORDS)
    assert read is not None
    assert isinstance(read.value, TransactionLogValue)
    assert record.transaction == from_value(read.value, transaction.last_producer_epoch)


@st.composite
def offset_records(draw: st.DrawFn) -> OffsetRecord:
    return offset_record(
        draw(st.text(max_size=20)),
        draw(st.text(max_size=20)),
        draw(st.integers(0, 2**31 - 1)),
        offset=draw(int64s),
        leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        metadata=draw(
            st.just("") | st.text(max_size=200) | st.text("a", min_size=120, max_size=130)
        ),
        commit_timestamp_ms=draw(timestamps),
        expire_timestamp_ms=draw(st.just(-1) | timestamps),
        topic_id=draw(
            st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16).map(lambda data: Uuid(data))
        ),
    )


@given(offset_records())
def test_a_committed_offset_is_what_its_messages_would_be(record: OffsetRecord) -> None:
    general = CoordinatorRecord(record.key, record.value, record.value_version)
    encoded = encode_record(record)
    assert encoded == encode_record(general)
    key, value = encoded
    read = decode_record(Record(key=key, value=value), RECORD_TYPES)
    assert read is not None
    assert (read.key, read.value_version) == (record.key, record.value_version)


@given(
    group_id=st.text(max_size=20),
    topic=st.text(max_size=20),
    topic_id=st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16).map(lambda data: Uuid(data)),
    indexes=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=64),
    offset=int64s,
    leader_epoch=st.integers(-(2**31), 2**31 - 1),
    times=st.lists(timestamps, min_size=1, max_size=3),
)
@example(LIKE_A_VALUE, LIKE_A_VALUE, ZERO_UUID, [0, 1], 7, 1, [5])
def test_the_batch_of_a_repeated_commit_is_that_of_its_records(
    group_id: str,
    topic: str,
    topic_id: Uuid,
    indexes: list[int],
    offset: int,
    leader_epoch: int,
    times: list[int],
) -> None:
    places = [OffsetCommitRequestPartition(partition_index=index) for index in indexes]
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=places)]
    now_ms: int
    runtime = SimpleNamespace(run_encoded=lambda _, step: step.encode(now_ms, 3))
    coordinator: Any = SimpleNamespace(partition_for=lambda _: 0, runtime=runtime)
    request = OffsetCommitRequest(group_id=group_id, topics=topics)
    repeated = RepeatedCommit(coordinator, request, 9)
    for number, now_ms in enumerate(times):  # `runtime` reads it
        values = [(offset ^ place ^ number, leader_epoch, b"") for place in range(len(indexes))]
        records = [
            offset_record(
                group_id,
                topic,
                index,
                offset=value[0],
                leader_epoch=leader_epoch,
                metadata="",
                commit_timestamp_ms=now_ms,
                topic_id=topic_id,
            )
            for index, value in zip(indexes, values, strict=True)
        ]
        encoded = [encode_record(record) for record in records]
        expected: Any = encode_own_batch(encoded, now_ms, partition_leader_epoch=3)
        assert repeated.commit([part for value in values for part in value]) == expected
