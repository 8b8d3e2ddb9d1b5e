"""The rights of a user, given by ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.protocol.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from support.node_process import wait_until
from support.raw_client import RawClient
from support.required_rights.needs import Right

Acl = tuple[Permission, Operation, ResourceType, str]
EVERYTHING: tuple[Acl, ...] = tuple(
    (
        Permission.ALLOW,
        Operation.ALL,
        kind,
        CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD,
    )
    for kind in (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
        ResourceType.DELEGATION_TOKEN,
        ResourceType.USER,
    )
)


class AclRights:
    """Makes and deletes ACLs of one user, and waits until the broker has them."""

    def __init__(self, admin: RawClient, principal: str) -> None:
        self._admin = admin
        self._principal = principal
        self._present: frozenset[Acl] = frozenset()

    def grant_all(self) -> None:
        self._set(EVERYTHING)

    def grant_all_but(self, rights: Iterable[Right]) -> None:
        # With any topic, where one that may be written is enough (KIP-679).
        denied = [
            (Permission.DENY, operation, kind, name)
            for operation, kind, given in rights
            for name in ([WILDCARD] if (operation, kind) == ANY_TOPIC else [given])
        ]
        self._set([*EVERYTHING, *denied])

    def grant_only(self, rights: Iterable[Right]) -> None:
        self._set([(Permission.ALLOW, *right) for right in rights])

    def _set(self, acls: Iterable[Acl]) -> None:
        wanted = frozenset(acls)
        if self._present - wanted:
            doomed = [self._filter(acl) for acl in self._present - wanted]
            self._check(
                self._admin.call(
                    DeleteAclsRequest(filters=[DeleteAclsFilter(**fields) for fields in doomed]),
                    DeleteAclsResponse,
                ).filter_results
            )
        if wanted - self._present:
            made = [self._creation(acl) for acl in wanted - self._present]
            self._check(
                self._admin.call(CreateAclsRequest(creations=made), CreateAclsResponse).results
            )
        self._present = wanted
        wait_until(lambda: set(self._described()) == wanted, "the ACLs", shown=self._shown)

    def _shown(self) -> object:
        return sorted(self._described()), sorted(self._present)

    def _check(self, results: list[Any]) -> None:
        assert not any(result.error_code for result in results), results

    def _creation(self, acl: Acl) -> AclCreation:
        permission, operation, kind, name = acl
        return AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal=self._principal,
            host=WILDCARD,
            operation=operation,
            permission_type=permission,
        )

    def _filter(self, acl: Acl) -> dict[str, Any]:
        permission, operation, kind, name = acl
        return {
            "resource_type_filter": kind,
            "resource_name_filter": name,
            "pattern_type_filter": PatternType.LITERAL,
            "principal_filter": self._principal,
            "host_filter": None,
            "operation": operation,
            "permission_type": permission,
        }

    def _described(self) -> Iterator[Acl]:
        """The ACLs that the broker decides by now."""
        request = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=self._principal,
            host_filter=None,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        for resource in self._admin.call(request, DescribeAclsResponse).resources:
            for acl in resource.acls:
                yield (
                    Permission(acl.permission_type),
                    Operation(acl.operation),
                    ResourceType(resource.resource_type),
                    resource.resource_name,
                )


ANY_TOPIC = (Operation.WRITE, ResourceType.TOPIC)
