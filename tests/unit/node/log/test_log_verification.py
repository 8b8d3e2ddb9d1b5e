"""Verification of transactional appends: a log needs the coordinator's confirmation (KIP-890)."""

from __future__ import annotations

import pytest

from barnabas.node.log.partition_log import AppendOrigin, AppendResult
from barnabas.node.log.producers.verification import NOT_ASKED, AppendTerms, Verification
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import NOW_MS, LogBench

ID = 7


def produce(
    bench: LogBench, epoch: int, sequence: int, verification: Verification | None
) -> AppendResult:
    batch = encode_batch(
        [Record(timestamp=NOW_MS, value=b"v")],
        producer_id=ID,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    terms = AppendTerms(verification)
    return bench.log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS, terms=terms)


def ask(
    bench: LogBench, epoch: int, sequence: int = 0, *, is_version_2: bool = True
) -> Verification | None:
    return bench.log.producers.verify(ID, epoch, sequence, NOW_MS, is_version_2=is_version_2)


def end(bench: LogBench, epoch: int, version: int = 0, coordinator_epoch: int = 0) -> ErrorCode:
    batch = encode_end_txn(
        is_commit=True,
        coordinator_epoch=coordinator_epoch,
        producer_id=ID,
        producer_epoch=epoch,
        timestamp_ms=NOW_MS,
    )
    return bench.log.append_as_leader(
        batch,
        leader_epoch=0,
        now_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        terms=AppendTerms(transaction_version=version),
    ).error


def test_the_first_batch_needs_the_coordinators_word() -> None:
    bench = LogBench()
    assert produce(bench, 0, 0, None).error is ErrorCode.INVALID_TXN_STATE
    verification = ask(bench, 0)
    assert verification is not None
    assert produce(bench, 0, 0, verification).error is ErrorCode.NONE
    assert ask(bench, 0) is None
    assert produce(bench, 0, 1, None).error is ErrorCode.NONE


def test_a_broker_that_does_not_ask_lets_everything_in() -> None:
    assert produce(LogBench(), 0, 0, NOT_ASKED).error is ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 2])
def test_a_word_given_before_a_marker_counts_no_more(version: int) -> None:
    bench = LogBench()
    stale = ask(bench, 0)
    assert end(bench, 1, version) is ErrorCode.NONE
    assert produce(bench, 1, 0, stale).error is ErrorCode.INVALID_TXN_STATE


def test_the_next_transaction_is_asked_about_while_the_one_before_waits_for_its_marker() -> None:
    bench = LogBench()
    assert produce(bench, 0, 0, ask(bench, 0)).error is ErrorCode.NONE
    assert ask(bench, 1) is not None
    assert produce(bench, 1, 0, None).error is ErrorCode.INVALID_TXN_STATE
    assert end(bench, 1, 2) is ErrorCode.NONE
    assert produce(bench, 1, 0, ask(bench, 1)).error is ErrorCode.NONE


def test_with_version_2_a_marker_has_an_epoch_of_its_own() -> None:
    bench = LogBench()
    assert produce(bench, 3, 0, ask(bench, 3)).error is ErrorCode.NONE
    assert end(bench, 3, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(bench, 2, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(bench, 4, 2, coordinator_epoch=5) is ErrorCode.NONE
    assert end(bench, 4, 2, coordinator_epoch=5) is ErrorCode.NONE  # written again
    assert end(bench, 4, 2, coordinator_epoch=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_an_early_batch_is_not_overtaken() -> None:
    bench = LogBench()
    first = ask(bench, 0, is_version_2=False)
    assert ask(bench, 0, 1, is_version_2=False) is first
    assert produce(bench, 0, 1, first).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(bench, 0, 0, first).error is ErrorCode.NONE
    assert produce(bench, 0, 1, None).error is ErrorCode.NONE


def test_with_version_2_a_new_producer_begins_with_sequence_0() -> None:
    bench = LogBench()
    assert produce(bench, 0, 4, ask(bench, 0, 4)).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    bench = LogBench()
    old = ask(bench, 0, 4, is_version_2=False)
    assert produce(bench, 0, 4, old).error is ErrorCode.NONE


def test_askings_that_come_to_nothing_are_forgotten() -> None:
    bench = LogBench()
    ask(bench, 0)
    producers = bench.log.producers
    producers.expire(NOW_MS + 999, 1_000)
    assert producers.verifications
    producers.expire(NOW_MS + 1_000, 1_000)
    assert not producers.verifications
