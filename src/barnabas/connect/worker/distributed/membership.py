"""A worker as a member of its group (`kafka.membership`), and figures of the group's rounds.

While the listener stops what was revoked, heartbeats go on; only when it has stopped does the
member join again and tell the others that it is free. A member that was put out of the group keeps
running what it has, and says so when it joins: the leader finds what runs twice by now. One that
has heard nothing for a session stops everything, as others may have its work. One whose listener
is busy for longer than `rebalance.timeout.ms` leaves until it is free: others do its work.

Source: org.apache.kafka.connect.runtime.distributed.WorkerCoordinator (Kafka 4.3).
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.group_messages import (
    EAGER_VERSION,
    PROTOCOLS,
    VERSIONS,
    Assignment,
    Compatibility,
    GroupMessageError,
    Member,
    decode_assignment,
    join_protocols,
)
from barnabas.connect.worker.distributed.leading import Leading, Owners
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.share import NOTHING, Share
from barnabas.kafka.membership import (
    BACKOFF_FIRST_MS,
    CoordinatorLostError,
    GroupMember,
    GroupRefusedError,
    GroupSettings,
    Joined,
    Part,
    UnknownMemberError,
)
from barnabas.kafka.wire import Access

_log = logging.getLogger(__name__)
_BUSY: Final = "worker poll timeout has expired."
Figures = tuple[str, Mapping[str, float], tuple[tuple[str, str], ...]]
"""Group, figures and labels."""
_KEPT: Final = 100
"""Rounds that the average and the maximum are of."""


class GroupListener(Protocol):
    """Hears of the group from the member's threads."""

    def revoked(self, work: Share) -> None:
        """Stop what others will run; returns when it has stopped. Heartbeats continue."""

    def assigned(self, assignment: Assignment, generation: int, *, is_leader: bool) -> None:
        """`assignment.work` is all that is ours now. Returns soon."""

    def busy_s(self) -> float:
        """The time that its current operation has taken; 0 if it is idle."""


class Membership(Part):
    """`snapshot` reads what is configured."""

    def __init__(
        self,
        access: Access,
        settings: GroupSettings,
        listener: GroupListener,
        snapshot: Callable[[], ConfigState],
        url: str,
        *,
        compatibility: Compatibility = "sessioned",
        delay_ms_max: int = 300_000,
        busy_ms_max: int = 60_000,
    ) -> None:
        self._member = GroupMember(access, settings, self, first_reason="the worker starts")
        self._listener = listener
        self._snapshot = snapshot
        self._url = url
        self._compatibility = compatibility
        self._leading = Leading(snapshot, delay_ms_max)
        self._session_s = settings.session_timeout_ms / 1000
        self._busy_s_max = busy_ms_max / 1000
        self._version = VERSIONS["default"] if compatibility == "eager" else VERSIONS["compatible"]
        self._last_generation = -1
        self._held: Assignment | None = None
        self._kept: Share | None = None
        """The work that a worker keeps after it has left on request."""
        self._owners: Owners | None = None
        self._dealt: Owners | None = None
        """The assignment that this worker has made in the current round."""

    # --- for the worker's other threads ----------------------------------------------------------

    def start(self) -> None:
        """Join, and stay until `close`."""
        self._member.start()

    def rejoin(self, reason: str) -> None:
        """Ask the group to rebalance."""
        self._member.rejoin(reason)

    def leave(self, reason: str, pause_s: float, held: Share) -> None:
        """Leave, and join again after a pause; `held` is what the worker runs then."""
        self._kept = held
        self._member.leave(reason, pause_s)

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave."""
        return self._member.member_id

    @property
    def protocol_version(self) -> int:
        """That of the last round: 0 eager, 1 compatible, 2 sessioned."""
        return self._version

    @property
    def held(self) -> Assignment | None:
        """This worker's assignment, as the group knows it."""
        return self._held

    @property
    def owners(self) -> Owners | None:
        """Who runs what; None where this worker does not lead, or all join just now."""
        return self._owners

    def close(self, reason: str = "the worker stops") -> None:
        """Leave the group."""
        self._member.close(reason)

    # --- the member's thread ---------------------------------------------------------------------

    def away_reason(self) -> str | None:
        """Say that the listener has been busy for too long."""
        return _BUSY if self._listener.busy_s() > self._busy_s_max else None

    def left(self) -> None:
        """Nothing is dealt out by this worker until it joins again."""
        self._owners = None
        kept, self._kept = self._kept, None
        if kept is None:
            _log.error(
                "this worker leaves its group: it has been busy for %.0f s, longer than "
                "rebalance.timeout.ms",
                self._listener.busy_s(),
            )
        elif self._held is not None:
            self._held = replace(self._held, work=kept)

    def forgotten(self, error: UnknownMemberError) -> None:
        """See Part."""
        _log.info("this worker joins its group as a new member: %s", error)

    def failed(self, error: Exception, failures: int, silent_s: float) -> None:
        """Stop all once a session is over: others may have our work."""
        tell = _log.error if isinstance(error, GroupRefusedError) else _log.info
        tell("the worker group, trying again: %s", error)
        if self._held is None or silent_s < self._session_s:
            return
        _log.warning("no answer from the group for a whole session: this worker stops its work")
        self._listener.revoked(self._held.work)
        self._held = self._owners = None

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Tell what is ours; of an eager group, nothing."""
        self._owners = self._dealt = None
        if self._version == EAGER_VERSION and self._held is not None:
            held, self._held = self._held, None
            self._member.while_beating(lambda: self._listener.revoked(held.work))
        member = Member(self._url, self._snapshot().offset, self._held)
        return join_protocols(self._compatibility, member)

    def deal(self, joined: Joined) -> Mapping[str, bytes]:
        """Deal out all connectors and tasks."""
        try:
            dealt = self._leading.deal(
                joined.member_id,
                joined.protocol,
                joined.members,
                generation=joined.generation,
                last_generation=self._last_generation,
                now_ms=int(time.time() * 1000),
            )
        except GroupMessageError as error:
            raise CoordinatorLostError(str(error)) from error
        self._dealt = dealt.owners
        return dict(dealt.assignments)

    def assigned(self, joined: Joined, assignment: bytes) -> None:
        """Stop what was revoked, and tell the listener."""
        try:
            new = decode_assignment(assignment)
        except GroupMessageError as error:
            raise CoordinatorLostError(str(error)) from error
        self._version = VERSIONS[joined.protocol]
        self._last_generation = joined.generation
        is_leader = new.leader == joined.member_id
        if self._version != EAGER_VERSION:
            if new.revoked:
                self._member.while_beating(lambda: self._listener.revoked(new.revoked))
            if self._held is not None:
                kept = self._held.work.without(new.revoked)
                new = replace(new, work=new.work.plus(kept))
            if new.revoked:
                self.rejoin("what others will run has stopped")
        elif self._held is not None:
            # The group was cooperative until now: nothing was stopped before this round.
            left = self._held.work.without(new.work)
            if left:
                self._member.while_beating(lambda: self._listener.revoked(left))
        if new.delay_ms:
            self._member.rejoin_after(new.delay_ms / 1000, "the delay of what was lost is over")
        self._held = new
        self._owners = self._dealt
        _log.info(
            "generation %d of the worker group: %d connectors and %d tasks are this worker's%s",
            joined.generation, len(new.work.connectors), len(new.work.tasks),
            ", which leads" if is_leader else "",
        )  # fmt: skip
        self._listener.assigned(new, joined.generation, is_leader=is_leader)
        if new.has_failed:
            self.rejoin("the leader could not assign")
            self._member.sleep(BACKOFF_FIRST_MS / 1000)


class RebalanceFigures:
    """Written by the member's and the herder's threads, read by any."""

    def __init__(self) -> None:
        self._begun_at: float | None = None
        self._completed_at: float | None = None
        self._count = 0
        self._times_ms: deque[float] = deque(maxlen=_KEPT)

    def begun(self) -> None:
        """A round gave work that is not yet started."""
        if self._begun_at is None:
            self._begun_at = time.monotonic()

    def completed(self) -> None:
        """The work runs."""
        now = time.monotonic()
        if self._begun_at is not None:
            self._times_ms.append((now - self._begun_at) * 1000)
        self._begun_at, self._completed_at = None, now
        self._count += 1

    def figures(self) -> dict[str, float]:
        """Return them."""
        times = list(self._times_ms)
        since = math.inf
        if self._completed_at is not None:
            since = (time.monotonic() - self._completed_at) * 1000
        return {
            "completed-rebalances-total": float(self._count),
            "rebalancing": float(self._begun_at is not None),
            "rebalance-avg-time-ms": sum(times) / len(times) if times else math.nan,
            "rebalance-max-time-ms": max(times, default=math.nan),
            "time-since-last-rebalance-ms": since,
        }


def group_figures(
    member: Membership, position: Position, rebalances: RebalanceFigures
) -> Sequence[Figures]:
    """Return what /metrics shows of a worker in its group."""
    held = member.held
    work = NOTHING if held is None else held.work
    words = {
        "connect-protocol": PROTOCOLS[member.protocol_version],
        "leader-name": position.leader_url or "",
    }
    group = "worker_rebalance"
    assigned = {
        "assigned-connectors": float(len(work.connectors)),
        "assigned-tasks": float(len(work.tasks)),
    }
    return (
        (group, {**rebalances.figures(), "epoch": float(position.generation)}, ()),
        *((group, {name: 1.0}, ((name.replace("-", "_"), word),)) for name, word in words.items()),
        ("coordinator", assigned, ()),
    )
