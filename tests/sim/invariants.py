"""Invariants inside the nodes, checked every few virtual milliseconds.

Of the quorum: one leader in an epoch, epochs that never go back, not even over a crash, and the
same committed batches at the same offsets everywhere. Of partitions: one leader in a leader
epoch, one state in a partition epoch, a high watermark that a leader never lowers and that never
passes its log's end, and the same batches below it on every replica.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from barnabas.app.node import Node
from barnabas.base.disk import FileRange
from barnabas.base.ids import TopicPartition
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.protocol.records.batch import CorruptBatchError, iterate_headers
from sim.machine import Machine
from sim.sim_history import History

SAMPLE_EVERY_S = 0.1
READ_BYTES_MAX = 1 << 20
METADATA = TopicPartition("__cluster_metadata", 0)

BatchMark = tuple[int, int, int]
"""(next offset, leader epoch, CRC)"""


@dataclass(slots=True)
class Committed:
    """The batches of one log that were below the high watermark of some replica."""

    batches: dict[int, tuple[BatchMark, str]] = field(default_factory=dict)
    """Base offset → the batch and who showed it first."""


class Watch:
    """Looks into every node that serves, and complains of what it sees."""

    def __init__(self, machines: list[Machine], history: History, *, is_durable: bool) -> None:
        self._machines = machines
        self._history = history
        self._is_durable = is_durable
        self._quorum_leaders: dict[int, int] = {}
        self._quorum_epochs: dict[tuple[int, int], int] = {}
        """By node and disk."""
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._states: dict[tuple[Any, int, int], tuple[Any, str]] = {}
        self._high_watermarks: dict[tuple[TopicPartition, int, int], int] = {}
        self._committed: dict[TopicPartition, Committed] = {}
        self._compared: dict[tuple[str, int, TopicPartition], int] = {}
        self._complaints: set[str] = set()
        self.distrusted: set[str] = set()
        """Machines whose files were damaged on purpose."""
        self.sample_count = 0

    def _complain(self, name: str, key: str, text: str) -> None:
        if key not in self._complaints:
            self._complaints.add(key)
            self._history.saw(name, f"{self._now()}: {text}")

    def _now(self) -> str:
        return f"{self._machines[0].loop.time():.3f} s"

    def sample(self) -> None:
        """Look at everything once."""
        self.sample_count += 1
        for machine in self._machines:
            node = machine.node
            if node is None or machine.is_paused or machine.disk.fault is not None:
                continue
            if node.metadata.raft.is_recovered:
                self._look_at_quorum(machine, node.metadata.raft)
            if machine.is_serving:
                self._look_at_image(machine, node)
                for partition in machine.replicas or ():
                    self._look_at_partition(machine, partition)

    # The quorum

    def _look_at_quorum(self, machine: Machine, raft: Any) -> None:
        epoch, leader = raft.epoch, raft.leader_id
        node = (machine.node_id, machine.disk_number)
        highest = self._quorum_epochs.get(node, 0)
        if epoch < highest:
            self._complain(
                "epoch-went-back",
                f"epoch {machine} {epoch} {highest}",
                f"{machine.process} is in quorum epoch {epoch} after {highest}",
            )
        self._quorum_epochs[node] = max(highest, epoch)
        if leader >= 0:
            known = self._quorum_leaders.setdefault(epoch, leader)
            if known != leader:
                self._complain(
                    "two-quorum-leaders",
                    f"quorum {epoch}",
                    f"{machine.process} takes {leader} for the leader of quorum epoch {epoch}, "
                    f"which {known} was",
                )
        if raft.high_watermark > raft.log_end_offset:
            self._complain(
                "high-watermark-past-end", f"raft {machine}", f"{machine.process}: metadata"
            )
        if machine.is_serving:
            self._compare(machine, METADATA, raft._log.log, raft.high_watermark)

    # Partitions

    def _look_at_image(self, machine: Machine, node: Node) -> None:
        for topic in node.metadata.image.topics.by_name.values():
            for index, state in topic.partitions.items():
                key = (topic.id, index, state.partition_epoch)
                shown = (state.replicas, state.isr, state.leader, state.leader_epoch)
                known, who = self._states.setdefault(key, (shown, str(machine)))
                if known != shown:
                    self._complain(
                        "two-partition-states",
                        f"state {key}",
                        f"{topic.name}-{index} partition epoch {state.partition_epoch}: {known} "
                        f"on {who}, {shown} on {machine}",
                    )

    def _look_at_partition(self, machine: Machine, partition: Any) -> None:
        name: TopicPartition = partition.topic_partition
        log: PartitionLog = partition.log
        if log.is_offline:
            return
        high_watermark = partition.high_watermark
        if high_watermark > log.log_end_offset:
            self._complain(
                "high-watermark-past-end",
                f"hw {machine} {name}",
                f"{name} on {machine.process}: {high_watermark} > {log.log_end_offset}",
            )
        if partition.is_leader:
            epoch = partition.leader_epoch
            known = self._leaders.setdefault((name, epoch), machine.node_id)
            if known != machine.node_id:
                self._complain(
                    "two-leaders",
                    f"leader {name} {epoch}",
                    f"{name}: {machine.node_id} leads in epoch {epoch}, in which {known} did",
                )
            key = (name, epoch, machine.node_id)
            before = self._high_watermarks.get(key, 0)
            if high_watermark < before and self._is_durable:
                self._complain(
                    "high-watermark-went-back",
                    f"back {key}",
                    f"{name} epoch {epoch} on {machine.process}: {high_watermark} after {before}",
                )
            self._high_watermarks[key] = max(before, high_watermark)
        self._compare(machine, name, log, high_watermark)

    # Log matching

    def _compare(
        self, machine: Machine, name: TopicPartition, log: PartitionLog, high_watermark: int
    ) -> None:
        """Compare what came below the high watermark since the last look with what others had."""
        if not self._is_durable or machine.name in self.distrusted or log.is_offline:
            return
        assert machine.process is not None
        key = (machine.name, machine.process.number, name)
        start = max(self._compared.get(key, 0), log.log_start_offset)
        if high_watermark <= start:
            return
        committed = self._committed.setdefault(name, Committed())
        end = start
        for base_offset, mark in _batches(log, start, high_watermark):
            known = committed.batches.setdefault(base_offset, (mark, str(machine.process)))
            if known[0] != mark:
                self._complain(
                    "logs-differ",
                    f"differ {name}",
                    f"{name} at {base_offset}: (end, epoch, crc) {known[0]} on {known[1]}, "
                    f"{mark} on {machine.process}; high watermark {high_watermark}",
                )
            end = mark[0]
        self._compared[key] = end

    def look_at_all_again(self) -> None:
        """Forget what was compared, so that the next look compares everything."""
        self._compared.clear()


def _batches(log: PartitionLog, start: int, end: int) -> Iterator[tuple[int, BatchMark]]:
    """(base offset, mark) of every batch from `start` on that ends by `end`."""
    while start < end:
        try:
            result = log.read(start, READ_BYTES_MAX, max_offset=end, min_one_batch=True)
        except LogDirFailure:
            return
        data = b"".join(
            part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
        )
        before = start
        try:
            for _, header in iterate_headers(data, allow_partial_tail=True):
                if header.next_offset > end:
                    return
                if header.base_offset >= start:
                    yield (
                        header.base_offset,
                        (header.next_offset, header.partition_leader_epoch, header.crc),
                    )
                start = max(start, header.next_offset)
        except CorruptBatchError:
            return
        if start == before:
            return
