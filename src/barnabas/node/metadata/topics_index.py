"""Index of partitions by broker, so that a broker's coming or going need not look at all.

The index belongs to the newest image. It is built at the first question, and when a delta makes
the next image it moves there, brought up to date by what the delta changed. So an image stays as
cheap as it is, nobody pays who never asks (brokers do not), and an older image that is asked
after all builds its own. Code that iterates over an index must not make images while it does.
Source: Kafka's BrokersToIsrs, BrokersToElrs and the sets of its ReplicationControlManager.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.base.ids import Uuid
from barnabas.node.metadata.topic_names import metric_form

if TYPE_CHECKING:
    from barnabas.node.metadata.image import PartitionImage, TopicImage

PartitionKey = tuple[Uuid, int]
PartitionSet = dict[PartitionKey, None]
"""Keys in order of insertion, which a set would not keep."""

_NONE: PartitionSet = {}


class TopicsIndex:
    """Partitions by what is asked of them, and topic names that metrics could confuse."""

    __slots__ = (
        "_by_metric_form",
        "_eligible",
        "_in_sync",
        "_leaderships",
        "leaderless",
        "not_preferred",
        "reassigning",
    )

    def __init__(self, topics: "Iterable[TopicImage]" = ()) -> None:
        self._in_sync: dict[int, PartitionSet] = {}
        self._eligible: dict[int, PartitionSet] = {}
        self._leaderships: dict[int, int] = {}
        self._by_metric_form: dict[str, str] = {}
        self.leaderless: PartitionSet = {}
        """Partitions without a leader."""
        self.not_preferred: PartitionSet = {}
        """Partitions that their first replica does not lead."""
        self.reassigning: PartitionSet = {}
        """Partitions that gain or lose replicas."""
        for topic in topics:
            self.add(topic)

    def in_sync(self, broker_id: int) -> PartitionSet:
        """The partitions in whose ISR the broker is, those it leads included."""
        return self._in_sync.get(broker_id, _NONE)

    def eligible(self, broker_id: int) -> PartitionSet:
        """The partitions that the broker could lead though it left their ISR."""
        return self._eligible.get(broker_id, _NONE)

    def leadership_count(self, broker_id: int) -> int:
        """The number of partitions that the broker leads."""
        return self._leaderships.get(broker_id, 0)

    def name_like(self, name: str) -> str | None:
        """A topic whose metrics could not be told from those of `name`, if there is one."""
        return self._by_metric_form.get(metric_form(name))

    def add(self, topic: "TopicImage") -> None:
        """A new topic."""
        form = metric_form(topic.name)
        if "_" in form:
            self._by_metric_form[form] = topic.name
        self.change(topic.id, {}, topic.partitions)

    def remove(self, topic: "TopicImage") -> None:
        """A topic as it last was in the index."""
        form = metric_form(topic.name)
        if self._by_metric_form.get(form) == topic.name:
            del self._by_metric_form[form]
        for number, partition in topic.partitions.items():
            self._forget((topic.id, number), partition)

    def change(
        self,
        topic_id: Uuid,
        before: "Mapping[int, PartitionImage]",
        after: "Mapping[int, PartitionImage]",
    ) -> None:
        """Partitions of a topic that are new or changed, given as they were and as they are."""
        for number, partition in after.items():
            key = (topic_id, number)
            known = before.get(number)
            if known is not None:
                self._forget(key, known)
            self._note(key, partition)

    def _note(self, key: PartitionKey, partition: "PartitionImage") -> None:
        leader = partition.leader
        for replica in partition.isr:
            members = self._in_sync.get(replica)
            if members is None:
                members = self._in_sync[replica] = {}
            members[key] = None
        for replica in partition.elr:
            self._eligible.setdefault(replica, {})[key] = None
        if leader < 0:
            self.leaderless[key] = None
        else:
            self._leaderships[leader] = self._leaderships.get(leader, 0) + 1
        if partition.replicas and partition.replicas[0] != leader:
            self.not_preferred[key] = None
        if partition.adding or partition.removing:
            self.reassigning[key] = None

    def _forget(self, key: PartitionKey, partition: "PartitionImage") -> None:
        for replica in partition.isr:
            _discard(self._in_sync, replica, key)
        for replica in partition.elr:
            _discard(self._eligible, replica, key)
        if partition.leader >= 0:
            count = self._leaderships.pop(partition.leader) - 1
            if count:
                self._leaderships[partition.leader] = count
        self.leaderless.pop(key, None)
        self.not_preferred.pop(key, None)
        self.reassigning.pop(key, None)


def _discard(sets: dict[int, PartitionSet], broker_id: int, key: PartitionKey) -> None:
    members = sets[broker_id]
    del members[key]
    if not members:
        del sets[broker_id]


class IndexSlot:
    """The place of an image's index while the image is the newest."""

    __slots__ = ("index",)

    def __init__(self, index: TopicsIndex | None = None) -> None:
        self.index = index
