"""Requests and timers that groups whose coordinator assigns have in common."""

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.modern.member import ModernMember
from barnabas.node.coordinator.group.modern.timing import start_timers
from barnabas.node.coordinator.group.registry import Continuation, GroupRegistry
from barnabas.node.coordinator.group.requests import GroupRequests
from barnabas.node.coordinator.group.step import MEMBER_TIMERS, Refusal, Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode

M = TypeVar("M", bound=ModernMember)
G = TypeVar("G", bound=ModernGroup[Any, Any])

TIMER_RETRY_MS = 500
"""Until a timer whose records could not be appended is up again, as in Kafka."""

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class TimerWasUp:
    """Continuation: a timer's records, after which it is not needed any more."""

    key: TimerKey
    then: Continuation | None
    """A further continuation to run."""

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Set the timer again if its records are lost: nobody else would do its work."""
        if self.then is not None:
            self.then.stored(step, groups, error, is_appended)
        if not error or is_appended:
            return
        # Another continued change may have restarted the timer for its whole time.
        due_ms = step.timers.deadline_ms(self.key)
        if due_ms is None or due_ms > step.now.monotonic_ms + TIMER_RETRY_MS:
            step.schedule(self.key, TIMER_RETRY_MS)


class ModernGroupRequests(GroupRequests, Generic[G, M]):
    """Requests and timers of one kind of groups whose coordinator assigns."""

    __slots__ = ()

    kind: ClassVar[type[ModernGroup[Any, Any]]]
    described_group: ClassVar[Callable[..., Any]]
    """A group in the response of the kind's Describe request."""
    reasons: ClassVar[dict[TimerKind, str]] = {
        TimerKind.MODERN_SESSION: "it was silent for its session time-out",
        TimerKind.REVOCATION: "it did not give its partitions up in time",
        TimerKind.REJOIN: "it did not join again in time",
        TimerKind.RESYNC: "it did not ask for its assignment in time",
    }

    def describe(self, group_id: str) -> Decision:
        """Describe one group with its members; any other kind of group is not found."""
        group: Any = self._groups.find(self.kind, group_id)
        if isinstance(group, Refusal):
            return Decision(
                response=self.described_group(
                    group_id=group_id, error_code=group.error, error_message=group.message
                )
            )
        return Decision(response=self._described(group))

    @abstractmethod
    def _described(self, group: G) -> Any:
        """The group as the response shows it."""

    def loaded(self, group: G, step: Step) -> None:
        """The group was read from the log: every member has a whole session from now."""
        start_timers(step, group)

    def timer_is_up(self, group: G, key: TimerKey, now: Moment) -> Decision:
        """A timer of the group or of a member is due; it comes again if its records are lost."""
        step = self.step(now)
        if key.kind in MEMBER_TIMERS:
            self._member_is_late(step, group, key)
        elif key.kind is TimerKind.INITIAL_DELAY:
            self._delay_is_over(step, group)
        decision = step.decide_and_replay()
        if decision.records:
            decision.continuation = TimerWasUp(key, decision.continuation)
        return decision

    def _member_is_late(self, step: Step, group: G, key: TimerKey) -> None:
        member = group.members.get(key.member_id)
        if member is None or (key.kind is TimerKind.REVOCATION and not member.must_give_up):
            return
        reason = self.reasons[key.kind]
        telemetry.info("group %s: %s is fenced: %s", key.group_id, key.member_id, reason)
        self._fence(step, group, member)

    @abstractmethod
    def _fence(self, step: Step, group: G, member: M) -> None:
        """Take a member out."""

    def _delay_is_over(self, step: Step, group: G) -> None:
        """The time in which the group waits for more members is up."""
