"""A client that belongs to a group: it finds the group's coordinator, and asks it."""

from typing import Any

from barnabas.node.net.client import Peer
from barnabas.protocol.errors import ErrorCode
from sim.clients import Client
from sim.transactional_client import find_coordinator

GROUP_KEY = 0
ELSEWHERE = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""Errors after which the coordinator must be found again. The request may have taken effect."""


class Coordinated:
    """See the module."""

    def __init__(self, client: Client, group_id: str) -> None:
        self.client = client
        self.answered_by = -1
        """The node that gave the last answer."""
        self._group_id = group_id
        self._coordinator: tuple[int, Peer] | None = None

    async def ask(
        self, request: Any, *, version: int | None = None, timeout_ms: int | None = None
    ) -> Any | None:
        """The coordinator's answer; None for none, after a while."""
        try:
            if self._coordinator is None:
                self._coordinator = await find_coordinator(self.client, GROUP_KEY, self._group_id)
            if self._coordinator is not None:
                node_id, peer = self._coordinator
                response = await peer.send(request, version=version, timeout_ms=timeout_ms)
                self.answered_by = node_id
                return response
        except OSError:
            self._coordinator = None
        await self.client.back_off()
        return None

    async def is_elsewhere(self, error: ErrorCode) -> bool:
        """Return whether the coordinator must be found again, after a short pause."""
        if error not in ELSEWHERE:
            return False
        self._coordinator = None
        await self.client.back_off()
        return True
