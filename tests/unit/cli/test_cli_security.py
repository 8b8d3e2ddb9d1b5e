"""`barnabas acl`, `user`, `quota` and `token` against a cluster in memory."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from barnabas.cli.errors import ExitCode
from barnabas.kafka.wire_admin import WireAdmin
from barnabas.protocol.errors import ErrorCode
from support.cli import Result, run_cli
from support.fake_security import FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """The fake cluster that the commands of this test use."""
    fake = FakeCluster()

    def ask(_: WireAdmin, request: object, broker: int | None = None) -> object:
        return fake.answer(request)

    with mock.patch.object(WireAdmin, "ask", ask):
        yield fake


def ok(*words: str, stdin: bytes = b"") -> Result:
    result = run_cli(*words, stdin=stdin)
    assert result.code == 0, result.err
    return result


PREFIXED = ("--resource-pattern-type", "prefixed")
ALICE = ("--allow-principal", "User:alice")


def texts(result: Result) -> list[str]:
    return [
        " ".join(str(row[key]) for key in ("principal", "permission", "operation", "name"))
        for row in result.json
    ]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (
            (*ALICE, "--operation", "read", "--topic", "a", "--topic", "b"),
            ["User:alice may READ TOPIC a", "User:alice may READ TOPIC b"],
        ),
        ((*ALICE, "--topic", "*"), ["User:alice may ALL TOPIC *"]),
        (
            (*ALICE, "--producer", "--topic", "a", "--transactional-id", "t"),
            [
                "User:alice may WRITE TOPIC a",
                "User:alice may DESCRIBE TOPIC a",
                "User:alice may CREATE TOPIC a",
                "User:alice may WRITE TRANSACTIONAL_ID t",
                "User:alice may DESCRIBE TRANSACTIONAL_ID t",
            ],
        ),
        (
            (*ALICE, "--consumer", "--topic", "a", "--group", "g"),
            [
                "User:alice may READ TOPIC a",
                "User:alice may DESCRIBE TOPIC a",
                "User:alice may READ GROUP g",
            ],
        ),
        (
            (*ALICE, "--producer", "--idempotent", "--topic", "p", *PREFIXED),
            [
                "User:alice may WRITE PREFIXED TOPIC p",
                "User:alice may DESCRIBE PREFIXED TOPIC p",
                "User:alice may CREATE PREFIXED TOPIC p",
                "User:alice may IDEMPOTENT_WRITE CLUSTER kafka-cluster",
            ],
        ),
        (
            ("--deny-principal", "User:eve", "--deny-host", "10.0.0.9", "--cluster"),
            ["User:eve may not ALL CLUSTER kafka-cluster from 10.0.0.9"],
        ),
        (
            (*ALICE, "--deny-principal", "User:*", "--operation", "ClusterAction", "--cluster"),
            [
                "User:alice may CLUSTER_ACTION CLUSTER kafka-cluster",
                "User:* may not CLUSTER_ACTION CLUSTER kafka-cluster",
            ],
        ),
    ],
)
def test_acls_as_sentences(cluster: FakeCluster, words: tuple[str, ...], made: list[str]) -> None:
    assert ok("acl", "add", *words).lines == made
    assert len(cluster.acls) == len(made)


def test_a_list_shows_what_concerns_a_topic(cluster: FakeCluster) -> None:
    ok("acl", "add", *ALICE, "--operation", "Read", "--topic", "shop.orders")
    ok("acl", "add", *ALICE, "--operation", "Write", "--topic", "shop.")
    ok("acl", "add", *ALICE, "--operation", "Write", "--topic", "shop.", *PREFIXED)
    ok("acl", "add", "--deny-principal", "User:eve", "--topic", "*")
    found = texts(ok("acl", "list", "--topic", "shop.orders", "--json"))
    assert found == [
        "User:eve DENY ALL *",
        "User:alice ALLOW WRITE shop.",
        "User:alice ALLOW READ shop.orders",
    ]
    assert len(ok("acl", "list", "--json").json) == 4
    assert texts(ok("acl", "list", "--deny-principal", "User:eve", "--json")) == [
        "User:eve DENY ALL *"
    ]
    exact = ("--resource-pattern-type", "literal")
    assert len(ok("acl", "list", "--topic", "shop.", *exact, "--json").json) == 1


def test_removing_asks_and_removes_exactly_that(cluster: FakeCluster) -> None:
    ok("acl", "add", *ALICE, "--consumer", "--topic", "a", "--group", "g")
    ok("acl", "add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "a")
    refused = run_cli("acl", "remove", *ALICE, "--topic", "a")
    assert refused.code == ExitCode.USAGE
    assert "--yes" in refused.err
    assert len(cluster.acls) == 4
    assert ok("acl", "remove", *ALICE, "--topic", "a", "--yes").text == "removed 2 ACLs\n"
    assert {acl[3] for acl in cluster.acls if acl[0] == 2} == {"User:bob"}
    gone = run_cli("acl", "remove", *ALICE, "--topic", "a", "--yes")
    assert gone.code == ExitCode.NOT_FOUND


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("acl", "add", *ALICE), "no resource"),
        (("acl", "add", "--topic", "a"), "--allow-principal"),
        (("acl", "add", "--allow-principal", "alice", "--topic", "a"), "User:alice"),
        (("acl", "add", *ALICE, "--operation", "Read", "--cluster"), "its operations are ALL"),
        (("acl", "add", *ALICE, "--operation", "Nonsense", "--cluster"), "--operation"),
        (("acl", "add", *ALICE, "--consumer", "--topic", "a"), "add --group"),
        (("acl", "add", *ALICE, "--producer", "--group", "a"), "add --topic"),
        (("acl", "add", *ALICE, "--producer", "--operation", "Read", "--topic", "a"), "leave out"),
        (("acl", "remove", "--yes"), "nothing is named"),
        (("acl", "remove", "--operation", "Read", "--yes"), "nothing is named"),
        (("quota", "set", "producer_byte_rate=1"), "nobody"),
        (("quota", "set", "--user", "a", "--user-default", "producer_byte_rate=1"), "exclude"),
        (("quota", "set", "--user", "a", "--ip", "1.1.1.1", "producer_byte_rate=1"), "--ip"),
        (("quota", "set", "--user", "a", "bytes=1"), "bytes is not a quota"),
        (("quota", "set", "--user", "a", "producer_byte_rate=-1"), "above 0"),
        (("quota", "set", "--user", "a", "producer_byte_rate=nan"), "above 0"),
        (("quota", "set", "--user", "a", "producer_byte_rate=m"), "above 0"),
        (("quota", "set", "--user", "a", "producer_byte_rate"), "QUOTA=VALUE"),
        (("token", "create", "--renewer", "bob"), "User:bob"),
        (("token", "create", "--max-lifetime", "7 weeks"), "7d"),
        (("user", "create", "alice", "--iterations", "1"), "4096"),
    ],
)
def test_command_lines_without_sense(
    cluster: FakeCluster, words: tuple[str, ...], said: str
) -> None:
    refused = run_cli(*words)
    assert (refused.code, said in refused.err) == (ExitCode.USAGE, True), refused.err
    assert not cluster.requests


def test_a_refusal_is_one_line(cluster: FakeCluster) -> None:
    cluster.refusal = ErrorCode.SECURITY_DISABLED
    for words in (("acl", "list"), ("acl", "add", *ALICE, "--topic", "a")):
        refused = run_cli(*words)
        assert refused.code == ExitCode.REFUSED
        assert "[SECURITY_DISABLED]" in refused.err
        assert refused.err.count("\n") == 1


# -- users


def test_a_password_is_hashed_before_it_leaves(cluster: FakeCluster) -> None:
    made = ok("user", "create", "alice", stdin="pässwört\n".encode())
    assert made.lines == ["alice: created"]
    for number, algorithm in ((1, "sha256"), (2, "sha512")):
        kept = cluster.users["alice"][number]
        want = hashlib.pbkdf2_hmac(algorithm, "pässwört".encode(), kept.salt, 4096)
        assert kept.salted_password == want
    assert not any("pässwört" in str(request) for request in cluster.requests)
    assert cluster.users["alice"][1].salt != cluster.users["alice"][2].salt


def test_users_are_listed_changed_and_deleted(cluster: FakeCluster) -> None:
    first = ok("user", "create", "bob", "--mechanism", "SCRAM-SHA-512", "--generate", "--json")
    assert len(first.json["password"]) >= 32
    exists = run_cli("user", "create", "bob", stdin=b"x\n")
    assert exists.code == ExitCode.REFUSED
    assert "barnabas user password bob" in exists.err
    before = cluster.users["bob"][2].salted_password
    assert ok("user", "password", "bob", stdin=b"new\n").lines == ["bob: changed"]
    assert set(cluster.users["bob"]) == {2}
    assert cluster.users["bob"][2].salted_password != before
    listed = ok("user", "list", "--json").json
    assert listed == [{"user": "bob", "mechanisms": ["SCRAM-SHA-512"], "iterations": [4096]}]
    assert run_cli("user", "delete", "bob").code == ExitCode.USAGE
    assert ok("user", "delete", "bob", "--yes").lines == ["bob: deleted"]
    assert not cluster.users


@pytest.mark.parametrize("words", [("password", "nobody"), ("delete", "nobody", "--yes")])
def test_a_user_that_does_not_exist(cluster: FakeCluster, words: tuple[str, ...]) -> None:
    missing = run_cli("user", *words, stdin=b"x\n")
    assert (missing.code, missing.err) == (
        ExitCode.NOT_FOUND,
        "barnabas: there is no user nobody\n",
    )


def test_an_empty_password_is_refused(cluster: FakeCluster) -> None:
    assert run_cli("user", "create", "alice", stdin=b"\n").code == ExitCode.USAGE
    assert run_cli("user", "create", "alice", stdin=b"").code == ExitCode.USAGE
    assert not cluster.users


# -- quotas


def test_quotas_are_set_listed_and_removed(cluster: FakeCluster) -> None:
    ok("quota", "set", "--user", "a", "--client-id", "c", "producer_byte_rate=1.5m")
    ok("quota", "set", "--user", "a", "request_percentage=50", "consumer_byte_rate=2k")
    ok("quota", "set", "--user-default", "consumer_byte_rate=1g")
    assert cluster.quotas[("user", "a"), ("client-id", "c")] == {"producer_byte_rate": 1572864.0}
    listed = ok("quota", "list", "--user", "a")
    assert [line.split() for line in listed.lines[1:]] == [
        ["user=a", "consumer_byte_rate", "2048"],
        ["user=a", "request_percentage", "50"],
        ["user=a,", "client-id=c", "producer_byte_rate", "1572864"],
    ]
    default = ok("quota", "list", "--user-default", "--json").json
    assert default == [{"entity": {"user": None}, "quotas": {"consumer_byte_rate": 2.0**30}}]
    ok("quota", "remove", "--user", "a", "request_percentage")
    assert cluster.quotas[(("user", "a"),)] == {"consumer_byte_rate": 2048.0}
    ok("quota", "remove", "--user", "a")
    assert set(cluster.quotas) == {(("user", "a"), ("client-id", "c")), (("user", None),)}
    missing = run_cli("quota", "remove", "--user", "a")
    assert (missing.code, "user=a has no quotas" in missing.err) == (ExitCode.NOT_FOUND, True)


# -- tokens


def test_tokens(cluster: FakeCluster, tmp_path: Path) -> None:
    made = ok("token", "create", "--owner", "User:job", "--max-lifetime", "7d", "--json").json
    assert made["owner"] == "User:job"
    assert made["hmac"] == "c2VjcmV0IQ=="
    assert cluster.requests[-1].max_lifetime_ms == 7 * 86_400_000
    assert "c2VjcmV0IQ" not in ok("token", "list", "--json").text
    path = tmp_path / "job.properties"
    shown = ok("token", "create", "--output", str(path))
    assert "c2VjcmV0IQ" not in shown.text
    assert 'password="c2VjcmV0IQ==" tokenauth="true"' in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ok("token", "renew", "--for", "12h", stdin=b"c2VjcmV0IQ==\n")
    unknown = run_cli("token", "renew", stdin=b"AAAA\n")
    assert "[DELEGATION_TOKEN_NOT_FOUND]" in unknown.err
    assert "AAAA" not in unknown.err
    assert run_cli("token", "renew", stdin=b"#\n").code == ExitCode.USAGE
    ok("token", "expire", stdin=b"c2VjcmV0IQ==\n")
    assert not cluster.tokens
