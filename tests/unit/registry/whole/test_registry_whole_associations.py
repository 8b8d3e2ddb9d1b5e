"""Associations of topics with subjects, as clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.registry.store.records import AssociationKey, AssociationValue, Record
from support.registry_whole import WholeRegistry

TOPIC = {"resourceName": "orders", "resourceNamespace": "lkc-1", "resourceId": "id-1"}
OF_NAME = "/associations/resources/lkc-1/orders"
OF_ID = "/associations/resources/id-1"
OWNED = ":.lkc-1:orders-key"


@pytest.fixture
def registry() -> WholeRegistry:
    """Subjects a and b, and an association of the topic's values with a."""
    registry = WholeRegistry()
    registry.put("a", '"string"')
    registry.put("b", '"int"')
    made = registry.ask("POST", "/associations", request(subject="a"))
    assert made.status == 200, made.body
    return registry


def request(topic: dict[str, Any] = TOPIC, **one: Any) -> dict[str, Any]:
    return topic | {"associations": [one]}


def strong(registry: WholeRegistry) -> None:
    """An association as Confluent's registry makes it with a topic, in a topic taken over."""
    registry.put(OWNED, '"long"')
    key = AssociationKey("orders", "lkc-1", "topic", "key", OWNED)
    value = AssociationValue(key, "guid-2", "id-1", "STRONG", frozen=True, timestamp_ms=5)
    registry.service.log.append(Record(key, value))
    registry.set("/mode", mode="READWRITE")  # a write reads what is there


def test_one_is_made_and_listed(registry: WholeRegistry) -> None:
    (found,) = registry.get(OF_NAME)
    assert len(found.pop("guid")) == 36
    found.pop("createTs", None)
    found.pop("updateTs", None)
    assert found == {
        "subject": "a",
        **TOPIC,
        "resourceType": "topic",
        "associationType": "value",
        "lifecycle": "WEAK",
        "frozen": False,
    }
    named = registry.get(OF_NAME)
    for target in (
        *(OF_ID, "/associations/subjects/a", "/associations/resources/-/orders"),
        *("/associations/resources/lkc-1/-", f"{OF_NAME}?associationType=value&lifecycle=WEAK"),
        f"{OF_NAME}?associationType=key&associationType=value&resourceType=topic",
    ):
        assert registry.get(target) == named, target
    for target in (
        *(f"{OF_NAME}?associationType=key", f"{OF_NAME}?lifecycle=STRONG", f"{OF_NAME}?offset=1"),
        *(f"{OF_NAME}?resourceType=x", "/associations/subjects/b", "/associations/resources/x"),
        "/associations/resources/other/orders",
    ):
        assert registry.get(target) == [], target
    assert registry.ask("GET", f"{OF_NAME}?lifecycle=x").status == 404


def test_the_answer_says_what_is_new(registry: WholeRegistry) -> None:
    again = registry.ask("POST", "/associations", request(subject="a"))
    assert again.json == {**TOPIC, "resourceType": "topic"}
    body = request(subject="b", associationType="key", lifecycle="WEAK")
    dry = registry.ask("PUT", f"{OF_ID}?dryRun=true", body)
    assert dry.json == {**TOPIC, "resourceType": "topic"}
    assert len(registry.get(OF_ID)) == 1
    made = registry.ask("PUT", OF_ID, body)
    new = {"subject": "b", "associationType": "key", "lifecycle": "WEAK", "frozen": False}
    assert made.json == {**TOPIC, "resourceType": "topic", "associations": [new]}
    assert [one["subject"] for one in registry.get(OF_ID)] == ["b", "a"]


def test_subjects_in_contexts(registry: WholeRegistry) -> None:
    registry.put(":.c:s", '"int"')
    body = request(TOPIC | {"resourceId": "id-2", "resourceName": "other"}, subject="s")
    assert registry.ask("POST", "/contexts/.c/associations", body).status == 200
    (found,) = registry.get("/associations/resources/id-2")
    assert found["subject"] == ":.c:s"
    assert registry.get("/contexts/.c/associations/subjects/s") == [found]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (request(), 42212),
        (request(subject="b"), 40903),
        (request(subject="a", lifecycle="STRONG"), 40903),
        (request(subject="none", associationType="key"), 40907),
        (request(subject="b", associationType="both"), 42212),
        (request(subject="b", associationType="key", lifecycle="STRONG"), 42212),
        (request(subject="b", associationType="key", frozen=True), 42212),
        (request(subject="b", associationType="key", schema={"schema": '"int"'}), 42212),
        (request(subject=OWNED, associationType="key"), 42212),
        (request(TOPIC | {"resourceName": ""}, subject="a"), 42212),
        (request(TOPIC | {"resourceId": None}, subject="a"), 42212),
        (request(TOPIC | {"resourceNamespace": None}, subject="a"), 42212),
        (request(TOPIC | {"resourceType": "table"}, subject="a"), 42212),
        (TOPIC, 42212),
        (TOPIC | {"associations": [{"subject": "a"}, {"subject": "b"}]}, 42212),
        (TOPIC | {"associations": ["a"]}, 400),
        (request(subject="b", lifecycle="LONG"), 400),
    ],
)
def test_what_is_refused(registry: WholeRegistry, body: Any, code: int) -> None:
    if body == request():
        body = request(TOPIC | {"resourceId": "new"})
    reply = registry.ask("POST", "/associations", body)
    assert reply.json["error_code"] == code, reply.body
    assert len(registry.get("/associations/resources/-/-")) == 1


def test_changes_that_are_refused(registry: WholeRegistry) -> None:
    for one in ({"subject": "b"}, {"lifecycle": "STRONG"}, {"schema": {"schema": '"int"'}}):
        reply = registry.ask("PUT", OF_ID, request(**one))
        assert reply.json["error_code"] == 42212, reply.body
    strong(registry)
    reply = registry.ask("PUT", OF_ID, request(associationType="key", lifecycle="WEAK"))
    assert reply.json["error_code"] == 40908
    body = request(TOPIC | {"resourceId": "id-3"}, subject=OWNED)
    assert registry.ask("POST", "/associations", body).json["error_code"] == 40905


def test_an_associated_subject_is_not_deleted(registry: WholeRegistry) -> None:
    registry.ask("PUT", "/config/a", {"compatibility": "NONE"})
    registry.put("a", '"int"')
    assert registry.ask("DELETE", "/subjects/a").json["error_code"] == 40904
    assert registry.ask("DELETE", "/subjects/a/versions/1").status == 200
    assert registry.ask("DELETE", "/subjects/a/versions/2").json["error_code"] == 40904
    assert registry.ask("DELETE", OF_ID).status == 204
    assert registry.get(OF_NAME) == []
    assert registry.ask("DELETE", OF_ID).json["error_code"] == 40410
    assert registry.ask("DELETE", "/subjects/a").status == 200


def test_what_a_resource_owns_goes_with_it(registry: WholeRegistry) -> None:
    strong(registry)
    assert [one["lifecycle"] for one in registry.get(OF_ID)] == ["STRONG", "WEAK"]
    assert registry.ask("DELETE", OF_ID).json["error_code"] == 40908
    assert registry.ask("DELETE", f"{OF_ID}?cascadeLifecycle=true&dryRun=true").status == 204
    assert len(registry.get(OF_ID)) == 2
    assert registry.ask("DELETE", f"{OF_ID}?cascadeLifecycle=true").status == 204
    assert registry.get(OF_ID) == []
    assert registry.get("/subjects?deleted=true&subjectPrefix=:*:") == ["a", "b"]


def test_read_only_subjects(registry: WholeRegistry) -> None:
    registry.set("/mode/a", mode="READONLY")
    assert registry.ask("DELETE", OF_ID).json["error_code"] == 42205
    registry.set("/mode/b", mode="READONLY")
    reply = registry.ask("POST", "/associations", request(subject="b", associationType="key"))
    assert reply.json["error_code"] == 42205


def test_batches_are_not_served(registry: WholeRegistry) -> None:
    for name in ("batchGet", "batchMutate"):
        assert registry.ask("POST", f"/associations:{name}", {"requests": []}).status == 404
