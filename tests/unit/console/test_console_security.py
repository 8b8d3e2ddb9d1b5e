"""Transactions, ACLs, users, quotas and late groups over a cluster, asked as the pages ask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import httpx
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.console.pages import security
from barnabas.console.pages.calls import Endpoint
from barnabas.console.services import lateness, transactions
from barnabas.console.services.asking import AwayError
from barnabas.console.services.messages import TooManyError
from barnabas.kafka.client_quotas import KEYS
from barnabas.protocol.errors import ErrorCode
from support.console_world import Console, console
from support.hanging_transaction import HOUR_MS, STRANGER, VERIFICATION, write_hanging
from support.node_process import wait_until

HOSTILE = '<img src=x onerror="document.title=1">'
SECRET = "correct horse battery staple"
PATIENCE_S = 60
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # A record of a transaction that no coordinator knows can be written only without this.
    VERIFICATION: "false",
}
USERS = "root: secret,admin\nann: pw,viewer\nbob: pw,editor\neve: pw,shop\n"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Cluster(config=CONFIG) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def page(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console in which everybody may do everything; nothing is kept, so that changes show."""
    patch = pytest.MonkeyPatch()
    patch.setattr(transactions, "LIST_KEPT_S", 0.0)
    patch.setattr(lateness, "KEPT_S", 0.0)
    log = tmp_path_factory.mktemp("console") / "audit.log"
    values = {"bootstrap.servers": kafka.bootstrap_servers, "console.audit.file": str(log)}
    with console(values) as found:
        yield found
    patch.undo()
    assert SECRET not in log.read_text()
    assert "create user" in log.read_text()


@pytest.fixture(scope="module")
def guarded(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    users = tmp_path_factory.mktemp("guarded") / "users"
    users.write_text(USERS)
    values = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "console.users.file": str(users),
        "console.roles.shop.rights": "view,read,produce,edit,admin",
        "console.roles.shop.topics": "*shop-*",
        "console.roles.shop.groups": "later*",
    }
    with console(values) as found:
        yield found


def told(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_cluster_that_is_away_is_told_with_the_reason() -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        for path in ("transactions", "hanging", "acls", "users", "quotas", "late-groups"):
            answer = told(page.http.get(f"/api/{path}"), 503)
            assert (answer["kind"], "127.0.0.1:1" in answer["error"]) == ("away", True)


# ACLs.

ACL = {
    "resource_type": "TOPIC",
    "name": "orders",
    "pattern": "LITERAL",
    "principal": "User:ann",
    "host": "*",
    "permission": "ALLOW",
}


def test_acls_are_added_found_and_removed(page: Console) -> None:
    given = {**ACL, "operations": ["READ", "DESCRIBE"]}
    assert page.done("POST", "acls", given) == {
        "added": ["User:ann may READ TOPIC orders", "User:ann may DESCRIBE TOPIC orders"]
    }
    hostile = {**ACL, "principal": f"User:{HOSTILE}", "name": HOSTILE, "pattern": "PREFIXED"}
    page.done("POST", "acls", {**hostile, "permission": "DENY", "operations": ["ALL"]})
    page.done("POST", "acls", {**ACL, "resource_type": "CLUSTER", "operations": ["ALTER"]})
    texts = [row["text"] for row in page.get("acls", search="user:ann topic")["rows"]]
    assert texts == ["User:ann may READ TOPIC orders", "User:ann may DESCRIBE TOPIC orders"]
    (row,) = page.get("acls", kind="CLUSTER")["rows"]
    assert (row["name"], row["operation"]) == ("kafka-cluster", "ALTER")
    (row,) = page.get("acls", permission="DENY")["rows"]
    assert row["principal"] == f"User:{HOSTILE}"
    assert page.get("acls", size=1)["total"] == 4
    wrong = {**row, "confirm": "User:ann"}
    assert "confirm" in told(page.send("DELETE", "acls", wrong), 400)["error"]
    page.done("DELETE", "acls", {**row, "confirm": row["principal"]})
    assert page.get("acls", permission="DENY")["rows"] == []
    again = told(page.send("DELETE", "acls", {**row, "confirm": row["principal"]}), 404)
    assert "there is no such ACL" in again["error"]
    deeds = [one for one in page.get("audit", search="acl")["rows"] if one["outcome"] == "done"]
    assert [one["action"] for one in deeds] == ["remove ACL", "add ACLs", "add ACLs", "add ACLs"]
    assert deeds[-1]["details"]["acls"][0] == "User:ann may READ TOPIC orders"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"resource_type": "ANY"}, "not a kind of resource"),
        ({"resource_type": "TABLE"}, "resource_type is not one of Kafka's words"),
        ({"operations": ["CLUSTER_ACTION"]}, "not an operation of TOPIC, which has ALL, ALTER"),
        ({"operations": ["read"]}, "operation is not one of Kafka's words"),
        ({"operations": [["READ"]]}, "operation is not one of Kafka's words"),
        ({"operations": []}, "operations are missing"),
        ({"operations": "READ"}, "operations is missing"),
        ({"pattern": "MATCH"}, "LITERAL or PREFIXED"),
        ({"permission": "ANY"}, "ALLOW or DENY"),
        ({"principal": "ann"}, "User:NAME"),
        ({"principal": 7}, "principal is missing"),
        ({"name": " "}, "name is missing or too long"),
        ({"name": "x" * 1_001}, "name is missing or too long"),
        ({"host": ""}, "host is missing"),
    ],
)
def test_acls_that_cannot_be_meant(page: Console, change: dict[str, Any], words: str) -> None:
    answer = told(page.send("POST", "acls", {**ACL, "operations": ["READ"], **change}), 400)
    assert words in answer["error"]


def test_a_cluster_without_an_authorizer_says_so() -> None:
    with (
        Cluster() as cluster,
        console({"bootstrap.servers": cluster.bootstrap_servers}) as page,
    ):
        error = told(page.http.get("/api/acls"), 409)["error"]
        assert "SECURITY_DISABLED" in error
        assert "Set authorizer.class.name" in error


# Users.


def test_users_are_created_changed_and_deleted(
    page: Console, kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [
        page.send("POST", "users", {"name": "ann", "password": SECRET}),
        page.send("POST", "users", {"name": HOSTILE, "password": SECRET, "iterations": 8192}),
    ]
    rows = {row["name"]: row["credentials"] for row in page.get("users")["rows"]}
    assert {one["mechanism"] for one in rows["ann"]} == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert {one["iterations"] for one in rows[HOSTILE]} == {8192}
    again = page.send("POST", "users", {"name": "ann", "password": SECRET})
    assert "there is a user ann already" in told(again, 409)["error"]
    answers.append(again)
    change = {"password": f"new {SECRET}", "iterations": 16384}
    answers.append(page.send("POST", "users/ann/password", change))
    (row,) = page.get("users", search="ANN")["rows"]
    assert {one["iterations"] for one in row["credentials"]} == {16384}
    nobody = page.send("POST", "users/nobody/password", change)
    assert "there is no user nobody" in told(nobody, 404)["error"]
    answers.append(nobody)
    assert told(page.send("DELETE", "users/ann", {"confirm": "bob"}), 400)
    for name in ("ann", HOSTILE):
        path = f"users/{name.replace('%', '%25').replace('/', '%2F')}"
        page.done("DELETE", path, {"confirm": name})
    assert page.get("users")["total"] == 0
    assert told(page.send("DELETE", "users/ann", {"confirm": "ann"}), 404)
    shown = "".join(answer.text for answer in answers) + json.dumps(page.get("audit"))
    assert SECRET not in shown + caplog.text
    assert [one["outcome"] for one in page.get("audit", search="create user")["rows"]][1:] == [
        "done",
        "done",
    ]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x"}, "password is missing"),
        ({"name": "x", "password": ""}, "password is missing"),
        ({"name": "x", "password": 5}, "password is missing"),
        ({"name": "x", "password": SECRET * 100}, "password is missing or too long"),
        ({"name": "", "password": SECRET}, "name is missing"),
        ({"password": SECRET}, "name is missing"),
        ({"name": "x", "password": SECRET, "mechanisms": ["PLAIN"]}, "SCRAM-SHA-256"),
        ({"name": "x", "password": SECRET, "mechanisms": []}, "SCRAM-SHA-256"),
        ({"name": "x", "password": SECRET, "mechanisms": [[]]}, "SCRAM-SHA-256"),
        ({"name": "x", "password": f"{SECRET}\ud800"}, "password is not text"),
        ({"name": "x\ud800", "password": SECRET}, "name is not text"),
        ({"name": "x", "password": SECRET, "iterations": 1}, "from 4096 to 16384"),
        ({"name": "x", "password": SECRET, "iterations": True}, "from 4096 to 16384"),
    ],
)
def test_users_that_cannot_be_meant(page: Console, body: dict[str, Any], words: str) -> None:
    answer = page.send("POST", "users", body)
    assert words in told(answer, 400)["error"]
    assert SECRET not in answer.text


# Quotas.


def test_quotas_are_set_changed_and_removed(page: Console) -> None:
    assert page.get("quotas/words") == KEYS
    of = {
        "both": {"user": "ann", "client-id": "reports"},
        "default": {"user": None},
        "ip": {"ip": "10.0.0.9"},
        "hostile": {"client-id": HOSTILE},
    }
    limits = {"producer_byte_rate": 1024, "consumer_byte_rate": 2048}
    for name in ("both", "default", "hostile"):
        page.done("POST", "quotas", {"entity": of[name], "values": limits})
    page.done("POST", "quotas", {"entity": of["ip"], "values": {"connection_creation_rate": 5}})
    rows = {row["text"]: row for row in page.get("quotas")["rows"]}
    assert set(rows) == {
        "user=ann, client-id=reports",
        "user=<default>",
        "ip=10.0.0.9",
        f"client-id={HOSTILE}",
    }
    assert rows["user=<default>"]["values"] == limits
    assert [row["text"] for row in page.get("quotas", kind="ip")["rows"]] == ["ip=10.0.0.9"]
    assert page.get("quotas", search="ann reports")["total"] == 1
    change = {"producer_byte_rate": None, "consumer_byte_rate": 10}
    page.done("POST", "quotas", {"entity": of["both"], "values": change})
    (row,) = page.get("quotas", search="ann")["rows"]
    assert row["values"] == {"consumer_byte_rate": 10}
    assert told(page.send("DELETE", "quotas", {"entity": of["both"], "confirm": "ann"}), 400)
    for row in rows.values():
        page.done("DELETE", "quotas", {"entity": row["entity"], "confirm": row["text"]})
    assert page.get("quotas")["total"] == 0
    gone = {"entity": of["ip"], "confirm": "ip=10.0.0.9"}
    assert "has no quotas" in told(page.send("DELETE", "quotas", gone), 404)["error"]


@pytest.mark.parametrize(
    ("entity", "values", "words"),
    [
        ({}, {"producer_byte_rate": 1}, "entity names some of user, client-id, ip"),
        ({"group": "x"}, {"producer_byte_rate": 1}, "entity names some of"),
        ({"user": "a", "ip": "1.1.1.1"}, {"producer_byte_rate": 1}, "an ip goes with neither"),
        ({"user": ""}, {"producer_byte_rate": 1}, "user is a name, or null"),
        ({"user": 5}, {"producer_byte_rate": 1}, "user is a name, or null"),
        ({"user": "a"}, {}, "values are missing"),
        ({"user": "a"}, {"bytes": 1}, "there are the quotas"),
        ({"user": "a"}, {"producer_byte_rate": 0}, "not a number above 0"),
        ({"user": "a"}, {"producer_byte_rate": "1"}, "not a number above 0"),
        ({"user": "a"}, {"producer_byte_rate": True}, "not a number above 0"),
        ({"user": "a"}, {"producer_byte_rate": 10**400}, "not a number above 0"),
        ({"user": "a" * 1_001}, {"producer_byte_rate": 1}, "user is missing or too long"),
    ],
)
def test_quotas_that_cannot_be_meant(
    page: Console, entity: Any, values: dict[str, Any], words: str
) -> None:
    answer = told(page.send("POST", "quotas", {"entity": entity, "values": values}), 400)
    assert words in answer["error"]


def test_what_brokers_refuse_is_said_in_their_words(page: Console) -> None:
    body = {"entity": {"ip": "nowhere"}, "values": {"connection_creation_rate": 5}}
    assert "INVALID_REQUEST" in told(page.send("POST", "quotas", body), 409)["error"]


# Transactions.


def opened(kafka: Kafka, name: str, topic: str) -> Producer:
    producer = kafka.producer(transactional_id=name)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_S)
    return producer


def test_open_transactions_are_listed_by_age_and_aborted(page: Console, kafka: Kafka) -> None:
    topic = kafka.topic()
    producers = {name: opened(kafka, name, topic) for name in ("t-old", "t-new", HOSTILE)}
    rows = page.get("transactions")["rows"]
    assert [row["transactional_id"] for row in rows] == list(producers)
    ages = [row["age_ms"] for row in rows]
    assert ages == sorted(ages, reverse=True)
    assert rows[0]["partitions"] == [f"{topic}-0"]
    assert (rows[0]["state"], rows[0]["coordinator"]) == ("Ongoing", 1)
    for search in (str(rows[1]["producer_id"]), "NEW t-"):
        found = page.get("transactions", search=search)["rows"]
        assert found[0]["transactional_id"] == "t-new"
        assert len(found) < 3
    assert page.get("transactions", state="CompleteCommit")["rows"] == []
    assert told(page.send("POST", "transactions/t-old/abort", {"confirm": "t-new"}), 400)
    for name in ("t-old", HOSTILE):
        path = f"transactions/{name.replace('/', '%2F')}/abort"
        page.done("POST", path, {"confirm": name})
        with pytest.raises(KafkaException):
            producers[name].commit_transaction(PATIENCE_S)
    (row,) = page.get("transactions")["rows"]
    assert row["transactional_id"] == "t-new"
    producers["t-new"].commit_transaction(PATIENCE_S)
    wait_until(lambda: not page.get("transactions")["rows"], "the markers")
    everything = page.get("transactions", state="all", size=2)
    assert (everything["total"], len(everything["rows"])) == (3, 2)
    gone = told(page.send("POST", "transactions/no-such/abort", {"confirm": "no-such"}), 404)
    assert "TRANSACTIONAL_ID_NOT_FOUND" in gone["error"]


def hanging_findings(page: Console) -> list[dict[str, str]]:
    return [one for one in page.get("findings") if "hang" in one["title"].lower()]


def test_a_hanging_transaction_is_found_and_aborted(
    page: Console, guarded: Console, kafka: Kafka
) -> None:
    topic = kafka.topic()
    assert write_hanging(kafka.bootstrap_servers, topic, kafka.name()) == ErrorCode.NONE
    producer = opened(kafka, "t-healthy", topic)
    (row,) = page.get("hanging")["rows"]
    assert (row["topic"], row["partition"], row["producer_id"]) == (topic, 0, STRANGER)
    assert row["idle_ms"] >= HOUR_MS
    assert page.get("hanging", minutes=100)["rows"] == []
    assert page.get("hanging", topic=topic)["total"] == 1
    assert told(page.http.get("/api/hanging?minutes=-1"), 400)
    assert told(page.http.get("/api/hanging?topic=no-such"), 404)
    # The overview names it without being asked, to those who see transactions.
    wait_until(lambda: hanging_findings(page) != [], "the overview names it", PATIENCE_S)
    (finding,) = hanging_findings(page)
    assert f"{topic}-0 from offset 0 (producer {STRANGER}" in finding["detail"]
    assert (finding["title"], finding["severity"]) == ("1 transaction hangs", "bad")
    assert page.get("findings")[0]["severity"] == "bad"
    for user, is_told in (("ann", True), ("eve", False)):
        assert guarded.log_in(user, "pw").status_code == 200
        if is_told:
            wait_until(lambda: hanging_findings(guarded) != [], "others see it", PATIENCE_S)
        else:
            assert hanging_findings(guarded) == []
    guarded.done("POST", "logout")
    reader = kafka.consumer(isolation_level="read_committed", auto_offset_reset="earliest")
    producer.commit_transaction(PATIENCE_S)
    place = f"{topic}-0"
    body = {key: row[key] for key in ("topic", "partition", "producer_id", "start_offset")}
    assert told(page.send("POST", "hanging/abort", {**body, "confirm": topic}), 400)
    wrong = {**body, "start_offset": 99, "confirm": place}
    assert (
        "no transaction of producer"
        in told(page.send("POST", "hanging/abort", wrong), 404)["error"]
    )
    page.done("POST", "hanging/abort", {**body, "confirm": place})
    assert hanging_findings(page) == []
    assert page.get("hanging")["rows"] == []
    reader.subscribe([topic])
    seen: list[bytes] = []

    def is_read() -> bool:
        seen.extend(message.value() for message in reader.consume(10, 1))
        return bool(seen)

    wait_until(is_read, "the committed record behind it", PATIENCE_S)
    assert seen == [b"open"]
    reader.close()


def test_searches_for_hanging_transactions_are_bounded() -> None:
    service = transactions.TransactionService(mock.MagicMock())
    held = [service._searches.acquire(blocking=False) for _ in range(transactions.SEARCHES_MAX)]
    assert all(held)
    with pytest.raises(TooManyError):
        service.hanging()
    service._searches.release()
    with mock.patch.object(transactions, "find_hanging", side_effect=AwayError("no")):
        for _ in range(2):  # a search that failed is over
            with pytest.raises(AwayError):
                service.hanging()


# Late groups.


def test_late_groups_by_records_and_seconds(
    page: Console, guarded: Console, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("shop", partitions=2)
    producer = kafka.producer()
    hour_ago = int(time.time() * 1000) - HOUR_MS
    for number in range(20):
        producer.produce(topic, "x", partition=number % 2, timestamp=hour_ago)
        producer.flush(PATIENCE_S)  # a batch for each record
    committed = {"late": (1, 5), "later": (0, 0), "in-time": (10, 10), HOSTILE: (10, 9)}
    for name, offsets in committed.items():
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": name})
        places = [TopicPartition(topic, number, at) for number, at in enumerate(offsets)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
    found = {one["name"]: one for one in page.get("late-groups")["groups"]}
    assert list(found) == ["later", "late", HOSTILE]
    assert [one["lag"] for one in found.values()] == [20, 14, 1]
    assert found["late"]["worst"] == f"{topic}-0"
    for one in found.values():
        assert 3_590 <= one["lag_s"] <= 3_600 + 600
    # A role sees the groups that its patterns fit.
    assert guarded.log_in("eve", "pw").status_code == 200
    assert [one["name"] for one in guarded.get("late-groups")["groups"]] == ["later"]
    guarded.done("POST", "logout")
    monkeypatch.setattr(lateness, "GROUPS_MAX", 1)

    def are_left_out() -> bool:  # an answer is kept for a moment
        left_out: int = page.get("late-groups")["left_out"]
        return left_out >= len(committed) - 1

    wait_until(are_left_out, "the groups that are not looked at")
    assert len(page.get("late-groups")["groups"]) <= 1


# Rights, read-only mode, and requests of other pages, for every endpoint.

CHANGES = [one for one in security.ENDPOINTS if one.method != "GET"]
LOOKS = [one for one in security.ENDPOINTS if one.method == "GET"]


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def path_of(endpoint: Endpoint) -> str:
    return endpoint.path.replace("{user}", "x").replace("{transaction}", "x")


def test_every_endpoint_concerns_the_whole_cluster() -> None:
    assert len(LOOKS) == 7
    assert len(CHANGES) == 9
    assert all(one.everywhere for one in security.ENDPOINTS)


@pytest.mark.parametrize("endpoint", security.ENDPOINTS, ids=name_of)
def test_a_role_for_some_topics_reaches_nothing_of_the_cluster(
    guarded: Console, endpoint: Endpoint
) -> None:
    url = path_of(endpoint).removeprefix("/api/")
    assert told(guarded.send(endpoint.method, url), 401)["kind"] == "login"
    assert guarded.log_in("eve", "pw").status_code == 200
    answer = guarded.send(endpoint.method, url)
    assert "everywhere, from a role without patterns" in told(answer, 403)["error"]
    guarded.done("POST", "logout")


@pytest.mark.parametrize("endpoint", CHANGES, ids=name_of)
def test_a_viewer_changes_nothing(guarded: Console, endpoint: Endpoint) -> None:
    url = path_of(endpoint).removeprefix("/api/")
    for user, right in (("ann", endpoint.right), ("bob", "admin")):
        assert guarded.log_in(user, "pw").status_code == 200
        if user == "bob" and endpoint.right == "edit":
            assert told(guarded.send(endpoint.method, url), 400)  # an editor may, with a body
            continue
        assert told(guarded.send(endpoint.method, url), 403)["right"] == right
    assert guarded.log_in("root", "secret").status_code == 200
    forbidden = guarded.get("audit", search="forbidden")["rows"]
    assert ("ann", endpoint.what) in [(one["user"], one["action"]) for one in forbidden]
    guarded.done("POST", "logout")


def test_a_role_for_some_topics_does_not_read_what_others_did(guarded: Console) -> None:
    assert guarded.log_in("eve", "pw").status_code == 200
    answer = told(guarded.http.get("/api/audit"), 403)
    assert "everywhere, from a role without patterns" in answer["error"]
    guarded.done("POST", "logout")


@pytest.mark.parametrize(
    ("name", "password"), [("ann", "\ud800"), ("\ud800", "pw"), ("x" * 1_001, "pw")]
)
def test_logins_that_cannot_be_meant(guarded: Console, name: str, password: str) -> None:
    answer = guarded.send("POST", "login", {"name": name, "password": password})
    assert "too long, or not text" in told(answer, 400)["error"]


def test_a_new_password_keeps_the_iterations(page: Console) -> None:
    given = {"name": "slow", "password": SECRET, "iterations": 8192}
    page.done("POST", "users", given)
    for more, count in (({}, 8192), ({"iterations": 5000}, 5000)):
        page.done("POST", "users/slow/password", {"password": SECRET[::-1], **more})
        (row,) = page.get("users", search="slow")["rows"]
        assert {one["iterations"] for one in row["credentials"]} == {count}
    page.done("DELETE", "users/slow", {"confirm": "slow"})


def test_looking_needs_the_right_to_view(guarded: Console) -> None:
    assert guarded.log_in("ann", "pw").status_code == 200
    for endpoint in LOOKS:
        assert guarded.http.get(endpoint.path).status_code == 200, endpoint.path
    assert guarded.get("me")["everywhere"] == ["view", "read"]
    guarded.done("POST", "logout")


def test_nothing_is_changed_in_read_only_mode(kafka: Kafka) -> None:
    values = {"bootstrap.servers": kafka.bootstrap_servers, "console.read.only": "true"}
    with console(values) as page:
        for endpoint in CHANGES:
            url = path_of(endpoint).removeprefix("/api/")
            assert told(page.send(endpoint.method, url), 403)["right"] == "read-only"
        assert page.get("me")["everywhere"] == ["view", "read", "unmasked"]


@pytest.mark.parametrize("endpoint", CHANGES, ids=name_of)
def test_other_pages_change_nothing(page: Console, endpoint: Endpoint) -> None:
    url = path_of(endpoint)
    data = json.dumps({"confirm": "x", "name": "x", "password": "x"})
    form = {"content-type": "application/x-www-form-urlencoded", "x-console": "1"}
    plain = {"content-type": "application/json"}
    for headers in (form, plain):
        answer = page.http.request(endpoint.method, url, content=data, headers=headers)
        assert answer.status_code == 400, answer.text
    headers = {
        "content-type": "application/json",
        "x-console": "1",
        "origin": "http://evil.example",
    }
    answer = page.http.request(endpoint.method, url, content=data, headers=headers)
    assert answer.status_code == 403
