"""A node's way to the active controller on another node.

A broker's own requests go as they are; a client's go in an envelope. Source: KIP-590, KIP-631;
Kafka's NodeToControllerRequestThread and ForwardingManager.
"""

import asyncio
import logging
from typing import Any, Final

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.metadata.envelope import seal, unseal_response
from barnabas.metadata.peers import ControllerPeers
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.controller_registration import ControllerRegistrationRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.protocol.schema import Message
from barnabas.raft.node import RaftNode

ANONYMOUS: Final = "User:ANONYMOUS"
OWN_REQUESTS: Final = frozenset(
    {
        AllocateProducerIdsRequest,
        AlterPartitionRequest,
        AssignReplicasToDirsRequest,
        BrokerHeartbeatRequest,
        BrokerRegistrationRequest,
        ControllerRegistrationRequest,
    }
)
"""What a node asks for itself; all else is a client's."""
QUORUM_REQUESTS: Final = frozenset(
    {AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest}
)
"""What the quorum's leader answers, not its controller."""
WRONG_CONTROLLER: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
RETRY_MS: Final = 50
REQUEST_TIMEOUT_KEY: Final = "controller.socket.timeout.ms"
"""A controller that does not answer for so long is asked anew, or another one is."""

telemetry = logging.getLogger(__name__)


class ControllerChannel:
    """Finds the active controller, and asks it once per call."""

    def __init__(
        self, config: NodeConfig, clock: Clock, raft: RaftNode, peers: ControllerPeers
    ) -> None:
        self._node_id = config.node_id
        self._client_id = f"node-{config.node_id}"
        self._request_timeout_max_ms = config.int(REQUEST_TIMEOUT_KEY)
        self._clock = clock
        self._raft = raft
        self._peers = peers
        self._waiters: list[asyncio.Future[bool]] = []

    def leader_changed(self) -> None:
        """Another controller may be known: who waits tries at once."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def wait_to_retry(self, timeout_ms: int) -> bool:
        """Return when another try makes sense; False when `timeout_ms` are over before."""
        has_leader = self._raft.leader_endpoint is not None
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        # Where a leader is known the try failed, and it is tried again soon; where none is, the
        # next one is announced.
        pause_ms = min(RETRY_MS, timeout_ms) if has_leader else timeout_ms

        def end() -> None:
            if not waiter.done():
                waiter.set_result(pause_ms < timeout_ms)

        timer = self._clock.call_later(pause_ms, end)
        try:
            return await waiter
        finally:
            timer.cancel()

    async def ask(
        self,
        request: Message,
        api_version: int | None,
        principal: str,
        client_address: str,
        timeout_ms: int,
    ) -> Any:
        """The active controller's response; None if there is none or it could not be asked."""
        endpoint = self._raft.leader_endpoint
        if endpoint is None or self._raft.leader_id == self._node_id:
            return None
        host, port = endpoint
        timeout_ms = min(timeout_ms, self._request_timeout_max_ms)
        is_own = type(request) in OWN_REQUESTS
        sent = request
        if not is_own:
            sent = seal(request, api_version, principal, client_address, self._client_id)
        try:
            answer = await self._peers.send(host, port, sent, timeout_ms)
            if is_own:
                return None if answer.error_code in WRONG_CONTROLLER else answer
            if answer.error_code == ErrorCode.NONE:
                response = unseal_response(request, api_version, answer)
                if getattr(response, "error_code", 0) in WRONG_CONTROLLER:
                    return None
                return response
            if answer.error_code not in WRONG_CONTROLLER:
                name = ErrorCode.of(answer.error_code).name
                telemetry.error("controller %s:%d refused an envelope: %s", host, port, name)
        except (OSError, DecodeError) as error:
            telemetry.debug("controller %s:%d: %s", host, port, error)
        return None
