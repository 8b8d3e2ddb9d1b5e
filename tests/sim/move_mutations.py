"""Defects in how replicas move between directories, planted on purpose."""

from typing import Any

from barnabas.app.log_directories import LogDirectories
from barnabas.node.replication.directory_moves import ReplicaMoves
from barnabas.protocol.errors import ErrorCode
from sim.planting import Mutation, Patch


def _controller_is_not_told(patch: Patch) -> None:
    async def assign(self: Any, partition: Any, path: str) -> ErrorCode:
        return ErrorCode.NONE

    async def say(self: Any, image: Any) -> None:
        """Nothing."""

    patch.set(ReplicaMoves, "_assign", assign)
    patch.set(LogDirectories, "say", say)


MOVE_MUTATIONS = [
    Mutation(
        "moves are not reported",
        "the controller knows which directory holds each replica",
        _controller_is_not_told,
        10,
        workload="directories",
    ),
]
