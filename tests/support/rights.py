"""Rights that a test gives and takes, in the place of ACLs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import barnabas
from barnabas.app.node import Node
from barnabas.node.security.authorizer import Caller
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.schema import Message, Struct
from support.node_process import wait_until
from support.raw_client import RawClient

M = TypeVar("M", bound=Message)
Right = tuple[Operation, ResourceType, str]

TRANSACTION = 1
"""The kind of coordinator."""
IMPLIES_DESCRIBE = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)


def on_cluster(operation: Operation) -> Right:
    return operation, ResourceType.CLUSTER, CLUSTER_NAME


def on_topic(operation: Operation, name: str) -> Right:
    return operation, ResourceType.TOPIC, name


def on_group(operation: Operation, name: str) -> Right:
    return operation, ResourceType.GROUP, name


def on_transactional_id(operation: Operation, name: str) -> Right:
    return operation, ResourceType.TRANSACTIONAL_ID, name


class Rights:
    """An authorizer that knows literal names and nobody in particular.

    With `user_host` callers from all other addresses may do everything. Unless `implies_describe`,
    a right gives nothing but itself.
    """

    is_enabled = True
    notes_grants = False

    def __init__(
        self, *rights: Right, user_host: str | None = None, implies_describe: bool = True
    ) -> None:
        self.generation = 1
        self.asked: list[Right] = []
        self._user_host = user_host
        self._implying = IMPLIES_DESCRIBE if implies_describe else ()
        self._given: set[Right] | None = set(rights)
        """None: all but `_denied`."""
        self._denied: set[Right] = set()

    def grant_all(self) -> None:
        """Everything, with everything."""
        self.grant_all_but(())

    def grant_all_but(self, rights: Iterable[Right]) -> None:
        """Everything but these."""
        self._given, self._denied = None, set(rights)
        self.generation += 1

    def grant_only(self, rights: Iterable[Right]) -> None:
        """These and no others from now on."""
        self._given, self._denied = set(rights), set()
        self.generation += 1

    def set(self, *rights: Right) -> None:
        """As `grant_only`."""
        self.grant_only(rights)

    def give(self, *rights: Right) -> None:
        if self._given is None:
            self._denied.difference_update(rights)
        else:
            self._given.update(rights)
        self.generation += 1

    def take(self, *rights: Right) -> None:
        if self._given is None:
            self._denied.update(rights)
        else:
            self._given.difference_update(rights)
        self.generation += 1

    def has(self, right: Right) -> bool:
        """Return whether a right is given, by itself or by another that implies it."""
        if self._given is None:
            return right not in self._denied
        operation, kind, name = right
        return right in self._given or (
            operation is Operation.DESCRIBE
            and any((other, kind, name) in self._given for other in self._implying)
        )

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool = True,
        logs_grant: bool = True,
    ) -> bool:
        if self._is_trusted(caller):
            return True
        right = operation, resource_type, name
        self.asked.append(right)
        return self.has(right)

    def allows_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        if self._is_trusted(caller):
            return True
        rights = self._denied if self._given is None else self._given
        is_named = any(right[:2] == (operation, resource_type) for right in rights)
        return is_named is (self._given is not None)

    def _is_trusted(self, caller: Caller) -> bool:
        return self._user_host is not None and caller.host != self._user_host


class RightsWorld:
    """A node whose clients have the rights that a test gives."""

    def __init__(self) -> None:
        self.rights = Rights()
        self.rights.grant_all()
        self._cluster = barnabas.Cluster(config={"group.initial.rebalance.delay.ms": "0"})
        self._clients: list[RawClient] = []
        self.address = ""
        self.node: Any = None

    def __enter__(self) -> RightsWorld:
        self._cluster.start()
        self.address = self._cluster.bootstrap_servers
        (node,) = self._cluster._running()._running.values()
        assert isinstance(node, Node)
        self.node = node
        node.broker.services.authorizer = self.rights
        return self

    def __exit__(self, *_: object) -> None:
        self.close_clients()
        self._cluster.stop()

    def client(self) -> RawClient:
        """Closed by `close_clients`, if it is not before."""
        self._clients.append(RawClient(self.address))
        return self._clients[-1]

    def close_clients(self) -> None:
        for client in self._clients:
            client.socket.close()
        self._clients.clear()

    def call(self, request: Message, response_class: type[M], version: int | None = None) -> M:
        """One request on a separate connection."""
        with self.client() as client:
            return client.call(request, response_class, version)

    def wait_for_transactions(self, transactional_id: str) -> None:
        """Wait until there is a coordinator of transactions: the first question makes its topic."""
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
        with self.client() as client:
            wait_until(
                lambda: not any(errors_of(client.call(request, FindCoordinatorResponse))),
                "a transaction coordinator",
            )

    def state(self) -> dict[str, tuple[int, int]]:
        """Where the log of each partition begins and ends: every change changes one."""
        return {
            str(partition.topic_partition): (
                partition.log.log_start_offset,
                partition.log.log_end_offset,
            )
            for partition in self.node.broker.replicas
        }


def errors_of(message: Any) -> list[ErrorCode]:
    """Every error code in a response."""
    if isinstance(message, list):
        return [error for entry in message for error in errors_of(entry)]
    if not isinstance(message, Struct):
        return []
    found = []
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.append(ErrorCode.of(value))
        else:
            found += errors_of(value)
    return found
