"""What a coordinator writes by a short way is, byte for byte, what the general codecs write."""

from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.offset_record import OffsetRecord, offset_record
from barnabas.coordinator.group.records import RECORD_TYPES
from barnabas.coordinator.record_codec import decode_record, encode_record
from barnabas.protocol.records.own_batch import encode_own_batch
from barnabas.protocol.records.records import Record, encode_batch

blobs = st.binary(max_size=80) | st.binary(min_size=250, max_size=260) | st.just(bytes(9000))
int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.integers(-1, 2**62)


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


@st.composite
def offset_records(draw: st.DrawFn) -> OffsetRecord:
    return offset_record(
        draw(st.text(max_size=20)),
        draw(st.text(max_size=20)),
        draw(st.integers(0, 2**31 - 1)),
        offset=draw(int64s),
        leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        metadata=draw(st.just("") | st.text(max_size=200)),
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
