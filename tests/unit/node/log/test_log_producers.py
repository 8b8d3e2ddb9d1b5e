"""Idempotent and transactional producers: sequences, duplicates, fencing, open transactions."""

from typing import NamedTuple

import pytest

from barnabas.node.log.appending import AppendResult
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import CorruptSnapshotError
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.producers.entry import ProducedBatch, ProducerEntry
from barnabas.node.log.producers.snapshot import parse_snapshot, render_snapshot
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.control import encode_end_txn
from support.logs import NOW_MS, LogBench, make_batch, read_values

ID = 40


def produce(
    bench: LogBench,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    producer_id: int = ID,
) -> AppendResult:
    return bench.append(
        make_batch(
            *(f"{sequence + index}" for index in range(count)),
            producer=(producer_id, epoch, sequence),
            transactional=transactional,
        )
    )


def end(
    bench: LogBench,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    producer_id: int = ID,
) -> AppendResult:
    marker = encode_end_txn(
        is_commit=commit,
        coordinator_epoch=coordinator_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        timestamp_ms=NOW_MS,
    )
    return bench.log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )


class Step(NamedTuple):
    """A batch and its outcome: an error, or (first offset, whether it is a duplicate)."""

    sequence: int
    count: int  # type: ignore[assignment]  # hides a method of tuples that nobody calls
    epoch: int
    outcome: ErrorCode | tuple[int, bool]


GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
LAST = 2**31 - 1

STORIES: dict[str, list[Step]] = {
    "in order": [Step(0, 3, 0, (0, False)), Step(3, 1, 0, (3, False)), Step(4, 2, 0, (4, False))],
    "a gap": [Step(0, 3, 0, (0, False)), Step(4, 1, 0, GAP), Step(3, 1, 0, (3, False))],
    "a duplicate": [Step(0, 3, 0, (0, False)), Step(0, 3, 0, (0, True)), Step(3, 1, 0, (3, False))],
    "a duplicate five back": [
        *(Step(number, 1, 0, (number, False)) for number in range(6)),
        Step(1, 1, 0, (1, True)),
        Step(5, 1, 0, (5, True)),
        Step(0, 1, 0, GAP),
    ],
    "the same first sequence, another count": [Step(0, 3, 0, (0, False)), Step(0, 2, 0, GAP)],
    "a late start is taken": [Step(17, 1, 0, (0, False)), Step(18, 1, 0, (1, False))],
    "a new epoch starts at 0": [
        Step(0, 2, 0, (0, False)),
        Step(2, 1, 1, GAP),
        Step(0, 1, 1, (2, False)),
        Step(0, 1, 1, (2, True)),
    ],
    "an old epoch is fenced": [Step(0, 1, 3, (0, False)), Step(1, 1, 2, FENCED)],
    "sequences wrap": [
        Step(LAST - 1, 2, 0, (0, False)),
        Step(0, 1, 0, (2, False)),
        Step(LAST - 1, 2, 0, (0, True)),
    ],
    "a batch across the wrap": [
        Step(LAST, 3, 0, (0, False)),
        Step(2, 1, 0, (3, False)),
        Step(LAST, 3, 0, (0, True)),
    ],
}


@pytest.mark.parametrize("restart", ["no restart", "killed", "clean"])
@pytest.mark.parametrize("story", STORIES)
def test_sequences(story: str, restart: str) -> None:
    bench = LogBench()
    for step in STORIES[story]:
        result = produce(bench, step.sequence, step.count, epoch=step.epoch)
        outcome = result.error or (result.first_offset, result.is_duplicate)
        assert outcome == step.outcome, step
        if restart == "killed":
            bench.reopen()
        elif restart == "clean" and "five" not in story and "wrap" not in story:
            # A snapshot keeps only the last batch of each producer.
            bench.log.close()
            bench.reopen(is_clean=True)


def test_duplicates_of_plain_producers_are_stored() -> None:
    bench = LogBench()
    bench.append(make_batch("a"))
    bench.append(make_batch("a"))
    assert read_values(bench.log) == ["a", "a"]


def test_last_batch_is_known_after_a_clean_restart() -> None:
    bench = LogBench()
    produce(bench, 0, 3)
    produce(bench, 3, 2)
    bench.log.close()
    bench.reopen(is_clean=True)
    result = produce(bench, 3, 2)
    assert (result.is_duplicate, result.first_offset, result.last_offset) == (True, 3, 4)
    assert produce(bench, 7).error is GAP
    assert produce(bench, 5).first_offset == 5


def test_producers_come_back_from_a_roll_snapshot_and_what_follows() -> None:
    bench = LogBench()
    produce(bench, 0)
    bench.log.roll()
    produce(bench, 1)
    bench.log.flush_now()
    produce(bench, 2)
    bench.reopen()
    assert produce(bench, 2).is_duplicate
    assert produce(bench, 1).is_duplicate
    assert produce(bench, 4).error is GAP


def test_damaged_snapshot_is_dropped_and_the_log_read_instead() -> None:
    bench = LogBench()
    produce(bench, 0)
    bench.log.roll()
    produce(bench, 1)
    bench.log.close()
    for name in bench.names():
        if name.endswith(".snapshot"):
            bench.disk.inode(bench.path(name)).data[4] ^= 1
    bench.reopen(is_clean=False)
    assert produce(bench, 1).is_duplicate
    bench.log.close()
    bench.disk.inode(bench.path(f"{2:020d}.snapshot")).data[4] ^= 1
    bench.reopen(is_clean=True)
    assert produce(bench, 1).is_duplicate


def test_producers_follow_a_truncation() -> None:
    bench = LogBench()
    produce(bench, 0)
    produce(bench, 1)
    produce(bench, 2)
    bench.log.truncate_to(1)
    assert produce(bench, 2).error is GAP
    assert produce(bench, 1).first_offset == 1


def test_silent_producers_are_forgotten() -> None:
    bench = LogBench()
    produce(bench, 0, producer_id=1)
    produce(bench, 0, producer_id=2, transactional=True)
    bench.clock.advance(86_400_000 - 1)
    assert bench.log.producers.expire(bench.clock.time_ms, 86_400_000) == 0
    bench.clock.advance(1)
    assert bench.log.producers.expire(bench.clock.time_ms, 86_400_000) == 1
    assert [entry.producer_id for entry in bench.log.active_producers()] == [2]
    # One that is not known any more may go on.
    assert produce(bench, 8, producer_id=1).first_offset == 2


# Transactions


def test_open_transaction_holds_the_last_stable_offset() -> None:
    bench = LogBench()
    log = bench.log
    bench.fill("plain")
    produce(bench, 0, 2, transactional=True)
    produce(bench, 0, 1, transactional=True, producer_id=41)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 1
    end(bench, commit=True)
    assert log.last_stable_offset == 1  # the marker could still be lost
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 3
    end(bench, commit=False, producer_id=41)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset == 6


def abort_three(bench: LogBench) -> list[AbortedTransaction]:
    """Write interleaved transactions of two producers; return the aborted ones for the index."""
    produce(bench, 0, 2, transactional=True, producer_id=1)  # 0-1
    produce(bench, 0, 1, transactional=True, producer_id=2)  # 2
    end(bench, commit=False, producer_id=1)  # 3
    produce(bench, 2, 1, transactional=True, producer_id=1)  # 4
    bench.log.roll()
    end(bench, commit=False, producer_id=2)  # 5
    end(bench, commit=True, producer_id=1)  # 6
    produce(bench, 1, 1, transactional=True, producer_id=2)  # 7
    end(bench, commit=False, producer_id=2)  # 8
    return [
        AbortedTransaction(1, 0, 3, 2),
        AbortedTransaction(2, 2, 5, 4),
        AbortedTransaction(2, 7, 8, 9),
    ]


@pytest.mark.parametrize("restart", ["no restart", "killed", "clean"])
def test_aborted_transactions_are_indexed(restart: str) -> None:
    bench = LogBench()
    first, second, third = abort_three(bench)
    if restart == "killed":
        bench.reopen(recovery_point=0)
    elif restart == "clean":
        bench.log.close()
        bench.reopen(is_clean=True)
    log = bench.log
    assert log.aborted_transactions(0, 9) == [first, second, third]
    assert log.aborted_transactions(0, 2) == [first]
    assert log.aborted_transactions(4, 9) == [second, third]
    assert log.aborted_transactions(6, 9) == [third]
    assert log.aborted_transactions(7, 7) == []
    log.high_watermark = 9
    assert log.last_stable_offset == 9


@pytest.mark.parametrize("damage", ["cut", "version", "gone"])
def test_damaged_transaction_index_is_rebuilt(damage: str) -> None:
    bench = LogBench()
    expected = abort_three(bench)
    bench.log.close()
    path = bench.path(f"{0:020d}.txnindex")
    if damage == "cut":
        del bench.disk.inode(path).data[-3:]
    elif damage == "version":
        bench.disk.inode(path).data[1] = 9
    if damage != "gone":
        bench.reopen(is_clean=True)
        assert bench.log.aborted_transactions(0, 9) == expected
        return
    # A missing one cannot be told from one that was never needed, unless the log is recovered.
    bench.disk.remove(path)
    bench.reopen(is_clean=False, recovery_point=0)
    assert bench.log.aborted_transactions(0, 9) == expected


def test_truncation_cuts_the_transaction_index() -> None:
    bench = LogBench()
    abort_three(bench)
    bench.log.truncate_to(7)
    assert [entry.last_offset for entry in bench.log.aborted_transactions(0, 9)] == [3, 5]
    bench.log.truncate_to(4)
    assert [entry.last_offset for entry in bench.log.aborted_transactions(0, 9)] == [3]
    bench.log.high_watermark = 4
    assert bench.log.last_stable_offset == 2  # the other's transaction is open again


def test_open_transactions_survive_restarts() -> None:
    for is_clean in (False, True):
        bench = LogBench()
        bench.fill("a")
        produce(bench, 0, transactional=True)
        bench.log.close(clean=is_clean)
        bench.reopen(is_clean=is_clean)
        bench.log.high_watermark = 2
        assert bench.log.last_stable_offset == 1
        assert bench.log.producers.is_open(ID)
        assert not end(bench, commit=False).error
        assert bench.log.aborted_transactions(0, 3) == [AbortedTransaction(ID, 1, 2, 3)]


def test_plain_data_inside_a_transaction_is_refused() -> None:
    bench = LogBench()
    produce(bench, 0, transactional=True)
    assert produce(bench, 1).error is ErrorCode.INVALID_TXN_STATE


def test_markers_of_old_epochs_are_refused() -> None:
    bench = LogBench()
    produce(bench, 0, epoch=2, transactional=True)
    assert end(bench, commit=True, epoch=1).error is FENCED
    assert not end(bench, commit=True, epoch=2, coordinator_epoch=5).error
    fenced = end(bench, commit=True, epoch=2, coordinator_epoch=4)
    assert fenced.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_marker_without_data_completes_nothing() -> None:
    bench = LogBench()
    assert not end(bench, commit=False).error
    assert bench.log.aborted_transactions(0, 1) == []
    assert produce(bench, 0, transactional=True).first_offset == 1


def test_marker_with_a_raised_epoch_lets_sequences_start_anew() -> None:
    bench = LogBench()  # KIP-890: each transaction has its own epoch
    produce(bench, 0, 2, transactional=True)
    assert not end(bench, commit=True, epoch=1).error
    assert produce(bench, 2, transactional=True).error is FENCED
    assert not produce(bench, 0, epoch=1, transactional=True).error


# Snapshots


def test_snapshot_round_trip() -> None:
    plain = ProducerEntry(7, 1, -1, NOW_MS)
    plain.add_batch(ProducedBatch(9, 104, 4, NOW_MS))
    open_one = ProducerEntry(8, 0, 3, NOW_MS, 55)
    found = parse_snapshot(render_snapshot([plain, open_one]))
    assert [
        (entry.producer_id, entry.epoch, entry.coordinator_epoch, entry.txn_first_offset)
        for entry in found
    ] == [(7, 1, -1, -1), (8, 0, 3, 55)]
    assert found[0].batches == [ProducedBatch(9, 104, 4, NOW_MS)]
    assert found[0].batches[0].first_sequence == 5
    assert found[0].batches[0].first_offset == 100
    assert not found[1].batches


def test_snapshot_as_kafka_writes_it() -> None:
    data = bytes.fromhex(
        "000142b46aae0000000100000000000000050000000000ef00000000000000fa"
        "00000013000001a1fc253ec300000000ffffffffffffffff"
    )
    (entry,) = parse_snapshot(data)
    assert (entry.producer_id, entry.epoch, entry.coordinator_epoch) == (5, 0, 0)
    assert entry.batches == [ProducedBatch(239, 250, 19, 1795231661763)]
    assert render_snapshot([entry]) == data


@pytest.mark.parametrize("size", range(0, 56, 5))
def test_snapshot_cut_off(size: int) -> None:
    data = render_snapshot([ProducerEntry(7)])
    with pytest.raises(CorruptSnapshotError):
        parse_snapshot(data[:size])


def test_snapshot_of_another_version_or_with_more_than_it_says() -> None:
    data = render_snapshot([])
    with pytest.raises(CorruptSnapshotError, match="version 2"):
        parse_snapshot(b"\0\2" + data[2:])
    with pytest.raises(CorruptSnapshotError):
        parse_snapshot(data + b"x")


def test_stray_snapshots_are_cleared_away() -> None:
    bench = LogBench(config=LogConfig(segment_bytes=100))
    for number in range(4):
        produce(bench, number)
    bench.log.close()
    bench.disk.write_atomic(bench.path(f"{1:020d}.snapshot"), b"old")
    bench.disk.write_atomic(bench.path(f"{2:020d}.snapshot.deleted"), b"old")
    bench.reopen(is_clean=True)
    bases = [segment.base_offset for segment in bench.log.segments]
    kept = [name for name in bench.names() if ".snapshot" in name]
    assert kept == [f"{offset:020d}.snapshot" for offset in [*bases[1:], 4] if offset]
