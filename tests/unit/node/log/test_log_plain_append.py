"""The short way of an append comes to what the general way comes to, or leaves it to that one."""

import random
from dataclasses import replace
from typing import Any

import pytest

from barnabas.node.log import appending
from barnabas.node.log.appending import AppendResult
from barnabas.node.log.config import LogConfig
from barnabas.node.log.log_state import LogState
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.plain_append import append_plain
from barnabas.node.log.segment import PlainLimits
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, set_crc
from support.logs import NOW_MS, LogBench, make_batch, read_records

DAY_MS = 86_400_000


def _append_generally(log: PartitionLog, data: bytearray, epoch: int, now_ms: int) -> AppendResult:
    return appending._append_client(log, data, epoch, now_ms)


def _what_is_told(result: AppendResult) -> tuple[object, ...]:
    return tuple(getattr(result, name) for name in AppendResult.__slots__)


def _what_is_kept(bench: LogBench) -> tuple[object, ...]:
    """All that an append may change."""
    log, segment = bench.log, bench.log.active
    return (
        log.log_end_offset,
        [each.base_offset for each in log.segments],
        [bench.disk.read(each.files.log_path) for each in log.segments],
        segment.size_bytes,
        segment.first_timestamp,
        segment.max_timestamp,
        segment.max_timestamp_offset,
        segment.files.offset_index.count,
        segment.files.offset_index.last(),
        segment.files.time_index.count,
        segment.files.time_index.last(),
        log.epochs.entries,
        log.tail.start_offset,
        log.tail.size_bytes,
        dict(log.producers.ongoing),
        [
            (entry.producer_id, entry.epoch, entry.last_timestamp, entry.txn_first_offset)
            for entry in log.producers.producers.values()
        ],
        [entry.batches for entry in log.producers.producers.values()],
    )


def _some_batch(chance: random.Random, sequences: dict[int, int]) -> bytearray:
    """Mostly what a well-behaved producer sends next."""
    producer_id = chance.choice((-1, 1, 2))
    count = chance.choice((1, 1, 2, 5, 9))
    sequence = sequences.get(producer_id, 0) if producer_id >= 0 else -1
    transactional = producer_id == 2 and chance.random() < 0.5
    base = NOW_MS + chance.choice((0, 0, 0, 5, -DAY_MS, DAY_MS))
    varied = chance.random() < 0.5
    data = make_batch(
        *("x" * (chance.randrange(80) if varied else 20) for _ in range(count)),
        timestamps=[base + chance.choice((0, 1, 70)) for _ in range(count)],
        key=chance.choice((None, None, "key")),
        codec=chance.choice((Codec.NONE, Codec.NONE, Codec.LZ4, Codec.ZSTD)),
        producer=(producer_id, 0 if producer_id >= 0 else -1, sequence),
        transactional=transactional,
    )
    if chance.random() < 0.9:
        sequences[producer_id] = sequence + count
    return data


def _spoil(chance: random.Random, data: bytearray) -> bytearray:
    """Change any byte, the CRC being right or wrong."""
    place = chance.choice((chance.randrange(len(data)), chance.randrange(61)))
    data[place] = chance.choice((data[place] ^ 1 << chance.randrange(8), 0, 1, 0xFF))
    if chance.random() < 0.8 and len(data) == int.from_bytes(data[8:12], "big") + 12:
        set_crc(data, 0)
    return data[: -chance.randrange(1, 5)] if chance.random() < 0.05 else data


CONFIGS = {
    "defaults": LogConfig(),
    "small segments": LogConfig(segment_bytes=1500, index_interval_bytes=200),
    "jitter": LogConfig(segment_ms=DAY_MS, segment_jitter_ms=DAY_MS - 1),
    "small indexes": LogConfig(segment_index_bytes=64, index_interval_bytes=1),
    "compacted": LogConfig(cleanup_policy=frozenset({"compact"})),
    "append time": LogConfig(message_timestamp_type="LogAppendTime"),
    "recompressed": LogConfig(compression_type="lz4"),
    "old is refused": LogConfig(message_timestamp_before_max_ms=DAY_MS // 2),
    "small batches": LogConfig(max_message_bytes=150),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_come_to_the_same(name: str, seed: int) -> None:
    chance = random.Random(seed)
    plain, general = LogBench(config=CONFIGS[name]), LogBench(config=CONFIGS[name])
    sequences: dict[int, int] = {}
    epoch = 0
    for number in range(250):
        data = _some_batch(chance, sequences)
        if chance.random() < 0.3:
            data = _spoil(chance, data)
        now_ms = NOW_MS + number * 10
        if chance.random() < 0.02:
            epoch += 1
        if chance.random() < 0.02:
            end = chance.randrange(plain.log.log_end_offset + 1)
            for bench in (plain, general):
                bench.log.truncate_to(end)
        took = plain.log.append_as_leader(bytearray(data), leader_epoch=epoch, now_ms=now_ms)
        expected = _append_generally(general.log, bytearray(data), epoch, now_ms)
        assert _what_is_told(took) == _what_is_told(expected)
        assert _what_is_kept(plain) == _what_is_kept(general)
    assert read_records(plain.log) == read_records(general.log)


def _count_plain(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets True for each plain append from now on, and False for others."""
    plain: list[bool] = []
    way = append_plain

    def noted(log: LogState, *arguments: Any, **options: Any) -> list[int]:
        offsets = way(log, *arguments, **options)
        plain.append(bool(offsets))
        return offsets

    monkeypatch.setattr(appending, "append_plain", noted)
    return plain


def _producing(sequence: int, epoch: int = 0) -> bytearray:
    return make_batch("a", "b", producer=(7, epoch, sequence))


@pytest.mark.parametrize(
    ("what", "batches", "expected"),
    [
        ("without ids", [make_batch("a"), make_batch("b"), make_batch("c")], [False, True, True]),
        ("ids, then as before", [_producing(0), _producing(2), _producing(4)], [False, True, True]),
        ("a duplicate", [_producing(0), _producing(2), _producing(2)], [False, True, False]),
        ("a gap", [_producing(0), _producing(3), _producing(2)], [False, False, True]),
        ("an epoch", [_producing(0), _producing(0, 1), _producing(2, 1)], [False, False, True]),
        ("compressed", [make_batch("a"), make_batch("b" * 50, codec=Codec.ZSTD)], [False, True]),
        ("long ago", [make_batch("a"), make_batch("a", timestamp=NOW_MS - DAY_MS)], [False, True]),
        ("to come", [make_batch("a"), make_batch("a", timestamp=NOW_MS + DAY_MS)], [False, False]),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)  # fmt: skip
def test_what_is_plain(
    monkeypatch: pytest.MonkeyPatch, what: str, batches: list[bytearray], expected: list[bool]
) -> None:
    bench = LogBench()
    plain = _count_plain(monkeypatch)
    for data in batches:
        bench.append(bytearray(data))
    assert plain == expected, what


def test_limits_follow_the_configuration() -> None:
    bench = LogBench()
    bench.fill("a", "b")
    limits = bench.log.active.plain_limits
    assert limits is not None
    bench.log.config = replace(bench.log.config, max_message_bytes=100)
    assert bench.append(make_batch("c" * 100)).error == ErrorCode.MESSAGE_TOO_LARGE
    renewed: PlainLimits | None = bench.log.active.plain_limits
    assert renewed is not None
    assert renewed.batch_size_max_bytes == 100


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_together_comes_to_the_same(name: str, seed: int) -> None:
    chance = random.Random(seed)
    plain, general = LogBench(config=CONFIGS[name]), LogBench(config=CONFIGS[name])
    sequences: dict[int, int] = {}
    together = 0
    for number in range(60):
        run = [_some_batch(chance, sequences) for _ in range(chance.randrange(1, 9))]
        run = [_spoil(chance, data) if chance.random() < 0.1 else data for data in run]
        now_ms = NOW_MS + number * 10
        expected = [_append_generally(general.log, bytearray(data), 0, now_ms) for data in run]
        waiting = [memoryview(bytearray(data)) for data in run]
        while waiting:
            offsets = plain.log.append_plain(iter(waiting), 0, now_ms)
            together += len(offsets) > 1
            for offset in offsets:
                del waiting[0]
                told = expected.pop(0)
                assert (told.error, told.first_offset) == (ErrorCode.NONE, offset)
            if waiting and not offsets:
                result = appending._append_client(plain.log, waiting.pop(0), 0, now_ms)
                assert _what_is_told(result) == _what_is_told(expected.pop(0))
        indexes = slice(7, 11)  # several batches that are written together get one entry
        kept, wanted = list(_what_is_kept(plain)), list(_what_is_kept(general))
        del kept[indexes], wanted[indexes]
        assert kept == wanted
    assert read_records(plain.log) == read_records(general.log)
    assert together or name != "defaults"


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(2))
def test_both_ways_for_what_a_node_made_itself_come_to_the_same(name: str, seed: int) -> None:
    chance = random.Random(seed)
    plain, general = LogBench(config=CONFIGS[name]), LogBench(config=CONFIGS[name])
    origin = AppendOrigin.COORDINATOR
    epoch = taken = 0
    for number in range(150):
        data = _some_batch(chance, {})
        if chance.random() < 0.1:
            data += _some_batch(chance, {})
        now_ms = NOW_MS + number * 10
        epoch += chance.random() < 0.02
        if chance.random() < 0.02:
            end = chance.randrange(plain.log.log_end_offset + 1)
            for bench in (plain, general):
                bench.log.truncate_to(end)
        keeps = number < 100
        offset = plain.log.append_own(copy := bytearray(data), epoch, keep_tail=keeps)
        taken += offset >= 0
        expected = appending._append_trusted(
            general.log, bytearray(data), epoch, now_ms, origin, None
        )
        if offset >= 0 and not keeps:
            general.log.tail.clear()
        if offset >= 0:
            told = AppendResult(ErrorCode.NONE, offset, plain.log.log_end_offset - 1)
        else:
            told = appending._append_trusted(plain.log, copy, epoch, now_ms, origin, None)
        assert _what_is_told(told) == _what_is_told(expected)
        assert _what_is_kept(plain) == _what_is_kept(general)
    assert read_records(plain.log) == read_records(general.log)
    assert taken or name == "small indexes"


def test_an_index_leads_to_batches_that_were_written_together() -> None:
    bench = LogBench(config=LogConfig(index_interval_bytes=100))
    bench.fill("a", "b", "c")
    for _ in range(20):
        batches = [memoryview(make_batch("x" * 90)) for _ in range(5)]
        assert len(bench.log.append_plain(batches, 0, NOW_MS)) == 5
    bench.log.tail.clear()
    assert bench.log.active.files.offset_index.count > 10
    for offset in range(bench.log.log_end_offset):
        found = bench.log.active.locate(offset)
        assert found is not None
        assert found[1].base_offset == offset
