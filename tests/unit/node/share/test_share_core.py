"""The state machine of a share partition, case by case: acquisition, acknowledgement, locks."""

import pytest

from barnabas.node.coordinator.share.state import ShareState, StateBatch
from barnabas.node.share.core.acquiring import without_aborted
from barnabas.node.share.core.partition import InvalidStateError, SharePartition
from barnabas.node.share.core.states import Acquired, AcquireMode, Refused, ShareLimits
from barnabas.protocol.errors import ErrorCode
from support.share_core import LOCK_MS, ShareBench

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, _, ACKNOWLEDGED, _, ARCHIVED = range(5)
TENS = [(0, 9), (10, 19), (20, 29), (30, 39)]


def test_two_members_never_get_the_same_records() -> None:
    bench = ShareBench(TENS)
    assert bench.acquire("a", 10) == [(0, 9, 1)]
    assert bench.acquire("b", 15) == [(10, 29, 1)]  # up to the end of the batch
    assert bench.acquire("a") == [(30, 39, 1)]
    assert bench.acquire("b") == []


def test_batches_are_divided_at_the_size_that_the_client_asks_for() -> None:
    bench = ShareBench(TENS)
    assert bench.acquire("a", batch_size=15) == [(0, 19, 1), (20, 39, 1)]


def test_a_record_limit_is_kept_within_a_batch() -> None:
    bench = ShareBench(TENS)
    assert bench.acquire("a", 3, mode=AcquireMode.RECORD_LIMIT) == [(0, 2, 1)]
    assert bench.acquire("b", 3, mode=AcquireMode.RECORD_LIMIT) == [(3, 5, 1)]
    assert bench.acquire("c") == [(6, 9, 1), (10, 39, 1)]
    assert [span[2:4] for span in bench.spans()] == [("ACQUIRED", 1)] * 4


def test_what_is_done_at_the_front_is_forgotten() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.acquire("a", 10)
    assert bench.acknowledge("a", (10, 19, ACCEPT)) == [(10, 19, ACKNOWLEDGED, 1)]
    assert (bench.machine.start_offset, bench.machine.delivery_complete_count) == (0, 10)
    assert bench.acknowledge("a", (0, 4, ACCEPT)) == [(0, 4, ACKNOWLEDGED, 1)]
    assert (bench.machine.start_offset, bench.machine.delivery_complete_count) == (5, 10)
    assert bench.acknowledge("a", (5, 9, REJECT)) == [(5, 9, ARCHIVED, 1)]
    machine = bench.machine
    assert (machine.start_offset, machine.end_offset, machine.is_empty) == (20, 20, True)
    assert machine.delivery_complete_count == 0
    assert bench.acquire("b", 10) == [(20, 29, 1)]


def test_types_for_each_record_are_written_as_runs() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a")
    written = bench.acknowledge("a", (0, 5, [ACCEPT, ACCEPT, REJECT, GAP, RELEASE, ACCEPT]))
    assert written == [
        (0, 1, ACKNOWLEDGED, 1),
        (2, 3, ARCHIVED, 1),
        (4, 4, AVAILABLE, 1),
        (5, 5, ACKNOWLEDGED, 1),
    ]
    assert bench.machine.start_offset == 4
    assert bench.acquire("b") == [(4, 4, 2)]


def test_a_change_that_is_not_written_yet_keeps_records_from_others() -> None:
    bench = ShareBench([(0, 9)])
    bench.acquire("a")
    change = bench.begin("a", (0, 9, RELEASE))
    assert bench.acquire("b") == []
    again = bench.begin("a", (0, 9, ACCEPT))
    assert isinstance(again, Refused)
    assert again.error == ErrorCode.INVALID_RECORD_STATE
    bench.end(change)
    assert bench.acquire("b") == [(0, 9, 2)]


def test_a_change_that_cannot_be_written_is_undone() -> None:
    bench = ShareBench([(0, 9)])
    bench.acquire("a")
    change = bench.begin("a", (0, 4, ACCEPT), (5, 9, RELEASE))
    assert bench.machine.delivery_complete_count == 5
    bench.end(change, succeeded=False)
    assert bench.machine.delivery_complete_count == 0
    assert bench.acquire("b") == []
    assert bench.acknowledge("a", (0, 9, ACCEPT)) == [(0, 9, ACKNOWLEDGED, 1)]


def test_a_lock_that_ran_out_while_a_failed_write_was_under_way() -> None:
    bench = ShareBench([(0, 9)])
    bench.acquire("a")
    change = bench.begin("a", (0, 9, ACCEPT))
    assert bench.expire(LOCK_MS) == []
    bench.end(change, succeeded=False)
    assert bench.spans() == [(0, 9, "AVAILABLE", 1, "")]


@pytest.mark.parametrize("fails_by", ["write", "refusal"])
def test_records_that_are_given_up_with_an_undone_change_keep_no_others_back(fails_by: str) -> None:
    limits = ShareLimits(LOCK_MS, delivery_count_max=2, records_in_flight_max=10)
    bench = ShareBench(TENS, limits=limits)
    bench.acquire("a", 10)
    bench.acknowledge("a", (0, 0, RELEASE), (1, 9, ACCEPT))
    assert bench.acquire("a") == [(0, 0, 2)]
    if fails_by == "write":
        change = bench.begin("a", (0, 0, ACCEPT))
        assert bench.expire(LOCK_MS) == []
        bench.end(change, succeeded=False)
    else:
        bench.now_ms += LOCK_MS
        refused = bench.begin("a", (0, 0, ACCEPT), (1, 9, ACCEPT))
        assert isinstance(refused, Refused)
    assert bench.machine.start_offset == 10
    assert bench.acquire("b", 10) == [(10, 19, 1)]


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        ((0, 9, 5), "INVALID_REQUEST"),
        ((0, 9, -1), "INVALID_REQUEST"),
        ((5, 25, ACCEPT), "INVALID_REQUEST"),  # beyond what is in flight
        ((20, 25, ACCEPT), "INVALID_REQUEST"),
        ((10, 19, ACCEPT), "INVALID_RECORD_STATE"),  # another member's
        ((5, 14, ACCEPT), "INVALID_RECORD_STATE"),  # partly
    ],
)
def test_a_wrong_acknowledgement_changes_nothing(batch: tuple[int, int, int], error: str) -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.acquire("b", 10)
    before = bench.spans()
    assert bench.acknowledge("a", (0, 1, ACCEPT), batch) == error
    assert [span[2:] for span in bench.spans()] == [("ACQUIRED", 1, "a")] * (
        len(bench.spans()) - 1
    ) + [before[-1][2:]]
    assert bench.machine.delivery_complete_count == 0


def test_nothing_in_flight_can_be_acknowledged() -> None:
    bench = ShareBench(TENS)
    assert bench.acknowledge("a", (0, 1, ACCEPT)) == "INVALID_RECORD_STATE"


def test_what_is_before_the_start_is_acknowledged_without_effect() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.acknowledge("a", (0, 9, ACCEPT))
    bench.acquire("a", 10)
    assert bench.acknowledge("a", (0, 9, ACCEPT)) == []
    assert bench.acknowledge("a", (5, 14, ACCEPT)) == [(10, 14, ACKNOWLEDGED, 1)]


def test_locks_run_out_and_are_renewed() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 20)
    assert bench.expire(LOCK_MS - 1) == []
    assert bench.acknowledge("a", (10, 14, RENEW)) == []
    assert bench.expire(1) == [(0, 9, AVAILABLE, 1), (15, 19, AVAILABLE, 1)]
    assert bench.acknowledge("a", (0, 9, ACCEPT)) == "INVALID_RECORD_STATE"
    assert bench.acquire("b", 15) == [(0, 9, 2), (15, 19, 2)]
    assert bench.expire(LOCK_MS - 2) == []
    assert bench.expire(1) == [(10, 14, AVAILABLE, 1)]


def test_renewal_can_be_switched_off() -> None:
    bench = ShareBench(TENS, limits=ShareLimits(is_renewal_enabled=False))
    bench.acquire("a", 10)
    assert bench.acknowledge("a", (0, 9, RENEW)) == "INVALID_RECORD_STATE"


def test_a_member_gives_back_only_what_it_holds() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.acquire("b", 10)
    bench.acknowledge("a", (0, 4, ACCEPT))
    assert bench.end(bench.machine.release("a", bench.limits)) == [(5, 9, AVAILABLE, 1)]
    assert bench.acquire("b") == [(5, 9, 2), (20, 39, 1)]


def test_records_are_given_up_after_the_last_delivery() -> None:
    bench = ShareBench([(0, 0)], limits=ShareLimits(LOCK_MS, delivery_count_max=3))
    for delivery in (1, 2, 3):
        assert bench.acquire("a") == [(0, 0, delivery)]
        bench.acknowledge("a", (0, 0, RELEASE))
    assert bench.acquire("a") == []
    assert bench.machine.start_offset == 1


def test_a_poisonous_batch_is_given_out_in_ever_smaller_portions() -> None:
    bench = ShareBench([(0, 99), (100, 199)], limits=ShareLimits(LOCK_MS, delivery_count_max=5))
    sizes = []
    while (got := bench.acquire("a", 100)) and got[0][0] < 100:
        sizes.append(got[-1][1] - got[0][0] + 1)
        assert got[-1][1] < 100
        bench.expire(LOCK_MS)
        if len(sizes) > 6:
            break
    # Three times whole, then by half; the last delivery is each record's own.
    assert sizes[:6] == [100, 100, 100, 50, 1, 1]


def test_a_full_share_partition_delivers_again_only_what_is_in_flight() -> None:
    bench = ShareBench(TENS, limits=ShareLimits(LOCK_MS, records_in_flight_max=20))
    assert bench.acquire("a") == [(0, 19, 1)]
    assert bench.acquire("b") == []
    bench.acknowledge("a", (5, 5, RELEASE))
    assert bench.acquire("b") == [(5, 5, 2)]
    bench.acknowledge("a", (0, 4, ACCEPT))
    assert bench.acquire("b", 100) == [(20, 29, 1)]


def test_holes_in_what_was_kept_are_fetched_again() -> None:
    bench = ShareBench(TENS, kept=[(10, 19, ACKNOWLEDGED, 1), (25, 29, AVAILABLE, 2)])
    machine = bench.machine
    assert (machine.start_offset, machine.end_offset, machine.delivery_complete_count) == (
        0,
        29,
        10,
    )
    assert bench.acquire("a", 10) == [(0, 9, 1)]
    assert bench.acquire("a") == [(20, 24, 1), (25, 29, 3), (30, 39, 1)]


def test_what_was_kept_as_done_is_done() -> None:
    bench = ShareBench(TENS, kept=[(0, 9, ACKNOWLEDGED, 1), (10, 14, ARCHIVED, 5)])
    assert (bench.machine.start_offset, bench.machine.is_empty) == (15, True)
    assert bench.acquire("a") == [(15, 39, 1)]


def test_a_start_within_a_batch_is_kept() -> None:
    bench = ShareBench(TENS, start_offset=5)
    assert bench.acquire("a", 5) == [(5, 9, 1)]


@pytest.mark.parametrize("kept", [(0, 4, 0, 1), (9, 8, 0, 1)])
def test_what_was_kept_must_make_sense(kept: tuple[int, int, int, int]) -> None:
    with pytest.raises(InvalidStateError):
        SharePartition(0, ShareState(0, 5, (StateBatch(*kept),)))


def test_compacted_batches_are_given_up() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 20)
    bench.acknowledge("a", (0, 19, RELEASE))
    bench.log = TENS[1:]
    assert bench.acquire("b", 10) == [(10, 19, 2)]
    assert (bench.machine.start_offset, bench.machine.delivery_complete_count) == (10, 0)
    bench.acknowledge("b", (10, 19, ACCEPT))
    assert bench.machine.start_offset == 20


def test_the_log_start_moves_past_what_is_in_flight() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.acquire("b", 10)
    bench.acknowledge("b", (10, 19, RELEASE))
    assert bench.machine.log_start_moved(15)
    assert not bench.machine.log_start_moved(15)
    assert bench.machine.start_offset == 15
    assert bench.acquire("c", 5) == [(15, 19, 2)]
    assert bench.expire(LOCK_MS) == [(0, 9, ARCHIVED, 1), (15, 19, AVAILABLE, 2)]


def test_the_log_start_moves_past_everything() -> None:
    bench = ShareBench(TENS)
    bench.acquire("a", 10)
    bench.machine.log_start_moved(30)
    assert bench.machine.next_fetch_offset() == 30
    assert bench.acquire("b") == [(30, 39, 1)]
    assert bench.acknowledge("a", (0, 9, ACCEPT)) == []


def test_records_of_aborted_transactions_are_given_up() -> None:
    bench = ShareBench(TENS)
    got = [Acquired(*entry) for entry in bench.acquire("a")]
    kept = without_aborted(bench.machine, got, [(0, 9), (20, 24)])
    assert kept == [Acquired(10, 19, 1), Acquired(25, 39, 1)]
    assert bench.machine.delivery_complete_count == 15
    bench.acknowledge("a", (10, 19, ACCEPT))
    assert bench.machine.start_offset == 25
