"""The cluster as one moment of the metadata log describes it.

Images are never changed: a delta (replay.py) builds the next one and shares what did not
change. So a reader may hold one across an await, and the controller keeps two, the committed
one and the one its uncommitted decisions lead to.
Source: Kafka's MetadataImage and its parts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.node.metadata.topic_names import metric_form
from barnabas.protocol.features import METADATA_VERSION, MetadataVersion
from barnabas.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

NO_LEADER = -1


class LeaderRecoveryState(IntEnum):
    """The need for recovery: none for a leader from the ISR, some after an unclean election."""

    RECOVERED = 0
    RECOVERING = 1


class ConfigResourceType(IntEnum):
    """The kind of resource that has a configuration; the numbers of the protocol."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Endpoint(NamedTuple):
    """The address of a listener; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition: replicas in preferred order, who is in sync, and who leads since when."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED

    def directory_of(self, broker_id: int) -> Uuid | None:
        """The id of the log directory that holds a replica; None if it is not known."""
        if broker_id not in self.replicas:
            return None
        place = self.replicas.index(broker_id)
        return self.directories[place] if place < len(self.directories) else None


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions by number."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionImage]


PartitionKey = tuple[Uuid, int]
PartitionSet = dict[PartitionKey, None]
"""Keys in order of insertion, which a set would not keep."""

_NONE: PartitionSet = {}


class TopicsIndex:
    """Partitions by what is asked of them, and topic names that metrics could confuse.

    A broker's coming or going need not look at all partitions. The index belongs to the newest
    image. It is built at the first question, and when a delta makes the next image it moves there,
    brought up to date by what the delta changed. So an image stays as cheap as it is, nobody pays
    who never asks (brokers do not), and an older image that is asked after all builds its own. Code
    that iterates over an index must not make images while it does. Source: Kafka's BrokersToIsrs,
    BrokersToElrs and the sets of its ReplicationControlManager.
    """

    __slots__ = (
        "_by_metric_form",
        "_eligible",
        "_in_sync",
        "_leaderships",
        "leaderless",
        "not_preferred",
        "reassigning",
    )

    def __init__(self, topics: Iterable[TopicImage] = ()) -> None:
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

    def add(self, topic: TopicImage) -> None:
        """A new topic."""
        form = metric_form(topic.name)
        if "_" in form:
            self._by_metric_form[form] = topic.name
        self.change(topic.id, {}, topic.partitions)

    def remove(self, topic: TopicImage) -> None:
        """A topic as it last was in the index."""
        form = metric_form(topic.name)
        if self._by_metric_form.get(form) == topic.name:
            del self._by_metric_form[form]
        for number, partition in topic.partitions.items():
            self._forget((topic.id, number), partition)

    def change(
        self,
        topic_id: Uuid,
        before: Mapping[int, PartitionImage],
        after: Mapping[int, PartitionImage],
    ) -> None:
        """Partitions of a topic that are new or changed, given as they were and as they are."""
        for number, partition in after.items():
            key = (topic_id, number)
            known = before.get(number)
            if known is not None:
                self._forget(key, known)
            self._note(key, partition)

    def _note(self, key: PartitionKey, partition: PartitionImage) -> None:
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

    def _forget(self, key: PartitionKey, partition: PartitionImage) -> None:
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


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """Every topic, by name and by id."""

    by_name: Mapping[str, TopicImage] = field(default_factory=dict)
    by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    _slot: IndexSlot = field(default_factory=IndexSlot, repr=False, compare=False)

    @property
    def index(self) -> TopicsIndex:
        """Partitions by broker and state; cheap on the newest image only."""
        index = self._slot.index
        if index is None:
            index = self._slot.index = TopicsIndex(self.by_id.values())
        return index

    def give_index(self) -> TopicsIndex | None:
        """Part with the index, if there is one: its next user brings it up to date."""
        index, self._slot.index = self._slot.index, None
        return index

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition, or None if topic or partition are unknown."""
        image = self.by_name.get(topic)
        return None if image is None else image.partitions.get(partition)


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker. It takes part once it is neither fenced nor shutting down."""

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[Uuid, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """True if the broker may join an ISR and lead."""
        return not (self.fenced or self.in_controlled_shutdown)


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """A registered controller and the features it can run."""

    id: int
    incarnation_id: Uuid
    listeners: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]
    zk_migration_ready: bool = False


_NO_CONFIGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """Dynamic configurations by (resource type, resource name); broker "" is the default."""

    by_resource: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)

    def for_resource(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The values that are set on the resource; empty if nothing is set."""
        return self.by_resource.get((resource_type, name), _NO_CONFIGS)

    def names(self, resource_type: int) -> list[str]:
        """The resources of a type on which something is set, sorted."""
        return sorted(name for kind, name in self.by_resource if kind == resource_type)


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted (entity type, entity name or None for the default) pairs."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata up to and with `offset` (-1: none), written in `epoch`."""

    cluster_id: str = ""
    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    features: Mapping[str, int] = field(default_factory=dict)
    zk_migration_state: int | None = None
    topics: TopicsImage = field(default_factory=TopicsImage)
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controllers: Mapping[int, ControllerImage] = field(default_factory=dict)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = 0
    acls: Mapping[Uuid, AccessControlEntryRecord] = field(default_factory=dict)
    scram: Mapping[tuple[int, str], UserScramCredentialRecord] = field(default_factory=dict)
    """SCRAM credentials by (mechanism, user)."""
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)

    @property
    def metadata_version(self) -> MetadataVersion:
        """The finalized level. Raises ValueError if this node cannot run it."""
        return MetadataVersion(self.features[METADATA_VERSION])

    @property
    def is_empty(self) -> bool:
        """True if no metadata was ever written (not even a feature level)."""
        return METADATA_VERSION not in self.features
