"""The console's interface over a cluster, asked as its page asks."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.app.testing import Kafka
from barnabas.console import access
from support import client_logins
from support.console_world import Console, console
from support.node_process import wait_until
from support.patience import PATIENCE_S

RECORDS = 3_000


def cluster(servers: str) -> dict[str, str]:
    """The console's settings for the cluster of the session."""
    login = client_logins.java(servers)
    return {"bootstrap.servers": servers} | {f"client.{name}": login[name] for name in login}


@pytest.fixture(scope="module")
def page(kafka_bootstrap_servers: str) -> Iterator[Console]:
    with console(cluster(kafka_bootstrap_servers)) as found:
        yield found


def filled(kafka: Kafka, partitions: int = 3, records: int = RECORDS) -> str:
    """A topic with orders, each hundredth of which is large."""
    topic = kafka.topic("orders", partitions=partitions)
    producer = Producer(kafka.client_config)
    for number in range(records):
        order = {"id": number, "amount": 1000 if number % 100 == 0 else number % 7}
        producer.produce(
            topic, json.dumps(order), f"customer-{number % 10}", headers=[("source", "web")]
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    return topic


def told(answer: Any, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def test_overview_topics_and_nodes(page: Console, kafka: Kafka) -> None:
    topic = kafka.topic("seen", partitions=5)
    facts = page.get("overview")
    assert facts["nodes"] == facts["nodes_up"] >= 1
    assert facts["offline"] == 0
    wait_until(lambda: page.get("topics", search=topic)["total"] == 1, "the topic in the list")
    row = page.get("topics", search=topic)["rows"][0]
    assert (row["name"], row["partitions"], row["offline"]) == (topic, 5, 0)
    assert page.get("topics", search=f"{topic} nowhere")["rows"] == []
    nodes = page.get("nodes")
    assert nodes["nodes"][0]["is_up"]
    assert nodes["sizes"]["directories"][0]["total_bytes"] > 0
    assert nodes["quorum"]["replicas"][0]["is_voter"]
    node = nodes["nodes"][0]["id"]
    assert {"name": "node.id", "value": str(node)}.items() <= next(
        one for one in page.get(f"nodes/{node}/settings") if one["name"] == "node.id"
    ).items()
    assert isinstance(page.get("findings"), list)


def test_a_topic_from_creation_to_deletion(page: Console, kafka: Kafka) -> None:
    name = f"{kafka.topic('base')}-made"
    body = {"name": name, "partitions": 2, "replication": -1, "settings": {"retention.ms": "90000"}}
    page.done("POST", "topics", body)
    assert told(page.send("POST", "topics", body), 409)["kind"] == "refused"
    (changed, *_) = page.get(f"topics/{name}/settings")
    assert (changed["name"], changed["value"], changed["source"]) == (
        "retention.ms",
        "90000",
        "topic",
    )
    page.done("POST", f"topics/{name}/settings", {"settings": {"retention.ms": None}})
    wait_until(
        lambda: page.get(f"topics/{name}/settings")[0]["source"] != "topic", "the setting's removal"
    )
    page.done("POST", f"topics/{name}/partitions", {"count": 3})
    wait_until(
        lambda: len(page.get(f"topics/{name}/partitions")["rows"]) == 3, "the third partition"
    )
    page.done("POST", f"topics/{name}/messages", {"key": "k", "value": "v"})
    assert told(page.send("DELETE", f"topics/{name}/records", {"confirm": "other"}), 400)
    assert page.done("DELETE", f"topics/{name}/records", {"confirm": name}) == {"records": 1}
    assert page.get(f"topics/{name}/messages")["records"] == []
    assert told(page.send("DELETE", f"topics/{name}", {}), 400)["kind"] == "request"
    page.done("DELETE", f"topics/{name}", {"confirm": name})
    wait_until(
        lambda: page.http.get(f"/api/topics/{name}").status_code == 404, "the topic's deletion"
    )
    done = [(deed["action"], deed["outcome"]) for deed in page.get("audit", search=name)["rows"]]
    assert done[0] == ("delete topic", "done")
    assert ("create topic", "done") in done
    assert any(outcome.startswith("failed") for _, outcome in done)


def test_pages_of_records_join_without_a_gap(page: Console, kafka: Kafka) -> None:
    topic = filled(kafka, records=500)
    for start in ("newest", "oldest"):
        seen = []
        cursor = ""
        while True:
            found = page.get(
                f"topics/{topic}/messages", **{"from": start, "limit": 90, "cursor": cursor}
            )
            seen += [(one["partition"], one["offset"]) for one in found["records"]]
            cursor = found["cursor"]
            if not found["has_more"]:
                break
        assert len(seen) == len(set(seen)) == 500


def test_records_from_an_offset_and_from_a_time(page: Console, kafka: Kafka) -> None:
    topic = filled(kafka, partitions=1, records=300)
    path = f"topics/{topic}/messages"
    found = page.get(path, **{"from": "offset", "value": 250, "limit": 10})["records"]
    assert [one["offset"] for one in found] == list(range(250, 260))
    at = found[0]["timestamp"]
    assert page.get(path, **{"from": "time", "value": at})["records"][0]["timestamp"] >= at
    late = int(time.time() * 1000) + 3_600_000
    assert page.get(path, **{"from": "time", "value": late})["records"] == []
    assert json.loads(found[0]["value"]["text"])["id"] == 250
    assert found[0]["headers"] == [{"name": "source", "form": "text", "size": 3, "text": "web"}]
    whole = page.get(f"{path}/0/250")
    assert whole["offset"] == 250
    data = page.http.get(f"/api/{path}/0/250/value")
    assert data.headers["content-disposition"].startswith("attachment")
    assert json.loads(data.content)["id"] == 250
    assert told(page.http.get(f"/api/{path}/0/9999"), 404)["kind"] == "absent"
    assert told(page.http.get(f"/api/{path}?partition=9"), 409)["kind"] == "refused"


def test_a_search_finds_all_and_says_how_far_it_is(page: Console, kafka: Kafka) -> None:
    topic = filled(kafka)
    lines = list(page.lines(f"topics/{topic}/search", filter="value.amount > 900", limit=500))
    found = [
        json.loads(line["record"]["value"]["text"])["id"] for line in lines if "record" in line
    ]
    assert sorted(found) == list(range(0, RECORDS, 100))
    last = lines[-1]["progress"]
    assert last["is_done"]
    assert (last["scanned"], last["total"], last["matches"]) == (RECORDS, RECORDS, RECORDS // 100)
    lines = list(page.lines(f"topics/{topic}/search", filter='key == "customer-3"', limit=5))
    assert sum("record" in line for line in lines) == 5
    assert lines[-1]["progress"]["is_full"]


def test_a_wrong_filter_says_where(page: Console, kafka: Kafka) -> None:
    topic = kafka.topic("wrong")
    answer = told(page.http.get(f"/api/topics/{topic}/search?filter=value.a+%3D+1"), 400)
    assert (answer["position"], answer["kind"]) == (8, "request")
    assert told(page.http.get(f"/api/topics/{topic}/search"), 400)


def test_a_search_ends_when_its_page_goes(page: Console, kafka: Kafka) -> None:
    topic = filled(kafka)

    def streams() -> float:
        text = page.http.get("/metrics").text
        return float(next(x for x in text.splitlines() if x.startswith("console_streams "))[16:])

    wait_until(lambda: streams() == 0, "the end of earlier tests' streams")
    with page.http.stream("GET", f"/api/topics/{topic}/tail") as answer:
        lines = answer.iter_lines()  # httpx closes the connection with the iterator
        next(lines)
        assert streams() == 1
    wait_until(lambda: streams() == 0, "the tail's end")


def test_the_live_tail_shows_what_is_written(page: Console, kafka: Kafka) -> None:
    topic = kafka.topic("live")
    wait_until(lambda: page.http.get(f"/api/topics/{topic}").status_code == 200, "the topic")
    lines = page.lines(f"topics/{topic}/tail", filter='value.kind == "new"')
    assert next(lines) == {"records": [], "skipped": 0}
    for kind in ("old", "new"):
        page.done("POST", f"topics/{topic}/messages", {"value": json.dumps({"kind": kind})})
    seen: list[Any] = []
    while not seen:
        seen += next(lines)["records"]
    assert json.loads(seen[0]["value"]["text"]) == {"kind": "new"}
    lines.close()  # type: ignore[attr-defined]


def test_records_are_written_as_they_are_given(page: Console, kafka: Kafka) -> None:
    topic = kafka.topic("written", partitions=2)
    wait_until(lambda: page.http.get(f"/api/topics/{topic}").status_code == 200, "the topic")
    body = {
        "key": {"base64": "/wA="},
        "value": None,
        "headers": [["a", "ß"], ["none", None]],
        "partition": 1,
    }
    assert page.done("POST", f"topics/{topic}/messages", body) == {"partition": 1, "offset": 0}
    (record,) = page.get(f"topics/{topic}/messages")["records"]
    assert record["key"]["form"] == "bytes"
    assert record["key"]["text"] == "ff 00"
    assert record["value"] == {"form": "null", "size": 0}
    assert [one.get("text") for one in record["headers"]] == ["ß", None]
    for wrong in ({"value": 5}, {"partition": -1}, {"key": {"base64": "!"}}, {"headers": ["x"]}):
        told(page.send("POST", f"topics/{topic}/messages", wrong), 400)
    told(page.send("POST", "topics/nowhere/messages", {"value": "x"}), 404)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_its_lag_and_a_reset(page: Console, kafka: Kafka, protocol: str) -> None:
    topic = filled(kafka, partitions=1, records=300)
    name = f"{topic}-{protocol}"
    settings: dict[str, Any] = {"group.id": name, "auto.offset.reset": "earliest"}
    more = {"group.protocol": protocol, "enable.auto.commit": False}
    consumer = Consumer({**kafka.client_config, **settings, **more})
    consumer.subscribe([topic])
    wait_until(lambda: bool(consumer.consume(1, 1)), "the first record", 60)
    consumer.commit(offsets=[TopicPartition(topic, 0, 100)], asynchronous=False)
    group = page.get(f"groups/{name}")
    assert group["row"]["type"].lower() == protocol
    assert len(group["members"]) == 1
    assert group["members"][0]["partitions"] == [[topic, 0]]
    assert group["total"] == 200
    assert page.get(f"topics/{topic}/groups")[0]["lag"] == 200
    plan = page.done("POST", f"groups/{name}/plan", {"to": "offset", "value": 50})
    assert plan["records"] == {"again": 50, "skipped": 0}
    body = {"moves": plan["moves"], "confirm": name}
    assert "members" in told(page.send("POST", f"groups/{name}/reset", body), 409)["error"]
    consumer.close()
    wait_until(lambda: not page.get(f"groups/{name}")["members"], "the member's end")
    assert told(page.send("POST", f"groups/{name}/reset", {**body, "confirm": "x"}), 400)
    page.done("POST", f"groups/{name}/reset", body)
    assert page.get(f"groups/{name}")["total"] == 250
    for to, value, after in (("earliest", 0, 0), ("latest", 0, 300), ("shift", -20, 30)):
        (move,) = page.done("POST", f"groups/{name}/plan", {"to": to, "value": value})["moves"]
        assert move["after"] == after
    page.done("DELETE", f"groups/{name}", {"confirm": name})
    assert told(page.http.get(f"/api/groups/{name}"), 404)


# The rights of roles.


@pytest.fixture
def guarded(kafka_bootstrap_servers: str, tmp_path: Path) -> Iterator[Console]:
    users = tmp_path / "users"
    users.write_text("root: secret,admin\nann: pw,shop\neve: pw\n")
    values = {
        **cluster(kafka_bootstrap_servers),
        "console.users.file": str(users),
        "console.roles.shop.rights": "view,read,produce",
        "console.roles.shop.topics": "shop-*",
        "console.roles.shop.groups": "shop-*",
        "console.masked.fields": "email",
        "console.audit.file": str(tmp_path / "audit.log"),
    }
    with console(values) as found:
        yield found


def test_roles_reach_down_to_topics_and_fields(guarded: Console, kafka: Kafka) -> None:
    other = kafka.topic("other")
    root = Console(guarded.url)
    assert root.log_in("root", "secret").status_code == 200
    name = f"shop-{other}"
    root.done("POST", "topics", {"name": name, "partitions": 1, "replication": -1})
    value = '{"email": "a@b", "n": 1}'
    wait_until(lambda: root.http.get(f"/api/topics/{name}").status_code == 200, "the topic")
    root.done("POST", f"topics/{name}/messages", {"value": value, "headers": [["email", "x@y"]]})
    assert "a@b" in root.get(f"topics/{name}/messages")["records"][0]["value"]["text"]
    assert told(guarded.http.get("/api/topics"), 401)["kind"] == "login"
    assert guarded.log_in("ann", "pw").status_code == 200
    names = [row["name"] for row in guarded.get("topics", search=other)["rows"]]
    assert names == [name]
    (record,) = guarded.get(f"topics/{name}/messages")["records"]
    assert "a@b" not in json.dumps(record)
    assert "x@y" not in json.dumps(record)
    assert '"n": 1' in record["value"]["text"]
    lines = list(guarded.lines(f"topics/{name}/search", filter='value.email contains "a@b"'))
    assert not any("record" in line for line in lines)
    for path in (f"topics/{other}", f"topics/{other}/messages", "groups/x", "audit"):
        assert told(guarded.http.get(f"/api/{path}"), 403)["kind"] == "forbidden"
    answer = told(guarded.http.get(f"/api/topics/{name}/messages/0/0/value"), 403)
    assert answer["right"] == "unmasked"
    answer = told(guarded.send("DELETE", f"topics/{name}", {"confirm": name}), 403)
    assert answer["right"] == "admin"
    assert guarded.get(f"topics/{name}")["may"] == {
        "read": True,
        "produce": True,
        "edit": False,
        "admin": False,
    }
    eve = Console(guarded.url)
    assert eve.log_in("eve", "pw").status_code == 200
    assert told(eve.http.get("/api/topics"), 403)["right"] == "view"
    deeds = [(one["user"], one["outcome"]) for one in root.get("audit")["rows"]]
    assert ("ann", "forbidden") in deeds
    root.done("DELETE", f"topics/{name}", {"confirm": name})
    for one in (root, eve):
        one.http.close()


def test_a_session_cannot_be_forged_and_ends(guarded: Console) -> None:
    answer = guarded.log_in("root", "secret")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    token = guarded.http.cookies["console_session"]
    for forged in ("", "x", token[:-1], token + "A", "root", "root|admin", "a" * 8000):
        found = guarded.http.get("/api/topics", headers={"cookie": f"console_session={forged}"})
        assert found.status_code in (401, 431), forged
    kept = {"cookie": f"console_session={token}"}
    assert guarded.http.get("/api/topics", headers=kept).status_code == 200
    guarded.done("POST", "logout")
    assert guarded.http.get("/api/topics", headers=kept).status_code == 401


@pytest.mark.parametrize("changed", ["root: secret,viewer", "root: other,admin", "ann: pw,shop"])
def test_a_session_ends_when_its_account_changes(
    guarded: Console, tmp_path: Path, changed: str
) -> None:
    assert guarded.log_in("root", "secret").status_code == 200
    assert guarded.get("me")["user"] == "root"
    users = tmp_path / "users"
    before = users.read_text()
    (tmp_path / "new").write_text(changed)
    (tmp_path / "new").replace(users)
    assert told(guarded.http.get("/api/topics"), 401)["kind"] == "login"
    assert guarded.get("me")["user"] is None
    users.unlink()
    assert told(guarded.http.get("/api/topics"), 401)["kind"] == "login"
    users.write_text(before)
    assert told(guarded.http.get("/api/topics"), 401)["kind"] == "login"  # it has ended for good
    assert guarded.log_in("root", "secret").status_code == 200


def test_guessing_is_slowed_down(guarded: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    # In place of a second, in which a busy machine may not answer the rest.
    monkeypatch.setattr(access, "doubled", lambda *_: 600.0)
    statuses = [guarded.log_in("root", f"guess-{number}").status_code for number in range(8)]
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429
    answer = guarded.log_in("root", "secret")
    assert answer.status_code == 429  # the right password does not say so while it waits
    assert int(answer.headers["retry-after"]) >= 0
    assert guarded.log_in("ann", "pw").status_code == 200


def test_read_only_changes_nothing(kafka_bootstrap_servers: str, kafka: Kafka) -> None:
    topic = kafka.topic("kept")
    values = cluster(kafka_bootstrap_servers) | {"console.read.only": "true"}
    with console(values) as page:
        assert page.get("me")["is_read_only"]
        for method, path, body in (
            ("DELETE", f"topics/{topic}", {"confirm": topic}),
            ("POST", f"topics/{topic}/messages", {"value": "x"}),
            ("POST", "topics", {"name": "x", "partitions": 1, "replication": 1}),
        ):
            assert told(page.send(method, path, body), 403)["right"] == "read-only"


# Attacks, which must fail.


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
    ],
)
def test_pages_of_others_get_nowhere(page: Console, headers: dict[str, str]) -> None:
    for path in ("/api/topics", "/api/topics/x/search?filter=1", "/dom.js"):
        answer = page.http.get(path, headers=headers)
        assert answer.status_code in (403, 421), path
    assert page.send("POST", "topics", {}, **headers).status_code in (403, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain", "x-console": "1"},
        {"content-type": "application/x-www-form-urlencoded", "x-console": "1"},
        {"content-type": "application/json"},
    ],
)
def test_what_a_form_could_send_is_no_change(page: Console, headers: dict[str, str]) -> None:
    data = json.dumps({"name": "forged", "partitions": 1, "replication": 1})
    answer = page.http.post("/api/topics", content=data, headers=headers)
    assert answer.status_code == 400
    assert page.get("topics", search="forged")["rows"] == []


@pytest.mark.parametrize(
    "body", [b"{", b"[1]", b'{"a": NaN}', b"\xff", b'{"a":' * 300 + b"1" + b"}" * 300]
)
def test_bodies_that_are_no_objects_are_refused(page: Console, body: bytes) -> None:
    headers = {"content-type": "application/json", "x-console": "1"}
    assert page.http.post("/api/topics", content=body, headers=headers).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "topics?page=x",
        "topics/orders/messages?limit=x",
        "topics/orders/messages?cursor=x",
        "topics/orders/messages?from=yesterday",
        "topics/orders/messages/x/y",
        "nodes/x/settings",
    ],
)
def test_nonsense_is_a_request_that_is_wrong(page: Console, path: str) -> None:
    assert told(page.http.get(f"/api/{path}"), 400)["kind"] == "request"


def test_files_outside_of_the_page_are_not_served(page: Console) -> None:
    host, _, port = page.url.removeprefix("http://").partition(":")
    for path in ("/../application.py", "/%2e%2e/application.py", "/..%2fapplication.py", "//etc"):
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        connection.request("GET", path)
        assert connection.getresponse().status == 404, path
        connection.close()


def test_the_page_has_a_policy_without_inline_scripts(page: Console) -> None:
    answer = page.http.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "onclick" not in answer.text


def test_health_and_metrics(page: Console) -> None:
    assert page.http.get("/health/live").json() == {"status": "live"}
    assert page.http.get("/health/ready").json() == {"status": "ready"}
    assert "http_server_requests_total" in page.http.get("/metrics").text


def test_a_cluster_that_is_away_is_told_with_the_reason() -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        assert page.get("me")["user"] == "anonymous"
        assert page.http.get("/health/ready").status_code == 200
        for path in ("overview", "topics", "groups", "nodes", "topics/x/messages"):
            answer = told(page.http.get(f"/api/{path}"), 503)
            assert answer["kind"] == "away"
            assert "127.0.0.1:1" in answer["error"]
