"""Messages between members of a worker group, in the format of Kafka's workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.group_messages import (
    Assignment,
    GroupMessageError,
    Member,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_member,
    join_protocols,
)
from barnabas.connect.worker.distributed.share import Share

NAMES = st.text(max_size=8)
TASKS = st.builds(TaskId, NAMES, st.integers(0, 2**31 - 1))


def in_wire_order(share: Share) -> Share:
    """Tasks of one connector stand together on the wire."""
    order = list(dict.fromkeys((*share.connectors, *(task.connector for task in share.tasks))))
    return Share(
        share.connectors,
        tuple(sorted(share.tasks, key=lambda task: order.index(task.connector))),
    )


SHARES = st.builds(
    lambda connectors, tasks: in_wire_order(Share(tuple(connectors), tuple(tasks))),
    st.lists(NAMES, unique=True, max_size=4),
    st.lists(TASKS, unique=True, max_size=6),
)
ASSIGNMENTS = st.builds(
    Assignment,
    error=st.integers(0, 1),
    leader=NAMES,
    leader_url=NAMES,
    config_offset=st.integers(-1, 2**63 - 1),
    work=SHARES,
    revoked=SHARES,
    delay_ms=st.integers(0, 2**31 - 1),
    version=st.integers(1, 2),
)


@given(ASSIGNMENTS)
def test_assignments_come_back(assignment: Assignment) -> None:
    data = encode_assignment(assignment, assignment.version)
    assert decode_assignment(data) == assignment


@given(NAMES, st.integers(-1, 2**63 - 1), st.none() | ASSIGNMENTS, st.integers(1, 2))
def test_members_come_back(
    url: str, offset: int, assignment: Assignment | None, version: int
) -> None:
    member = Member(url, offset, assignment)
    found = decode_member(encode_member(member, version))
    assert (found.url, found.config_offset, found.work) == (url, offset, member.work)


@given(ASSIGNMENTS, st.data())
def test_cut_bytes_are_refused_or_read_as_an_older_version(
    assignment: Assignment, data: st.DataObject
) -> None:
    whole = encode_assignment(assignment, assignment.version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        found = decode_assignment(whole[:cut])
    except GroupMessageError:
        return
    assert (found.error, found.leader) == (assignment.error, assignment.leader)


def test_an_eager_member_has_no_assignment() -> None:
    held = Assignment(0, "a", "http://a", 3, Share(("c",)))
    data = encode_member(Member("http://a:8083", 5, held), 0)
    assert data == b"\0\0" + b"\0\x0dhttp://a:8083" + (5).to_bytes(8, "big")
    assert decode_member(data) == Member("http://a:8083", 5)


def test_a_member_without_assignment_is_null() -> None:
    assert encode_member(Member("u", 1), 1) == b"\0\x01\0\x01u" + bytes(7) + b"\x01" + b"\xff" * 4


def test_an_assignment_lists_a_connector_as_task_minus_one() -> None:
    work = Share(("c",), (TaskId("c", 0), TaskId("d", 2)))
    data = encode_assignment(Assignment(0, "m", "u", 7, work, Share((), (TaskId("d", 1),)), 9), 2)
    assert data.hex(" ") == (
        "00 02 00 00 00 01 6d 00 01 75 00 00 00 00 00 00 00 07 "  # leader m at u, offset 7
        "00 00 00 02 00 01 63 00 00 00 02 ff ff ff ff 00 00 00 00 "
        "00 01 64 00 00 00 01 00 00 00 02 "
        "00 00 00 01 00 01 64 00 00 00 01 00 00 00 01 "
        "00 00 00 09"
    )


def test_members_offer_what_they_know_best_first() -> None:
    member = Member("u", 1)
    assert [name for name, _ in join_protocols("sessioned", member)] == [
        "sessioned",
        "compatible",
        "default",
    ]
    assert [name for name, _ in join_protocols("compatible", member)] == ["compatible", "default"]
    assert [name for name, _ in join_protocols("eager", member)] == ["default"]


def test_versions_below_zero_are_refused() -> None:
    with pytest.raises(GroupMessageError, match="Unsupported subscription version: -1"):
        decode_member(b"\xff\xff")
