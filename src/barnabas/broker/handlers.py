"""Which module serves which API. What is listed here is what ApiVersions advertises."""

from typing import TYPE_CHECKING

from barnabas.broker import (
    add_raft_voter,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sync_group,
    unregister_broker,
    update_features,
)
from barnabas.protocol.apis import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.dispatch import Handler, RawHandler

RAW_HANDLERS: "dict[ApiKey, RawHandler]" = {
    ApiKey.PRODUCE: produce.handle,
    ApiKey.FETCH: fetch.handle,
}
"""Handlers that read the frame themselves."""

HANDLERS: "dict[ApiKey, Handler]" = {
    ApiKey.ADD_RAFT_VOTER: add_raft_voter.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_GROUPS: delete_groups.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.DESCRIBE_QUORUM: describe_quorum.handle,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
    ApiKey.ELECT_LEADERS: elect_leaders.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.HEARTBEAT: heartbeat.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.JOIN_GROUP: join_group.handle,
    ApiKey.LEAVE_GROUP: leave_group.handle,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.OFFSET_COMMIT: offset_commit.handle,
    ApiKey.OFFSET_DELETE: offset_delete.handle,
    ApiKey.OFFSET_FETCH: offset_fetch.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.REMOVE_RAFT_VOTER: remove_raft_voter.handle,
    ApiKey.SYNC_GROUP: sync_group.handle,
    ApiKey.UNREGISTER_BROKER: unregister_broker.handle,
    ApiKey.UPDATE_FEATURES: update_features.handle,
}
"""Handlers that get a decoded message and return one, at once or later."""
