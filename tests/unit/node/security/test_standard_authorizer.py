"""The rules of StandardAuthorizer, as a table; Kafka's StandardAuthorizerTest has the same."""

from typing import Any

import pytest

from barnabas.node.security import standard_authorizer
from barnabas.protocol.acls import Operation as Op
from barnabas.protocol.acls import PatternType, Permission, ResourceType
from support.acl_world import AclWorld, acl

PREFIXED: dict[str, Any] = {"pattern": PatternType.PREFIXED}
DENY: dict[str, Any] = {"permission": Permission.DENY}


@pytest.mark.parametrize(
    ("acls", "asked", "expected"),
    [
        pytest.param([], {}, False, id="nothing said"),
        pytest.param([acl(1)], {}, True, id="literal"),
        pytest.param([acl(1)], {"name": "orders2"}, False, id="a literal is not a prefix"),
        pytest.param([acl(1)], {"user": "bob"}, False, id="another user"),
        pytest.param([acl(1)], {"kind": "Group"}, False, id="another kind of principal"),
        pytest.param([acl(1, "User:*")], {"user": "bob"}, True, id="every user"),
        pytest.param(
            [acl(1, "User:*")], {"kind": "Group"}, True, id="every user is every principal"
        ),
        pytest.param([acl(1, name="*")], {"name": "any"}, True, id="every name"),
        pytest.param([acl(1, name="ord", **PREFIXED)], {}, True, id="prefix"),
        pytest.param([acl(1, name="orders", **PREFIXED)], {}, True, id="prefix that is the name"),
        pytest.param([acl(1, name="orders-", **PREFIXED)], {}, False, id="prefix beyond the name"),
        pytest.param([acl(1, name="*", **PREFIXED)], {}, False, id="a prefix * is no wildcard"),
        pytest.param(
            [acl(1, resource_type=ResourceType.GROUP)], {}, False, id="another resource type"
        ),
        pytest.param([acl(1, host="10.0.0.1")], {}, True, id="host"),
        pytest.param([acl(1, host="10.0.0.2")], {}, False, id="another host"),
        pytest.param([acl(1), acl(2, **DENY)], {}, False, id="deny over allow"),
        pytest.param([acl(1), acl(2, "User:*", **DENY)], {}, False, id="deny all over allow"),
        pytest.param(
            [acl(1), acl(2, name="o", **PREFIXED, **DENY)], {}, False, id="deny by prefix"
        ),
        pytest.param([acl(1), acl(2, name="*", **DENY)], {}, False, id="deny by wildcard"),
        pytest.param([acl(1), acl(2, host="10.0.0.2", **DENY)], {}, True, id="deny elsewhere"),
        pytest.param(
            [acl(1), acl(2, host="0:0:0:0:0:0:0:1", **DENY)],
            {"host": "::1"},
            False,
            id="deny by an address as Java writes it",
        ),
        pytest.param(
            [acl(1, host="2001:DB8::0:1")], {"host": "2001:db8::1"}, True, id="IPv6 in another form"
        ),
        pytest.param([acl(1, operation=Op.ALL)], {}, True, id="ALL allows"),
        pytest.param([acl(1), acl(2, operation=Op.ALL, **DENY)], {}, False, id="ALL denies"),
        pytest.param([acl(1, operation=99)], {}, False, id="an operation of the future"),
        pytest.param([acl(1), acl(2, permission=99)], {}, False, id="no ALLOW is a DENY"),
    ],
)
def test_read(acls: list[Any], asked: dict[str, Any], expected: bool) -> None:
    assert AclWorld(*acls).may(Op.READ, **asked) is expected


@pytest.mark.parametrize("given", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.ALL])
def test_describe_is_implied(given: Op) -> None:
    assert AclWorld(acl(1, operation=given)).may(Op.DESCRIBE)


@pytest.mark.parametrize(
    "given", [Op.CREATE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.CLUSTER_ACTION]
)
def test_describe_is_not_implied(given: Op) -> None:
    assert not AclWorld(acl(1, operation=given)).may(Op.DESCRIBE)


def test_alter_configs_implies_describe_configs_alone() -> None:
    world = AclWorld(acl(1, operation=Op.ALTER_CONFIGS))
    assert world.may(Op.DESCRIBE_CONFIGS)
    assert not world.may(Op.ALTER)
    assert not AclWorld(acl(1, operation=Op.DESCRIBE_CONFIGS)).may(Op.ALTER_CONFIGS)


def test_a_deny_implies_nothing() -> None:
    world = AclWorld(acl(1, operation=Op.WRITE), acl(2, operation=Op.READ, **DENY))
    assert not world.may(Op.READ)
    assert world.may(Op.DESCRIBE)


def test_super_users_may_do_what_is_denied() -> None:
    world = AclWorld(acl(1, operation=Op.ALL, **DENY), super_users=frozenset({"User:alice"}))
    assert world.may(Op.READ)
    assert world.may_some(Op.READ)
    assert not world.may(Op.READ, user="bob")
    assert not world.may(Op.READ, kind="Group")


def test_allow_everyone_holds_only_where_no_acl_is_about_the_resource() -> None:
    world = AclWorld(
        acl(1, "User:bob"), acl(2, "User:bob", name="pay", **PREFIXED), allows_everyone=True
    )
    assert world.may(Op.WRITE, "elsewhere")
    assert not world.may(Op.READ, "orders"), "an ACL is about it"
    assert not world.may(Op.READ, "payments"), "a prefix is about it"
    assert world.may(Op.READ, "orders", resource_type=ResourceType.GROUP)
    assert not AclWorld(acl(1, "User:bob", name="*"), allows_everyone=True).may(Op.READ, "any")


def test_before_the_metadata_is_known_only_super_users_may() -> None:
    world = AclWorld(is_loaded=False, super_users=frozenset({"User:node"}), allows_everyone=True)
    assert world.may(Op.CLUSTER_ACTION, user="node")
    assert not world.may(Op.READ)
    assert not world.may_some(Op.READ)
    world.load_snapshot()
    assert world.may(Op.READ)
    assert world.may_some(Op.READ)


def test_changes_count_at_once() -> None:
    world = AclWorld(acl(1))
    before = world.authorizer.generation
    assert world.may(Op.READ)
    world.replay(acl(2, **DENY))
    assert not world.may(Op.READ)
    world.remove(2)
    assert world.may(Op.READ)
    world.remove(1)
    assert not world.may(Op.READ)
    assert not world.may_some(Op.READ)
    assert world.authorizer.generation == before + 3
    assert world.authorizer.acl_count == 0


def test_other_changes_keep_the_generation() -> None:
    world = AclWorld(acl(1))
    before = world.authorizer.generation
    world.replay()
    assert world.authorizer.generation == before


def test_what_a_snapshot_lacks_is_gone() -> None:
    world = AclWorld(acl(1), acl(2, name="pay", **PREFIXED))
    assert world.may(Op.READ, "pay2")
    world.load_snapshot(acl(1))
    assert world.may(Op.READ)
    assert not world.may(Op.READ, "pay2")
    world.load_snapshot()
    assert not world.may(Op.READ)


def test_an_acl_that_is_set_anew_under_its_id_is_moved() -> None:
    world = AclWorld(acl(1, name="pay", **PREFIXED))
    world.replay(acl(1, name="other"))
    assert world.may(Op.READ, "other")
    assert not world.may(Op.READ, "pay1")
    assert world.authorizer.acl_count == 1


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param([acl(1)], True, id="a literal"),
        pytest.param([acl(1, operation=Op.ALL)], True, id="ALL"),
        pytest.param([acl(1, operation=Op.WRITE)], False, id="another operation"),
        pytest.param([acl(1, host="10.9.9.9")], False, id="another host"),
        pytest.param([acl(1, "User:bob")], False, id="another user"),
        pytest.param([acl(1, "User:*", name="x", **PREFIXED)], True, id="a prefix for all"),
        pytest.param([acl(1), acl(2, **DENY)], False, id="its literal is denied"),
        pytest.param([acl(1), acl(2, name="ord", **PREFIXED, **DENY)], False, id="dominated"),
        pytest.param([acl(1), acl(2, name="orders1", **PREFIXED, **DENY)], True, id="beside"),
        pytest.param([acl(1), acl(2, name="other", **DENY)], True, id="another is denied"),
        pytest.param(
            [acl(1, name="orders", **PREFIXED), acl(2, **DENY)], True, id="a prefix has more names"
        ),
        pytest.param([acl(1, name="*"), acl(2, **DENY)], True, id="wildcard"),
        pytest.param([acl(1), acl(2, name="*", **DENY)], False, id="wildcard denied"),
        pytest.param(
            [acl(1, name="*"), acl(2, name="*", **DENY)], False, id="wildcard allowed and denied"
        ),
    ],
)
def test_read_of_some_topic(acls: list[Any], expected: bool) -> None:
    world = AclWorld(*acls)
    assert world.may_some(Op.READ) is expected
    assert world.may_some(Op.READ) is expected, "and when it is known"


def test_read_does_not_imply_describe_of_some_topic() -> None:
    """As in Kafka, whose question by resource type knows no implied operations."""
    assert not AclWorld(acl(1)).may_some(Op.DESCRIBE)


def test_decisions_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard_authorizer, "KNOWN_MAX", 10)
    world = AclWorld(acl(1))
    for number in range(100):
        world.may(Op.READ, f"topic-{number}")
        world.may_some(Op.READ, user=f"user-{number}")
        assert len(world.authorizer._known) <= 10
        assert len(world.authorizer._known_some) <= 10
    world.may(Op.READ, "x" * 30_000)
    assert all(len(question[4]) < 300 for question in world.authorizer._known)
    assert world.may(Op.READ)
