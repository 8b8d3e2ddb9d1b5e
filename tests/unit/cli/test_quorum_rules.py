"""Rules for a quorum's voters: safe removals, `doctor`'s findings, and how voters are written."""

from __future__ import annotations

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.cli.cluster.new_voter import NewVoter, voter_from_text
from barnabas.cli.cluster.quorum_state import Quorum, QuorumReplica, check_removal
from barnabas.cli.doctor.findings import Level
from barnabas.cli.doctor.nodes import check_quorum
from barnabas.cli.errors import CliError, ExitCode


def quorum(*alive: bool, lag: int = 0) -> Quorum:
    """Voters 1, 2, …; the first leads."""
    voters = tuple(
        QuorumReplica(
            id=position + 1,
            directory_id=ZERO_UUID,
            is_voter=True,
            is_leader=position == 0,
            log_end_offset=100 - lag * position,
            lag=lag * position,
            fetch_age_ms=0 if is_alive else 60_000,
            caught_up_age_ms=0,
        )
        for position, is_alive in enumerate(alive)
    )
    return Quorum(1, 5, 100, voters, (), {})


@pytest.mark.parametrize(
    ("alive", "removed", "refusal"),
    [
        ((True,), 1, "only voter"),
        ((True, True), 2, None),
        ((True, False), 2, None),
        ((True, True, True), 3, None),
        ((True, True, True), 1, None),
        ((True, True, False), 3, None),
        ((True, True, False), 2, "1 of 2 voters would be alive, and 2 are needed"),
        ((True, True, True, False), 2, None),
        ((True, True, True, False, False), 5, None),
        ((True, True, True, False, False), 3, "2 of 4 voters would be alive, and 3 are needed"),
    ],
)
def test_removing_a_voter(alive: tuple[bool, ...], removed: int, refusal: str | None) -> None:
    if refusal is None:
        check_removal(quorum(*alive), removed)
        return
    with pytest.raises(CliError) as caught:
        check_removal(quorum(*alive), removed)
    assert refusal in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("alive", "levels"),
    [
        ((True,), ["ok"]),
        ((True, True, True), ["ok"]),
        ((True, True, True, True), ["ok", "note"]),
        ((True, True, False), ["fault"]),
        ((True, True, True, True, False), ["note"]),
        ((True, True, True, False, False), ["fault"]),
    ],
)
def test_what_doctor_says_of_it(alive: tuple[bool, ...], levels: list[str]) -> None:
    assert [finding.level for finding in check_quorum(quorum(*alive))] == levels


def test_a_voter_far_behind_is_named() -> None:
    findings = list(check_quorum(quorum(True, True, True, lag=2000)))
    assert [item.detail for item in findings if item.level is Level.NOTE] == [
        "node 2 is 2000 metadata records behind",
        "node 3 is 4000 metadata records behind",
    ]


@pytest.mark.parametrize(
    ("text", "voter"),
    [
        ("4@host:9093", NewVoter(4, None, (("", "host", 9093),))),
        ("4@[::1]:9093", NewVoter(4, None, (("", "::1", 9093),))),
    ],
)
def test_voters_as_people_write_them(text: str, voter: NewVoter) -> None:
    assert voter_from_text(text) == voter


def test_a_voter_with_its_directory() -> None:
    voter = voter_from_text("4@host:9093:JEXY6aqzQY-32P5TStzaFg")
    assert (voter.node_id, voter.endpoints) == (4, (("", "host", 9093),))
    assert voter.directory_id is not None


@pytest.mark.parametrize("text", ["", "4", "x@host:1", "4@host", "4@host:port", "4@host:1:short"])
def test_what_is_no_voter(text: str) -> None:
    with pytest.raises(CliError) as caught:
        voter_from_text(text)
    assert caught.value.code is ExitCode.USAGE
