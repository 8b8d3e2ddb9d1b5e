"""The registry under many clients at once, kill -9 and restarts, and requests meant to harm."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.registry_process import RegistryProcess, registry_process, registry_url

__all__ = ["registry_url"]

CLIENTS = 20
REQUESTS = 500


def record(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "a", "type": "int"}]})


def test_one_schema_registered_500_times_at_once_has_one_id(registry_url: str) -> None:
    started = threading.Barrier(CLIENTS)

    def register(client_number: int) -> list[tuple[int, int]]:
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            started.wait()
            answers = [
                client.post(
                    f"{registry_url}/subjects/storm-{n % 5}/versions",
                    json={"schema": record("Storm")},
                ).json()
                for n in range(REQUESTS // CLIENTS)
            ]
        return [(answer["id"], answer["version"]) for answer in answers]

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [one for many in pool.map(register, range(CLIENTS)) for one in many]
    assert len(found) == REQUESTS
    assert len(set(found)) == 1
    assert found[0][1] == 1


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_no_registration_is_lost_or_forked_when_leaders_are_killed(
    kafka_bootstrap_servers: str, kills: int
) -> None:
    """Four clients register through two instances; the leader is killed and started again."""
    acknowledged: dict[str, set[int]] = {}
    lock = threading.Lock()
    stopping = threading.Event()

    with ExitStack() as stack:
        first = stack.enter_context(registry_process(kafka_bootstrap_servers))
        second = stack.enter_context(registry_process(kafka_bootstrap_servers, first.topic))
        instances = [first, second]

        def register(number: int) -> None:
            with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
                count = 0
                while not stopping.is_set():
                    # The same names from two clients each: their ids must agree.
                    name = f"R{number % 2}_{count}"
                    url = instances[(number + count) % 2].url
                    try:
                        answer = client.post(
                            f"{url}/subjects/{name}/versions", json={"schema": record(name)}
                        )
                    except httpx.HTTPError:
                        stopping.wait(0.02)  # it was killed; another is asked next
                        continue
                    finally:
                        count += 1
                    if answer.status_code == 200:
                        with lock:
                            acknowledged.setdefault(name, set()).add(answer.json()["id"])
                    else:
                        assert answer.status_code >= 500, answer.text

        threads = [threading.Thread(target=register, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(kills):
                progress(acknowledged, 30)
                leader = leader_of(instances)
                leader.kill()
                progress(acknowledged, 10)
                leader.start()
        finally:
            stopping.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        for instance in instances:
            instance.stop()

        fresh = stack.enter_context(registry_process(kafka_bootstrap_servers, first.topic))
        client = stack.enter_context(SchemaRegistryClient({"url": fresh.url}))
        ids = {name: client.get_latest_version(name).schema_id for name in acknowledged}
        assert {name: {found} for name, found in ids.items()} == acknowledged
        assert len(set(ids.values())) == len(ids)
        before = max(client.get_latest_version(s).schema_id for s in client.get_subjects())
        fresh.wait_for_leader()
        assert client.register_schema("after", Schema(record("After"), "AVRO")) > before


def progress(acknowledged: dict[str, set[int]], count: int) -> None:
    """Wait until that many more names are registered."""
    wanted = len(acknowledged) + count
    wait_until(lambda: len(acknowledged) >= wanted, f"the registration of {wanted} names")


def leader_of(instances: list[RegistryProcess]) -> RegistryProcess:
    """The instance that leads: it alone accepts a write that says it was forwarded."""
    leading: list[RegistryProcess] = []

    def is_led() -> bool:
        for instance in instances:
            answer = httpx.put(
                f"{instance.url}/mode",
                json={"mode": "READWRITE"},
                headers={"X-Forward": "true"},
                trust_env=False,
                timeout=PATIENCE_S,
            )
            if answer.status_code == 200:
                leading.append(instance)
                return True
        return False

    wait_until(is_led, "the election of a leader")
    return leading[0]


SUBJECTS = [
    *("a/b/../c", "..", ".", "%00", "%2F", "a b\tc", "ü/漢字/🎉", "-x", "'\"`$(id)", "x" * 2000),
    *(":.c:", ":.c:x", "a:b:c", "__proto__", "latest", "versions", "null"),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: ascii(one)[:20])
def test_a_subject_of_any_name_is_one_subject(registry_url: str, subject: str) -> None:
    """It is registered and found as it was asked for, or refused in words."""
    path = "".join(f"%{byte:02X}" for byte in subject.encode())
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        url = f"{registry_url}/subjects/{path}/versions"
        made = client.post(url, json={"schema": record("Odd")})
        if made.status_code != 200:
            assert made.json()["error_code"] == 42208, made.text
            assert made.json()["message"]
            return
        assert client.get(f"{url}/latest").json()["subject"] == subject
        assert client.get(url).json() == [1]
        assert subject in client.get(f"{registry_url}/subjects").json()
        assert client.delete(f"{registry_url}/subjects/{path}").json() == [1]


def nested(depth: int) -> str:
    text = '"int"'
    for _ in range(depth):
        text = f'{{"type":"array","items":{text}}}'
    return text


def many_fields(count: int) -> str:
    fields = [{"name": f"f{n}", "type": "string", "doc": "d" * 40} for n in range(count)]
    return json.dumps({"type": "record", "name": "Wide", "fields": fields})


HARMFUL: list[tuple[str, dict[str, Any]]] = [
    ("deep avro", {"schema": nested(20_000)}),
    ("deep json", {"schemaType": "JSON", "schema": '{"not":' * 20_000 + "{}" + "}" * 20_000}),
    ("deep proto", {"schemaType": "PROTOBUF", "schema": "message A {" * 5_000 + "}" * 5_000}),
    ("wide avro", {"schema": many_fields(20_000)}),
    ("many references", {"schema": '"int"', "references": [
        {"name": f"r{n}", "subject": f"r{n}", "version": 1} for n in range(5_000)]}),
    ("remote", {"schemaType": "JSON", "schema": '{"$ref":"http://127.0.0.1:1/x.json"}'}),
    ("file", {"schemaType": "JSON", "schema": '{"$ref":"file:///etc/passwd"}'}),
    ("import", {"schemaType": "PROTOBUF", "schema": 'syntax="proto3"; import "../../etc/passwd";'}),
    ("unknown type", {"schemaType": "XML", "schema": "<a/>"}),
    ("a number", {"schema": 7}),
    ("no text", {"schemaType": "JSON"}),
    ("huge number", {"schema": '"int"', "id": 10**30}),
    ("bad unicode", {"schema": '"\ud800"'}),
]  # fmt: skip


@pytest.mark.parametrize("body", [body for _, body in HARMFUL], ids=[name for name, _ in HARMFUL])
def test_a_harmful_schema_is_answered_and_others_are_served(
    registry_url: str, body: dict[str, Any]
) -> None:
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        answer = client.post(f"{registry_url}/subjects/harm/versions", content=json.dumps(body))
        if answer.status_code != 200:
            assert 400 <= answer.status_code < 500, answer.text
            assert answer.json()["error_code"] >= 400
            assert answer.json()["message"]
            assert "Traceback" not in answer.text
        assert client.get(f"{registry_url}/subjects").status_code == 200
        client.delete(f"{registry_url}/subjects/harm")
