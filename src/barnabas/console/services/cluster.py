"""A cluster as the console shows it: nodes, the quorum, topics and what needs attention."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.console.services.asking import (
    AbsentError,
    AwayError,
    ClusterAccess,
    Kept,
    RefusedError,
    check,
)
from barnabas.console.services.watching import FIRST_S, WhileWatched
from barnabas.protocol.apis import (
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    LIST_OFFSETS,
    METADATA,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest
from barnabas.protocol.messages.partitions import DescribeLogDirsRequest
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from barnabas.protocol.well_known import CLUSTER_METADATA

VIEW_KEPT_S: Final = 2.0
SIZES_KEPT_S: Final = 5.0
ENDS_KEPT_S: Final = 2.0
STALE_S: Final = 3.0
"""How much older an answer may be while a new one is on its way: pages do not wait for it."""
RATES_EVERY_S: Final = 5.0
RATES_KEPT_MAX: Final = 120
DISK_FULL: Final = 0.9
"""A disk that is fuller than this needs attention."""
LATEST: Final = -1
EARLIEST: Final = -2

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A broker."""

    id: int
    host: str
    port: int
    rack: str | None
    is_up: bool = True


@dataclass(slots=True)  # not frozen: a large cluster has tens of thousands, made every few seconds
class Partition:
    """A partition: the ids of nodes."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()

    @property
    def is_offline(self) -> bool:
        """True if it has no leader."""
        return self.leader < 0

    @property
    def is_under_replicated(self) -> bool:
        """True if a replica is behind or down."""
        return len(self.isr) < len(self.replicas)


@dataclass(slots=True)
class Topic:
    """A topic with its partitions by number, and what many pages count of them."""

    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    replication: int = field(init=False)
    """The number of replicas of its partitions."""
    under_replicated: int = field(init=False)
    """The number of partitions with a replica that is behind or down."""
    offline: int = field(init=False)
    """The number of partitions without a leader."""

    def __post_init__(self) -> None:
        self.replication = max((len(one.replicas) for one in self.partitions), default=0)
        self.under_replicated = sum(one.is_under_replicated for one in self.partitions)
        self.offline = sum(one.is_offline for one in self.partitions)


@dataclass(frozen=True, slots=True)
class View:
    """A cluster at one moment."""

    cluster_id: str
    controller: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]

    @property
    def up(self) -> list[int]:
        """The nodes that serve."""
        return [node.id for node in self.nodes.values() if node.is_up]

    def topic(self, name: str) -> Topic:
        """The topic. Raises AbsentError."""
        found = self.topics.get(name)
        if found is None:
            raise AbsentError(f"there is no topic {name}")
        return found

    def leaders(self, topics: Iterable[str]) -> dict[int, list[Place]]:
        """The partitions of topics that each live node leads."""
        found: dict[int, list[Place]] = {}
        for name in topics:
            for one in self.topics[name].partitions:
                if one.leader in self.nodes and self.nodes[one.leader].is_up:
                    found.setdefault(one.leader, []).append((name, one.number))
        return found


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory of a node; -1 where sizes are not known."""

    node: int
    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int
    used_bytes: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of what nodes store."""

    directories: tuple[LogDir, ...]
    topics: Mapping[str, int]
    """Bytes of a topic, all replicas together."""
    partitions: Mapping[Place, int]
    """Bytes of a partition's largest replica."""
    missing: Mapping[int, str]
    """Why a node did not answer."""


@dataclass(frozen=True, slots=True)
class Voter:
    """A replica of the metadata log."""

    id: int
    is_voter: bool
    is_leader: bool
    log_end_offset: int
    lag: int
    fetch_age_ms: int | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum."""

    leader: int
    epoch: int
    high_watermark: int
    replicas: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """The end offsets of all partitions that have a leader, at one moment."""

    at_s: float
    """A monotonic time."""
    offsets: Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that needs attention, with what to do about it."""

    severity: str
    """`bad` or `warning`."""
    title: str
    detail: str
    advice: str
    link: str = ""


@dataclass(slots=True)
class Rates:
    """Records per second that were written, measured by end offsets."""

    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=RATES_KEPT_MAX))
    total: deque[float] = field(default_factory=lambda: deque(maxlen=RATES_KEPT_MAX))
    topics: dict[str, float] = field(default_factory=dict)


class ClusterService:
    """One cluster. Methods block, are for any thread, and raise AwayError and RefusedError."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access
        self._view = Kept(self._ask_view, VIEW_KEPT_S, stale_s=STALE_S)
        self._sizes = Kept(self._ask_sizes, SIZES_KEPT_S, stale_s=STALE_S)
        self._quorum = Kept(self._ask_quorum, VIEW_KEPT_S, stale_s=STALE_S)
        self._ends = Kept(self._ask_ends, ENDS_KEPT_S)
        self._sampler = Sampler(self.ends)

    def view(self) -> View:
        """The cluster now, at most two seconds old; five while it is asked again."""
        return self._view.get()

    def topic(self, name: str) -> Topic:
        """A topic; one that is not known is asked for again. Raises AbsentError."""
        return self._view_with([name]).topic(name)

    def _view_with(self, names: Iterable[str]) -> View:
        """The cluster, asked again if a topic is not known: it may be new."""
        view = self.view()
        if any(name not in view.topics for name in names):
            self._view.forget()
            view = self.view()
        return view

    def sizes(self) -> Sizes:
        """Return what nodes store."""
        return self._sizes.get()

    def quorum(self) -> Quorum:
        """The metadata quorum."""
        return self._quorum.get()

    def ends(self) -> Ends:
        """The end offsets of the whole cluster, at most two seconds old."""
        return self._ends.get()

    def rates(self) -> Rates:
        """Records per second; measured from now on while somebody asks."""
        return self._sampler.watch()

    def forget(self) -> None:
        """Something was changed: ask again."""
        self._view.forget()
        self._sizes.forget()

    def close(self) -> None:
        """Stop measuring, and close the connections."""
        self._sampler.close()
        self.access.close()

    def _ask_view(self) -> View:
        answer: Any = self.access.any(METADATA, MetadataRequest(topics=None))
        nodes = {
            one.node_id: Node(one.node_id, one.host, one.port, one.rack) for one in answer.brokers
        }
        topics = {}
        for topic in answer.topics:
            parts = [
                Partition(
                    one.partition_index,
                    one.leader_id,
                    tuple(one.replica_nodes),
                    tuple(one.isr_nodes),
                    tuple(one.offline_replicas),
                )
                for one in topic.partitions
            ]
            parts.sort(key=lambda one: one.number)
            topics[topic.name] = Topic(topic.name, topic.is_internal, tuple(parts))
        for node in self._fenced():
            nodes.setdefault(node.id, node)
        for found in topics.values():
            for part in found.partitions:
                for number in part.replicas:
                    if number not in nodes:
                        nodes[number] = Node(number, "", -1, None, is_up=False)
        return View(
            str(answer.cluster_id or ""),
            answer.controller_id,
            dict(sorted(nodes.items())),
            dict(sorted(topics.items())),
        )

    def _fenced(self) -> list[Node]:
        """Nodes that are registered and down; older brokers do not list them."""
        request = DescribeClusterRequest(include_fenced_brokers=True)
        try:
            answer: Any = self.access.any(DESCRIBE_CLUSTER, request)
        except Exception:  # noqa: BLE001  older brokers do not know the question
            return []
        return [
            Node(one.broker_id, one.host, one.port, one.rack, is_up=False)
            for one in answer.brokers
            if one.is_fenced
        ]

    def offsets(
        self, topics: Iterable[str], timestamp: int = LATEST, *, is_committed: bool = False
    ) -> dict[Place, int]:
        """The offsets of a time (or `LATEST`, `EARLIEST`) of all partitions with a leader.

        -1 where no record is as late as a time. `is_committed`: as consumers with read_committed
        see them, for which the last stable offset is the latest.
        """
        wanted = list(topics)
        view = self._view_with(wanted)
        names = [name for name in wanted if name in view.topics]
        led = view.leaders(names)

        def ask(node: int) -> dict[Place, int]:
            return self._offsets_at(view.nodes[node], led[node], timestamp, is_committed)

        found: dict[Place, int] = {}
        failures = []
        for answer in self.access.each(ask, led).values():
            if isinstance(answer, Exception):
                failures.append(answer)
            else:
                found |= answer
        if failures and not found:
            raise failures[0]
        return found

    def _offsets_at(
        self, node: Node, places: Sequence[Place], timestamp: int, is_committed: bool
    ) -> dict[Place, int]:
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for name, number in places:
            part = ListOffsetsPartition(partition_index=number, timestamp=timestamp)
            by_topic.setdefault(name, []).append(part)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(is_committed),
            topics=[
                ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic.items()
            ],
        )
        answer: Any = self.access.at((node.host, node.port), LIST_OFFSETS, request)
        return {
            (topic.name, part.partition_index): part.offset
            for topic in answer.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE
        }

    def _ask_ends(self) -> Ends:
        at_s = time.monotonic()
        return Ends(at_s, self.offsets(self.view().topics))

    def _ask_sizes(self) -> Sizes:
        view = self.view()
        request = DescribeLogDirsRequest(topics=None)

        def ask(node: int) -> Any:
            at = view.nodes[node]
            return self.access.at((at.host, at.port), DESCRIBE_LOG_DIRS, request)

        directories, missing = [], {}
        topics: dict[str, int] = {}
        partitions: dict[Place, int] = {}
        for node_id, answer in self.access.each(ask, view.up).items():
            if isinstance(answer, Exception):
                missing[node_id] = str(answer)
                continue
            if answer.error_code != ErrorCode.NONE:
                missing[node_id] = ErrorCode.of(answer.error_code).message
                continue
            for result in answer.results:
                used = count = 0
                for topic in result.topics:
                    for part in topic.partitions:
                        size = part.partition_size
                        used += size
                        count += 1
                        topics[topic.name] = topics.get(topic.name, 0) + size
                        place = topic.name, part.partition_index
                        partitions[place] = max(partitions.get(place, 0), size)
                code = ErrorCode.of(result.error_code)
                directories.append(
                    LogDir(
                        node_id,
                        result.log_dir,
                        None if code == ErrorCode.NONE else code.message,
                        result.total_bytes,
                        result.usable_bytes,
                        used,
                        count,
                    )
                )
        return Sizes(tuple(directories), topics, partitions, missing)

    def _ask_quorum(self) -> Quorum:
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        topic = DescribeQuorumRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
        answer: Any = self.access.any(DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic]))
        check(answer.error_code, answer.error_message, "the quorum")
        found = answer.topics[0].partitions[0]
        check(found.error_code, found.error_message, "the quorum")
        states = [(one, True) for one in found.current_voters]
        states += [(one, False) for one in found.observers]
        leader = next((one for one, _ in states if one.replica_id == found.leader_id), None)
        now_ms = -1 if leader is None else leader.last_fetch_timestamp
        end = found.high_watermark if leader is None else leader.log_end_offset
        replicas = [
            Voter(
                one.replica_id,
                is_voter,
                one.replica_id == found.leader_id,
                one.log_end_offset,
                max(0, end - one.log_end_offset),
                max(0, now_ms - one.last_fetch_timestamp)
                if now_ms >= 0 and one.last_fetch_timestamp >= 0
                else None,
            )
            for one, is_voter in states
        ]
        return Quorum(found.leader_id, found.leader_epoch, found.high_watermark, tuple(replicas))

    def findings(self, allowed: Callable[[str], bool] = lambda _: True) -> list[Finding]:
        """Return what needs attention, the worst first. Topics are those that are `allowed`."""
        view = self.view()
        topics = [topic for topic in view.topics.values() if allowed(topic.name)]
        found = [*_findings_of_nodes(view), *_findings_of_partitions(topics)]
        try:
            found += _findings_of_disks(self.sizes())
        except (AwayError, RefusedError) as error:
            found.append(
                Finding("warning", "Sizes are not known", str(error), "Check the console's rights.")
            )
        return sorted(found, key=lambda one: one.severity != "bad")


class Sampler:
    """Measures how many records are written, while somebody watches."""

    def __init__(
        self,
        ends: Callable[[], Ends],
        every_s: float = RATES_EVERY_S,
    ) -> None:
        self._ends, self._every_s = ends, every_s
        self._rates = Rates()
        self._before: tuple[float, Mapping[str, int]] | None = None
        self._watching = WhileWatched(self._step, "console-rates", first_s=FIRST_S)

    def watch(self) -> Rates:
        """Return what was measured; goes on measuring for a minute."""
        self._watching.watch()
        return self._rates

    def close(self) -> None:
        """Stop."""
        self._watching.close()

    def measure(self) -> None:
        """Ask once. Raises AwayError, RefusedError."""
        found = self._ends()
        ends: dict[str, int] = {}
        for (name, _), offset in found.offsets.items():
            ends[name] = ends.get(name, 0) + offset
        if self._before is not None:
            then_s, before = self._before
            elapsed_s = max(found.at_s - then_s, 0.001)
            rates = {
                name: max(0, end - before.get(name, end)) / elapsed_s for name, end in ends.items()
            }
            self._rates.topics = rates
            self._rates.times_s.append(time.time())
            self._rates.total.append(sum(rates.values()))
        self._before = found.at_s, ends

    def _step(self, is_first: bool) -> float:
        if is_first:
            self._before = None
        try:
            self.measure()
        except (AwayError, RefusedError):
            self._before = None
        return self._every_s


def _findings_of_nodes(view: View) -> list[Finding]:
    down = [node for node in view.nodes.values() if not node.is_up]
    where = {node.id: f" (was at {node.host}:{node.port})" if node.host else "" for node in down}
    return [
        Finding(
            "bad",
            f"Node {node.id} is down",
            f"It does not serve clients{where[node.id]}.",
            "Start it again, or move its replicas to other nodes.",
            "#/nodes",
        )
        for node in down
    ]


def _findings_of_partitions(topics: Sequence[Topic]) -> list[Finding]:
    found = []
    offline = [topic for topic in topics if topic.offline]
    behind = [topic for topic in topics if topic.under_replicated]
    if offline:
        count = sum(topic.offline for topic in offline)
        found.append(
            Finding(
                "bad",
                f"{_counted(count, 'partition')} without a leader",
                f"Nobody can read or write them: {_names(offline)}.",
                "Bring back a node that has a replica in sync.",
                "#/topics?state=offline",
            )
        )
    if behind:
        count = sum(topic.under_replicated for topic in behind)
        found.append(
            Finding(
                "warning",
                f"{_counted(count, 'under-replicated partition')}",
                f"A replica is down or behind: {_names(behind)}.",
                "Look at nodes that are down, then at disks and network of those that are behind.",
                "#/topics?state=under-replicated",
            )
        )
    return found


def _findings_of_disks(sizes: Sizes) -> list[Finding]:
    found = []
    for one in sizes.directories:
        if one.error is not None:
            found.append(
                Finding(
                    "bad",
                    f"A log directory of node {one.node} failed",
                    f"{one.path}: {one.error}",
                    "Replace the disk, then restart the node.",
                    "#/nodes",
                )
            )
        elif one.total_bytes > 0 and one.usable_bytes < (1 - DISK_FULL) * one.total_bytes:
            share = 100 * (one.total_bytes - one.usable_bytes) / one.total_bytes
            found.append(
                Finding(
                    "bad" if share >= 95 else "warning",
                    f"A disk of node {one.node} is {share:.0f} % full",
                    f"{one.path} has {one.usable_bytes:,} bytes left.",
                    "Shorten the retention of large topics, or move replicas to other disks.",
                    "#/nodes",
                )
            )
    for node, why in sizes.missing.items():
        found.append(
            Finding(
                "warning",
                f"Node {node} does not say what it stores",
                why,
                "Check whether it answers, and the console's rights (Describe on the cluster).",
                "#/nodes",
            )
        )
    return found


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _names(topics: Sequence[Topic], shown_max: int = 5) -> str:
    names = ", ".join(topic.name for topic in topics[:shown_max])
    more = len(topics) - shown_max
    return f"{names} and {more} more" if more > 0 else names
