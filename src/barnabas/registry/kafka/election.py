"""Elects a leader among instances, through a group of Kafka with the protocol type `sr`.

An instance joins, the group's own leader (which is only a clerk) chooses by `membership.elect`,
and every member is told who leads. Heartbeats keep it in the group. Each change begins with
`on_rebalance` and ends with `on_elected`; `on_lost` comes when no heartbeat has been answered for
a session, because by then others may have elected somebody else.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from barnabas.base.backoff import ExponentialBackoff
from barnabas.registry.config import RegistryConfig
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.faults import CLIENT_TROUBLE, words
from barnabas.registry.kafka.membership import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    MembershipError,
    elect,
)

BACKOFF_MS_MAX = 1000
JOIN_GRACE_MS = 5000
"""How much longer than the group's own limit we wait for the answer to a join."""
LEAVE_TIMEOUT_S = 2.0

telemetry = logging.getLogger(__name__)


class _RejoinError(Exception):
    """The group elects anew."""


class Elector:
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
        self._heartbeat_ms = config.get_int("kafkagroup.heartbeat.interval.ms")
        self._rebalance_ms = config.get_int("kafkagroup.rebalance.timeout.ms")
        self._connection = connection
        self._client: Any = None
        self._coordinator: int | None = None
        self._member = ""
        self._generation = -1
        self._rejoin = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Join, and stay in the group until `stop`; the task never ends by itself."""
        self._task = asyncio.create_task(self._run())
        return self._task

    async def stop(self) -> None:
        """Leave the group, so that others elect at once."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._end_session()
        if self._member and self._coordinator is not None:
            with contextlib.suppress(*CLIENT_TROUBLE):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    # On a connection of its own: on the other a join may still wait.
                    await self._client.send(
                        self._coordinator, LeaveGroupRequest(self._group, self._member)
                    )
        await self._close_client()

    def rejoin(self) -> None:
        """Ask for another election: what this instance knows of the last one is in doubt."""
        self._rejoin.set()

    async def _run(self) -> None:
        backoff = ExponentialBackoff(
            self._connection.retry_backoff_ms, BACKOFF_MS_MAX, random.Random()
        )
        failures = 0
        while True:
            try:
                await self._find_coordinator()
                assignment = await self._join()
                self._tell(assignment)
                failures = 0
                await self._stay()
            except _RejoinError:
                continue
            except CLIENT_TROUBLE as error:
                failures += 1
                tell = telemetry.warning if failures in (1, 10) else telemetry.debug
                tell("group %s, trying again: %s", self._group, words(error))
                await self._recover(error)
                await asyncio.sleep(backoff.after(failures) / 1000)

    async def _recover(self, error: BaseException) -> None:
        if isinstance(error, errors.UnknownMemberIdError | errors.IllegalGenerationError):
            self._member, self._generation = "", -1
            self._lose("the group went on without this instance")
        elif not isinstance(error, errors.BrokerResponseError) or isinstance(
            error, errors.RequestTimedOutError
        ):
            await self._close_client()
        self._coordinator = None

    # Joining

    async def _join(self) -> Assignment:
        """Join the group, choose for it if asked to, and return what is assigned."""
        await self._on_rebalance()
        self._rejoin.clear()
        joined = await self._send_join()
        self._member, self._generation = joined.member_id, joined.generation_id
        self._renew_session(self._loop_time())
        choices = self._choose(joined) if joined.leader_id == joined.member_id else []
        sent_at = self._loop_time()
        synced = await self._send(
            SyncGroupRequest(self._group, self._generation, self._member, None, choices)
        )
        self._raise_for(synced.error_code)
        self._renew_session(sent_at)
        try:
            return Assignment.decode(synced.member_assignment)
        except MembershipError as error:
            raise errors.InconsistentGroupProtocolError(str(error)) from error

    async def _send_join(self) -> Any:
        while True:
            answer = await self._send(
                JoinGroupRequest(
                    self._group,
                    self._session_ms,
                    self._rebalance_ms,
                    self._member,
                    None,
                    PROTOCOL_TYPE,
                    [(PROTOCOL_NAME, self.identity.encode())],
                )
            )
            if errors.for_code(answer.error_code) is not errors.MemberIdRequired:
                self._raise_for(answer.error_code)
                return answer
            self._member = answer.member_id

    def _choose(self, joined: Any) -> list[tuple[str, bytes]]:
        """The same assignment for every member; one that cannot be read may not lead."""
        members = {}
        for member, *_, metadata in joined.members:
            try:
                members[member] = Identity.decode(metadata)
            except MembershipError as error:
                telemetry.warning("member %s of group %s: %s", member, self._group, error)
        assignment = elect(members, sticky=self._sticky).encode()
        return [(member, assignment) for member, *_ in joined.members]

    def _tell(self, assignment: Assignment) -> None:
        leads = assignment.leader_id == self._member
        if assignment.error != 0:
            reason = f"error {assignment.error}"
            if assignment.error == DUPLICATE_URLS:
                reason = (
                    f"two instances have one URL, and this one has {self.identity.url}: give each "
                    "its own with host.name, listeners or host.port"
                )
            telemetry.error("group %s has elected nobody: %s", self._group, reason)
            self._lose(reason)
            return
        if assignment.leader is None:
            telemetry.warning("group %s has no instance that may lead", self._group)
        else:
            telemetry.info(
                "group %s, generation %d: %s leads", self._group, self._generation,
                "this instance" if leads else assignment.leader.url,
            )  # fmt: skip
        self.identity = replace(self.identity, leads=leads)  # told at the next election
        self._on_elected(assignment.leader, leads)

    # Staying

    async def _stay(self) -> None:
        """Send heartbeats until the group elects anew."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat_ms / 1000):
                    await self._rejoin.wait()
                raise _RejoinError
            sent_at = self._loop_time()
            async with asyncio.timeout(self._session_ms / 1000):
                answer = await self._send(
                    HeartbeatRequest(self._group, self._generation, self._member)
                )
            error = errors.for_code(answer.error_code)
            if error is errors.RebalanceInProgressError:
                raise _RejoinError
            self._raise_for(answer.error_code)
            self._renew_session(sent_at)

    def _renew_session(self, sent_at: float) -> None:
        """The group keeps this instance for a session from what it was sent at `sent_at`."""
        self._end_session()
        self._expiry = asyncio.get_running_loop().call_at(
            sent_at + self._session_ms / 1000, self._expire
        )

    def _end_session(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire(self) -> None:
        self._lose(f"no heartbeat was answered for {self._session_ms} ms")

    def _lose(self, reason: str) -> None:
        self._end_session()
        self.identity = replace(self.identity, leads=False)
        self._on_lost(reason)

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time()

    # Brokers

    async def _find_coordinator(self) -> None:
        if self._client is None:
            client = AIOKafkaClient(
                **self._connection.options(
                    "election", request_timeout_ms=self._rebalance_ms + JOIN_GRACE_MS
                )
            )
            try:
                async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                    await client.bootstrap()
            except BaseException:
                await client.close()
                raise
            self._client = client
        if self._coordinator is None:
            async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                self._coordinator = await self._client.coordinator_lookup(
                    CoordinationType.GROUP, self._group
                )

    async def _send(self, request: Any) -> Any:
        return await self._client.send(
            self._coordinator, request, group=ConnectionGroup.COORDINATION
        )

    def _raise_for(self, code: int) -> None:
        error = errors.for_code(code)
        if error is not errors.NoError:
            raise error()

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        self._coordinator = None
        if client is not None:
            await client.close()
