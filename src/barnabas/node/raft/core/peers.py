"""Requests to other replicas: at most one at a time to each, and after failures not at once.

Source: Kafka's RequestManager.
"""

from collections.abc import Callable

from barnabas.base.backoff import doubled
from barnabas.base.ids import NO_NODE
from barnabas.node.raft.core.events import Effect, Send
from barnabas.node.raft.core.messages import Request
from barnabas.node.raft.core.state import PeerRequests, RaftState, wake_at
from barnabas.node.raft.voters import VoterEndpoint

RETRY_BACKOFF_MAX_MS = 500


def address_of(state: RaftState, peer_id: int) -> tuple[str, int] | None:
    """The address of a node: the leader, a voter, or (below -1) a bootstrap server."""
    if peer_id < NO_NODE:
        return state.bootstrap[NO_NODE - 1 - peer_id]
    endpoints: tuple[VoterEndpoint, ...] = ()
    if peer_id == state.election.leader_id and state.leader_endpoints:
        endpoints = state.leader_endpoints
    elif peer_id in state.voters.by_id:
        endpoints = state.voters.by_id[peer_id].endpoints
    return pick_endpoint(state, endpoints)


def pick_endpoint(state: RaftState, endpoints: tuple[VoterEndpoint, ...]) -> tuple[str, int] | None:
    """The endpoint of this replica's own controller listener, or the first."""
    names = [endpoint.listener for endpoint in state.local.endpoints]
    for endpoint in endpoints:
        if endpoint.listener in names:
            return endpoint.host, endpoint.port
    return (endpoints[0].host, endpoints[0].port) if endpoints else None


def send_when_ready(
    state: RaftState,
    peer_id: int,
    make: Callable[[], Request],
    now_ms: int,
    out: list[Effect],
    address: tuple[str, int] | None = None,
) -> bool:
    """Send a request unless one is under way or the peer failed just now; returns whether it left.

    Once it may be sent, the machine is stepped again.
    """
    peer = state.peers.get(peer_id)
    if peer is None:
        peer = state.peers[peer_id] = PeerRequests()
    if peer.number is not None:
        return False
    if now_ms < peer.backoff_until_ms:
        wake_at(state, peer.backoff_until_ms)
        return False
    address = address or address_of(state, peer_id)
    if address is None:
        return False
    state.next_number += 1
    peer.number, peer.request = state.next_number, make()
    out.append(Send(peer_id, *address, peer.number, peer.request))
    return True


def answered(state: RaftState, peer_id: int, number: int) -> Request | None:
    """Note that a request was answered; returns it if the answer was still waited for."""
    peer = state.peers.get(peer_id)
    if peer is None or peer.number != number:
        return None
    request = peer.request
    peer.number = peer.request = None
    peer.failures = 0
    return request


def back_off(state: RaftState, peer_id: int, now_ms: int, *, at_once: bool = False) -> None:
    """Leave a peer alone for a while; the first time not at all if `at_once`."""
    peer = state.peers[peer_id]
    peer.number = peer.request = None
    peer.failures += 1
    if not (at_once and peer.failures == 1):
        first_ms = state.settings.retry_backoff_ms
        peer.backoff_until_ms = now_ms + doubled(first_ms, RETRY_BACKOFF_MAX_MS, peer.failures - 1)
