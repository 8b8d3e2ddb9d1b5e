"""Grants: what a connection's principal may do, remembered while that cannot have changed.

Produce and fetch requests ask for the same topics again and again. Only what is allowed is
remembered: a refusal is checked again each time, and so logged each time, as in Kafka. Everything
is
forgotten when an ACL changes (the authorizer's generation) and when the connection logs in again.
"""

from typing import Final

from barnabas.node.security.authorizer import Authorizer, Caller
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType

NAMES_MAX: Final = 10_000
"""Remembered at most of a kind; then it starts over."""
NAME_SIZE_MAX: Final = 256
"""Longer names are asked about each time: clients choose them, and memory is ours."""


class Remembered:
    """The names of resources with which one operation is allowed."""

    __slots__ = ("_authorizer", "_caller", "_names", "_operation", "_resource_type")

    def __init__(
        self,
        authorizer: Authorizer,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
    ) -> None:
        self._authorizer = authorizer
        self._caller = caller
        self._operation = operation
        self._resource_type = resource_type
        self._names: set[str] = set()

    def allows(self, name: str) -> bool:
        """Return whether the operation is allowed with `name`."""
        if name in self._names:
            return True
        if not self._authorizer.allows(self._caller, self._operation, self._resource_type, name):
            return False
        if len(name) <= NAME_SIZE_MAX:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            self._names.add(name)
        return True


class Grants:
    """The rights of one principal on one connection to write and read, at one generation of the
    ACLs.
    """

    __slots__ = (
        "_cluster_action",
        "generation",
        "read_topic",
        "write_topic",
        "write_transactional_id",
    )

    def __init__(self, authorizer: Authorizer, caller: Caller) -> None:
        self.generation = authorizer.generation
        self.read_topic = Remembered(authorizer, caller, Operation.READ, ResourceType.TOPIC)
        self.write_topic = Remembered(authorizer, caller, Operation.WRITE, ResourceType.TOPIC)
        self.write_transactional_id = Remembered(
            authorizer, caller, Operation.WRITE, ResourceType.TRANSACTIONAL_ID
        )
        self._cluster_action = Remembered(
            authorizer, caller, Operation.CLUSTER_ACTION, ResourceType.CLUSTER
        )

    def may_act_for_cluster(self) -> bool:
        """Return whether it is a node of the cluster, which may replicate all topics."""
        return self._cluster_action.allows(CLUSTER_NAME)
