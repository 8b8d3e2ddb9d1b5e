"""Consumer groups: lists, members, lag, and resetting offsets with a preview."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.console.services.asking import (
    AbsentError,
    Kept,
    RefusedError,
    check,
)
from barnabas.console.services.cluster import EARLIEST, ClusterService, Place
from barnabas.console.services.topics import Asked, Slice
from barnabas.kafka.wire import GROUP_KEY
from barnabas.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
)
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.groups import (
    ConsumerProtocolAssignment,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

LIST_KEPT_S: Final = 3.0
LAGS_KEPT_MAX: Final = 120
_NAMED_MAX: Final = 9
"""Versions of OffsetFetch and OffsetCommit up to which topics have names."""
WATCHED_GROUPS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a list."""

    name: str
    state: str
    type: str
    protocol: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member with the partitions that it has."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Lag:
    """Where a group is in a partition; None for an end that is not known."""

    topic: str
    partition: int
    committed: int
    end: int | None
    lag: int | None
    member: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its members and its lag."""

    row: GroupRow
    members: tuple[Member, ...]
    lags: tuple[Lag, ...]
    total: int
    history: tuple[tuple[float, int], ...]
    """Times (seconds since 1970) and lags, since somebody looks."""
    is_partial: bool
    """True if it has topics that are not shown and not counted."""


@dataclass(frozen=True, slots=True)
class Move:
    """The effect of a reset on a partition."""

    topic: str
    partition: int
    before: int | None
    after: int

    @property
    def records(self) -> int:
        """Records that are read again (positive) or left out (negative)."""
        return 0 if self.before is None else self.before - self.after


class GroupService:
    """Groups of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster
        self._rows = Kept(self._ask_rows, LIST_KEPT_S)
        self._histories: dict[tuple[str, frozenset[str]], deque[tuple[float, int]]] = {}
        """By group, and by the topics that are not counted."""
        self._lock = threading.Lock()

    def find(
        self,
        asked: Asked,
        *,
        state: str = "",
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> Slice[GroupRow]:
        """Groups by their names, of those that `allowed` says."""
        found = [
            row
            for row in self._rows.get()
            if asked.fits(row.name)
            and (not state or row.state.lower() == state.lower())
            and allowed(row.name)
        ]
        return asked.of(found)

    def rows(self) -> Sequence[GroupRow]:
        """All groups by name, at most a few seconds old."""
        return self._rows.get()

    def _ask_rows(self) -> list[GroupRow]:
        view = self._cluster.view()

        def ask(node: int) -> Any:
            at = view.nodes[node]
            return self._cluster.access.at((at.host, at.port), LIST_GROUPS, ListGroupsRequest())

        rows = []
        failures = []
        answers = self._cluster.access.each(ask, view.up)
        for node, answer in answers.items():
            if isinstance(answer, Exception):
                failures.append(answer)
                continue
            if ErrorCode.of(answer.error_code) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                continue
            check(answer.error_code, what=f"the groups of node {node}")
            rows += [
                GroupRow(
                    one.group_id,
                    one.group_state,
                    (one.group_type or "classic").capitalize(),
                    one.protocol_type,
                    node,
                )
                for one in answer.groups
            ]
        if failures and len(failures) == len(answers):
            raise failures[0]
        return sorted(rows, key=lambda row: row.name)

    def of_topic(self, topic: str, groups_max: int = 200) -> list[tuple[GroupRow, int]]:
        """The groups that have committed offsets of a topic, each with its lag there."""
        ends = self._cluster.offsets([topic])
        rows = [row for row in self._rows.get() if row.type in ("Classic", "Consumer")]
        rows = rows[:groups_max]
        found = []
        answers = self._cluster.access.each(self._committed, [row.name for row in rows])
        for row in rows:
            answer = answers[row.name]
            if isinstance(answer, Exception):
                continue
            own = {place: offset for place, offset in answer.items() if place[0] == topic}
            if own:
                lag = sum(max(0, ends.get(place, at) - at) for place, at in own.items())
                found.append((row, lag))
        return found

    def one(self, name: str, allowed: Callable[[str], bool] = lambda _: True) -> Group:
        """A group with its topics that `allowed` says. Raises AbsentError."""
        row = next((row for row in self._rows.get() if row.name == name), None)
        if row is None:
            self._rows.forget()
            row = next((row for row in self._rows.get() if row.name == name), None)
        if row is None:
            raise AbsentError(f"there is no group {name}")
        members: Sequence[Member] = ()
        lags: list[Lag] = []
        hidden: frozenset[str] = frozenset()
        if row.type in ("Classic", "Consumer"):
            row, members = self._described(row)
            committed = self._committed(name)
            owned = [place for member in members for place in member.partitions]
            topics = {topic for topic, _ in (*committed, *owned)}
            hidden = frozenset(topic for topic in topics if not allowed(topic))
            members = [
                replace(one, partitions=tuple(_without(one.partitions, hidden))) for one in members
            ]
            lags = self._lags({at: committed[at] for at in _without(committed, hidden)}, members)
        total = sum(one.lag or 0 for one in lags)
        of = name, hidden
        with self._lock:
            if of not in self._histories and len(self._histories) >= WATCHED_GROUPS_MAX:
                self._histories.pop(next(iter(self._histories)))
            history = self._histories.setdefault(of, deque(maxlen=LAGS_KEPT_MAX))
            history.append((time.time(), total))
            seen = tuple(history)
        return Group(row, tuple(members), tuple(lags), total, seen, is_partial=bool(hidden))

    def _lags(self, committed: Mapping[Place, int], members: Iterable[Member]) -> list[Lag]:
        owners = {place: member.id for member in members for place in member.partitions}
        topics = {place[0] for place in (*committed, *owners)}
        ends = self._cluster.offsets(topics)
        begins = self._cluster.offsets(topics, EARLIEST) if owners.keys() - committed else {}
        found = []
        for place in sorted({*committed, *owners}):
            end = ends.get(place)
            at = committed.get(place, -1)
            begin = begins.get(place, end) if at < 0 else at
            lag = None if end is None or begin is None else max(0, end - begin)
            found.append(Lag(place[0], place[1], at, end, lag, owners.get(place)))
        return found

    def _described(self, row: GroupRow) -> tuple[GroupRow, list[Member]]:
        access = self._cluster.access
        address = access.coordinator(row.name, GROUP_KEY)
        if row.type == "Consumer":
            asked = ConsumerGroupDescribeRequest(group_ids=[row.name])
            answer: Any = access.at(address, CONSUMER_GROUP_DESCRIBE, asked)
        else:
            answer = access.at(address, DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[row.name]))
        (found,) = answer.groups
        check(found.error_code, found.error_message, row.name)
        if row.type == "Consumer":
            assignor = found.assignor_name
            own = [(one.instance_id, _places_of(one.assignment)) for one in found.members]
        else:
            assignor = found.protocol_data
            own = [
                (
                    one.group_instance_id,
                    _assigned(bytes(one.member_assignment)) if row.protocol == "consumer" else (),
                )
                for one in found.members
            ]
        members = [
            Member(one.member_id, instance_id, one.client_id, one.client_host, places)
            for one, (instance_id, places) in zip(found.members, own, strict=True)
        ]
        state = replace(row, state=found.group_state, protocol=assignor or row.protocol)
        return state, members

    def _committed(self, name: str) -> dict[Place, int]:
        access = self._cluster.access
        address = access.coordinator(name, GROUP_KEY)
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
        answer: Any = access.at(address, OFFSET_FETCH, request, _NAMED_MAX)
        (found,) = answer.groups
        check(found.error_code, what=name)
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in found.topics
            for part in topic.partitions
            if part.committed_offset >= 0
        }

    def plan(
        self,
        name: str,
        to: str,
        value: int = 0,
        topics: Sequence[str] = (),
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> list[Move]:
        """Return what a reset to `earliest`, `latest`, `time` (ms) or `offset` would move.

        `shift` adds `value` to each offset. Without `topics` it is all that the group has
        committed and `allowed` says.
        """
        committed = self._committed(name)
        wanted = set(topics) or {topic for topic, _ in committed if allowed(topic)}
        for topic in wanted:
            self._cluster.topic(topic)
        begins = self._cluster.offsets(wanted, EARLIEST)
        ends = self._cluster.offsets(wanted)
        at_time = self._cluster.offsets(wanted, value) if to == "time" else {}
        moves = []
        for place in sorted(ends):
            before = committed.get(place)
            begin, end = begins.get(place, 0), ends[place]
            if to == "earliest":
                after = begin
            elif to == "latest":
                after = end
            elif to == "offset":
                after = value
            elif to == "shift":
                after = (begin if before is None else before) + value
            elif to == "time":
                found = at_time.get(place, -1)
                after = end if found < 0 else found
            else:
                raise RefusedError(f"{to!r} is none of earliest, latest, offset, shift, time")
            moves.append(Move(place[0], place[1], before, min(max(after, begin), end)))
        return moves

    def reset(self, name: str, moves: Sequence[Move]) -> None:
        """Commit the offsets of a plan; the group must have no members."""
        group = self.one(name)
        if group.members:
            raise RefusedError(
                f"{name} has {len(group.members)} members; stop them before its offsets are reset"
            )
        access = self._cluster.access
        address = access.coordinator(name, GROUP_KEY)
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for move in moves:
            part = OffsetCommitRequestPartition(
                partition_index=move.partition,
                committed_offset=move.after,
                committed_metadata="",
            )
            topics.setdefault(move.topic, []).append(part)
        request = OffsetCommitRequest(
            group_id=name,
            topics=[
                OffsetCommitRequestTopic(name=topic, partitions=parts)
                for topic, parts in topics.items()
            ],
        )
        answer: Any = access.at(address, OFFSET_COMMIT, request, _NAMED_MAX)
        for topic in answer.topics:
            for part in topic.partitions:
                check(part.error_code, what=f"{topic.name}-{part.partition_index}")

    def delete(self, name: str) -> None:
        """Delete a group with its offsets; it must have no members."""
        access = self._cluster.access
        address = access.coordinator(name, GROUP_KEY)
        answer: Any = access.at(address, DELETE_GROUPS, DeleteGroupsRequest(groups_names=[name]))
        self._rows.forget()
        check(answer.results[0].error_code, what=name)


def _without(places: Iterable[Place], topics: Collection[str]) -> list[Place]:
    return [place for place in places if place[0] not in topics]


def _places_of(assignment: Any) -> tuple[Place, ...]:
    return tuple(
        (part.topic_name, number)
        for part in assignment.topic_partitions
        for number in part.partitions
    )


def _assigned(data: bytes) -> tuple[Place, ...]:
    """The partitions of a classic member's assignment; none where it is not one of consumers."""
    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big"), 3)
    try:
        found, _ = decode_at(ConsumerProtocolAssignment, version, data, 2)
    except DecodeError:
        return ()
    return tuple(
        (one.topic, number) for one in found.assigned_partitions for number in one.partitions
    )


def moved(moves: Iterable[Move]) -> Mapping[str, int]:
    """Records that are read again and left out, of a whole plan."""
    again = sum(max(0, one.records) for one in moves)
    skipped = sum(max(0, -one.records) for one in moves)
    return {"again": again, "skipped": skipped}
