"""The options of `barnabas acl`, which are those of `kafka-acls`, as ACLs and filters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka.acls import OPERATIONS, Acl, AclFilter, is_principal
from barnabas.protocol.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


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
                        f"{operation.name} is not an operation of {kind.name}",
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
    if not is_principal(name):
        raise CliError(
            f"{name} is not a principal", ExitCode.USAGE, f"write its type first: User:{name}"
        )
