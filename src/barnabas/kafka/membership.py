"""Membership of a group with a custom protocol: `GroupMember`.

    find the coordinator ─▶ join ─▶ (the leader deals) ─▶ sync ─▶ stay: a heartbeat now and then
            ▲                 ▲                                     │
            │ lost            └──── the group begins again, ────────┤
            └─────────────────────  or the member wants it to  ─────┘

Client libraries join groups as consumers only. Here a `Part` gives the member's metadata, deals out
work when the member leads, and takes what the member is assigned. A member runs on its own thread
and sends the coordinator one request at a time.

Source: Kafka's AbstractCoordinator.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from barnabas.base.backoff import ExponentialBackoff
from barnabas.kafka.wire import GROUP_KEY, Access, AccessError, Brokers, Connection, WireError
from barnabas.protocol.apis import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

BACKOFF_FIRST_MS: Final = 100
BACKOFF_MAX_MS: Final = 1_000
_JOIN_GRACE_S: Final = 5.0
"""Time beyond the group's own limit to wait for the answer to a join."""
_LEAVE_S: Final = 2.0
_CLOSE_S: Final = 10.0
_UNKNOWN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
_LASTING: Final = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
)
_log = logging.getLogger(__name__)


class CoordinatorLostError(Exception):
    """The coordinator does not answer or has moved: find it and try again."""


class RejoinError(Exception):
    """The group is rebalancing: join again."""


class UnknownMemberError(RejoinError):
    """The group continued without this member: join as a new one."""


class GroupRefusedError(Exception):
    """The coordinator refuses this member for good. `code` is its error, if it gave one."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.NONE) -> None:
        super().__init__(text)
        self.code = code


class _AwayError(Exception):
    """The member cannot take part for now."""


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """A member's part of the group's settings, in Kafka's names with units last."""

    group_id: str
    protocol_type: str
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000


@dataclass(slots=True, frozen=True)
class Joined:
    """The result of a join; the leader also gets the others' metadata."""

    generation: int
    member_id: str
    leader: str
    protocol: str
    members: Mapping[str, bytes]

    @property
    def is_leader(self) -> bool:
        """True if this member deals."""
        return self.leader == self.member_id


class Coordination:
    """Requests to a group's coordinator, from one thread; any thread may `abort` and `leave`."""

    def __init__(self, access: Access, settings: GroupSettings) -> None:
        self._settings = settings
        self._access = access
        self._session_s = settings.session_timeout_ms / 1000
        self._join_s = settings.rebalance_timeout_ms / 1000 + _JOIN_GRACE_S
        self._connection: Connection | None = None
        self._address: tuple[str, int] | None = None
        self._is_aborted = False
        self._lock = threading.Lock()

    def find(self) -> None:
        """Connect to the coordinator. Raises CoordinatorLostError, GroupRefusedError."""
        if self._connection is not None:
            return
        brokers = Brokers(self._access)
        try:
            error_code, address = brokers.coordinator(self._settings.group_id, GROUP_KEY)
            self._raise_for(error_code)
            self._address = address
            connection = Connection(self._access, *address)
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

    def join(
        self,
        member_id: str,
        protocols: Sequence[tuple[str, bytes]],
        reason: str,
        keep: Callable[[str], None],
    ) -> Joined:
        """Join; waits for the other members.

        `keep` gets the id of a new member, who may have to leave before the others have joined.
        Raises RejoinError, UnknownMemberError, CoordinatorLostError, GroupRefusedError.
        """
        request = JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=member_id,
            protocol_type=self._settings.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=data) for n, data in protocols],
            reason=reason,
        )
        while True:
            try:
                answer = self._connected(self._join_s).call(JOIN_GROUP, request)
            except WireError as error:
                raise CoordinatorLostError(str(error)) from error
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                request.member_id = answer.member_id
                keep(answer.member_id)
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
            protocol_type=self._settings.protocol_type,
            protocol_name=joined.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        try:
            answer = self._connected(self._join_s).call(SYNC_GROUP, request)
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
            answer = self._connected(self._session_s).call(HEARTBEAT, request)
        except WireError as error:
            raise CoordinatorLostError(str(error)) from error
        self._raise_for(answer.error_code)

    def leave(self, member_id: str, reason: str) -> None:
        """Leave, so that others need not wait for the session's end; failures are ignored."""
        if self._address is None or not member_id:
            return
        request = LeaveGroupRequest(
            group_id=self._settings.group_id,
            members=[MemberIdentity(member_id=member_id, reason=reason)],
        )
        quick = replace(self._access, timeout_seconds=_LEAVE_S)
        with contextlib.suppress(WireError, AccessError):
            # On a separate connection, since a join may still wait on the other.
            connection = Connection(quick, *self._address)
            try:
                connection.call(LEAVE_GROUP, request)
            finally:
                connection.close()

    def _connected(self, timeout_s: float) -> Connection:
        if self._connection is None:
            raise CoordinatorLostError("there is no connection")
        self._connection.wait_at_most(timeout_s)
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
            raise GroupRefusedError(f"group {self._settings.group_id}: {error.message}", error)
        raise CoordinatorLostError(error.message)


class Part:
    """A member's part in its group; all methods are called on the member's thread."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Return names and metadata to join with. Called before each join."""
        return ()

    def deal(self, joined: Joined) -> Mapping[str, bytes]:
        """As the leader, return the assignment of each member."""
        return {}

    def assigned(self, joined: Joined, assignment: bytes) -> None:
        """Take what this member is assigned. May raise CoordinatorLostError to join again."""

    def heard(self, sent_at: float) -> None:
        """The group keeps this member for a session from `sent_at` on (time.monotonic())."""

    def forgotten(self, error: UnknownMemberError) -> None:
        """The group went on without this member; it joins as a new one."""

    def failed(self, error: Exception, failures: int, silent_s: float) -> None:
        """The coordinator is lost or refuses, and is retried; it last answered `silent_s` ago."""

    def left(self) -> None:
        """The member has left, and joins again."""

    def away_reason(self) -> str | None:
        """Say why the member cannot take part now; it leaves until this is None."""
        return None


class GroupMember:
    """A member of a group, on its own thread, from `start` to `close`."""

    def __init__(
        self,
        access: Access,
        settings: GroupSettings,
        part: Part,
        *,
        first_reason: str = "the member starts",
        backoff_ms: tuple[int, int] = (BACKOFF_FIRST_MS, BACKOFF_MAX_MS),
    ) -> None:
        self.member_id = ""
        """The id that the coordinator gave."""
        self.ended: Future[None] = Future()
        """Done when the thread has ended; with an exception if it ended by a bug."""
        self._coordination = Coordination(access, settings)
        self._part = part
        self._heartbeat_s = settings.heartbeat_interval_ms / 1000
        self._backoff = ExponentialBackoff(*backoff_ms, random.Random())
        self._generation = -1
        self._heard_at = 0.0
        self._due: tuple[float, str] | None = None
        self._reason = first_reason
        self._wishes = threading.Condition()
        self._wants_rejoin = False
        self._leaving: tuple[str, float] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"group {settings.group_id}", daemon=True
        )

    # --- for other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Join, and stay until `close`."""
        self._thread.start()

    def rejoin(self, reason: str) -> None:
        """Ask the group to begin again."""
        with self._wishes:
            self._wants_rejoin = True
            self._reason = reason
            self._wishes.notify_all()

    def rejoin_after(self, seconds: float, reason: str) -> None:
        """Ask the group to begin again after a while, unless it does so before."""
        self._due = time.monotonic() + seconds, reason

    def leave(self, reason: str, pause_s: float) -> None:
        """Leave, and join again after a pause."""
        with self._wishes:
            self._leaving = (reason, pause_s)
            self._wants_rejoin = True
            self._wishes.notify_all()

    def close(self, reason: str = "the member stops") -> None:
        """Leave the group, for good."""
        with self._wishes:
            self._closed.set()
            self._wishes.notify_all()
        self._coordination.abort()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)
        self._coordination.leave(self.member_id, reason)
        self._coordination.forget()

    # --- the member's thread ---------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Wait, unless the member is closed."""
        with self._wishes:
            self._wishes.wait_for(self._closed.is_set, seconds)

    def while_beating(self, work: Callable[[], None]) -> None:
        """Do something that takes a while, and stay in the group."""
        done = threading.Event()

        def run() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001  it must not end the membership
                _log.exception("a group member's work failed")
            finally:
                with self._wishes:
                    done.set()
                    self._wishes.notify_all()

        def is_over() -> bool:
            return done.is_set() or self._closed.is_set()

        threading.Thread(target=run, name=f"{self._thread.name}, working", daemon=True).start()
        is_member = bool(self.member_id)
        while True:
            with self._wishes:
                if self._wishes.wait_for(is_over, self._heartbeat_s):
                    return
            if is_member:
                try:
                    self._beat()
                except RejoinError:
                    pass  # it joins when the work is done
                except (CoordinatorLostError, GroupRefusedError, _AwayError):
                    is_member = False

    def _run(self) -> None:
        try:
            self._take_part()
        except BaseException as error:
            self.ended.set_exception(error)
            if not isinstance(error, Exception):
                raise
            _log.exception("a group member failed with an unexpected error")
        else:
            self.ended.set_result(None)

    def _take_part(self) -> None:
        failures = 0
        self._heard_at = time.monotonic()
        while not self._closed.is_set():
            try:
                self._leave_if_asked()
                self._check_away()
                self._coordination.find()
                self._join()
                failures = 0
                self._stay()
            except UnknownMemberError as error:
                self._forget_id()
                self._part.forgotten(error)
            except RejoinError:
                continue
            except _AwayError:
                while not self._closed.is_set() and self._part.away_reason() is not None:
                    self.sleep(self._heartbeat_s)
            except (CoordinatorLostError, GroupRefusedError) as error:
                if self._closed.is_set():
                    return
                failures += 1
                self._part.failed(error, failures, time.monotonic() - self._heard_at)
                self._coordination.forget()
                self.sleep(self._backoff.after(failures) / 1000)

    def _keep_id(self, member_id: str) -> None:
        self.member_id = member_id

    def _forget_id(self) -> None:
        self.member_id, self._generation = "", -1

    def _leave_if_asked(self) -> None:
        with self._wishes:
            asked, self._leaving = self._leaving, None
        if asked is not None:
            reason, pause_s = asked
            self._leave(reason)
            self.sleep(pause_s)

    def _leave(self, reason: str) -> None:
        self._coordination.leave(self.member_id, reason)
        self._forget_id()
        self._part.left()

    def _check_away(self) -> None:
        """Leave if the member cannot take part. Raises _AwayError."""
        reason = self._part.away_reason()
        if reason is not None:
            self._leave(reason)
            raise _AwayError

    def _join(self) -> None:
        if self._closed.is_set():
            raise CoordinatorLostError("the member is closed")
        with self._wishes:
            # Before `protocols`, which may not have what a later wish is about.
            self._wants_rejoin = False
            reason, self._reason = self._reason, "the group begins again"
        self._due = None
        protocols = self._part.protocols()
        joined = self._coordination.join(self.member_id, protocols, reason, self._keep_id)
        self.member_id, self._generation = joined.member_id, joined.generation
        self._hear(time.monotonic())
        assignments = self._part.deal(joined) if joined.is_leader else {}
        sent_at = time.monotonic()
        assignment = self._coordination.sync(joined, assignments)
        self._hear(sent_at)
        self._part.assigned(joined, assignment)

    def _hear(self, sent_at: float) -> None:
        self._heard_at = sent_at
        self._part.heard(sent_at)

    def _stay(self) -> None:
        """Send heartbeats until the group begins again."""
        while True:
            if self._wait(self._heartbeat_s):
                raise RejoinError
            self._beat()

    def _wait(self, seconds: float) -> bool:
        """Wait for the time of the next heartbeat; whether it is rather time to join."""
        until = time.monotonic() + seconds
        with self._wishes:
            while not self._closed.is_set() and not self._wants_rejoin:
                now = time.monotonic()
                due_at, reason = self._due or (until, "")
                if self._due is not None and now >= due_at:
                    self._reason = reason
                    return True
                if now >= until:
                    return False
                self._wishes.wait(min(until, due_at) - now)
            return True

    def _beat(self) -> None:
        self._check_away()
        sent_at = time.monotonic()
        self._coordination.heartbeat(self.member_id, self._generation)
        self._hear(sent_at)
