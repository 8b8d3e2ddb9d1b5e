"""The interface of continuations: what follows once a group's records were stored, or were lost."""

from typing import Protocol

from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Step
from barnabas.protocol.errors import ErrorCode


class Continuation(Protocol):
    """The `continuation` of a decision on a group. Each kind of groups has its own."""

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Go on: the records were committed (NONE), or failed.

        `is_appended` is false where the log will never have them (see `decision.Shard.stored`).
        """
