"""Control batches: markers byte for byte as Kafka writes them, and the quorum's messages."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.quorum import (
    Endpoint,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from barnabas.protocol.messages.voters import KRaftVersionFeature
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, read_header
from barnabas.protocol.records.control import (
    ControlMessage,
    ControlType,
    EndTxn,
    control_type,
    decode_control,
    encode_control_batch,
    encode_end_txn,
)
from barnabas.protocol.records.records import Record, decode_records

DIRECTORY_ID = Uuid(bytes.fromhex("2183a055a740472a8d3e58d704bd692a"))

# The first batch of a metadata log that Apache Kafka 4.3.1 wrote.
KAFKA_LEADER_CHANGE = bytes.fromhex(
    "0000000000000000000000a20000000102289a1b96002000000002000001a1fc252b81000001a1fc"
    "252b81ffffffffffffffffffffffffffff000000033a000000080000000226000000000001020000"
    "00010002000000010000001e00000208000000050a000000010000820100000408000000066e0000"
    "02000000012183a055a740472a8d3e58d704bd692a020b434f4e54524f4c4c45520a6c6f63616c68"
    "6f7374244d000000000100000000"
)
KAFKA_MESSAGES: list[ControlMessage] = [
    LeaderChangeMessage(
        leader_id=1,
        voters=[LeaderChangeMessageVoter(voter_id=1)],
        granting_voters=[LeaderChangeMessageVoter(voter_id=1)],
    ),
    KRaftVersionRecord(k_raft_version=1),
    VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=1,
                voter_directory_id=DIRECTORY_ID,
                endpoints=[Endpoint(name="CONTROLLER", host="localhost", port=0x244D)],
                k_raft_version_feature=KRaftVersionFeature(max_supported_version=1),
            )
        ]
    ),
]


def test_batch_that_kafka_wrote_is_read_and_written_again() -> None:
    header = read_header(KAFKA_LEADER_CHANGE)
    assert check_crc(KAFKA_LEADER_CHANGE, 0, header)
    records = decode_records(KAFKA_LEADER_CHANGE)
    assert [decode_control(record) for record in records] == KAFKA_MESSAGES
    written = encode_control_batch(
        KAFKA_MESSAGES,
        timestamp_ms=header.base_timestamp,
        partition_leader_epoch=header.partition_leader_epoch,
    )
    assert written == KAFKA_LEADER_CHANGE


@pytest.mark.parametrize("is_commit", [False, True])
def test_end_of_a_transaction(is_commit: bool) -> None:
    data = encode_end_txn(
        is_commit=is_commit,
        coordinator_epoch=5,
        producer_id=9,
        producer_epoch=2,
        timestamp_ms=1000,
        partition_leader_epoch=3,
    )
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, -1)
    (record,) = decode_records(data)
    assert record.key == bytes([0, 0, 0, is_commit])
    assert record.value == bytes([0, 0, 0, 0, 0, 5])
    assert control_type(record) is (ControlType.COMMIT if is_commit else ControlType.ABORT)
    assert decode_control(record) == EndTxn(is_commit, 5)


def test_end_of_a_transaction_needs_its_producer() -> None:
    with pytest.raises(ValueError, match="producer id"):
        encode_control_batch([EndTxn(True, 1)], timestamp_ms=0)


@pytest.mark.parametrize(
    "message",
    [
        SnapshotHeaderRecord(last_contained_log_timestamp=2**40),
        SnapshotFooterRecord(),
        LeaderChangeMessage(
            version=1,
            leader_id=4,
            voters=[LeaderChangeMessageVoter(voter_id=4, voter_directory_id=DIRECTORY_ID)],
        ),
    ],
)
def test_round_trip(message: ControlMessage) -> None:
    (record,) = decode_records(encode_control_batch([message], timestamp_ms=1))
    assert decode_control(record) == message


def test_type_of_a_later_kafka_is_skipped() -> None:
    record = Record(key=bytes([0, 0, 0, 7]), value=b"anything")
    assert control_type(record) is None
    assert decode_control(record) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x00\x00", b""),
        (b"\xff\xff\x00\x00", b"\x00\x00\x00\x00\x00\x00"),
        (b"\x00\x00\x00\x00", None),
        (b"\x00\x00\x00\x00", b"\x00"),
        (b"\x00\x00\x00\x00", b"\x00\x00\x00"),
        (b"\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"),
    ],
)
def test_malformed_control_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatchError):
        decode_control(Record(key=key, value=value))


def test_value_that_ends_early() -> None:
    (record,) = decode_records(encode_control_batch([KAFKA_MESSAGES[2]], timestamp_ms=1))
    assert record.value is not None
    for size in range(2, len(record.value)):
        with pytest.raises(DecodeError):
            decode_control(Record(key=record.key, value=record.value[:size]))
