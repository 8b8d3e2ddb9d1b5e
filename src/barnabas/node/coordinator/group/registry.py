"""The groups of one shard, of every kind."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.step import GroupTimers, Refusal, Step, TimerKey
from barnabas.protocol.errors import ErrorCode

G = TypeVar("G", bound=Group)


class GroupRegistry:
    """Groups by id."""

    __slots__ = ("_ended", "_groups", "_timers")

    def __init__(self, timers: GroupTimers) -> None:
        self._groups: dict[str, Group] = {}
        self._timers = timers
        self._ended: list[TimerKey] = []

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        """The group of any kind."""
        return self._groups.get(group_id)

    def get_of(self, kind: type[G], group_id: str) -> G | None:
        """The group, if it is of that kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, kind) else None

    def each_of(self, kind: type[G]) -> Iterator[G]:
        """The groups of that kind."""
        return (group for group in self if isinstance(group, kind))

    def find(self, kind: type[G], group_id: str) -> G | Refusal:
        """The group, if it is of that kind; otherwise why not, in Kafka's words."""
        group = self._groups.get(group_id)
        if group is None:
            return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group if isinstance(group, kind) else _not_of_kind(kind, group_id)

    def put(self, group: Group) -> None:
        """Add a group, replacing any group with its id."""
        self.drop(group.group_id)
        self._groups[group.group_id] = group

    def drop(self, group_id: str) -> None:
        """Forget a group and its timers."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self._cancel(group.timer_keys())
            group.dropped()

    def member_ended(self, timer_keys: list[TimerKey]) -> None:
        """A record ended a member, whose timers stop before the next step.

        Not at once: the step that wrote the record has set its timers already, and another of its
        records may bring the member back.
        """
        self._ended += [key for key in timer_keys if key in self._timers]

    def cancel_ended(self) -> None:
        """Stop the timers of members that ended and have not come back."""
        if not self._ended:
            return
        for key in self._ended:
            group = self._groups.get(key.group_id)
            if group is None or key.member_id not in group.members:
                self._timers.cancel(key)
        self._ended.clear()

    def _cancel(self, keys: list[TimerKey]) -> None:
        """Stop timers of a group, as far as they run."""
        for key in keys:
            self._timers.cancel(key)


def _not_of_kind(kind: type[Group], group_id: str) -> Refusal:
    """The group is of another kind."""
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind.group_type} group."
    )


class Continuation(Protocol):
    """The `continuation` of a decision: runs when its records are stored, or lost.

    Each kind of groups has its own.
    """

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Go on: the records were committed (NONE), or failed.

        `is_appended` is false where the log will never have them (see `decision.Shard.stored`).
        """
