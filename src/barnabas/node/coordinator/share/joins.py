"""Answers to joining members of share groups that are held until there is something to tell.

The first heartbeat of a member often finds nothing to give: the state of the partitions must be
initialised first, or an assignment was made so lately that the next is put off (KIP-1263). Both
take a moment, and Kafka's members learn of it with their next heartbeat, seconds later. Here the
answer waits for that moment, and says what a heartbeat of the member would hear then.

Only the answer to a joining member without partitions is held. A member that joins may do so
again if the answer is lost; one that is in the group already could be fenced for an epoch that it
was never told. To the group a held answer is a heartbeat that comes early.
"""

from collections.abc import Callable
from typing import Any

from barnabas.base.clock import Clock, Timer
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH
from barnabas.node.coordinator.group.share.heartbeat import Heard
from barnabas.node.coordinator.group.step import Client, Refusal
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

HOLD_MS_MAX = 2_000
"""No answer is held for longer, nor for longer than members wait between two heartbeats."""

Hear = Callable[[ShareGroupHeartbeatRequest, Client], Any]
"""`Heard`, a `Refusal` or the promise of one of them."""


class _Join:
    """An answer that is held."""

    __slots__ = ("answer", "client", "group_id", "member_id", "response", "timer", "until_ms")

    def __init__(
        self,
        request: ShareGroupHeartbeatRequest,
        client: Client,
        response: ShareGroupHeartbeatResponse,
        until_ms: int,
    ) -> None:
        self.group_id = request.group_id
        self.member_id = request.member_id
        self.client = client
        self.response = response
        """The assignment that the member would get now."""
        self.until_ms = until_ms
        """When the answer is sent at the latest (monotonic)."""
        self.timer: Timer | None = None
        self.answer: Promise[ShareGroupHeartbeatResponse] = Promise()


class HeldJoins:
    """The held answers of a node. There are no more of them than members that join at once."""

    def __init__(self, clock: Clock, hear: Hear) -> None:
        """`hear` runs a heartbeat that was not sent, and never asks for its answer to be held."""
        self._clock = clock
        self._hear = hear
        self._begun: dict[str, int] = {}
        """The number of initialisations under way, by group."""
        self._held: dict[str, dict[_Join, None]] = {}
        self._is_closed = False

    def answer(
        self, request: ShareGroupHeartbeatRequest, client: Client, heard: Heard
    ) -> ShareGroupHeartbeatResponse | Promise[ShareGroupHeartbeatResponse]:
        """The answer to a heartbeat that was sent, or the promise of a better one."""
        response = heard.response
        if request.member_epoch != JOINING_EPOCH:
            return response
        hold_ms = min(HOLD_MS_MAX, response.heartbeat_interval_ms)
        join = _Join(request, client, response, self._clock.monotonic_ms() + hold_ms)
        return join.answer if self._hold(join, heard.assigns_in_ms) else response

    def begun(self, group_id: str) -> None:
        """Partitions of the group are being initialised."""
        self._begun[group_id] = self._begun.get(group_id, 0) + 1

    def ended(self, group_id: str, *, is_done: bool) -> None:
        """They are, or cannot be: then nobody waits for a further attempt."""
        self._begun[group_id] -= 1
        if not self._begun[group_id]:
            del self._begun[group_id]
        for join in list(self._held.get(group_id, ())):
            if is_done:
                self._hear_again(join)
            else:
                self._settle(join)

    def close(self) -> None:
        """Answer all, and hold none any more."""
        self._is_closed = True
        for joins in list(self._held.values()):
            for join in list(joins):
                self._settle(join)

    def _hold(self, join: _Join, assigns_in_ms: int | None) -> bool:
        """Hold an answer if there is something to wait for that comes in time."""
        assignment = join.response.assignment
        has_partitions = assignment is not None and bool(assignment.topic_partitions)
        wait_ms = join.until_ms - self._clock.monotonic_ms()
        if self._is_closed or has_partitions or wait_ms <= 0:
            return False
        if join.group_id not in self._begun:
            if assigns_in_ms is None or assigns_in_ms > wait_ms:
                return False
            wait_ms = max(1, assigns_in_ms)
        self._held.setdefault(join.group_id, {})[join] = None
        join.timer = self._clock.call_later(wait_ms, lambda: self._time_is_up(join))
        return True

    def _time_is_up(self, join: _Join) -> None:
        if join.group_id in self._begun:
            self._settle(join)
        else:
            self._hear_again(join)

    def _hear_again(self, join: _Join) -> None:
        """Have the member's next heartbeat now."""
        self._let_go(join)
        request = ShareGroupHeartbeatRequest(
            group_id=join.group_id,
            member_id=join.member_id,
            member_epoch=join.response.member_epoch,
            subscribed_topic_names=None,
        )
        then(self._hear(request, join.client), lambda heard: self._heard(join, heard))

    def _heard(self, join: _Join, heard: Heard | Refusal) -> None:
        if isinstance(heard, Refusal):
            self._settle(join)  # the member hears of that itself with what it sends next
            return
        response = heard.response
        if response.assignment is None:
            response.assignment = join.response.assignment
        join.response = response
        if not self._hold(join, heard.assigns_in_ms):
            self._settle(join)

    def _settle(self, join: _Join) -> None:
        self._let_go(join)
        join.answer.settle(join.response)

    def _let_go(self, join: _Join) -> None:
        if join.timer is not None:
            join.timer.cancel()
            join.timer = None
        joins = self._held.get(join.group_id)
        if joins is not None:
            joins.pop(join, None)
            if not joins:
                del self._held[join.group_id]
