"""Each checker finds the anomaly that it is named after, and nothing in a good history."""

from collections.abc import Iterable

import pytest

from barnabas.base.ids import TopicPartition
from sim.audit import sound_part
from sim.checkers import CHECKERS, check
from sim.exchange import circular_reads
from sim.sim_history import History, OffsetCommit, OffsetFetch, Outcome, Poll, Send, Tenure
from support.logs import make_batch

T = TopicPartition("t", 0)


def send(
    number: int,
    values: list[str],
    base_offset: int,
    *,
    outcome: Outcome = Outcome.OK,
    is_durable: bool = True,
    is_idempotent: bool = True,
    attempts: int = 1,
) -> Send:
    return Send(
        "p", T, values, number, -1, is_idempotent, is_durable, 0.0, 1.0, outcome, base_offset,
        attempts,
    )  # fmt: skip


def poll(
    records: list[tuple[int, str]], *, run: int = 0, consumer: str = "c", is_final: bool = False
) -> Poll:
    return Poll(consumer, T, run, records, 2.0, is_final)


def history(sends: list[Send], polls: list[Poll], end: int | None = None) -> History:
    return History(sends, polls, [], {} if end is None else {T: end})


GOOD = [send(1, ["a", "b"], 0), send(2, ["c"], 2)]
ALL = [(0, "a"), (1, "b"), (2, "c")]


def final(records: list[tuple[int, str]]) -> Poll:
    return poll(records, consumer="reader", is_final=True)


def commit(
    offset: int, invoked_s: float, *, outcome: Outcome = Outcome.OK, epoch: int = 1
) -> OffsetCommit:
    return OffsetCommit("g", "m", T, offset, invoked_s, invoked_s + 0.5, outcome, epoch)


def fetch(offset: int, invoked_s: float, *, is_final: bool = False) -> OffsetFetch:
    return OffsetFetch("g", "who", T, offset, invoked_s, invoked_s + 0.5, is_final)


def tenure(member: str, epoch: int, began_s: float, confirmed: dict[int, float]) -> Tenure:
    return Tenure("g", member, T, epoch, 1, began_s, confirmed)


def group_history(
    *,
    tenures: Iterable[Tenure] = (),
    commits: Iterable[OffsetCommit] = (),
    fetches: Iterable[OffsetFetch] = (),
    polls: Iterable[Poll] = (),
) -> History:
    return History(
        sends=GOOD,
        polls=[*polls, final(ALL)],
        final_ends={T: 3},
        tenures=list(tenures),
        commits=list(commits),
        offset_fetches=list(fetches),
        group_of={"c": "g"},
    )


BAD = {
    "lost-write": [
        history(GOOD, [final(ALL[:2])], end=2),
        history(GOOD, [poll([(0, "a")]), poll([(2, "c")], run=1)]),
    ],
    "unseen": [history([*GOOD, send(3, ["d"], 3)], [final(ALL)], end=3)],
    "inconsistent-offsets": [
        history(GOOD, [poll([(0, "a"), (1, "c")]), final(ALL)], end=3),
        history(GOOD, [poll(ALL), poll([(2, "x")], consumer="other")]),
    ],
    "duplicate": [
        history(GOOD, [final([*ALL, (3, "c")])], end=4),
        history([send(1, ["a"], 0, is_idempotent=False)], [final([(0, "a"), (1, "a")])], end=2),
    ],
    "poll-skip": [
        history(GOOD, [poll([(0, "a"), (2, "c")]), final(ALL)], end=3),
        history(GOOD, [poll([(0, "a")]), poll([(2, "c")]), final(ALL)], end=3),
    ],
    "nonmonotonic-poll": [
        history(GOOD, [poll(ALL), poll([(1, "b")]), final(ALL)], end=3),
        history(GOOD, [poll([(1, "b"), (1, "b")]), final(ALL)], end=3),
    ],
    "nonmonotonic-send": [
        history([send(1, ["a"], 1), send(2, ["b"], 0)], [final([(0, "b"), (1, "a")])], end=2)
    ],
    "G1a": [
        history([*GOOD, send(3, ["d"], -1, outcome=Outcome.FAILED)], [final([*ALL, (3, "d")])])
    ],
    "unwritten": [history(GOOD, [final([*ALL, (3, "ghost")])])],
    "two-owners": [
        group_history(tenures=[tenure("m", 1, 1.0, {1: 3.0}), tenure("n", 2, 2.0, {})]),
        group_history(tenures=[tenure("m", 2, 1.0, {}), tenure("n", 2, 5.0, {})]),
    ],
    "lost-commit": [
        group_history(commits=[commit(2, 1.0)], fetches=[fetch(0, 2.0)]),
        group_history(commits=[commit(2, 1.0), commit(1, 1.6)], fetches=[fetch(1, 3.0)]),
    ],
    "unwritten-commit": [
        group_history(fetches=[fetch(2, 2.0)]),
        group_history(
            commits=[commit(2, 1.0, outcome=Outcome.FAILED), commit(3, 4.0)],
            fetches=[fetch(2, 2.0), fetch(3, 3.0)],
        ),
    ],
    "former-commit": [
        group_history(commits=[commit(2, 1.0)], tenures=[tenure("n", 2, 0.5, {})]),
    ],
    "group-skip": [
        group_history(
            commits=[commit(3, 1.0)],
            fetches=[fetch(3, 2.0, is_final=True)],
            polls=[poll(ALL[:1]), poll(ALL[2:], run=1)],
        )
    ],
}


def test_every_checker_is_tried() -> None:
    assert set(BAD) == {*CHECKERS, "unwritten-commit"}


@pytest.mark.parametrize("name", BAD)
def test_an_anomaly_is_found(name: str) -> None:
    for bad in BAD[name]:
        assert name in {anomaly.name for anomaly in check(bad)}


@pytest.mark.parametrize(
    "good",
    [
        history(GOOD, [poll(ALL[:1]), poll(ALL[1:]), final(ALL)], end=3),
        history(GOOD, [poll(ALL), poll(ALL[1:], run=1), final(ALL)], end=3),
        # A record that a plain producer sent twice may be in the log twice.
        history(
            [send(1, ["a"], 1, is_idempotent=False, attempts=2)],
            [final([(0, "a"), (1, "a")])],
            end=2,
        ),
        # Records that are not durable may be overwritten.
        history([send(1, ["x"], 0, is_durable=False), send(2, ["a"], 0)], [final(ALL[:1])], end=1),
        # A record with an unknown outcome may be lost.
        history([*GOOD, send(3, ["d"], -1, outcome=Outcome.UNKNOWN)], [final(ALL)], end=3),
        history([*GOOD, send(3, ["d"], -1, outcome=Outcome.UNKNOWN)], [final([*ALL, (3, "d")])]),
        # A coordinator that was replaced may not know it yet.
        group_history(tenures=[tenure("m", 1, 1.0, {2: 3.0}), tenure("n", 2, 2.0, {})]),
        group_history(tenures=[tenure("m", 1, 1.0, {1: 1.5}), tenure("n", 2, 2.0, {1: 4.0})]),
        # An answer from before that was read when its member went on.
        group_history(tenures=[tenure("m", 6, 1.0, {1: 3.0}), tenure("n", 2, 2.0, {})]),
        # It was under way already, or is the later owner's.
        group_history(
            commits=[commit(1, 1.0), commit(2, 3.0, epoch=3)], tenures=[tenure("n", 2, 1.2, {})]
        ),
        # A commit of which nothing is known may have happened; one under way need not have.
        group_history(
            commits=[commit(1, 1.0), commit(2, 1.6, outcome=Outcome.UNKNOWN), commit(3, 3.2)],
            fetches=[fetch(1, 2.0), fetch(2, 3.0), fetch(3, 3.5, is_final=True)],
            polls=[poll(ALL)],
        ),
    ],
)
def test_a_good_history_passes(good: History) -> None:
    assert check(good) == []


@pytest.mark.parametrize(
    ("seen", "circle"),
    [
        ({}, set()),
        ({"a": set(), "b": {"a"}, "c": {"a", "b"}}, set()),
        ({"a": {"a"}}, set()),  # its own records
        ({"a": {"aborted"}, "b": {"a"}}, set()),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, {"a", "b"}),
        ({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, {"b", "c", "d"}),
    ],
    ids=["none", "in order", "itself", "aborted", "two", "three"],
)
def test_transactions_that_see_one_another(seen: dict[str, set[str]], circle: set[str]) -> None:
    found = circular_reads(seen)
    assert [anomaly.name for anomaly in found] == (["G1c"] if circle else [])
    assert all({*anomaly.text.partition(": ")[2].split(", ")} == circle for anomaly in found)


@pytest.mark.parametrize(
    ("place", "bit", "is_seen_by_all"),
    [(3, 1, False), (7, 1, False), (8, 0x80, True), (16, 1, True), (43, 1, True), (68, 1, True)],
    ids=["offset", "offset by one", "length", "magic", "producer", "value"],
)
def test_reader_takes_what_comes_before_damage(place: int, bit: int, is_seen_by_all: bool) -> None:
    data = bytearray().join(make_batch(str(number), base_offset=number) for number in range(4))
    size = len(data) // 4
    assert sound_part(bytes(data), 0, is_distrusted=True) == data
    data[2 * size + place] ^= bit
    assert sound_part(bytes(data), 0, is_distrusted=True) == data[: 2 * size]
    trusting = sound_part(bytes(data), 0, is_distrusted=False)
    assert trusting == (data[: 2 * size] if is_seen_by_all else data)
