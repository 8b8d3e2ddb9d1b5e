"""A worker as a member of its group, on a thread of its own.

    find the coordinator ─▶ join ─▶ (the leader deals) ─▶ sync ─▶ stay: a heartbeat now and then
            ▲                 ▲                                     │
            │ lost            └──── the group begins anew, ─────────┤
            └─────────────────────  something was revoked,  ────────┘
                                    a delay is over, the worker asks for it

While the listener stops what was revoked, heartbeats go on; only when it has stopped does the
member join again and tell the others that it is free. A member that was put out of the group keeps
running what it has, and says so when it joins: the leader finds what runs twice by now. One that
has heard nothing for a session stops everything, as others may have its work. One whose listener
is busy for longer than `rebalance.timeout.ms` leaves until it is free: others do its work.

Source: org.apache.kafka.connect.runtime.distributed.WorkerCoordinator (Kafka 4.3).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from barnabas.base.backoff import ExponentialBackoff
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.coordination import (
    Coordination,
    CoordinatorLostError,
    GroupRefusedError,
    Joined,
    RejoinError,
    UnknownMemberError,
)
from barnabas.connect.worker.distributed.group_messages import (
    EAGER_VERSION,
    VERSIONS,
    Assignment,
    Compatibility,
    GroupMessageError,
    Member,
    decode_assignment,
    join_protocols,
)
from barnabas.connect.worker.distributed.leading import Leading, Owners
from barnabas.connect.worker.distributed.share import Share

_log = logging.getLogger(__name__)
_BACKOFF_FIRST_MS: Final = 100
_BACKOFF_MAX_MS: Final = 1_000


class BusyError(Exception):
    """The listener has been busy for too long to be a member."""


class GroupListener(Protocol):
    """Hears of the group from the member's threads."""

    def revoked(self, work: Share) -> None:
        """Stop what others will run; returns when it has stopped. Heartbeats go on meanwhile."""

    def assigned(self, assignment: Assignment, generation: int, *, is_leader: bool) -> None:
        """`assignment.work` is all that is ours now. Returns soon."""

    def busy_s(self) -> float:
        """How long what it does now has lasted; 0 where it does nothing."""


class Membership:
    """`snapshot` reads what is configured; `heartbeat_ms` and the others are the group's."""

    def __init__(
        self,
        coordination: Coordination,
        listener: GroupListener,
        snapshot: Callable[[], ConfigState],
        url: str,
        *,
        compatibility: Compatibility = "sessioned",
        delay_ms_max: int = 300_000,
        heartbeat_ms: int = 3_000,
        session_ms: int = 10_000,
        busy_ms_max: int = 60_000,
    ) -> None:
        self._coordination = coordination
        self._listener = listener
        self._snapshot = snapshot
        self._url = url
        self._compatibility = compatibility
        self._leading = Leading(snapshot, delay_ms_max)
        self._heartbeat_s = heartbeat_ms / 1000
        self._session_s = session_ms / 1000
        self._busy_s_max = busy_ms_max / 1000
        self._version = VERSIONS["default"] if compatibility == "eager" else VERSIONS["compatible"]
        self._member_id = ""
        self._generation = -1
        self._last_generation = -1
        self._held: Assignment | None = None
        self._owners: Owners | None = None
        self._heard_at = 0.0
        self._due_at: float | None = None
        self._reason = "the worker starts"
        self._wishes = threading.Condition()
        self._wants_rejoin = False
        self._leaving: tuple[str, float, Share] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker group", daemon=True)

    # --- for the worker's other threads ----------------------------------------------------------

    def start(self) -> None:
        """Join, and stay until `close`."""
        self._thread.start()

    def rejoin(self, reason: str) -> None:
        """Ask the group to deal anew."""
        with self._wishes:
            self._wants_rejoin = True
            self._reason = reason
            self._wishes.notify_all()

    def leave(self, reason: str, pause_s: float, held: Share) -> None:
        """Leave, and join again after a pause; `held` is what the worker runs then."""
        with self._wishes:
            self._leaving = (reason, pause_s, held)
            self._wants_rejoin = True
            self._wishes.notify_all()

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave."""
        return self._member_id

    @property
    def protocol_version(self) -> int:
        """That of the last round: 0 eager, 1 compatible, 2 sessioned."""
        return self._version

    @property
    def held(self) -> Assignment | None:
        """What is ours, as the group knows it."""
        return self._held

    @property
    def owners(self) -> Owners | None:
        """Who runs what; None where this worker does not lead, or all join just now."""
        return self._owners

    def close(self, reason: str = "the worker stops") -> None:
        """Leave the group."""
        with self._wishes:
            self._closed.set()
            self._wishes.notify_all()
        self._coordination.abort()
        if self._thread.is_alive():
            self._thread.join()
        self._coordination.leave(self._member_id, reason)
        self._coordination.forget()

    # --- the member's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        backoff = ExponentialBackoff(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS, random.Random())
        failures = 0
        self._heard_at = time.monotonic()
        while not self._closed.is_set():
            try:
                self._leave_if_asked()
                self._check_busy()
                self._coordination.find()
                self._join()
                failures = 0
                self._stay()
            except UnknownMemberError as error:
                _log.info("this worker joins its group as a new member: %s", error)
                self._member_id, self._generation = "", -1
            except RejoinError:
                continue
            except BusyError:
                self._wait_until_free()
            except (CoordinatorLostError, GroupRefusedError, GroupMessageError) as error:
                if self._closed.is_set():
                    return
                tell = _log.error if isinstance(error, GroupRefusedError) else _log.info
                tell("the worker group, trying again: %s", error)
                self._coordination.forget()
                self._stop_if_forgotten()
                failures += 1
                self._sleep(backoff.after(failures) / 1000)

    def _leave_if_asked(self) -> None:
        with self._wishes:
            asked, self._leaving = self._leaving, None
        if asked is None:
            return
        reason, pause_s, held = asked
        self._coordination.leave(self._member_id, reason)
        self._member_id, self._generation, self._owners = "", -1, None
        if self._held is not None:
            self._held = replace(self._held, work=held)
        self._sleep(pause_s)

    def _check_busy(self) -> None:
        """Leave if the listener has been busy for too long. Raises BusyError."""
        if self._listener.busy_s() <= self._busy_s_max:
            return
        _log.error(
            "this worker leaves its group: what it does has lasted for %.0f s, longer than "
            "rebalance.timeout.ms",
            self._listener.busy_s(),
        )
        self._coordination.leave(self._member_id, "worker poll timeout has expired.")
        self._member_id, self._generation, self._owners = "", -1, None
        raise BusyError

    def _wait_until_free(self) -> None:
        while not self._closed.is_set() and self._listener.busy_s() > self._busy_s_max:
            self._sleep(self._heartbeat_s)

    def _sleep(self, seconds: float) -> None:
        with self._wishes:
            self._wishes.wait_for(self._closed.is_set, seconds)

    def _stop_if_forgotten(self) -> None:
        """Others may have our work once a session is over."""
        if self._held is None or time.monotonic() - self._heard_at < self._session_s:
            return
        _log.warning("the group has not been heard of for a session: this worker stops its work")
        self._listener.revoked(self._held.work)
        self._held = self._owners = None

    def _join(self) -> None:
        if self._closed.is_set():
            raise CoordinatorLostError("the worker stops")
        self._owners = None
        if self._version == EAGER_VERSION and self._held is not None:
            held, self._held = self._held, None
            self._while_beating(lambda: self._listener.revoked(held.work))
        with self._wishes:
            self._wants_rejoin = False
            reason, self._reason = self._reason, "the group begins anew"
        self._due_at = None
        member = Member(self._url, self._snapshot().offset, self._held)
        protocols = join_protocols(self._compatibility, member)
        joined = self._coordination.join(self._member_id, protocols, reason)
        self._member_id, self._generation = joined.member_id, joined.generation
        self._heard_at = time.monotonic()
        owners, assignments = self._deal(joined)
        data = self._coordination.sync(joined, assignments)
        self._heard_at = time.monotonic()
        self._complete(joined, decode_assignment(data), owners)

    def _deal(self, joined: Joined) -> tuple[Owners | None, dict[str, bytes]]:
        if joined.leader != joined.member_id:
            return None, {}
        dealt = self._leading.deal(
            joined.member_id,
            joined.protocol,
            joined.members,
            generation=joined.generation,
            last_generation=self._last_generation,
            now_ms=int(time.time() * 1000),
        )
        return dealt.owners, dict(dealt.assignments)

    def _complete(self, joined: Joined, new: Assignment, owners: Owners | None) -> None:
        self._version = VERSIONS[joined.protocol]
        self._last_generation = joined.generation
        is_leader = new.leader == joined.member_id
        if self._version != EAGER_VERSION:
            if new.revoked:
                self._while_beating(lambda: self._listener.revoked(new.revoked))
            if self._held is not None:
                kept = self._held.work.without(new.revoked)
                new = replace(new, work=new.work.plus(kept))
            if new.revoked:
                self.rejoin("what others will run has stopped")
        elif self._held is not None:
            # The group was cooperative until now: nothing was stopped before this round.
            left = self._held.work.without(new.work)
            if left:
                self._while_beating(lambda: self._listener.revoked(left))
        if new.delay_ms:
            self._due_at = time.monotonic() + new.delay_ms / 1000
        self._held = new
        self._owners = owners
        _log.info(
            "generation %d of the worker group: %d connectors and %d tasks are this worker's%s",
            joined.generation, len(new.work.connectors), len(new.work.tasks),
            ", which leads" if is_leader else "",
        )  # fmt: skip
        self._listener.assigned(new, joined.generation, is_leader=is_leader)
        if new.has_failed:
            self.rejoin("the leader could not assign")
            self._sleep(_BACKOFF_FIRST_MS / 1000)

    def _stay(self) -> None:
        """Send heartbeats until the group begins anew."""
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
                if self._due_at is not None and now >= self._due_at:
                    self._reason = "the delay of what was lost is over"
                    return True
                if now >= until:
                    return False
                self._wishes.wait(min(until, self._due_at or until) - now)
            return True

    def _beat(self) -> None:
        self._check_busy()
        sent_at = time.monotonic()
        self._coordination.heartbeat(self._member_id, self._generation)
        self._heard_at = sent_at

    def _while_beating(self, work: Callable[[], None]) -> None:
        """Do something that takes a while, and stay in the group."""
        done = threading.Event()

        def run() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001  what cannot be stopped must not end the membership
                _log.exception("what was revoked could not be stopped")
            finally:
                done.set()

        threading.Thread(target=run, name="worker group, revoking", daemon=True).start()
        is_member = bool(self._member_id)
        while not done.wait(self._heartbeat_s) and not self._closed.is_set():
            if is_member:
                try:
                    self._beat()
                except RejoinError:
                    pass  # it joins when it has stopped what it runs
                except (CoordinatorLostError, BusyError):
                    is_member = False
