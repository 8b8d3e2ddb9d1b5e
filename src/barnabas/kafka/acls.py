"""ACLs as values, and the requests that list, add and remove them. Functions raise AdminError."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final

from barnabas.kafka.wire_admin import RefusedError, WireAdmin
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

_DATA = frozenset({Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE})
_CONFIGS = frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS})
_ANY = frozenset({Operation.ALL})
OPERATIONS: Final = {
    ResourceType.TOPIC: _DATA | _CONFIGS | _ANY | {Operation.ALTER, Operation.DESCRIBE},
    ResourceType.GROUP: _CONFIGS | _ANY | {Operation.READ, Operation.DESCRIBE, Operation.DELETE},
    ResourceType.CLUSTER: _CONFIGS
    | _ANY
    | {Operation.CREATE, Operation.CLUSTER_ACTION, Operation.ALTER, Operation.DESCRIBE}
    | {Operation.IDEMPOTENT_WRITE},
    ResourceType.TRANSACTIONAL_ID: _ANY
    | {Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT},
    ResourceType.DELEGATION_TOKEN: _ANY | {Operation.DESCRIBE},
    ResourceType.USER: _ANY | {Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS},
}
"""The operations of each kind of resource. Source: Kafka's AclEntry.supportedOperations."""
_ORDER = attrgetter(
    "resource_type", "name", "pattern", "principal", "permission", "operation", "host"
)


@dataclass(frozen=True, slots=True)
class Acl:
    """One ACL: a principal, a resource, and the operation that is allowed or denied."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @property
    def text(self) -> str:
        """In one line, as a sentence that begins with the principal."""
        words = "may" if self.permission is Permission.ALLOW else "may not"
        kind = "" if self.pattern is PatternType.LITERAL else f"{self.pattern.name} "
        target = f"{kind}{self.resource_type.name} {self.name}"
        place = "" if self.host == "*" else f" from {self.host}"
        return f"{self.principal} {words} {self.operation.name} {target}{place}"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects ACLs: those that match every field that is not ANY or None."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_everything(self) -> bool:
        """True if it names neither a resource, a principal nor a host."""
        return self.name is None and self.principal is None and self.host is None


def exactly(acl: Acl) -> AclFilter:
    """The filter that this one ACL passes, and no other."""
    return AclFilter(**{one.name: getattr(acl, one.name) for one in fields(AclFilter)})


def is_principal(name: str) -> bool:
    """Return whether a name has its type before it, as `User:alice`."""
    kind, colon, rest = name.partition(":")
    return bool(kind and colon and rest)


def list_acls(admin: WireAdmin, wanted: Iterable[AclFilter]) -> list[Acl]:
    """All ACLs that pass one of the filters, sorted."""
    found: set[Acl] = set()
    for item in wanted:
        response = admin.decide(DescribeAclsRequest(**_filtered(item)), "ACLs")
        found.update(
            Acl(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                acl.principal,
                acl.host,
                Operation(acl.operation),
                Permission(acl.permission_type),
            )
            for resource in response.resources
            for acl in resource.acls
        )
    return sorted(found, key=_ORDER)


def _filtered(item: AclFilter) -> dict[str, Any]:
    """The members of a request's filter."""
    return {
        "resource_type_filter": item.resource_type,
        "resource_name_filter": item.name,
        "pattern_type_filter": item.pattern,
        "principal_filter": item.principal,
        "host_filter": item.host,
        "operation": item.operation,
        "permission_type": item.permission,
    }


def add_acls(admin: WireAdmin, acls: Sequence[Acl]) -> None:
    """Add them; those that exist stay. Raises RefusedError for the first that is refused."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )
    response = admin.retry(request, lambda answer: [item.error_code for item in answer.results])
    for acl, result in zip(acls, response.results, strict=True):
        if result.error_code != ErrorCode.NONE:
            raise RefusedError(result.error_code, result.error_message, acl.text)


def remove_acls(admin: WireAdmin, acls: Sequence[Acl]) -> int:
    """Remove exactly these; returns how many there were.

    Raises RefusedError for the first that is refused.
    """
    filters = [DeleteAclsFilter(**_filtered(exactly(acl))) for acl in acls]
    request = DeleteAclsRequest(filters=filters)
    response = admin.retry(
        request, lambda answer: [item.error_code for item in answer.filter_results]
    )
    count = 0
    for acl, result in zip(acls, response.filter_results, strict=True):
        codes = [(result.error_code, result.error_message)]
        codes += [(item.error_code, item.error_message) for item in result.matching_acls]
        for code, message in codes:
            if code != ErrorCode.NONE:
                raise RefusedError(code, message, acl.text)
        count += len(result.matching_acls)
    return count
