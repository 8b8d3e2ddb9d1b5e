"""ACLs as commands work with them: values, and the requests that list, add and remove them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.cli.admin import Admin
from barnabas.cli.errors import from_code
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)


@dataclass(frozen=True, slots=True)
class Acl:
    """One ACL: whom it concerns, and what it lets them do or forbids."""

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
        kind = "" if self.pattern is PatternType.LITERAL else f"{kafka_word(self.pattern)} "
        target = f"{kind}{kafka_word(self.resource_type)} {self.name}"
        place = "" if self.host == "*" else f" from {self.host}"
        return f"{self.principal} {words} {kafka_word(self.operation)} {target}{place}"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs: those that agree with all that is not ANY or None."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_everything(self) -> bool:
        return self.name is None and self.principal is None and self.host is None


def exactly(acl: Acl) -> AclFilter:
    """The filter that this one ACL passes, and no other."""
    return AclFilter(
        acl.resource_type,
        acl.name,
        acl.pattern,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )


def kafka_word(value: Operation | PatternType | Permission | ResourceType) -> str:
    """A word of Kafka's, as `kafka-acls` prints it."""
    return value.name


def list_acls(admin: Admin, wanted: Iterable[AclFilter]) -> list[Acl]:
    """All ACLs that pass one of the filters, sorted. Raises CliError."""
    found: set[Acl] = set()
    for item in wanted:
        request = DescribeAclsRequest(
            resource_type_filter=item.resource_type,
            resource_name_filter=item.name,
            pattern_type_filter=item.pattern,
            principal_filter=item.principal,
            host_filter=item.host,
            operation=item.operation,
            permission_type=item.permission,
        )
        response = admin.decide(request, "ACLs")
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
    return sorted(found, key=_order)


def add_acls(admin: Admin, acls: Sequence[Acl]) -> None:
    """Add them; those that exist stay. Raises CliError for the first that is refused."""
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
            raise from_code(result.error_code, result.error_message, acl.text)


def remove_acls(admin: Admin, acls: Sequence[Acl]) -> None:
    """Remove exactly these. Raises CliError for the first that is refused."""
    filters = [exactly(acl) for acl in acls]
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=item.resource_type,
                resource_name_filter=item.name,
                pattern_type_filter=item.pattern,
                principal_filter=item.principal,
                host_filter=item.host,
                operation=item.operation,
                permission_type=item.permission,
            )
            for item in filters
        ]
    )
    response = admin.retry(
        request, lambda answer: [item.error_code for item in answer.filter_results]
    )
    for acl, result in zip(acls, response.filter_results, strict=True):
        codes = [(result.error_code, result.error_message)]
        codes += [(item.error_code, item.error_message) for item in result.matching_acls]
        for code, message in codes:
            if code != ErrorCode.NONE:
                raise from_code(code, message, acl.text)


def _order(acl: Acl) -> tuple[object, ...]:
    return (
        acl.resource_type,
        acl.name,
        acl.pattern,
        acl.principal,
        acl.permission,
        acl.operation,
        acl.host,
    )
