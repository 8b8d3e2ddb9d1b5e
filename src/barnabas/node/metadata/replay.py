"""Replay: how each record of the metadata log changes the image.

A delta collects records over a base image and remembers what they touched, so that the followers of
the metadata (replicas, coordinators, the cache of a response) need not compare images.
The same code runs when the log is loaded, on followers, and live after a decision.
Source: Kafka's MetadataDelta and the deltas of its parts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.base.errors import ShownError
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.image import (
    BrokerImage,
    ConfigResourceType,
    ConfigsImage,
    ControllerImage,
    IndexSlot,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    TopicImage,
    TopicsImage,
)
from barnabas.node.metadata.merging import (
    merge_levels,
    merge_maps,
    merge_partition_change,
    merge_values,
    read_listeners,
    read_ranges,
)
from barnabas.protocol.messages import metadata_records as messages


class ReplayError(ShownError, ValueError):
    """A record that contradicts what stands before it in the log."""


@dataclass(slots=True)
class TopicDelta:
    """The change of one topic: its changed partitions as they are now."""

    name: str
    id: Uuid
    created: bool
    base: Mapping[int, PartitionImage]
    changed: dict[int, PartitionImage] = field(default_factory=dict)

    def partition(self, partition: int) -> PartitionImage | None:
        """The partition as it is after the records so far."""
        return self.changed.get(partition) or self.base.get(partition)

    def image(self) -> TopicImage:
        """The topic after the records so far."""
        partitions = {**self.base, **self.changed}
        if self.changed.keys() - self.base.keys():
            partitions = dict(sorted(partitions.items()))
        return TopicImage(self.name, self.id, partitions)


class ImageDelta:
    """Records applied over `base`, and what they touched.

    `replay(message)` raises ReplayError; `image(offset, epoch, timestamp_ms)` builds the result.
    """

    __slots__ = (
        "_ids_by_name",
        "_zk_migration_state",
        "acls",
        "base",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "expired_brokers",
        "features",
        "next_producer_id",
        "scram",
        "topics",
        "topics_deleted",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.topics: dict[Uuid, TopicDelta] = {}
        """Topics created or changed."""
        self.topics_deleted: dict[Uuid, TopicImage] = {}
        """Topics of the base image that are gone, as they last were."""
        self.brokers: dict[int, BrokerImage | None] = {}
        """Brokers as they are now; None: unregistered."""
        self.expired_brokers: set[int] = set()
        """Those fenced because nothing was heard of them for a whole session, or they asked for it.

        Of one whose process was found gone before, the controller writes a FenceBrokerRecord.
        """
        self.controllers: dict[int, ControllerImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        """All values of each (resource type, name) that was touched."""
        self.features: dict[str, int] = {}
        """Feature levels set; 0: no longer finalized."""
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[Uuid, messages.AccessControlEntryRecord | None] = {}
        self.scram: dict[tuple[int, str], messages.UserScramCredentialRecord | None] = {}
        self.delegation_tokens: dict[str, messages.DelegationTokenRecord | None] = {}
        self.next_producer_id = base.next_producer_id
        self._zk_migration_state = base.zk_migration_state
        self._ids_by_name: dict[str, Uuid | None] = {}

    def replay(self, message: Any) -> None:
        """Apply one record. Raises ReplayError if it cannot follow those before it."""
        _REPLAY[type(message)](self, message)

    def broker(self, broker_id: int) -> BrokerImage | None:
        """The broker after the records so far."""
        if broker_id in self.brokers:
            return self.brokers[broker_id]
        return self.base.brokers.get(broker_id)

    def topic_id(self, name: str) -> Uuid | None:
        """The id of the topic now called `name`."""
        if name in self._ids_by_name:
            return self._ids_by_name[name]
        topic = self.base.topics.by_name.get(name)
        return None if topic is None else topic.id

    def image(self, offset: int, epoch: int, timestamp_ms: int = -1) -> MetadataImage:
        """The image after all records, which end at `offset`."""
        base = self.base
        return MetadataImage(
            cluster_id=base.cluster_id,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            features=merge_levels(base.features, self.features),
            zk_migration_state=self._zk_migration_state,
            topics=self._topics_image(),
            brokers=merge_values(base.brokers, self.brokers),
            controllers={**base.controllers, **self.controllers}
            if self.controllers
            else base.controllers,
            configs=self._configs_image(),
            client_quotas=merge_maps(base.client_quotas, self.client_quotas),
            next_producer_id=self.next_producer_id,
            acls=merge_values(base.acls, self.acls),
            scram=merge_values(base.scram, self.scram),
            delegation_tokens=merge_values(base.delegation_tokens, self.delegation_tokens),
        )

    def _topics_image(self) -> TopicsImage:
        if not self.topics and not self.topics_deleted:
            return self.base.topics
        by_name = dict(self.base.topics.by_name)
        by_id = dict(self.base.topics.by_id)
        index = self.base.topics.give_index()
        for topic in self.topics_deleted.values():
            del by_id[topic.id]
            del by_name[topic.name]
            if index is not None:
                index.remove(topic)
        for delta in self.topics.values():
            image = delta.image()
            by_id[image.id] = image
            by_name[image.name] = image
            if index is None:
                continue
            if delta.created:
                index.add(image)
            else:
                index.change(image.id, delta.base, delta.changed)
        return TopicsImage(by_name, by_id, IndexSlot(index))

    def _configs_image(self) -> ConfigsImage:
        if not self.configs:
            return self.base.configs
        return ConfigsImage(merge_maps(self.base.configs.by_resource, self.configs))

    # -- topics and partitions

    def _topic(self, topic_id: Uuid, cause: str) -> TopicDelta:
        delta = self.topics.get(topic_id)
        if delta is None:
            image = self.base.topics.by_id.get(topic_id)
            if image is None or topic_id in self.topics_deleted:
                raise ReplayError(f"{cause} names topic id {topic_id.hex()}, which does not exist")
            delta = TopicDelta(image.name, image.id, created=False, base=image.partitions)
            self.topics[topic_id] = delta
        return delta

    def _replay_topic(self, record: messages.TopicRecord) -> None:
        if self.topic_id(record.name) is not None:
            raise ReplayError(f"TopicRecord for {record.name!r}, which exists")
        self.topics[record.topic_id] = TopicDelta(
            record.name, record.topic_id, created=True, base={}
        )
        self._ids_by_name[record.name] = record.topic_id

    def _replay_partition(self, record: messages.PartitionRecord) -> None:
        topic = self._topic(record.topic_id, "PartitionRecord")
        topic.changed[record.partition_id] = PartitionImage(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(record.directories) or (ZERO_UUID,) * len(record.replicas),
            removing=tuple(record.removing_replicas),
            adding=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader_recovery_state=record.leader_recovery_state,
        )

    def _replay_partition_change(self, record: messages.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id, "PartitionChangeRecord")
        partition = topic.partition(record.partition_id)
        if partition is None:
            raise ReplayError(
                f"PartitionChangeRecord for {topic.name}-{record.partition_id}, which is unknown"
            )
        topic.changed[record.partition_id] = merge_partition_change(partition, record)

    def _replay_remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id, "RemoveTopicRecord")
        del self.topics[record.topic_id]
        image = self.base.topics.by_id.get(record.topic_id)
        if image is not None:
            self.topics_deleted[record.topic_id] = image
        self._ids_by_name[topic.name] = None
        key = (int(ConfigResourceType.TOPIC), topic.name)
        if key in self.configs or key in self.base.configs.by_resource:
            self.configs[key] = {}

    def _replay_clear_elr(self, record: messages.ClearElrRecord) -> None:
        if record.topic_name:
            topic_id = self.topic_id(record.topic_name)
            if topic_id is None:
                raise ReplayError(f"ClearElrRecord for {record.topic_name!r}, which does not exist")
            ids = [topic_id]
        else:
            ids = [*self.base.topics.by_id.keys(), *self.topics.keys()]
        for topic_id in ids:
            if topic_id in self.topics_deleted:
                continue
            delta = self.topics.get(topic_id)
            known: Mapping[int, PartitionImage] = (
                self.base.topics.by_id[topic_id].partitions
                if delta is None
                else {**delta.base, **delta.changed}
            )
            for number, partition in known.items():
                if partition.elr or partition.last_known_elr:
                    self._topic(topic_id, "ClearElrRecord").changed[number] = replace(
                        partition, elr=(), last_known_elr=()
                    )

    # -- brokers and controllers

    def _replay_register_broker(self, record: messages.RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self.expired_brokers.discard(record.broker_id)
        self.brokers[record.broker_id] = BrokerImage(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            listeners=read_listeners(record.end_points),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            features=read_ranges(record.features),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
        )

    def _registered(self, broker_id: int, epoch: int, cause: str) -> BrokerImage:
        broker = self.broker(broker_id)
        if broker is None:
            raise ReplayError(f"{cause} for broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise ReplayError(
                f"{cause} for broker {broker_id} in epoch {epoch}; its epoch is {broker.epoch}"
            )
        return broker

    def _replay_unregister_broker(self, record: messages.UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch, "UnregisterBrokerRecord")
        self.brokers[record.broker_id] = None

    def _replay_fence_broker(self, record: messages.FenceBrokerRecord) -> None:
        broker = self._registered(record.id, record.epoch, "FenceBrokerRecord")
        self.expired_brokers.discard(record.id)
        self.brokers[record.id] = replace(broker, fenced=True)

    def _replay_unfence_broker(self, record: messages.UnfenceBrokerRecord) -> None:
        broker = self._registered(record.id, record.epoch, "UnfenceBrokerRecord")
        self.brokers[record.id] = replace(broker, fenced=False)

    def _replay_broker_change(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(
            record.broker_id, record.broker_epoch, "BrokerRegistrationChangeRecord"
        )
        cordoned = record.cordoned_log_dirs
        if record.fenced > 0:
            self.expired_brokers.add(record.broker_id)
        self.brokers[record.broker_id] = replace(
            broker,
            fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=broker.in_controlled_shutdown
            if record.in_controlled_shutdown == 0
            else record.in_controlled_shutdown > 0,
            log_dirs=tuple(record.log_dirs) if record.log_dirs else broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
        )

    def _replay_register_controller(self, record: messages.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            listeners=read_listeners(record.end_points),
            features=read_ranges(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )

    # -- everything else

    def _replay_config(self, record: messages.ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        values = self.configs.get(key)
        if values is None:
            values = dict(self.base.configs.for_resource(*key))
            self.configs[key] = values
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _replay_feature_level(self, record: messages.FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level

    def _replay_client_quota(self, record: messages.ClientQuotaRecord) -> None:
        entity: QuotaEntity = tuple(
            sorted(
                ((part.entity_type, part.entity_name) for part in record.entity),
                key=lambda pair: pair[0],
            )
        )
        values = self.client_quotas.get(entity)
        if values is None:
            values = dict(self.base.client_quotas.get(entity, {}))
            self.client_quotas[entity] = values
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value

    def _replay_producer_ids(self, record: messages.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _replay_acl(self, record: messages.AccessControlEntryRecord) -> None:
        self.acls[record.id] = record

    def _replay_remove_acl(self, record: messages.RemoveAccessControlEntryRecord) -> None:
        self.acls[record.id] = None

    def _replay_scram(self, record: messages.UserScramCredentialRecord) -> None:
        self.scram[(record.mechanism, record.name)] = record

    def _replay_remove_scram(self, record: messages.RemoveUserScramCredentialRecord) -> None:
        self.scram[(record.mechanism, record.name)] = None

    def _replay_token(self, record: messages.DelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = record

    def _replay_remove_token(self, record: messages.RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = None

    def _replay_zk_migration(self, record: messages.ZkMigrationStateRecord) -> None:
        self._zk_migration_state = record.zk_migration_state

    def _replay_nothing(self, record: Any) -> None:
        """NoOpRecord; transactions are the loader's business (loader.py)."""


_REPLAY: Final[dict[type, Callable[[ImageDelta, Any], None]]] = {
    messages.RegisterBrokerRecord: ImageDelta._replay_register_broker,
    messages.UnregisterBrokerRecord: ImageDelta._replay_unregister_broker,
    messages.TopicRecord: ImageDelta._replay_topic,
    messages.PartitionRecord: ImageDelta._replay_partition,
    messages.ConfigRecord: ImageDelta._replay_config,
    messages.PartitionChangeRecord: ImageDelta._replay_partition_change,
    messages.FenceBrokerRecord: ImageDelta._replay_fence_broker,
    messages.UnfenceBrokerRecord: ImageDelta._replay_unfence_broker,
    messages.RemoveTopicRecord: ImageDelta._replay_remove_topic,
    messages.DelegationTokenRecord: ImageDelta._replay_token,
    messages.RemoveDelegationTokenRecord: ImageDelta._replay_remove_token,
    messages.UserScramCredentialRecord: ImageDelta._replay_scram,
    messages.RemoveUserScramCredentialRecord: ImageDelta._replay_remove_scram,
    messages.FeatureLevelRecord: ImageDelta._replay_feature_level,
    messages.ClientQuotaRecord: ImageDelta._replay_client_quota,
    messages.ProducerIdsRecord: ImageDelta._replay_producer_ids,
    messages.BrokerRegistrationChangeRecord: ImageDelta._replay_broker_change,
    messages.AccessControlEntryRecord: ImageDelta._replay_acl,
    messages.RemoveAccessControlEntryRecord: ImageDelta._replay_remove_acl,
    messages.ZkMigrationStateRecord: ImageDelta._replay_zk_migration,
    messages.RegisterControllerRecord: ImageDelta._replay_register_controller,
    messages.ClearElrRecord: ImageDelta._replay_clear_elr,
    messages.NoOpRecord: ImageDelta._replay_nothing,
    messages.BeginTransactionRecord: ImageDelta._replay_nothing,
    messages.EndTransactionRecord: ImageDelta._replay_nothing,
    messages.AbortTransactionRecord: ImageDelta._replay_nothing,
}
