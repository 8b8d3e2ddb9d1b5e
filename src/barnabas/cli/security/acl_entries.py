"""ACLs as commands work with them: values, and the requests that list, add and remove them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from barnabas.cli.admin import Admin
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.protocol.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
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


# The options of `barnabas acl`, which are those of `kafka-acls`, as ACLs and filters.


_DATA = frozenset({Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE})
_CONFIGS = frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS})
_ANY = frozenset({Operation.ALL})
OPERATIONS = {
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


@dataclass(frozen=True, slots=True)
class AclWords:
    """The options of one command line."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    operations: Sequence[Operation] = ()
    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    tokens: Sequence[str] = ()
    users: Sequence[str] = ()
    cluster: bool = False
    pattern: PatternType = PatternType.LITERAL
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    @property
    def resources(self) -> list[tuple[ResourceType, str]]:
        """The resources that are named."""
        named = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.tokens,
            ResourceType.USER: self.users,
        }
        found = [(kind, name) for kind, names in named.items() for name in names]
        return [*found, *([(ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else [])]


def acls_of(words: AclWords) -> list[Acl]:
    """The ACLs that a command line speaks of. Raises CliError where it makes no sense."""
    wanted = list(dict.fromkeys(_rights(words)))
    if not wanted:
        raise CliError(
            "no resource is named", ExitCode.USAGE, "name one: --topic, --group, --cluster, …"
        )
    entries = [
        (name, host, permission)
        for names, hosts, permission in (
            (words.allow, words.allow_hosts, Permission.ALLOW),
            (words.deny, words.deny_hosts, Permission.DENY),
        )
        for name in names
        for host in hosts or (WILDCARD,)
    ]
    if not entries:
        raise CliError(
            "nobody is named", ExitCode.USAGE, "add --allow-principal or --deny-principal User:NAME"
        )
    for name, _, _ in entries:
        check_principal(name)
    return [
        Acl(
            kind,
            name,
            PatternType.LITERAL if kind is ResourceType.CLUSTER else words.pattern,
            principal,
            host,
            operation,
            permission,
        )
        for kind, name, operation in wanted
        for principal, host, permission in entries
    ]


def _rights(words: AclWords) -> Iterator[tuple[ResourceType, str, Operation]]:
    """The operations to allow or deny, without principals. Raises CliError."""
    if not (words.producer or words.consumer):
        for kind, name in words.resources:
            for operation in words.operations or (Operation.ALL,):
                if operation not in OPERATIONS[kind]:
                    known = ", ".join(sorted(item.name for item in OPERATIONS[kind]))
                    raise CliError(
                        f"{operation.name} is no operation of {kind.name}",
                        ExitCode.USAGE,
                        f"its operations are {known}",
                    )
                yield kind, name, operation
        return
    if words.operations or words.deny:
        raise CliError(
            "--producer and --consumer say which operations are allowed", ExitCode.USAGE,
            "leave out --operation and --deny-principal",
        )  # fmt: skip
    if not words.topics:
        raise CliError("no topic is named", ExitCode.USAGE, "add --topic")
    if words.consumer and not words.groups:
        raise CliError("--consumer needs a group", ExitCode.USAGE, "add --group")
    if words.producer:
        yield from _producer(words)
    if words.consumer:
        for name in words.topics:
            yield ResourceType.TOPIC, name, Operation.READ
            yield ResourceType.TOPIC, name, Operation.DESCRIBE
        for name in words.groups:
            yield ResourceType.GROUP, name, Operation.READ


def _producer(words: AclWords) -> Iterator[tuple[ResourceType, str, Operation]]:
    for name in words.topics:
        for operation in (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE):
            yield ResourceType.TOPIC, name, operation
    for name in words.transactional_ids:
        yield ResourceType.TRANSACTIONAL_ID, name, Operation.WRITE
        yield ResourceType.TRANSACTIONAL_ID, name, Operation.DESCRIBE
    if words.idempotent:
        yield ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE


def filters_of(words: AclWords) -> list[AclFilter]:
    """Return which ACLs the options choose: without any, all. Raises CliError."""
    entries: list[tuple[str | None, str | None, Permission]] = []
    for names, hosts, permission in (
        (words.allow, words.allow_hosts, Permission.ALLOW),
        (words.deny, words.deny_hosts, Permission.DENY),
    ):
        if names or hosts:
            entries += [
                (name, host, permission) for name in names or (None,) for host in hosts or (None,)
            ]
    for name, _, _ in entries:
        if name is not None:
            check_principal(name)
    resources: list[tuple[ResourceType, str | None]] = [*words.resources]
    return [
        AclFilter(
            kind,
            name,
            PatternType.ANY if name is None else words.pattern,
            principal,
            host,
            operation,
            permission,
        )
        for kind, name in (resources or [(ResourceType.ANY, None)])
        for principal, host, permission in (entries or [(None, None, Permission.ANY)])
        for operation in (words.operations or (Operation.ANY,))
    ]


def check_principal(name: str) -> None:
    """Raise CliError for a name without its type."""
    kind, colon, rest = name.partition(":")
    if not (kind and colon and rest):
        raise CliError(
            f"{name} is no principal", ExitCode.USAGE, f"write its type first: User:{name}"
        )
