"""A node's way to the active controller on another node.

A broker's own requests go as they are; a client's go in an envelope. Source: KIP-590, KIP-631;
Kafka's NodeToControllerRequestThread and ForwardingManager.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from barnabas.base.backoff import ExponentialBackoff, RandomSource
from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.asker import OWN, Asker
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.envelope import seal, unseal_response
from barnabas.node.metadata.peers import ControllerPeers
from barnabas.node.raft.node import RaftNode
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.topics import CreateTopicsResponse
from barnabas.protocol.messages.voters import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from barnabas.protocol.schema import Message

QUORUM_REQUESTS: Final = frozenset(
    {AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest}
)
"""Requests that the quorum's leader answers, not its controller."""
WRONG_CONTROLLER: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
RETRY_MS: Final = 50
LOSSES_MAX: Final = 5
"""After so many lost connections in a row a client's request is given up: it is what ends them."""
LOSS_PAUSE_MAX_MS: Final = 1000
REQUEST_TIMEOUT_KEY: Final = "controller.socket.timeout.ms"
"""After this time without an answer the request is repeated, possibly to another controller."""

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class ControllerCall:
    """A request on its way to the active controller, by as many `ask`s as it takes."""

    request: Message
    api_version: int | None = None
    asker: Asker = OWN
    endpoint: tuple[str, int] | None = None
    """The controller that was asked last."""
    losses: int = 0
    """The number of times in a row that the node closed the connection instead of answering."""

    @property
    def is_own(self) -> bool:
        """True if the node asks for itself."""
        return self.asker.is_own


class ControllerChannel:
    """Finds the active controller, and asks it once per `ask`."""

    def __init__(
        self,
        config: NodeConfig,
        clock: Clock,
        random: RandomSource,
        raft: RaftNode,
        peers: ControllerPeers,
    ) -> None:
        self._node_id = config.node_id
        self._client_id = f"node-{config.node_id}"
        self._request_timeout_max_ms = config.get_int(REQUEST_TIMEOUT_KEY)
        self._clock = clock
        self._backoff = ExponentialBackoff(RETRY_MS, LOSS_PAUSE_MAX_MS, random)
        self._raft = raft
        self._peers = peers
        self._waiters: list[asyncio.Future[bool]] = []

    def leader_changed(self) -> None:
        """Another controller may be known: who waits tries at once."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def wait_to_retry(self, call: ControllerCall, timeout_ms: int) -> bool:
        """Return when another try makes sense; False when `timeout_ms` are over before."""
        has_leader = self._raft.leader_endpoint is not None
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        # If a leader is known, the attempt failed and is repeated soon; otherwise wait until the
        # next leader is announced.
        retry_ms = self._backoff.after(call.losses) if call.losses else RETRY_MS
        pause_ms = min(retry_ms, timeout_ms) if has_leader else timeout_ms

        def end() -> None:
            if not waiter.done():
                waiter.set_result(pause_ms < timeout_ms)

        timer = self._clock.call_later(pause_ms, end)
        try:
            return await waiter
        finally:
            timer.cancel()

    async def ask(self, call: ControllerCall, timeout_ms: int) -> Any:
        """The active controller's response; None without an active controller, or if it could not
        be asked.

        A client's request that it answers by closing the connection, each time, is refused with
        UNKNOWN_SERVER_ERROR; a node's own must get through.
        """
        endpoint = self._raft.leader_endpoint
        if endpoint is None or self._raft.leader_id == self._node_id:
            return None
        losses = call.losses if call.endpoint == endpoint else 0
        call.endpoint, call.losses = endpoint, 0
        host, port = endpoint
        try:
            sent: Message = call.request
            if not call.is_own:
                sent = seal(call.request, call.api_version, call.asker, self._client_id)
            answer = await self._peers.send(
                host, port, sent, min(timeout_ms, self._request_timeout_max_ms)
            )
            return self._unpacked(call, answer)
        except ConnectionResetError as error:
            call.losses = losses + 1
            if call.losses >= LOSSES_MAX and not call.is_own:
                name = type(call.request).__name__
                telemetry.warning("giving up on %s after %d tries: %s", name, call.losses, error)
                return refuse(call.request, ErrorCode.UNKNOWN_SERVER_ERROR)
        except (OSError, DecodeError) as error:
            telemetry.debug("controller %s:%d: %s", host, port, error)
        return None

    def _unpacked(self, call: ControllerCall, answer: Any) -> Any:
        """The controller's answer to the request; None if the node is not the controller, or
        refuses.
        """
        if call.is_own:
            return None if is_from_wrong_controller(answer) else answer
        if answer.error_code == ErrorCode.NONE:
            response = unseal_response(call.request, call.api_version, answer)
            return None if is_from_wrong_controller(response) else response
        if answer.error_code in WRONG_CONTROLLER:
            return None
        name = ErrorCode.of(answer.error_code).name
        telemetry.error("the controller refused an envelope: %s", name)
        return refuse(call.request, ErrorCode.UNKNOWN_SERVER_ERROR)


def is_from_wrong_controller(response: Any) -> bool:
    """Return whether another node must be asked."""
    if isinstance(response, CreateTopicsResponse):  # it has codes for single topics only
        return any(topic.error_code in WRONG_CONTROLLER for topic in response.topics)
    return getattr(response, "error_code", 0) in WRONG_CONTROLLER
