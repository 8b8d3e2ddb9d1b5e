"""An image as records: what a snapshot of the metadata log holds.

Replaying them over an empty image gives the image back. The order is Kafka's: features first
(they say how to read the rest), then cluster, topics, configurations, quotas, producer ids,
ACLs, SCRAM and tokens. Source: Kafka's ImageWriter implementations.
"""

from collections.abc import Iterator
from itertools import chain

from barnabas.base.ids import Uuid
from barnabas.node.metadata.image import (
    BrokerImage,
    ControllerImage,
    MetadataImage,
    PartitionImage,
)
from barnabas.node.metadata.merging import write_listeners, write_ranges
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.features import METADATA_VERSION, MetadataVersion
from barnabas.protocol.messages import metadata_records as messages
from barnabas.protocol.messages.quotas import EntityData


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """The records that rebuild `image`, at its own metadata.version."""
    return chain(
        _feature_records(image),
        _cluster_records(image),
        _topic_records(image),
        _config_records(image),
        _other_records(image),
    )


def partition_record(
    topic_id: Uuid, partition_id: int, partition: PartitionImage, level: MetadataVersion
) -> MetadataRecord:
    """The whole of a partition as one record, without what `level` cannot hold."""
    record = messages.PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if level.has_directories:
        record.directories = list(partition.directories)
    if level.has_elr:
        if partition.elr:
            record.eligible_leader_replicas = list(partition.elr)
        if partition.last_known_elr:
            record.last_known_elr = list(partition.last_known_elr)
    return MetadataRecord(record, level.partition_record_version)


def register_broker_record(broker: BrokerImage, level: MetadataVersion) -> MetadataRecord:
    """The whole of a broker's registration as one record, without what `level` cannot hold."""
    record = messages.RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=level.has_zk_migration_record and broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=write_listeners(messages.BrokerEndpoint, broker.listeners),
        features=write_ranges(messages.BrokerFeature, broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
    if level.has_directories:
        record.log_dirs = list(broker.log_dirs)
    if level.has_cordoned_log_dirs and broker.cordoned_log_dirs is not None:
        record.cordoned_log_dirs = list(broker.cordoned_log_dirs)
    return MetadataRecord(record, level.register_broker_record_version)


def register_controller_record(controller: ControllerImage) -> MetadataRecord:
    """The whole of a controller's registration as one record."""
    return MetadataRecord(
        messages.RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=write_listeners(messages.ControllerEndpoint, controller.listeners),
            features=write_ranges(messages.ControllerFeature, controller.features),
        )
    )


def _feature_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    if image.is_empty:
        return
    names = [METADATA_VERSION, *sorted(set(image.features) - {METADATA_VERSION})]
    for name in names:
        yield MetadataRecord(
            messages.FeatureLevelRecord(name=name, feature_level=image.features[name])
        )
    if image.zk_migration_state is not None:
        yield MetadataRecord(
            messages.ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)
        )


def _cluster_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for _, broker in sorted(image.brokers.items()):
        yield register_broker_record(broker, image.metadata_version)
    for _, controller in sorted(image.controllers.items()):
        yield register_controller_record(controller)


def _topic_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for topic in image.topics.by_id.values():
        yield MetadataRecord(messages.TopicRecord(name=topic.name, topic_id=topic.id))
        for number, partition in topic.partitions.items():
            yield partition_record(topic.id, number, partition, image.metadata_version)


def _config_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for (resource_type, resource_name), values in image.configs.by_resource.items():
        for name, value in values.items():
            yield MetadataRecord(
                messages.ConfigRecord(
                    resource_type=resource_type,
                    resource_name=resource_name,
                    name=name,
                    value=value,
                )
            )


def _other_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, values in image.client_quotas.items():
        for key, quota in values.items():
            yield MetadataRecord(
                messages.ClientQuotaRecord(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                    ],
                    key=key,
                    value=quota,
                    remove=False,
                )
            )
    if image.next_producer_id > 0:
        yield MetadataRecord(
            messages.ProducerIdsRecord(
                broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
            )
        )
    for record in chain(
        image.acls.values(), image.scram.values(), image.delegation_tokens.values()
    ):
        yield MetadataRecord(record)
