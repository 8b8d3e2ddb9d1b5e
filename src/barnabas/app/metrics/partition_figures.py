"""Figures of a broker's partitions, collected in turns with its other work.

Each partition is looked at in one step: whole numbers go into columns, and what is counted for the
node into sums. A thread makes the text of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.replication.partition import Partition
from barnabas.protocol.records.batch import NO_TIMESTAMP
from barnabas.web.metrics import Exposition, labels_text

HOSTED: Final = tuple(
    f"kafka_log_log_{name}" for name in ("size", "numlogsegments", "logstartoffset", "logendoffset")
)
LED: Final = (
    "kafka_cluster_partition_underreplicated",
    "kafka_cluster_partition_insyncreplicascount",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_laststableoffsetlag",
    "kafka_cluster_partition_underminisr",
    "kafka_cluster_partition_atminisr",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_under_replicated_partition",
)


@dataclass(slots=True)
class PartitionTotals:
    """Sums over the partitions of a node."""

    partitions: int = 0
    led: int = 0
    offline: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    producers: int = 0
    late_transactions: int = 0
    produce_waits: int = 0
    delete_waits: int = 0
    fetch_waits: int = 0
    waiting_fetches: set[int] = field(default_factory=set)
    bytes_by_directory: dict[str, int] = field(default_factory=dict)


class PartitionColumns:
    """Whole numbers of partitions, a row each."""

    def __init__(self, late_ms: int, now_ms: int) -> None:
        """`late_ms`: a transaction that is open for longer is late."""
        self._late_ms = late_ms
        self._now_ms = now_ms
        self.hosted: list[TopicPartition] = []
        self.led: list[TopicPartition] = []
        self._hosted_rows: list[tuple[int, ...]] = []
        self._led_rows: list[tuple[int, ...]] = []
        self._open: list[tuple[TopicPartition, float]] = []
        self.totals = PartitionTotals()

    def look(self, partition: Partition) -> None:
        """Take one partition in."""
        log, totals = partition.log, self.totals
        totals.partitions += 1
        place = partition.topic_partition
        if log.is_offline:
            totals.offline += 1
            return
        by_directory, directory = totals.bytes_by_directory, log.log_dir
        size_bytes = log.size_bytes
        by_directory[directory] = by_directory.get(directory, 0) + size_bytes
        start, end = log.log_start_offset, log.log_end_offset
        self.hosted.append(place)
        self._hosted_rows.append((size_bytes, len(log.segments), start, end))
        totals.producers += len(log.producers.producers)
        if partition.read_waiters:
            totals.fetch_waits += len(partition.read_waiters)
            totals.waiting_fetches.update(map(id, partition.read_waiters))
        if partition.follower_waiters:
            totals.fetch_waits += len(partition.follower_waiters)
            totals.waiting_fetches.update(map(id, partition.follower_waiters))
        produce_waits, delete_waits = partition.waits
        totals.produce_waits += produce_waits
        totals.delete_waits += delete_waits
        if log.producers.ongoing:
            self._look_at_transactions(partition)
        if not partition.is_leader:
            return
        totals.led += 1
        in_sync, replicas, min_isr = (
            partition.isr_size,
            len(partition.replicas),
            partition.effective_min_isr,
        )
        is_under = in_sync < replicas
        is_under_min, is_at_min = in_sync < min_isr, in_sync == min_isr
        totals.under_replicated += is_under
        totals.under_min_isr += is_under_min
        totals.at_min_isr += is_at_min
        watermark = partition.high_watermark
        self.led.append(place)
        self._led_rows.append(
            (
                +is_under,
                in_sync,
                replicas,
                watermark - partition.last_stable_offset,
                +is_under_min,
                +is_at_min,
                watermark,
                start,
                partition.leader_id,
                +(bool(replicas) and partition.replicas[0] == partition.leader_id),
                replicas,
                in_sync,
                +is_under,
            )
        )

    def _look_at_transactions(self, partition: Partition) -> None:
        producers = partition.log.producers
        first = producers.producers.get(next(iter(producers.ongoing.values())))
        if first is None or first.last_timestamp == NO_TIMESTAMP:
            return
        open_ms = max(0, self._now_ms - first.last_timestamp)
        if open_ms > self._late_ms:
            self.totals.late_transactions += 1
        if partition.is_leader:
            self._open.append((partition.topic_partition, open_ms / 1000))

    def show(self, text: Exposition, labels: "PartitionLabels") -> None:
        """Add all columns. Needs nothing of the node, so a thread may do it."""
        for names, places, rows in (
            (HOSTED, self.hosted, self._hosted_rows),
            (LED, self.led, self._led_rows),
        ):
            if rows:
                texts = labels.of(places)
                for name, column in zip(names, zip(*rows, strict=True), strict=True):
                    text.column(name, texts, column)
        if self._open:
            name = "barnabas_partition_open_transaction_seconds"
            open_places, ages = zip(*self._open, strict=True)
            text.column(name, labels.of(open_places), ages)


class PartitionLabels:
    """The labels of partitions as texts, kept from scrape to scrape."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, str] = {}

    def of(self, places: Sequence[TopicPartition]) -> list[str]:
        """The text of each."""
        known = self._known
        if len(known) > 2 * len(places) + 1000:
            known.clear()
        texts = []
        for place in places:
            text = known.get(place)
            if text is None:
                topic, index = place
                text = known[place] = labels_text({"partition": str(index), "topic": topic})
            texts.append(text)
        return texts


@dataclass(slots=True)
class ClusterTotals:
    """Sums over the whole cluster."""

    topics: int = 0
    partitions: int = 0
    leaderless: int = 0
    not_preferred: int = 0
    reassigning_here: int = 0
    """Those that a node leads."""


def cluster_totals(image: MetadataImage, node_id: int) -> ClusterTotals:
    """As the image says, seen from a node. An image never changes, so a thread may do it."""
    totals = ClusterTotals()
    for topic in image.topics.by_name.values():
        totals.topics += 1
        totals.partitions += len(topic.partitions)
        for placed in topic.partitions.values():
            if placed.leader < 0:
                totals.leaderless += 1
            if placed.leader == node_id and (placed.adding or placed.removing):
                totals.reassigning_here += 1
            if placed.replicas and placed.leader != placed.replicas[0]:
                totals.not_preferred += 1
    return totals


def topic_columns(text: Exposition, image: MetadataImage) -> None:
    """Write the number of partitions of each topic."""
    topics: Iterable[tuple[str, int]] = [
        (labels_text({"topic": topic.name}), len(topic.partitions))
        for topic in image.topics.by_name.values()
    ]
    if topics:
        texts, counts = zip(*topics, strict=True)
        text.column("kafka_topic_partitions", texts, counts)
