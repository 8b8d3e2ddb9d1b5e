"""Defects in how replicas move between directories, planted on purpose."""

from typing import Any

from barnabas.app.log_directories import LogDirectories
from barnabas.log import copying
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.moving import ReplicaMoves
from sim.planting import Mutation, Patch


def _truncation_is_not_copied(patch: Patch) -> None:
    patch.set(copying, "_follow_truncation", lambda current, future: None)


def _controller_is_not_told(patch: Patch) -> None:
    async def assign(self: Any, partition: Any, path: str) -> ErrorCode:
        return ErrorCode.NONE

    async def say(self: Any, image: Any) -> None:
        """Nothing."""

    patch.set(ReplicaMoves, "_assign", assign)
    patch.set(LogDirectories, "say", say)


MOVE_MUTATIONS = [
    Mutation(
        "copy keeps what was truncated",
        "a replica's copy follows it, truncations included",
        _truncation_is_not_copied,
        20,
        workload="directories",
    ),
    Mutation(
        "moved and not told",
        "the controller knows in which directory a replica lies",
        _controller_is_not_told,
        10,
        workload="directories",
    ),
]
