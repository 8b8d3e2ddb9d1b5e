"""Groups that are late: those with the most records still to read, and since when.

Lag in seconds is the age of the first record that a group has not read. One small fetch for each of
the most late partitions finds it, so that no exporter or history is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.services.asking import AwayError, Kept
from barnabas.console.services.cluster import ClusterService, Place
from barnabas.console.services.groups import GroupRow, GroupService
from barnabas.protocol.apis import FETCH, OFFSET_FETCH
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.records.batch import (
    DELETE_HORIZON_MASK,
    TIMESTAMP_TYPE_MASK,
    read_header,
)

KEPT_S: Final = 10.0
GROUPS_MAX: Final = 2_000
"""Groups that are looked at, by name; a cluster with more shows that some were left out."""
TOGETHER_MAX: Final = 100
"""Groups that one request asks for."""
LATE_MAX: Final = 50
"""Late groups that are kept, of which roles may hide some."""
DATED_MAX: Final = 5
"""Groups whose lag is known in seconds too: those with the most records to read."""
PLACES_MAX: Final = 8
"""Partitions of such a group that are looked at: those with the most records to read."""
_NAMED_MAX: Final = 9
"""The version of OffsetFetch up to which topics have names."""
_FETCH_MAX: Final = 12
"""The same for Fetch."""


@dataclass(frozen=True, slots=True)
class LateGroup:
    """A group with records still to read; `lag_s` is None where it was not asked for."""

    name: str
    state: str
    lag: int
    lag_s: float | None
    worst: str
    """The partition with the most records to read."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """Late groups, the latest first, and how many groups were not looked at."""

    groups: tuple[LateGroup, ...]
    left_out: int
    is_partial: bool
    """True if the groups lag in topics that are not counted."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """The lag of a group by partition, in records, and of some in seconds."""

    row: GroupRow
    lags: Mapping[Place, int]
    ages_s: Mapping[Place, float]


class LatenessService:
    """Late groups of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(
        self,
        cluster: ClusterService,
        groups: GroupService,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._cluster, self._groups, self._now_s = cluster, groups, now_s
        self._late = Kept(self._ask, KEPT_S)

    def late(
        self,
        groups: Callable[[str], bool] = lambda _: True,
        topics: Callable[[str], bool] = lambda _: True,
    ) -> Lateness:
        """The late groups, at most ten seconds old, of those that `groups` says.

        Only topics that `topics` says count.
        """
        counted, left_out = self._late.get()
        counted = [one for one in counted if groups(one.row.name)]
        lagging = {topic for one in counted for topic, _ in one.lags}
        seen = {topic for topic in lagging if topics(topic)}
        found = []
        for one in counted:
            lags = {place: lag for place, lag in one.lags.items() if place[0] in seen}
            if lags:
                topic, number = _largest(lags)[0]
                ages_s = [age_s for place, age_s in one.ages_s.items() if place in lags]
                row, total = one.row, sum(lags.values())
                lag_s = max(ages_s, default=None)
                found.append(LateGroup(row.name, row.state, total, lag_s, f"{topic}-{number}"))
        found.sort(key=lambda one: (-one.lag, one.name))
        return Lateness(tuple(found), left_out, is_partial=seen != lagging)

    def _ask(self) -> tuple[Sequence[_Counted], int]:
        rows = [row for row in self._groups.rows() if row.type in ("Classic", "Consumer")]
        chosen = rows[:GROUPS_MAX]
        committed = self._committed(chosen)
        topics = {topic for offsets in committed.values() for topic, _ in offsets}
        ends = self._cluster.offsets(topics)
        late: list[tuple[GroupRow, dict[Place, int], int]] = []
        for row in chosen:
            lags = {
                place: ends[place] - at
                for place, at in committed.get(row.name, {}).items()
                if ends.get(place, at) > at
            }
            if lags:
                late.append((row, lags, sum(lags.values())))
        late.sort(key=lambda one: (-one[2], one[0].name))
        late = late[:LATE_MAX]
        dated = self._seconds(
            {row.name: _largest(lags) for row, lags, _ in late[:DATED_MAX]}, committed
        )
        counted = [_Counted(row, lags, dated.get(row.name, {})) for row, lags, _ in late]
        return counted, len(rows) - len(chosen)

    def _committed(self, rows: Iterable[GroupRow]) -> dict[str, dict[Place, int]]:
        """Committed offsets by group; groups whose coordinator does not answer are left out."""
        by_node: dict[int, list[str]] = {}
        for row in rows:
            by_node.setdefault(row.coordinator, []).append(row.name)
        parts = [
            (node, tuple(names[start : start + TOGETHER_MAX]))
            for node, names in by_node.items()
            for start in range(0, len(names), TOGETHER_MAX)
        ]
        answers = self._cluster.access.each(self._committed_at, parts)
        found: dict[str, dict[Place, int]] = {}
        failures = []
        for answer in answers.values():
            if isinstance(answer, Exception):
                failures.append(answer)
            else:
                found |= answer
        if failures and len(failures) == len(answers):
            raise failures[0]
        return found

    def _committed_at(self, part: tuple[int, tuple[str, ...]]) -> dict[str, dict[Place, int]]:
        node, names = part
        at = self._cluster.view().nodes.get(node)
        if at is None or not at.is_up:
            raise AwayError(f"node {node} is down")
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        )
        answer: Any = self._cluster.access.at((at.host, at.port), OFFSET_FETCH, request, _NAMED_MAX)
        return {
            group.group_id: {
                (topic.name, one.partition_index): one.committed_offset
                for topic in group.topics
                for one in topic.partitions
                if one.committed_offset >= 0
            }
            for group in answer.groups
            if group.error_code == ErrorCode.NONE
        }

    def _seconds(
        self, places: Mapping[str, Sequence[Place]], committed: Mapping[str, Mapping[Place, int]]
    ) -> dict[str, dict[Place, float]]:
        """The lag in seconds of groups by partition, of those whose leaders answer."""
        wanted = {
            (place, committed[name][place]) for name, group in places.items() for place in group
        }
        answers = self._cluster.access.each(self._written_s, wanted)
        now_s = self._now_s()
        found: dict[str, dict[Place, float]] = {}
        for name, group in places.items():
            times = {place: answers[place, committed[name][place]] for place in group}
            found[name] = {
                place: max(0.0, now_s - one)
                for place, one in times.items()
                if isinstance(one, float)
            }
        return found

    def _written_s(self, one: tuple[Place, int]) -> float | None:
        """The time of the batch with the record at an offset, in seconds; None without one."""
        (topic, number), offset = one
        view = self._cluster.view()
        parts = [part for part in view.topic(topic).partitions if part.number == number]
        leader = view.nodes.get(parts[0].leader) if parts else None
        if leader is None or not leader.is_up:
            raise AwayError(f"{topic}-{number} has no leader")
        wanted = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        address = leader.host, leader.port
        answer: Any = self._cluster.access.at(address, FETCH, request, _FETCH_MAX)
        (found,) = answer.responses[0].partitions
        if found.error_code != ErrorCode.NONE or not found.records:
            return None
        try:
            header = read_header(found.records, header_only=True)
        except DecodeError:  # of a format before Kafka 0.11
            return None
        # The base timestamp is a producer's, or was replaced.
        is_replaced = header.attributes & (TIMESTAMP_TYPE_MASK | DELETE_HORIZON_MASK)
        time_ms = header.max_timestamp if is_replaced else header.base_timestamp
        return time_ms / 1000 if time_ms >= 0 else None


def _largest(lags: Mapping[Place, int]) -> list[Place]:
    """The partitions with the most records to read, the latest first."""
    return sorted(lags, key=lambda place: (-lags[place], place))[:PLACES_MAX]
