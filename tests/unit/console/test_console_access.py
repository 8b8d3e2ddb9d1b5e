"""Roles down to a topic, sessions, guesses and the audit log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.base.errors import ConfigError
from barnabas.console.access import (
    FREE_TRIES,
    SESSIONS_OF_USER_MAX,
    WAIT_S_MAX,
    Audit,
    ForbiddenError,
    Guesses,
    Sessions,
    User,
    Vouched,
    roles_of,
)
from barnabas.console.services.topics import Asked
from barnabas.web.passwords import Account

ANN = Account("pw", frozenset({"viewer"}))
ROLES = {
    "console.roles.shop.rights": "view, read,produce",
    "console.roles.shop.topics": "shop-*,payments",
    "console.roles.shop.groups": "shop-*",
}


def user(*names: str, read_only: bool = False) -> User:
    roles = roles_of(ROLES)
    return User("ann", tuple(roles[name] for name in names), read_only)


@pytest.mark.parametrize(
    ("right", "topic", "group", "may"),
    [
        ("read", "shop-orders", None, True),
        ("read", "payments", None, True),
        ("read", "payments2", None, False),
        ("read", "Shop-orders", None, False),
        ("read", "other/shop-x", None, False),
        ("edit", "shop-orders", None, False),
        ("view", None, "shop-billing", True),
        ("view", None, "billing", False),
        ("view", None, None, True),
        ("admin", None, None, False),
    ],
)
def test_a_role_has_rights_on_what_its_patterns_fit(
    right: str, topic: str | None, group: str | None, may: bool
) -> None:
    assert user("shop").may(right, topic=topic, group=group) is may


@pytest.mark.parametrize("kind", ["subject", "connector", "query"])
def test_a_role_with_patterns_reaches_only_what_it_names(kind: str) -> None:
    plural = {"subject": "subjects", "connector": "connectors", "query": "queries"}[kind]
    names: dict[str, str | None] = {kind: "shop-x"}
    others: dict[str, str | None] = {kind: "other"}
    assert not user("shop").may("view", everywhere=False, **names)  # limited to topics and groups
    assert user("viewer").may("view", everywhere=False, **names)
    (role,) = (
        role
        for name, role in roles_of({**ROLES, f"console.roles.shop.{plural}": "shop-*"}).items()
        if name == "shop"
    )
    limited = User("ann", (role,))
    assert limited.may("view", everywhere=False, **names)
    assert not limited.may("view", everywhere=False, **others)


def test_rights_everywhere_come_from_a_role_without_patterns() -> None:
    assert user("viewer").may("view", everywhere=True)
    assert user("shop").may("view")
    assert not user("shop").may("view", everywhere=True)
    with pytest.raises(ForbiddenError, match="'view' everywhere, from a role without patterns"):
        user("shop").need("view", "this", everywhere=True)
    # The right of one role and the reach of another are no right everywhere.
    assert not user("shop", "viewer").may("produce", everywhere=True)
    values = {"console.roles.all.rights": "edit", "console.roles.all.topics": "*"}
    assert User("ann", (roles_of(values)["all"],)).may("edit", everywhere=True)


def test_rights_of_several_roles_add_up() -> None:
    both = user("shop", "viewer")
    assert both.may("read", topic="anything")
    assert not both.may("produce", topic="anything")
    assert both.may("produce", topic="shop-x")


def test_nobody_without_a_role_may_do_anything() -> None:
    assert not User("eve", ()).may("view")


def test_read_only_wins_over_every_role() -> None:
    admin = user("admin", read_only=True)
    assert admin.may("read", topic="x")
    for right in ("produce", "edit", "admin"):
        assert not admin.may(right, topic="x")
        with pytest.raises(ForbiddenError) as error:
            admin.need(right, "this", topic="x")
        assert error.value.right == "read-only"


def test_a_refusal_names_the_right() -> None:
    with pytest.raises(ForbiddenError, match="deleting needs the right 'admin'") as error:
        user("shop").need("admin", "deleting", topic="shop-x")
    assert error.value.right == "admin"


@pytest.mark.parametrize(
    "values",
    [
        {"console.roles.x.rights": "view,fly"},
        {"console.roles.x.colour": "red"},
        {"console.roles.rights": "view"},
    ],
)
def test_roles_that_cannot_be_meant_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        roles_of(values)


def test_a_session_ends_with_its_time_and_with_logging_out() -> None:
    now = [0.0]
    sessions = Sessions(10.0, lambda: now[0])
    token = sessions.begin("ann", ANN)
    assert sessions.find(token) == ("ann", ANN)
    other = sessions.begin("ann", ANN)
    sessions.end(other)
    assert sessions.find(other) is None
    now[0] = 11.0
    assert sessions.find(token) is None


def test_a_session_of_a_provider_ends_with_its_token_or_its_time() -> None:
    now = [0.0]
    sessions = Sessions(10.0, lambda: now[0])
    vouched = Vouched(frozenset({"viewer"}), "subject-1", "token")
    short, long = sessions.begin("oidc:ann", vouched, 5.0), sessions.begin("oidc:ann", vouched, 99)
    now[0] = 6.0
    assert (sessions.find(short), sessions.find(long)) == (None, ("oidc:ann", vouched))
    assert (sessions.expired(short), sessions.expired(long)) == (None, None)
    now[0] = 11.0
    assert sessions.find(long) is None


def test_a_session_of_a_provider_that_renews_it_ends_with_its_time() -> None:
    now = [0.0]
    sessions = Sessions(10.0, lambda: now[0])
    first = Vouched(frozenset({"viewer"}), "subject-1", "token", "once")
    second = Vouched(frozenset({"admin"}), "subject-1", "newer token", "twice")
    token = sessions.begin("oidc:ann", first, 5.0)
    assert sessions.expired(token) is None
    now[0] = 6.0
    assert (sessions.find(token), sessions.expired(token)) == (None, first)
    sessions.renew(token, second, 99)
    assert (sessions.find(token), sessions.expired(token)) == (("oidc:ann", second), None)
    now[0] = 11.0
    assert (sessions.find(token), sessions.expired(token)) == (None, None)
    sessions.renew(token, first, 99)
    assert sessions.find(token) is None
    assert "newer" not in repr(second)
    assert "twice" not in repr(second)


@pytest.mark.parametrize("forged", ["", "x", "ann", "a" * 5000, "ann|admin", "\x00", "ß"])
def test_no_token_can_be_made_up(forged: str) -> None:
    sessions = Sessions()
    token = sessions.begin("ann", ANN)
    assert sessions.find(forged) is None
    assert sessions.find(token[:-1]) is None
    assert sessions.find(token + "A") is None


def test_a_user_has_a_bounded_number_of_sessions() -> None:
    sessions = Sessions()
    tokens = [sessions.begin("ann", ANN) for _ in range(SESSIONS_OF_USER_MAX + 5)]
    assert [sessions.find(token) is None for token in tokens[:6]] == [True] * 5 + [False]
    assert sessions.find(tokens[-1]) is not None


def test_guessing_waits_longer_each_time() -> None:
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    waits = []
    for _ in range(FREE_TRIES + 12):
        guesses.failed("ann", "10.0.0.1")
        waits.append(guesses.wait_s("ann", "10.0.0.1"))
    assert waits[: FREE_TRIES - 1] == [0.0] * (FREE_TRIES - 1)
    assert waits[FREE_TRIES - 1 : FREE_TRIES + 3] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == WAIT_S_MAX
    assert guesses.wait_s("ann", "10.0.0.2") == 0.0  # strangers do not lock ann out
    now[0] += WAIT_S_MAX + 1
    assert guesses.wait_s("ann", "10.0.0.1") == 0.0


def test_many_users_tried_from_one_address_and_one_user_from_many_are_slowed_down() -> None:
    guesses = Guesses(lambda: 0.0)
    for number in range(4 * FREE_TRIES):
        guesses.failed(f"user-{number}", "10.0.0.1")
    assert guesses.wait_s("another", "10.0.0.1") > 0
    for number in range(20 * FREE_TRIES):
        guesses.failed("ann", f"10.1.0.{number}")
    assert guesses.wait_s("ann", "10.2.0.1") > 0


def test_a_right_password_forgets_failures() -> None:
    guesses = Guesses(lambda: 0.0)
    for _ in range(FREE_TRIES):
        guesses.failed("ann", "10.0.0.1")
    guesses.succeeded("ann", "10.0.0.1")
    assert guesses.wait_s("ann", "10.0.0.1") == 0.0


def test_the_audit_log_is_a_private_file_of_json(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(str(path))
    audit.note("ann", "10.0.0.1", "delete topic", "orders\nfake line", "done", {"n": 1})
    audit.note("bob", "10.0.0.2", "log in", "", "wrong name or password")
    audit.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["user"] for line in lines] == ["ann", "bob"]
    assert lines[0]["target"] == "orders\nfake line"
    assert lines[0]["details"] == {"n": 1}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [deed.user for deed in audit.recent()] == ["bob", "ann"]
    assert [deed.user for deed in audit.recent(Asked("delete ann").fits)] == ["ann"]


def test_an_audit_log_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"console\.audit\.file"):
        Audit(str(tmp_path / "nowhere" / "audit.log"))
