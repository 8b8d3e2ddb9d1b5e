"""The members of a share group that one source has: their heartbeats, and their sessions.

One thread sends the heartbeats of all members. Assignments say which partitions a member reads;
metadata says which brokers lead them; each member has a session with each such broker.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.kafka.wire import GROUP_KEY, AccessError, Brokers, Connection, WireError
from barnabas.protocol.apis import METADATA, SHARE_GROUP_HEARTBEAT
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from barnabas.spark.datasource.share_ranges import Partition
from barnabas.spark.datasource.share_session import (
    Books,
    Session,
    SessionOptions,
    ShareSourceError,
)

JOINING_S: Final = 0.5
"""Between heartbeats of a member that has nothing assigned yet."""
RETRY_S: Final = 0.25
LEAVE_S: Final = 5.0
UNREACHABLE_S: Final = 60.0
"""Without a coordinator; then the query fails."""
LEAVING: Final = -1
JOINING: Final = 0

_MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class _Member:
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = JOINING
    due_s: float = 0.0
    assigned: frozenset[Partition] = frozenset()
    sessions: dict[tuple[str, int], Session] = field(default_factory=dict)


class Members(threading.Thread):
    """All members of a source. `start` makes them join, `leave` ends them."""

    def __init__(
        self, options: SessionOptions, topics: tuple[str, ...], count: int, books: Books
    ) -> None:
        super().__init__(name="share-members", daemon=True)
        self._options = options
        self._topics = topics
        self._books = books
        self._brokers = Brokers(options.access)
        self._coordinator: Connection | None = None
        self._members = [_Member() for _ in range(count)]
        self._leaders: dict[Partition, tuple[str, int]] = {}
        self._wake = threading.Event()
        self._is_stopping = False
        self._is_moved = False

    def topic_ids(self) -> Mapping[str, Uuid]:
        """Return the ids of the topics. Raises ShareSourceError for one that is missing."""
        brokers = Brokers(self._options.access)
        try:
            return self._ask_metadata(brokers)
        except WireError as error:
            raise ShareSourceError(str(error)) from error
        finally:
            brokers.close()

    def leave(self) -> None:
        """Release what is held and leave the group, as far as brokers answer in time."""
        self._is_stopping = True
        self._wake.set()
        if self.is_alive():
            self.join(LEAVE_S)

    def run(self) -> None:
        """Send heartbeats until the source stops."""
        try:
            heard_s = time.monotonic()
            while not self._is_stopping:
                try:
                    pause_s = self._turn()
                    heard_s = time.monotonic()
                except WireError as error:
                    _telemetry.info("share group %s: %s", self._options.group, error)
                    if time.monotonic() - heard_s > UNREACHABLE_S:
                        raise ShareSourceError(
                            f"share group {self._options.group}: {error}"
                        ) from error
                    self._forget_coordinator()
                    pause_s = RETRY_S
                self._wake.wait(pause_s)
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - the query is told
            self._books.fail(error)
        self._end()

    def _turn(self) -> float:
        """Send the heartbeats that are due. Returns how long to wait for the next."""
        for member in self._members:
            if self._is_stopping:
                return 0.0
            if time.monotonic() >= member.due_s:
                self._beat(member)
        if self._is_moved:
            self._is_moved = False
            self._leaders.clear()
            for member in self._members:
                self._place(member)
        if self._is_moved:  # a partition has no leader yet
            return RETRY_S
        return max(min(member.due_s for member in self._members) - time.monotonic(), 0.01)

    def _beat(self, member: _Member) -> None:
        response = self._heartbeat(member, member.epoch)
        code = ErrorCode.of(response.error_code)
        if code in _MOVED:
            raise WireError(f"the coordinator says {code.name}")
        if code in _FENCED:
            _telemetry.warning("a member of group %s joins again: %s", self._options.group, code)
            member.epoch = JOINING
            member.assigned = frozenset()
            self._place(member)
            return
        if code is not ErrorCode.NONE:
            raise ShareSourceError(
                f"share group {self._options.group}: {code.name} {response.error_message or ''}"
            )
        member.epoch = response.member_epoch
        if response.assignment is not None:
            assigned = frozenset(
                Partition(topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
            if assigned != member.assigned:
                member.assigned = assigned
                self._place(member)
        interval_s = response.heartbeat_interval_ms / 1000
        if not member.assigned:
            interval_s = min(interval_s, JOINING_S)
        member.due_s = time.monotonic() + interval_s

    def _heartbeat(self, member: _Member, epoch: int) -> Any:
        if self._coordinator is None:
            self._coordinator = self._find_coordinator()
        return self._coordinator.call(
            SHARE_GROUP_HEARTBEAT,
            ShareGroupHeartbeatRequest(
                group_id=self._options.group,
                member_id=member.id,
                member_epoch=epoch,
                subscribed_topic_names=list(self._topics) if epoch == JOINING else None,
            ),
        )

    def _find_coordinator(self) -> Connection:
        code, address = self._brokers.coordinator(self._options.group, GROUP_KEY)
        if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise ShareSourceError(f"share group {self._options.group}: {code.name}")
        if code is not ErrorCode.NONE:
            raise WireError(f"no coordinator of group {self._options.group}: {code.name}")
        return Connection(self._options.access, *address)

    def _forget_coordinator(self) -> None:
        self._brokers.close()
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None

    def _place(self, member: _Member) -> None:
        """Give a member's partitions to its sessions with their leaders."""
        if member.assigned - self._leaders.keys():
            self._ask_metadata(self._brokers)
        wanted: dict[tuple[str, int], set[Partition]] = {}
        for partition in member.assigned:
            leader = self._leaders.get(partition)
            if leader is None:
                self._is_moved = True  # looked up again soon
            else:
                wanted.setdefault(leader, set()).add(partition)
        for address in [a for a in member.sessions if a not in wanted]:
            member.sessions.pop(address).stop()
        for address, partitions in wanted.items():
            if address not in member.sessions or not member.sessions[address].is_alive():
                session = Session(self._options, member.id, address, self._books, self._moved)
                member.sessions[address] = session
                session.want(frozenset(partitions))
                session.start()
            else:
                member.sessions[address].want(frozenset(partitions))

    def _moved(self) -> None:
        self._is_moved = True
        self._wake.set()

    def _ask_metadata(self, brokers: Brokers) -> Mapping[str, Uuid]:
        wanted = [MetadataRequestTopic(name=name) for name in self._topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: Any = brokers.any().call(METADATA, request)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        ids: dict[str, Uuid] = {}
        for topic in answer.topics:
            code = ErrorCode.of(topic.error_code)
            if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                raise ShareSourceError(f"topic {topic.name}: {code.name}")
            if code is not ErrorCode.NONE:
                raise WireError(f"topic {topic.name}: {code.name}")
            ids[topic.name] = topic.topic_id
            for entry in topic.partitions:
                if entry.leader_id in addresses:
                    partition = Partition(topic.topic_id, entry.partition_index)
                    self._leaders[partition] = addresses[entry.leader_id]
        return ids

    def _end(self) -> None:
        sessions = [session for member in self._members for session in member.sessions.values()]
        for session in sessions:
            session.stop()
        for session in sessions:
            session.join(1.0)
        try:
            for member in self._members:
                if member.epoch > 0:
                    self._heartbeat(member, LEAVING)
        except (WireError, ShareSourceError, AccessError) as error:
            _telemetry.info("did not leave group %s: %s", self._options.group, error)
        self._forget_coordinator()
