"""CreateAcls and DeleteAcls: which ACLs can be, and which a filter names."""

from typing import Any

import pytest
from controller_harness import Harness

from barnabas.node.metadata.controller import acls as acl_decisions
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)

INVALID = ErrorCode.INVALID_REQUEST


def creation(name: str = "orders", **fields: Any) -> AclCreation:
    return AclCreation(
        **{
            "resource_type": ResourceType.TOPIC,
            "resource_name": name,
            "resource_pattern_type": PatternType.LITERAL,
            "principal": "User:alice",
            "host": "*",
            "operation": Operation.READ,
            "permission_type": Permission.ALLOW,
            **fields,
        }
    )


def create(controller: Harness, *creations: AclCreation) -> list[tuple[int, str | None]]:
    response = controller.do(CreateAclsRequest(creations=list(creations)))
    return [(result.error_code, result.error_message) for result in response.results]


def filter_of(**fields: Any) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        **{
            "resource_type_filter": ResourceType.ANY,
            "resource_name_filter": None,
            "pattern_type_filter": PatternType.ANY,
            "principal_filter": None,
            "host_filter": None,
            "operation": Operation.ANY,
            "permission_type": Permission.ANY,
            **fields,
        }
    )


def delete(controller: Harness, *filters: DeleteAclsFilter) -> list[Any]:
    results: list[Any] = controller.do(DeleteAclsRequest(filters=list(filters))).filter_results
    return results


def names(controller: Harness) -> list[str]:
    return sorted(acl.resource_name for acl in controller.image.acls.values())


def test_what_is_created_is_in_the_image() -> None:
    controller = Harness()
    assert (
        create(controller, creation(), creation("pay", operation=Operation.ALL))
        == [(ErrorCode.NONE, "")] * 2
    )
    assert names(controller) == ["orders", "pay"]
    (acl,) = [acl for acl in controller.image.acls.values() if acl.resource_name == "orders"]
    assert (acl.resource_type, acl.pattern_type) == (ResourceType.TOPIC, PatternType.LITERAL)
    assert (acl.principal, acl.host) == ("User:alice", "*")
    assert (acl.operation, acl.permission_type) == (Operation.READ, Permission.ALLOW)


def test_what_is_there_is_not_doubled() -> None:
    controller = Harness()
    assert create(controller, creation(), creation()) == [(ErrorCode.NONE, "")] * 2
    assert create(controller, creation(), creation(host="10.0.0.1")) == [(ErrorCode.NONE, "")] * 2
    assert len(controller.image.acls) == 2
    assert [record.message.host for record in controller.records] == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
        ({"resource_pattern_type": 0}, "Invalid patternType UNKNOWN"),
        ({"operation": Operation.ANY}, "Invalid operation ANY"),
        ({"operation": 77}, "Invalid operation UNKNOWN"),
        ({"permission_type": Permission.ANY}, "Invalid permissionType ANY"),
        ({"permission_type": -1}, "Invalid permissionType UNKNOWN"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (
            {"principal": "alice"},
            (
                "Could not parse principal from `alice` (no colon is present separating the "
                "principal type from the principal name)"
            ),
        ),
    ],
)
def test_what_cannot_be_is_refused_and_the_rest_is_made(
    fields: dict[str, Any], message: str
) -> None:
    controller = Harness()
    assert create(controller, creation(**fields), creation("good")) == [
        (INVALID, message),
        (ErrorCode.NONE, ""),
    ]
    assert names(controller) == ["good"]


def test_too_many_at_once_are_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_decisions, "RECORDS_PER_REQUEST_MAX", 3)
    controller = Harness()
    outcome = create(controller, *(creation(f"t{number}") for number in range(4)))
    message = "Unable to perform excessively large batch operation."
    assert outcome == [(ErrorCode.POLICY_VIOLATION, message)] * 4
    assert not controller.image.acls
    create(controller, *(creation(f"t{number}") for number in range(3)))
    create(controller, creation("t3"))
    first, second = delete(controller, filter_of(), filter_of(resource_name_filter="t1"))
    assert first.error_code == ErrorCode.POLICY_VIOLATION
    assert "Cannot remove more than 3 acls" in first.error_message
    assert [acl.resource_name for acl in second.matching_acls] == ["t1"]
    assert names(controller) == ["t0", "t2", "t3"]


PREFIX = {"resource_pattern_type": PatternType.PREFIXED}
STORED = {
    "literal": creation("orders"),
    "other": creation("pay", principal="User:bob", operation=Operation.WRITE, host="10.0.0.1"),
    "prefix": creation("ord", **PREFIX, permission_type=Permission.DENY),
    "wild": creation("*"),
    "group": creation("orders", resource_type=ResourceType.GROUP),
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, set(STORED)),
        ({"resource_type_filter": ResourceType.GROUP}, {"group"}),
        ({"resource_name_filter": "orders"}, {"literal", "group"}),
        ({"resource_name_filter": "*"}, {"wild"}),
        (
            {"resource_name_filter": "orders", "pattern_type_filter": PatternType.MATCH},
            {"literal", "group", "prefix", "wild"},
        ),
        (
            {"resource_name_filter": "pay", "pattern_type_filter": PatternType.MATCH},
            {"other", "wild"},
        ),
        ({"pattern_type_filter": PatternType.MATCH}, set(STORED)),
        ({"pattern_type_filter": PatternType.PREFIXED}, {"prefix"}),
        (
            {"resource_name_filter": "orders", "pattern_type_filter": PatternType.PREFIXED},
            set(),
        ),
        ({"principal_filter": "User:bob"}, {"other"}),
        ({"host_filter": "10.0.0.1"}, {"other"}),
        ({"host_filter": "*"}, set(STORED) - {"other"}),
        ({"operation": Operation.WRITE}, {"other"}),
        ({"permission_type": Permission.DENY}, {"prefix"}),
    ],
)
def test_a_filter_removes_what_it_names(fields: dict[str, Any], expected: set[str]) -> None:
    controller = Harness()
    create(controller, *STORED.values())
    before = len(controller.image.acls)
    (result,) = delete(controller, filter_of(**fields))
    assert result.error_code == ErrorCode.NONE
    found = {(a.resource_type, a.resource_name, a.pattern_type) for a in result.matching_acls}
    assert found == {
        (acl.resource_type, acl.resource_name, acl.resource_pattern_type)
        for name, acl in STORED.items()
        if name in expected
    }
    assert len(controller.image.acls) == before - len(expected)


def test_two_filters_may_name_the_same() -> None:
    controller = Harness()
    create(controller, creation())
    first, second = delete(controller, filter_of(), filter_of())
    assert len(first.matching_acls) == len(second.matching_acls) == 1
    assert not controller.image.acls


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type_filter": 0}, "Unknown patternFilter."),
        ({"pattern_type_filter": 9}, "Unknown patternFilter."),
        ({"operation": 0}, "Unknown entryFilter."),
        ({"permission_type": 44}, "Unknown entryFilter."),
    ],
)
def test_a_filter_that_is_not_understood_removes_nothing(
    fields: dict[str, Any], message: str
) -> None:
    controller = Harness()
    create(controller, creation())
    (result,) = delete(controller, filter_of(**fields))
    assert (result.error_code, result.error_message) == (INVALID, message)
    assert len(controller.image.acls) == 1
