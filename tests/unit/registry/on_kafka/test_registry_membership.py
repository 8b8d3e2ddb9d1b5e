"""Messages between registry instances, in Confluent's JSON, and the election of a leader."""

import json

import pytest

from barnabas.registry.kafka.membership import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    MembershipError,
    elect,
)

A = Identity("a", 8081)
B = Identity("b", 8081)


def test_an_identity_is_confluents_json() -> None:
    assert json.loads(Identity("h", 80, "https", may_lead=False).encode()) == {
        "version": 1,
        "host": "h",
        "port": 80,
        "master_eligibility": False,
        "scheme": "https",
        "leader": False,
    }


@pytest.mark.parametrize("identity", [A, Identity("h", 80, "https", may_lead=False, leads=True)])
def test_an_identity_comes_back(identity: Identity) -> None:
    assert Identity.decode(identity.encode()) == identity


def test_an_identity_of_an_older_version_is_read() -> None:
    found = Identity.decode(b'{"version":1,"host":"a","port":8081,"master_eligibility":true}')
    assert found == A
    assert found.url == "http://a:8081"
    assert Identity("::1", 1).url == "http://[::1]:1"


def test_an_assignment_is_confluents_json() -> None:
    assert json.loads(Assignment("m", A).encode()) == {
        "version": 1,
        "error": 0,
        "master": "m",
        "master_identity": json.loads(A.encode()),
    }
    assert json.loads(Assignment(None, None).encode()) == {"version": 1, "error": 0}


@pytest.mark.parametrize(
    "assignment", [Assignment("m", A), Assignment(None, None), Assignment("m", B, DUPLICATE_URLS)]
)
def test_an_assignment_comes_back(assignment: Assignment) -> None:
    assert Assignment.decode(assignment.encode()) == assignment


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'"x"', b"\xff", b'{"host":1,"port":2}', b'{"host":"a"}', b"[" * 9**6],
)
def test_what_is_no_identity_is_refused(data: bytes) -> None:
    with pytest.raises(MembershipError):
        Identity.decode(data)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"error":"x"}', b'{"master_identity":{}}'])
def test_what_is_no_assignment_is_refused(data: bytes) -> None:
    with pytest.raises(MembershipError):
        Assignment.decode(data)


@pytest.mark.parametrize(
    ("members", "sticky", "leader"),
    [
        ({"1": B, "2": A}, False, "2"),
        ({"1": A, "2": B}, False, "1"),
        ({"1": B, "2": Identity("a", 8081, may_lead=False)}, False, "1"),
        ({"1": Identity("a", 8081, may_lead=False)}, False, None),
        ({}, False, None),
        ({"1": A, "2": Identity("b", 8081, leads=True)}, False, "1"),
        ({"1": A, "2": Identity("b", 8081, leads=True)}, True, "2"),
        ({"1": A, "2": Identity("b", 8081, may_lead=False, leads=True)}, True, "1"),
        (
            {
                "1": Identity("c", 1),
                "2": Identity("b", 1, leads=True),
                "3": Identity("a", 1, leads=True),
            },
            True,
            "3",
        ),
        ({"1": Identity("a", 8082), "2": Identity("a", 80811)}, False, "2"),
    ],
)
def test_who_leads(members: dict[str, Identity], sticky: bool, leader: str | None) -> None:
    found = elect(members, sticky=sticky)
    assert found.leader_id == leader
    assert found.leader == (None if leader is None else members[leader])
    assert found.error == 0


def test_two_of_one_url_are_an_error() -> None:
    assert elect({"1": A, "2": A, "3": B}).error == DUPLICATE_URLS
