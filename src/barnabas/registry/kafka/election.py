"""Elects a leader among instances, through a group of Kafka with the protocol type `sr`.

An instance joins, the group's own leader (which is only a clerk) chooses by `membership.elect`,
and every member learns who leads. Heartbeats keep it in the group. Each change begins with
`on_rebalance` and ends with `on_elected`; `on_lost` comes when no heartbeat has been answered for
a session, because by then others may have elected somebody else.

The member has a thread (`kafka.membership`). All that is called here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from barnabas.kafka.membership import (
    CoordinatorLostError,
    GroupMember,
    GroupSettings,
    Joined,
    Part,
    UnknownMemberError,
)
from barnabas.registry.config import RegistryConfig
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.faults import words
from barnabas.registry.kafka.membership import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    MembershipError,
    elect,
)

BACKOFF_MS_MAX: Final = 1000

telemetry = logging.getLogger(__name__)


class Elector(Part):
    """This instance as a member of the group."""

    def __init__(
        self,
        config: RegistryConfig,
        connection: Connection,
        identity: Identity,
        *,
        on_rebalance: Callable[[], Awaitable[None]],
        on_elected: Callable[[Identity | None, bool], None],
        on_lost: Callable[[str], None],
    ) -> None:
        """`on_elected` gets the leader, if there is one, and whether it is this instance."""
        self.identity = identity
        self._on_rebalance = on_rebalance
        self._on_elected = on_elected
        self._on_lost = on_lost
        self._group = config.group_id
        self._sticky = config.get_bool("leader.election.sticky")
        self._session_ms = config.session_timeout_ms
        settings = GroupSettings(
            config.group_id,
            PROTOCOL_TYPE,
            config.session_timeout_ms,
            config.get_int("kafkagroup.heartbeat.interval.ms"),
            config.get_int("kafkagroup.rebalance.timeout.ms"),
        )
        self._member = GroupMember(
            connection.access("election"),
            settings,
            self,
            first_reason="the instance starts",
            backoff_ms=(connection.retry_backoff_ms, BACKOFF_MS_MAX),
        )
        self._loop = asyncio.get_running_loop()
        self._expiry: asyncio.TimerHandle | None = None
        self._has_started = self._has_stopped = False

    def start(self) -> asyncio.Task[None]:
        """Join, and stay in the group until `stop`; only a bug ends the task before."""
        self._has_started = True
        self._member.start()

        async def end() -> None:
            await asyncio.wrap_future(self._member.ended)

        return asyncio.create_task(end())

    async def stop(self) -> None:
        """Leave the group, so that others elect at once."""
        self._has_stopped = True
        self._end_session()
        if self._has_started:
            await asyncio.to_thread(self._member.close, "the instance stops")

    def rejoin(self) -> None:
        """Ask for another election: what this instance knows of the last one is in doubt."""
        self._member.rejoin("the last election is in doubt")

    # On the member's thread

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Let the leader finish its transaction, and say who this instance is."""
        self._call(self._on_rebalance)
        return [(PROTOCOL_NAME, self.identity.encode())]

    def deal(self, joined: Joined) -> Mapping[str, bytes]:
        """Give every member the same assignment; one that cannot be read may not lead."""
        members = {}
        for member, metadata in joined.members.items():
            try:
                members[member] = Identity.decode(metadata)
            except MembershipError as error:
                telemetry.warning("member %s of group %s: %s", member, self._group, error)
        assignment = elect(members, sticky=self._sticky).encode()
        return dict.fromkeys(joined.members, assignment)

    def assigned(self, joined: Joined, assignment: bytes) -> None:
        """Pass on who leads."""
        try:
            leadership = Assignment.decode(assignment)
        except MembershipError as error:
            raise CoordinatorLostError(str(error)) from error

        async def tell() -> None:
            self._tell(leadership, joined)

        self._call(tell)

    def heard(self, sent_at: float) -> None:
        """Renew the session."""
        self._loop.call_soon_threadsafe(self._renew_session, sent_at)

    def forgotten(self, error: UnknownMemberError) -> None:
        """The group went on without this instance."""
        telemetry.warning("group %s, joining again: %s", self._group, error)
        self._loop.call_soon_threadsafe(self._lose, "the group went on without this instance")

    def failed(self, error: Exception, failures: int, silent_s: float) -> None:
        """Report it, not each time."""
        tell = telemetry.warning if failures in (1, 10) else telemetry.debug
        tell("group %s, trying again: %s", self._group, words(error))

    def _call(self, ask: Callable[[], Awaitable[None]]) -> None:
        async def ask_unless_stopped() -> None:
            if not self._has_stopped:
                await ask()

        asyncio.run_coroutine_threadsafe(ask_unless_stopped(), self._loop).result()

    # On the event loop

    def _tell(self, assignment: Assignment, joined: Joined) -> None:
        leads = assignment.leader_id == joined.member_id
        if assignment.error != 0:
            reason = f"error {assignment.error}"
            if assignment.error == DUPLICATE_URLS:
                reason = (
                    f"two instances have one URL, and this one has {self.identity.url}: give each "
                    "its own with host.name, listeners or host.port"
                )
            telemetry.error("group %s has elected no leader: %s", self._group, reason)
            self._lose(reason)
            return
        if assignment.leader is None:
            telemetry.warning("group %s has no instance that may lead", self._group)
        else:
            telemetry.info(
                "group %s, generation %d: %s leads", self._group, joined.generation,
                "this instance" if leads else assignment.leader.url,
            )  # fmt: skip
        self.identity = replace(self.identity, leads=leads)  # told at the next election
        self._on_elected(assignment.leader, leads)

    def _renew_session(self, sent_at: float) -> None:
        """The group keeps this instance for a session from what it was sent at `sent_at`."""
        self._end_session()
        if not self._has_stopped:
            left_s = self._session_ms / 1000 - (time.monotonic() - sent_at)
            self._expiry = self._loop.call_later(max(left_s, 0.0), self._expire)

    def _end_session(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire(self) -> None:
        self._lose(f"no heartbeat was answered for {self._session_ms} ms")

    def _lose(self, reason: str) -> None:
        self._end_session()
        if self._has_stopped:
            return
        self.identity = replace(self.identity, leads=False)
        self._on_lost(reason)
