"""The connector and the task that translate the offsets of consumer groups.

The task makes checkpoints of offset syncs and the source's groups. Only what moved on is noted: a
checkpoint whose target offset is not above the last one would take records back. The checkpoints of
earlier runs are read first. Source: MirrorCheckpointConnector, MirrorCheckpointTask and
CheckpointStore (Kafka 4.3).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.connect.config.definition import Definition
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Figure,
    Settings,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.base import TopicPartition as Place
from barnabas.connect.connectors.mirror import settings
from barnabas.connect.connectors.mirror.cluster import GroupOffsets, cluster_of, patience
from barnabas.connect.connectors.mirror.connector import MirrorConnector, Schedule
from barnabas.connect.connectors.mirror.figures import CheckpointFigures
from barnabas.connect.connectors.mirror.flow import Flow, client_errors
from barnabas.connect.connectors.mirror.records import Checkpoint, OffsetSync, record_of
from barnabas.connect.connectors.mirror.syncs import OffsetTranslation
from barnabas.connect.record import SourceRecord
from barnabas.connect.tasks.kafka_errors import as_connect_error, is_passing
from barnabas.connect.tasks.kafka_ranges import take
from barnabas.schemas.data.errors import ConnectError, DataError, RetriableError

# Reads a topic of one partition from its beginning, again and again up to its end.

_CHUNK: Final = 1000
_POLL_SECONDS: Final = 0.2


class MirrorCheckpoint(MirrorConnector):
    """Notes where a group would be in the target, and commits it there if so configured."""

    definition: ClassVar[Definition] = settings.CHECKPOINT
    partition_texts = ("group", "topic")
    _groups: frozenset[str] = frozenset()

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong beyond single settings."""
        if settings.get("enabled", "true") == "false":
            return {}
        errors = client_errors(settings)
        checkpoints, syncs = "emit.checkpoints.enabled", "emit.offset-syncs.enabled"
        if settings.get(checkpoints) == "false":
            errors[checkpoints] = [
                f"MirrorCheckpointConnector can't run with {checkpoints} set to false"
            ]
        if settings.get(syncs) == "false":
            errors[syncs] = ["MirrorCheckpointConnector can't run without offset syncs"]
        return errors

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Create the topic of checkpoints, and watch the source's groups."""
        flow = self._flow = Flow.read(settings, self.definition)
        if not flow.is_enabled:
            return
        source = cluster_of(flow, "source", "checkpoint-source-admin")
        target = cluster_of(flow, "target", "checkpoint-target-admin")
        self._clusters = (source, target)
        is_wanted = flow.plugin("group.filter.class").should_replicate_group

        def look() -> bool:
            groups = frozenset(group for group in source.groups() if is_wanted(group))
            is_changed, self._groups = groups != self._groups, groups
            return is_changed

        def refresh() -> None:
            if look():
                context.request_task_reconfiguration()

        def load() -> None:
            look()

        schedule = self._schedule = Schedule(f"{flow.source}->{flow.target}-checkpoints")
        replicas = int(flow.values["checkpoints.topic.replication.factor"])
        schedule.once(
            lambda: target.create_compacted(flow.checkpoints_topic, replicas),
            "creating the topic of checkpoints",
        )
        schedule.once(load, "loading groups", later=refresh)
        schedule.repeat(refresh, flow.interval_s("refresh.groups"), "refreshing groups")
        schedule.start()

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Deal out the groups."""
        flow = self._flow
        if flow is None or not flow.is_enabled or flow.interval_s("emit.checkpoints") is None:
            return []
        return self._dealt(flow, tasks_max, ASSIGNED, sorted(self._groups))

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what translates the offsets of a task's groups."""
        return CheckpointReader(context, Flow.read(context.settings, self.definition))


class LogReader:
    """Goes on where it was."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._next = 0
        self._patience = patience(math.inf)
        more = {
            "fetch.wait.max.ms": 100,
            **settings,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
        self._consumer = Consumer(more)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def read_to_end(self, timeout_s: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield keys and values up to the end as it is now. Raises RetriableError, ConnectError.

        A try is short, as the leader may be dead: try again. It goes on as long as records come.
        """
        patience_s = min(self._patience.next(), timeout_s)
        try:
            _, end = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, 0), patience_s, cached=False
            )
        except KafkaException as error:
            raise as_connect_error(f"cannot read {self._topic}", error) from error
        deadline = time.monotonic() + timeout_s
        came_s = time.monotonic()
        while self._next < end:
            begun = self._next
            for message in take(self._consumer, _CHUNK, _POLL_SECONDS):
                failure = message.error()
                offset = message.offset() or 0
                if failure is None:
                    self._next = offset + 1
                    yield message.key() or b"", message.value()
                elif failure.code() == KafkaError._PARTITION_EOF:
                    self._next = max(self._next, offset)
                elif not is_passing(failure):
                    raise as_connect_error(f"cannot read {self._topic}", KafkaException(failure))
            now_s = time.monotonic()
            if self._next > begun:
                came_s = now_s
            if now_s > min(deadline, came_s + patience_s):
                raise RetriableError(f"{self._topic} does not answer")
        self._patience.reset()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


ASSIGNED: Final = "task.assigned.groups"
_WAIT_SECONDS: Final = 0.1
_log = logging.getLogger(__name__)


class CheckpointReader(SourceReader):
    """Works on the driver alone: a split is a list of checkpoints."""

    def __init__(self, context: TaskContext, flow: Flow) -> None:
        self._flow = flow
        self._groups = [one for one in context.settings.get(ASSIGNED, "").split(",") if one]
        self._topic = flow.checkpoints_topic
        self._due_s = 0.0
        self._round = 0
        self._found: list[Checkpoint] = []
        self._found_ms = 0
        self._driver: _Driver | None = None
        self._figures: CheckpointFigures | None = CheckpointFigures(flow.source, flow.target)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None, "_figures": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the start of a count that is not stored; reads what earlier runs have noted."""
        if self._driver is None:
            self._driver = _Driver(self._flow, self._groups)
        self._driver.load()
        self._due_s = time.monotonic() + (self._flow.interval_s("emit.checkpoints") or 0.0)
        return {"round": self._round}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the count, one more when there are checkpoints to write."""
        driver = self._driver
        assert driver is not None
        driver.sync_groups()
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, _WAIT_SECONDS))
        if time.monotonic() >= self._due_s and not self._found:
            self._due_s = time.monotonic() + (self._flow.interval_s("emit.checkpoints") or 0.0)
            self._found = driver.checkpoints()
            if self._found:
                self._round += 1
        return {"round": self._round}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return the checkpoints, with the time."""
        self._found_ms = time.time_ns() // 1_000_000
        return [(self._found_ms, list(self._found))]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the checkpoints' records."""
        now_ms, checkpoints = partition
        for one in checkpoints:
            where = {"group": one.group, "partition": one.place[1], "topic": one.place[0]}
            yield record_of(one, self._topic, where, now_ms)

    def commit(self, end: dict[str, Any]) -> None:
        """They are written: group offsets may follow them."""
        assert self._driver is not None
        assert self._figures is not None
        self._driver.noted(self._found)
        latency_ms = time.time_ns() // 1_000_000 - self._found_ms
        for one in self._found:
            self._figures.written(one, latency_ms)
        self._found = []

    def figures(self) -> Sequence[Figure]:
        """Return MirrorMaker's metrics of groups."""
        return () if self._figures is None else self._figures.seen()

    def stop(self) -> None:
        """Close the connections."""
        if self._driver is not None:
            self._driver.stop()


class _Driver:
    """A reader's open resources and positions."""

    def __init__(self, flow: Flow, groups: Sequence[str]) -> None:
        self._flow = flow
        self._groups = groups
        self._policy = flow.policy()
        self._is_mirrored = flow.plugin("topic.filter.class").should_replicate_topic
        self._source = cluster_of(flow, "source", "checkpoint-source-admin")
        self._here = GroupOffsets(
            flow.source, flow.consumer("source", "checkpoint-groups"), flow.timeout_s
        )
        self._there = GroupOffsets(
            flow.target, flow.consumer("target", "checkpoint-groups"), flow.timeout_s
        )
        self._interval_s = flow.interval_s("sync.group.offsets")
        self._sync_due_s = time.monotonic() + (self._interval_s or 0.0)
        self._noted: dict[str, dict[Place, Checkpoint]] = {}
        self._translation: OffsetTranslation | None = None
        self._load_until_s = time.monotonic() + flow.timeout_s
        side = flow.syncs_side
        self._syncs = LogReader(
            flow.consumer(side, f"offset-syncs-{side}-consumer"), flow.syncs_topic
        )

    def load(self) -> None:
        """Read what earlier runs have noted. Raises RetriableError, ConnectError; goes on then."""
        if self._translation is None:
            self._translation = OffsetTranslation(only_last=not self._read_checkpoints())
        self._read_syncs()

    def stop(self) -> None:
        self._syncs.close()
        self._source.close()

    def _read_checkpoints(self) -> bool:
        """Return whether they could be read.

        Raises RetriableError while time is left to try again.
        """
        own = self._flow.consumer("target", "checkpoints-target-consumer")
        reader = LogReader(own, self._flow.checkpoints_topic)
        try:
            for key, value in reader.read_to_end(self._flow.timeout_s):
                if value is None:
                    continue
                try:
                    checkpoint = Checkpoint.read(key, value)
                except DataError as error:
                    _log.warning("skipped in %s: %s", self._flow.checkpoints_topic, error)
                    continue
                if checkpoint.group in self._groups:
                    self._noted.setdefault(checkpoint.group, {})[checkpoint.place] = checkpoint
        except ConnectError as error:
            self._noted.clear()
            if isinstance(error, RetriableError) and time.monotonic() < self._load_until_s:
                raise
            _log.warning("cannot read earlier checkpoints, continuing without them: %s", error)
            return False
        finally:
            reader.close()
        return True

    def _read_syncs(self) -> None:
        translation = self._known()
        for key, value in self._syncs.read_to_end(self._flow.timeout_s):
            if value is None:
                continue
            try:
                translation.add(OffsetSync.read(key, value))
            except DataError as error:
                _log.warning("skipped in %s: %s", self._flow.syncs_topic, error)
        translation.is_whole = True

    def _known(self) -> OffsetTranslation:
        assert self._translation is not None
        return self._translation

    def checkpoints(self) -> list[Checkpoint]:
        """Return what the groups' offsets are now, where that is news."""
        self._read_syncs()
        places = [
            (topic, number)
            for topic, count in self._source.partitions().items()
            if self._is_mirrored(topic)
            for number in range(count)
        ]
        checkpoints: list[Checkpoint] = []
        for group in self._groups:
            try:
                offsets = self._here.read(group, places)
            except ConnectError as error:
                _log.warning("%s", error)
                continue
            checkpoints += self._news(group, offsets)
        return checkpoints

    def _news(self, group: str, offsets: Mapping[Place, tuple[int, str]]) -> Iterator[Checkpoint]:
        noted = self._noted.get(group, {})
        for place, (upstream, metadata) in offsets.items():
            downstream = self._known().translate(place, upstream)
            if downstream is None or downstream < 0:
                continue
            remote = self._remote(place[0]), place[1]
            last = noted.get(remote)
            if last is None or upstream < last.upstream or downstream > last.downstream:
                yield Checkpoint(group, remote, upstream, downstream, metadata)

    def _remote(self, topic: str) -> str:
        if self._policy.topic_source(topic) == self._flow.target:
            return self._policy.original_topic(topic)
        return self._policy.format_remote_topic(self._flow.source, topic)

    def noted(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Checkpoints are written."""
        for one in checkpoints:
            self._noted.setdefault(one.group, {})[one.place] = one

    def sync_groups(self) -> None:
        """Commit in the target what is behind there, when it is time.

        A coordinator refuses it for a group that has members there; this is logged.
        """
        if self._interval_s is None or time.monotonic() < self._sync_due_s:
            return
        self._sync_due_s = time.monotonic() + self._interval_s
        for group, checkpoints in self._noted.items():
            try:
                there = self._there.read(group, list(checkpoints))
                behind = {
                    place: (one.downstream, one.metadata)
                    for place, one in checkpoints.items()
                    if one.downstream > there.get(place, (-1, ""))[0]
                }
                if behind:
                    self._there.write(group, behind)
            except ConnectError as error:
                _log.warning("%s", error)
