"""Lines of the audit log: Kafka's, few, and each on one line."""

import logging

import pytest

from barnabas.node.security import audit
from barnabas.protocol.acls import Operation as Op
from barnabas.protocol.acls import Permission
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord
from support.acl_world import AclWorld, acl


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "barnabas.audit")
    return caplog


def test_a_refusal_names_all_of_it(lines: pytest.LogCaptureFixture) -> None:
    AclWorld().may(Op.READ)
    assert lines.messages == [
        (
            "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 based on rule "
            "DefaultDeny"
        )
    ]
    assert lines.records[0].levelno == logging.INFO


def test_a_refusal_names_the_acl(lines: pytest.LogCaptureFixture) -> None:
    AclWorld(acl(1, permission=Permission.DENY)).may(Op.READ)
    assert lines.messages[0].endswith(
        "based on rule MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders, "
        "patternType=LITERAL, principal=User:alice, host=*, operation=READ, permissionType=DENY))"
    )


def test_what_is_allowed_is_for_debugging(lines: pytest.LogCaptureFixture) -> None:
    world = AclWorld(acl(1), super_users=frozenset({"User:root"}))
    world.may(Op.READ)
    assert lines.messages == []
    lines.set_level(logging.DEBUG, "barnabas.audit")
    world.may(Op.READ)
    world.may(Op.WRITE, user="root")
    assert "User:alice is Allowed operation = READ" in lines.messages[0]
    assert lines.messages[1].endswith("SuperUser")
    assert {record.levelno for record in lines.records} == {logging.DEBUG}


def test_what_is_only_looked_up_is_for_tracing(lines: pytest.LogCaptureFixture) -> None:
    world = AclWorld(acl(1))
    lines.set_level(logging.DEBUG, "barnabas.audit")
    world.may_some(Op.WRITE)
    assert lines.messages == []
    lines.set_level(audit.TRACE, "barnabas.audit")
    world.may_some(Op.WRITE)
    assert len(lines.messages) == 1


def test_whoever_is_refused_in_a_loop_is_named_once_a_minute(
    lines: pytest.LogCaptureFixture,
) -> None:
    world = AclWorld()
    for _ in range(500):
        world.may(Op.READ)
        world.may(Op.READ, user="bob")
        world.clock.advance(10)
    assert len(lines.messages) == 2
    world.clock.advance(60_000)
    assert len(lines.messages) == 4
    assert lines.messages[2].endswith("DefaultDeny, 499 times more in 60 s")
    world.may(Op.READ)
    assert len(lines.messages) == 5, "and named again"


def test_what_was_counted_is_told_at_the_end(lines: pytest.LogCaptureFixture) -> None:
    world = AclWorld()
    for _ in range(3):
        world.may(Op.READ)
    world.clock.advance(7000)
    world.audit.close()
    assert lines.messages[1].endswith("2 times more in 7 s")
    assert all(timer.is_cancelled for timer in world.clock.timers)


def test_many_different_refusals_are_counted(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REFUSALS_MAX", 20)
    world = AclWorld()
    for number in range(1000):
        world.may(Op.READ, f"topic-{number}")
    assert len(lines.messages) == 20
    world.clock.advance(60_000)
    assert lines.messages[20:] == [
        "980 more refusals of other kinds are not named, of Principal = User:alice"
    ]


def test_nobody_hides_refusals_of_another(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REFUSALS_MAX", 20)
    world = AclWorld()
    for number in range(1000):
        world.may(Op.READ, f"topic-{number}")
    assert not world.may(Op.READ, "secrets", user="mallory")
    assert "User:mallory is Denied operation = READ" in lines.messages[20]
    assert not world.may(Op.WRITE, "ledger")
    assert "User:alice is Denied operation = WRITE" in lines.messages[21]


@pytest.mark.parametrize("operation", [Op.DELETE, Op.DESCRIBE])
def test_a_refused_change_is_always_named(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, operation: Op
) -> None:
    monkeypatch.setattr(audit, "REFUSALS_MAX", 20)
    monkeypatch.setattr(audit, "REMEMBERED_MAX", 40)
    world = AclWorld()
    for number in range(1000):
        world.may(Op.READ, f"topic-{number}")
    lines.clear()
    for number in range(100):
        world.may(operation, f"deleted-{number}", request=ApiKey.DELETE_TOPICS)
    named = [line for line in lines.messages if "for request = DeleteTopics" in line]
    assert len(named) == 100


def test_what_is_remembered_of_all_is_bounded(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REMEMBERED_MAX", 40)
    world = AclWorld()
    for number in range(1000):
        world.may(Op.READ, user=f"user-{number}")
    assert len(lines.messages) == 40
    world.clock.advance(60_000)
    assert len(lines.messages) == 40 + 960
    world.may(Op.READ)
    assert "User:alice is Denied" in lines.messages[-1]


def test_a_refusal_that_is_only_counted_is_not_put_into_words(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worded: list[object] = []

    def shown(rule: AccessControlEntryRecord | str) -> str:
        worded.append(rule)
        return "a rule"

    monkeypatch.setattr(audit, "REFUSALS_MAX", 20)
    monkeypatch.setattr(audit, "_shown", shown)
    world = AclWorld(acl(1, name="*", permission=Permission.DENY))
    for number in range(1000):
        world.may(Op.READ, f"topic-{number}")
    for _ in range(1000):
        world.may(Op.READ, "topic-0")
    assert len(worded) == len(lines.messages) == 20
    world.clock.advance(60_000)
    assert lines.messages[20].endswith("a rule, 1000 times more in 60 s")
    assert lines.messages[21:] == [
        "980 more refusals of other kinds are not named, of Principal = User:alice"
    ]


def test_a_refusal_by_another_rule_is_another(lines: pytest.LogCaptureFixture) -> None:
    world = AclWorld(acl(1, permission=Permission.DENY))
    world.may(Op.READ)
    world.replay(acl(2, name="*", permission=Permission.DENY))
    world.remove(1)
    world.may(Op.READ)
    world.remove(2)
    world.may(Op.READ)
    world.may(Op.READ)
    rules = [line.partition("based on rule ")[2] for line in lines.messages]
    assert ["orders" in rules[0], "resourceName=*" in rules[1], rules[2:]] == [
        True,
        True,
        ["DefaultDeny"],
    ]


def test_nobody_writes_lines_of_their_own(lines: pytest.LogCaptureFixture) -> None:
    AclWorld().may(Op.READ, "x\nPrincipal = User:admin is Allowed", user="a\rb")
    assert "\n" not in lines.messages[0]
    assert "\r" not in lines.messages[0]
    AclWorld().may(Op.READ, "y" * 10_000)
    assert len(lines.messages[1]) < 1000
