"""What a leader takes from producers, and what it refuses: nothing refused leaves a trace."""

from collections.abc import Callable

import pytest

from barnabas.node.log.appending import AppendResult
from barnabas.node.log.config import LONG_MAX, LogConfig
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    HEADER,
    Codec,
    TimestampType,
    read_header,
    set_crc,
    set_max_timestamp,
)
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import NOW_MS, LogBench, make_batch, read_records, read_values

FIELDS = (
    "base_offset", "batch_length", "leader_epoch", "magic", "crc", "attributes",
    "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch",
    "base_sequence", "record_count",
)  # fmt: skip


def spoil(**changes: int) -> bytearray:
    """A batch of two records with other header fields, and a CRC that fits."""
    batch = make_batch("a", "b")
    values = list(HEADER.unpack_from(batch))
    for name, value in changes.items():
        values[FIELDS.index(name)] = value
    HEADER.pack_into(batch, 0, *values)
    set_crc(batch, 0)
    return batch


def flip_last_bit(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


HOUR_MS = 3_600_000
TOPIC = LogConfig()
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
SMALL = LogConfig(max_message_bytes=200)
TINY_SEGMENTS = LogConfig(segment_bytes=200)
RECENT_ONLY = LogConfig(message_timestamp_before_max_ms=HOUR_MS)
BY_BROKER = LogConfig(message_timestamp_type="LogAppendTime")

REFUSED: dict[str, tuple[LogConfig, Callable[[], bytearray], ErrorCode]] = {
    "nothing": (TOPIC, bytearray, ErrorCode.CORRUPT_MESSAGE),
    "half a header": (TOPIC, lambda: make_batch("a")[:30], ErrorCode.CORRUPT_MESSAGE),
    "a cut off batch": (TOPIC, lambda: make_batch("a")[:-1], ErrorCode.CORRUPT_MESSAGE),
    "two batches": (TOPIC, lambda: make_batch("a") + make_batch("b"), ErrorCode.INVALID_RECORD),
    "a byte too many": (TOPIC, lambda: make_batch("a") + b"x", ErrorCode.INVALID_RECORD),
    "an old magic": (TOPIC, lambda: spoil(magic=1), ErrorCode.INVALID_RECORD),
    "another magic": (TOPIC, lambda: spoil(magic=3), ErrorCode.CORRUPT_MESSAGE),
    "a flipped bit": (TOPIC, lambda: flip_last_bit(make_batch("a")), ErrorCode.CORRUPT_MESSAGE),
    "a negative length": (TOPIC, lambda: bytearray(HEADER.pack(0, -1, 0, 2, *[0] * 9)),
                          ErrorCode.CORRUPT_MESSAGE),
    "no records": (TOPIC, lambda: spoil(record_count=0, last_offset_delta=-1),
                   ErrorCode.INVALID_RECORD),
    "a count too high": (TOPIC, lambda: spoil(record_count=3, last_offset_delta=2),
                         ErrorCode.INVALID_RECORD),
    "a count too low": (TOPIC, lambda: spoil(record_count=1, last_offset_delta=0),
                        ErrorCode.INVALID_RECORD),
    "a count of two billion": (TOPIC, lambda: spoil(record_count=2**31 - 1,
                                                    last_offset_delta=2**31 - 2),
                               ErrorCode.INVALID_RECORD),
    "offsets of another count": (TOPIC, lambda: spoil(last_offset_delta=5),
                                 ErrorCode.INVALID_RECORD),
    "a base offset": (TOPIC, lambda: spoil(base_offset=7), ErrorCode.INVALID_RECORD),
    "a control batch": (TOPIC, lambda: spoil(attributes=0x20), ErrorCode.INVALID_RECORD),
    "an unknown codec": (TOPIC, lambda: spoil(attributes=5),
                         ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "a codec that it is not": (TOPIC, lambda: spoil(attributes=Codec.ZSTD),
                               ErrorCode.CORRUPT_MESSAGE),
    "a producer without sequence": (TOPIC, lambda: spoil(producer_id=9, producer_epoch=0),
                                    ErrorCode.INVALID_RECORD),
    "more than max.message.bytes": (SMALL, lambda: make_batch("a" * 200),
                                    ErrorCode.MESSAGE_TOO_LARGE),
    "more than a segment": (TINY_SEGMENTS, lambda: make_batch("a" * 200),
                            ErrorCode.RECORD_LIST_TOO_LARGE),
    "no key on a compacted topic": (COMPACTED, lambda: make_batch("a"), ErrorCode.INVALID_RECORD),
    "a timestamp to come": (TOPIC, lambda: make_batch("a", timestamp=NOW_MS + HOUR_MS + 1),
                            ErrorCode.INVALID_TIMESTAMP),
    "a timestamp long past": (RECENT_ONLY, lambda: make_batch("a", timestamp=NOW_MS - HOUR_MS - 1),
                              ErrorCode.INVALID_TIMESTAMP),
    "one timestamp long past": (
        RECENT_ONLY,
        lambda: make_batch("a", "b", timestamps=[NOW_MS, NOW_MS - HOUR_MS - 1]),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "the broker's timestamp type": (BY_BROKER, lambda: spoil(attributes=8),
                                    ErrorCode.INVALID_TIMESTAMP),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    config, make, error = REFUSED[name]
    bench = LogBench(config=config)
    result = bench.append(make())
    assert (result.error, result.first_offset) == (error, -1)
    assert result.message
    assert (bench.log.log_end_offset, bench.log.size_bytes) == (0, 0)
    assert not bench.log.producers.producers
    # The log is none the worse for it.
    key = "k" if config is COMPACTED else None
    assert not bench.append(make_batch("next", key=key)).error


@pytest.mark.parametrize(
    ("config", "batch", "index"),
    [
        (COMPACTED, encode_batch([Record(key=b"k"), Record(value=b"no key")]), 1),
        (RECENT_ONLY, make_batch("a", "b", timestamps=[NOW_MS, 0]), 1),
    ],
    ids=["key", "timestamp"],
)
def test_names_the_record_that_is_wrong(config: LogConfig, batch: bytearray, index: int) -> None:
    result = LogBench(config=config).append(batch)
    assert [entry[0] for entry in result.record_errors] == [index]
    assert result.record_errors[0][1]


def test_assigns_offsets_and_epoch_in_place() -> None:
    bench = LogBench()
    first, second = make_batch("a", "b", "c"), make_batch("d")
    assert summary(bench.append(first, epoch=4)) == (0, 2, -1)
    assert summary(bench.append(second, epoch=5)) == (3, 3, -1)
    assert read_header(second).base_offset == 3
    assert read_header(second).partition_leader_epoch == 5
    assert [record.offset for record in read_records(bench.log)] == [0, 1, 2, 3]
    assert bench.log.epochs.entries == [(4, 0), (5, 3)]


def summary(result: AppendResult) -> tuple[int, int, int]:
    assert not result.error, result.message
    return result.first_offset, result.last_offset, result.log_append_time_ms


def test_takes_a_slice_of_a_frame_without_touching_the_rest() -> None:
    bench = LogBench()
    frame = bytearray(b"before") + make_batch("a") + b"after"
    view = memoryview(frame)[6:-5]
    assert not bench.log.append_as_leader(view, leader_epoch=0, now_ms=NOW_MS).error
    assert frame.startswith(b"before")
    assert frame.endswith(b"after")


def test_log_append_time_is_the_brokers() -> None:
    bench = LogBench(config=BY_BROKER)
    assert summary(bench.append(make_batch("a", "b", timestamp=5))) == (0, 1, NOW_MS)
    assert [record.timestamp for record in read_records(bench.log)] == [NOW_MS, NOW_MS]
    batch = bytes(bench.disk.inode(bench.log.active.files.log_path).data)
    assert read_header(batch).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_create_time_topic_takes_the_flag_off_a_batch() -> None:
    bench = LogBench()
    batch = make_batch("a", timestamp=NOW_MS - 10)
    set_max_timestamp(batch, 0, NOW_MS - 5, TimestampType.LOG_APPEND_TIME)
    assert not bench.append(batch).error
    stored = read_header(bytes(bench.disk.inode(bench.log.active.files.log_path).data))
    assert stored.timestamp_type is TimestampType.CREATE_TIME


def test_no_timestamp_is_always_in_range() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1, message_timestamp_after_max_ms=1)
    assert not LogBench(config=config).append(make_batch("a", timestamp=-1)).error


def test_negative_greatest_timestamp_is_corrected() -> None:
    bench = LogBench()
    batch = make_batch("a", "b", timestamps=[NOW_MS - 20, NOW_MS - 10])
    set_max_timestamp(batch, 0, -1, TimestampType.CREATE_TIME)
    assert not bench.append(batch).error
    found = bench.log.max_timestamp_offset(2)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW_MS - 10, 1)


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_compression_type_of_the_topic(source: Codec, target: str) -> None:
    bench = LogBench(config=LogConfig(compression_type=target))
    values = [f"value {number}" for number in range(50)]
    assert not bench.append(make_batch(*values, codec=source, producer=(7, 1, 0))).error
    stored = read_header(bytes(bench.disk.inode(bench.log.active.files.log_path).data))
    wanted = source.name if target == "producer" else target.upper().replace("UNCOMPRESSED", "NONE")
    assert stored.codec.name == wanted
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (7, 1, 0)
    assert read_values(bench.log) == values


def test_trusted_origins_append_several_batches_by_one_write() -> None:
    bench = LogBench()
    data = make_batch("a", "b") + make_batch("c")
    before = bench.disk.append_count
    result = bench.log.append_as_leader(
        data, leader_epoch=2, now_ms=NOW_MS, origin=AppendOrigin.RAFT
    )
    assert summary(result) == (0, 2, -1)
    assert bench.disk.append_count == before + 1
    assert read_values(bench.log, 1) == ["b", "c"]


def test_coordinator_may_write_markers() -> None:
    bench = LogBench()
    marker = encode_end_txn(
        is_commit=True, coordinator_epoch=1, producer_id=3, producer_epoch=0, timestamp_ms=NOW_MS
    )
    result = bench.log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    assert summary(result) == (0, 0, -1)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (bytearray(), ErrorCode.INVALID_RECORD),
        (bytearray(b"garbage"), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_trusted_origins_are_not_blindly_trusted(data: bytearray, error: ErrorCode) -> None:
    result = LogBench().log.append_as_leader(
        data, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    assert result.error is error


# Followers


def test_follower_keeps_offsets_epochs_and_gaps() -> None:
    bench = LogBench()
    data = (
        make_batch("a", "b", base_offset=0, leader_epoch=1)
        + make_batch("c", base_offset=5, leader_epoch=1)
        + make_batch("d", base_offset=6, leader_epoch=3)
    )
    assert summary(bench.log.append_as_follower(bytes(data))) == (0, 6, -1)
    assert [record.offset for record in read_records(bench.log)] == [0, 1, 5, 6]
    assert bench.log.epochs.entries == [(1, 0), (3, 6)]
    assert bench.log.log_end_offset == 7
    # Offset 3 is gone: a read from it returns the records after it.
    assert read_values(bench.log, 3) == ["c", "d"]


def test_follower_leaves_out_a_batch_that_is_cut_off() -> None:
    bench = LogBench()
    data = make_batch("a") + make_batch("b", base_offset=1)[:-3]
    assert summary(bench.log.append_as_follower(data)) == (0, 0, -1)
    assert summary(bench.log.append_as_follower(make_batch("b", base_offset=1)[:-3])) == (1, 0, -1)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (make_batch("x", base_offset=1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (
            make_batch("x", base_offset=5) + make_batch("y", base_offset=5),
            ErrorCode.OFFSET_OUT_OF_RANGE,
        ),
        (flip_last_bit(make_batch("x", base_offset=2)), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["before the end", "not ascending", "bad CRC"],
)
def test_follower_refuses(data: bytearray, error: ErrorCode) -> None:
    bench = LogBench()
    bench.fill("a", "b")
    assert bench.log.append_as_follower(data).error is error
    assert read_values(bench.log) == ["a", "b"]


def test_follower_of_a_log_that_starts_inside_a_batch() -> None:
    bench = LogBench()
    bench.log.truncate_fully_and_start_at(12)
    data = make_batch("a", "b", "c", base_offset=10)
    assert summary(bench.log.append_as_follower(data)) == (10, 12, -1)
    assert read_values(bench.log) == ["c"]
    assert bench.log.high_watermark == 12
    assert not bench.reopen(log_start_offset=12).is_loss
    assert read_values(bench.log) == ["c"]


def test_follower_append_may_need_another_segment() -> None:
    bench = LogBench()
    far = 2**31
    bench.fill("a")
    assert not bench.log.append_as_follower(make_batch("b", base_offset=far)).error
    assert [segment.base_offset for segment in bench.log.segments] == [0, far]
    assert read_values(bench.log) == ["a", "b"]


# Rolling


def test_rolls_by_size() -> None:
    size = len(make_batch("a"))
    bench = LogBench(config=LogConfig(segment_bytes=3 * size))
    bench.fill(*"abcdefg")
    assert [segment.base_offset for segment in bench.log.segments] == [0, 3, 6]
    assert read_values(bench.log) == list("abcdefg")
    assert bench.names() == [
        f"{offset:020d}{suffix}"
        for offset, suffix in [
            (0, ".index"), (0, ".log"), (0, ".timeindex"),
            (3, ".index"), (3, ".log"), (3, ".snapshot"), (3, ".timeindex"),
            (6, ".index"), (6, ".log"), (6, ".snapshot"), (6, ".timeindex"),
        ]
    ] + ["partition.metadata"]  # fmt: skip


def test_rolls_by_the_records_time() -> None:
    bench = LogBench(config=LogConfig(segment_ms=HOUR_MS))
    for age in (HOUR_MS * 3, HOUR_MS * 2, HOUR_MS * 2 - 1, 0):
        assert not bench.append(make_batch("a", timestamp=NOW_MS - age)).error
    assert [segment.base_offset for segment in bench.log.segments] == [0, 2, 3]


def test_rolls_by_age_where_records_have_no_time() -> None:
    bench = LogBench(config=LogConfig(segment_ms=HOUR_MS))
    assert not bench.append(make_batch("a", timestamp=-1)).error
    bench.clock.advance(HOUR_MS)
    assert not bench.append(make_batch("b", timestamp=-1)).error
    bench.clock.advance(1)
    assert not bench.append(make_batch("c", timestamp=-1)).error
    assert [segment.base_offset for segment in bench.log.segments] == [0, 2]


def test_rolls_when_an_index_is_full() -> None:
    # 12 bytes a time index entry, one slot of which is kept for the roll: 96 // 12 - 1 = 7.
    bench = LogBench(config=LogConfig(segment_index_bytes=96, index_interval_bytes=0))
    for number in range(20):
        assert not bench.append(make_batch("a", timestamp=NOW_MS - 100 + number)).error
    assert [segment.base_offset for segment in bench.log.segments] == [0, 8, 16]


def test_jitter_rolls_earlier_and_the_same_each_time() -> None:
    config = LogConfig(segment_ms=10 * HOUR_MS, segment_jitter_ms=8 * HOUR_MS)
    rolls = []
    for _ in range(2):
        bench = LogBench(config=config)
        for hours in range(30):
            assert not bench.append(
                make_batch("a", timestamp=NOW_MS - (30 - hours) * HOUR_MS)
            ).error
        rolls.append([segment.base_offset for segment in bench.log.segments])
    assert rolls[0] == rolls[1]
    assert len(rolls[0]) >= 3


def test_roll_of_an_empty_segment_does_nothing() -> None:
    bench = LogBench()
    bench.log.roll()
    bench.fill("a")
    bench.log.roll()
    bench.log.roll()
    assert [segment.base_offset for segment in bench.log.segments] == [0, 1]


def test_config_from_topic_values() -> None:
    config = LogConfig.from_topic_values(
        {
            "segment.bytes": 1000,
            "cleanup.policy": ["compact", "delete"],
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "gzip",
            "compression.gzip.level": 3,
            "flush.messages": 1,
            "retention.ms": None,
            "follower.replication.throttled.replicas": [],
        }
    )
    assert (config.segment_bytes, config.flush_messages) == (1000, 1)
    assert config.is_compacted
    assert config.is_deleted
    assert config.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (config.codec, config.codec_level) == (Codec.GZIP, 3)
    assert config.retention_ms == LogConfig().retention_ms
    assert LogConfig.from_topic_values({"cleanup.policy": "compact"}).is_compacted
    assert LogConfig().codec is None
    assert LogConfig().flush_messages == LONG_MAX


@pytest.mark.parametrize(
    ("base_offset", "epoch", "error"),
    [
        (1, 3, ErrorCode.NONE),
        (9, 3, ErrorCode.NONE),  # a gap that compaction may have left
        (10, 3, ErrorCode.CORRUPT_MESSAGE),
        (1 + (1 << 24), 3, ErrorCode.CORRUPT_MESSAGE),
        (1, 4, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_follower_refuses_what_the_leader_cannot_have(
    base_offset: int, epoch: int, error: ErrorCode
) -> None:
    """Neither offset nor epoch of a batch is covered by its CRC."""
    bench = LogBench()
    bench.log.append_as_follower(make_batch("a", base_offset=0, leader_epoch=3))
    batch = make_batch("b", base_offset=base_offset, leader_epoch=epoch)
    result = bench.log.append_as_follower(batch, leader_epoch=3, leader_high_watermark=9)
    assert result.error == error
    assert bench.log.log_end_offset == (1 if error else base_offset + 1)
