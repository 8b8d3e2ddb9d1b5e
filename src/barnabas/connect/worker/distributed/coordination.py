"""Requests to a group's coordinator: join, sync, heartbeat, leave.

One connection, one request at a time; what it raises says what a member does next.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.group_messages import PROTOCOL_TYPE
from barnabas.kafka.wire import AccessError, Brokers, Connection, WireError
from barnabas.protocol.apis import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.schemas.data.errors import ConnectError

_GROUP_KEY_TYPE: Final = 0
_JOIN_GRACE_S: Final = 5.0
"""How much longer than the group's own limit we wait for the answer to a join."""
_LEAVE_S: Final = 2.0
_UNKNOWN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
_LASTING: Final = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
)


class CoordinatorLostError(Exception):
    """The coordinator does not answer or has moved: find it and try again."""


class RejoinError(Exception):
    """The group begins anew: join."""


class UnknownMemberError(RejoinError):
    """The group went on without this member: join as a new one."""


class GroupRefusedError(ConnectError):
    """The coordinator refuses this member, and would again."""


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """A worker's part of the group's settings, in Kafka's names with units last."""

    group_id: str
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000


@dataclass(slots=True, frozen=True)
class Joined:
    """What a join has come to; the leader also gets the others' metadata."""

    generation: int
    member_id: str
    leader: str
    protocol: str
    members: Mapping[str, bytes]


class Coordination:
    """A member's talk with its coordinator, on one thread; `abort` and `leave` are for others."""

    def __init__(self, clients: Clients, settings: GroupSettings) -> None:
        self._settings = settings
        self._access = clients.access
        self._patient = clients.patient(settings.rebalance_timeout_ms / 1000 + _JOIN_GRACE_S)
        self._connection: Connection | None = None
        self._address: tuple[str, int] | None = None
        self._is_aborted = False
        self._lock = threading.Lock()

    def find(self) -> None:
        """Connect to the coordinator. Raises CoordinatorLostError, GroupRefusedError."""
        if self._connection is not None:
            return
        brokers = Brokers(self._access)
        request = FindCoordinatorRequest(
            key_type=_GROUP_KEY_TYPE, coordinator_keys=[self._settings.group_id]
        )
        try:
            (found,) = brokers.any().call(FIND_COORDINATOR, request).coordinators
            self._raise_for(found.error_code)
            self._address = found.host, found.port
            connection = Connection(self._patient, found.host, found.port)
        except WireError as error:
            raise CoordinatorLostError(str(error)) from error
        except AccessError as error:
            raise GroupRefusedError(str(error)) from error
        finally:
            brokers.close()
        with self._lock:
            self._connection = connection
            if self._is_aborted:
                connection.abort()

    def forget(self) -> None:
        """Let go of the connection; `find` makes another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def abort(self) -> None:
        """End what waits, for good, from another thread."""
        with self._lock:
            self._is_aborted = True
            if self._connection is not None:
                self._connection.abort()

    def join(self, member_id: str, protocols: Sequence[tuple[str, bytes]], reason: str) -> Joined:
        """Join; waits for the other members. Raises as said above."""
        request = JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=data) for n, data in protocols],
            reason=reason,
        )
        while True:
            try:
                answer = self._connected().call(JOIN_GROUP, request)
            except WireError as error:
                raise CoordinatorLostError(str(error)) from error
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                request.member_id = answer.member_id
                continue
            self._raise_for(answer.error_code)
            return Joined(
                answer.generation_id,
                answer.member_id,
                answer.leader,
                answer.protocol_name or "",
                {member.member_id: bytes(member.metadata) for member in answer.members},
            )

    def sync(self, joined: Joined, assignments: Mapping[str, bytes]) -> bytes:
        """Return this member's assignment; the leader gives all of them."""
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=joined.generation,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        try:
            answer = self._connected().call(SYNC_GROUP, request)
        except WireError as error:
            raise CoordinatorLostError(str(error)) from error
        self._raise_for(answer.error_code)
        return bytes(answer.assignment)

    def heartbeat(self, member_id: str, generation: int) -> None:
        """Say that the member lives."""
        request = HeartbeatRequest(
            group_id=self._settings.group_id, generation_id=generation, member_id=member_id
        )
        try:
            answer = self._connected().call(HEARTBEAT, request)
        except WireError as error:
            raise CoordinatorLostError(str(error)) from error
        self._raise_for(answer.error_code)

    def leave(self, member_id: str, reason: str) -> None:
        """Leave, so that others need not wait for the session's end; failures are no matter."""
        if self._address is None or not member_id:
            return
        request = LeaveGroupRequest(
            group_id=self._settings.group_id,
            members=[MemberIdentity(member_id=member_id, reason=reason)],
        )
        quick = replace(self._access, timeout_seconds=_LEAVE_S)
        with contextlib.suppress(WireError, AccessError):
            # On a connection of its own: on the other a join may still wait.
            connection = Connection(quick, *self._address)
            try:
                connection.call(LEAVE_GROUP, request)
            finally:
                connection.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            raise CoordinatorLostError("there is no connection")
        return self._connection

    def _raise_for(self, code: int) -> None:
        if code == ErrorCode.NONE:
            return
        error = ErrorCode.of(code)
        if error in _UNKNOWN:
            raise UnknownMemberError(error.message)
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            raise RejoinError(error.message)
        if error in _LASTING:
            raise GroupRefusedError(f"group {self._settings.group_id}: {error.message}")
        raise CoordinatorLostError(error.message)
