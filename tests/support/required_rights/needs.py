"""Rights, what is answered where one is missing, and the requests that need them.

A case is one request of an API and all the rights that Kafka asks for it. Names of topics, groups
and transactional ids are those that the world has made for the case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.apis import AnyApi
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from support.required_rights.rights_world import World

ERRORS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
AUTHORIZATION_ERRORS = frozenset(ERRORS.values()) | {
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
}


class Kind(NamedTuple):
    """A right with the resource that a case is about, of any name."""

    operation: Operation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource_type.name}"


class Right(NamedTuple):
    """A right with one resource."""

    operation: Operation
    resource_type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class Need:
    """One of `kinds` is enough; without any of them `error` is answered."""

    kinds: tuple[Kind, ...]
    error: ErrorCode | None
    """None: the answer has no error, and leaves out what must not be seen."""
    is_done_without: bool = False
    """True if what is asked is done all the same, and only not told."""
    is_named_without: bool = False
    """True if the refusal names the resource, to those who may describe it."""

    def __str__(self) -> str:
        return " or ".join(map(str, self.kinds))

    def or_(self, other: Need) -> Need:
        """Another right that does as well."""
        return replace(self, kinds=self.kinds + other.kinds)

    def answered(self, error: ErrorCode | None) -> Need:
        """The same, where another error than that of the resource is answered."""
        return replace(self, error=error)

    @property
    def hidden(self) -> Need:
        """The same, where the answer leaves the resource out without a word."""
        return replace(self, error=None)

    @property
    def named(self) -> Need:
        """The same, where the refusal names the resource."""
        return replace(self, is_named_without=True)

    @property
    def only_told(self) -> Need:
        """The same, where what is asked is done without it."""
        return replace(self, is_done_without=True)


def topic(operation: Operation) -> Need:
    return Need((Kind(operation, ResourceType.TOPIC),), ERRORS[ResourceType.TOPIC])


def group(operation: Operation) -> Need:
    return Need((Kind(operation, ResourceType.GROUP),), ERRORS[ResourceType.GROUP])


def cluster(operation: Operation) -> Need:
    return Need((Kind(operation, ResourceType.CLUSTER),), ERRORS[ResourceType.CLUSTER])


def transaction(operation: Operation) -> Need:
    kind = Kind(operation, ResourceType.TRANSACTIONAL_ID)
    return Need((kind,), ERRORS[ResourceType.TRANSACTIONAL_ID])


@dataclass(frozen=True, slots=True)
class Case:
    """A request of an API, and what it needs."""

    api: AnyApi
    name: str
    needs: Sequence[Need]
    make: Callable[[World], Message]
    """Prepares what the request is about, with all rights, and makes it."""
    version: int | None = None
    succeeds_with: frozenset[int] = field(default_factory=frozenset)
    """The request's own errors if it has all rights."""

    def __str__(self) -> str:
        return f"{self.api.key.name}-{self.name}" if self.name else self.api.key.name


def names_of(world: World) -> dict[ResourceType, str]:
    """The resource of each type that the world's present case is about."""
    return {
        ResourceType.TOPIC: world.topic,
        ResourceType.GROUP: world.group,
        ResourceType.TRANSACTIONAL_ID: world.transactional_id,
        ResourceType.CLUSTER: CLUSTER_NAME,
    }


def rights_of(world: World, kinds: Sequence[Kind]) -> set[Right]:
    """The rights with the resources of the world's present case."""
    names = names_of(world)
    return {Right(kind.operation, kind.resource_type, names[kind.resource_type]) for kind in kinds}
