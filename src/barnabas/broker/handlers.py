"""Which module serves which API. What is listed here is what ApiVersions advertises."""

from typing import TYPE_CHECKING

from barnabas.broker.apis.cluster.add_raft_voter import handle_add_raft_voter
from barnabas.broker.apis.cluster.alter_replica_log_dirs import handle_alter_replica_log_dirs
from barnabas.broker.apis.cluster.api_versions import handle_api_versions
from barnabas.broker.apis.cluster.describe_cluster import handle_describe_cluster
from barnabas.broker.apis.cluster.describe_log_dirs import handle_describe_log_dirs
from barnabas.broker.apis.cluster.describe_quorum import handle_describe_quorum
from barnabas.broker.apis.cluster.remove_raft_voter import handle_remove_raft_voter
from barnabas.broker.apis.cluster.unregister_broker import handle_unregister_broker
from barnabas.broker.apis.cluster.update_features import handle_update_features
from barnabas.broker.apis.configs.alter_configs import handle_alter_configs
from barnabas.broker.apis.configs.describe_configs import handle_describe_configs
from barnabas.broker.apis.configs.incremental_alter_configs import handle_incremental_alter_configs
from barnabas.broker.apis.configs.list_config_resources import handle_list_config_resources
from barnabas.broker.apis.groups.alter_share_group_offsets import handle_alter_share_group_offsets
from barnabas.broker.apis.groups.consumer_group_describe import handle_consumer_group_describe
from barnabas.broker.apis.groups.consumer_group_heartbeat import handle_consumer_group_heartbeat
from barnabas.broker.apis.groups.delete_groups import handle_delete_groups
from barnabas.broker.apis.groups.delete_share_group_offsets import handle_delete_share_group_offsets
from barnabas.broker.apis.groups.describe_groups import handle_describe_groups
from barnabas.broker.apis.groups.describe_share_group_offsets import (
    handle_describe_share_group_offsets,
)
from barnabas.broker.apis.groups.find_coordinator import handle_find_coordinator
from barnabas.broker.apis.groups.heartbeat import handle_heartbeat
from barnabas.broker.apis.groups.join_group import handle_join_group
from barnabas.broker.apis.groups.leave_group import handle_leave_group
from barnabas.broker.apis.groups.list_groups import handle_list_groups
from barnabas.broker.apis.groups.offset_commit import handle_offset_commit
from barnabas.broker.apis.groups.offset_delete import handle_offset_delete
from barnabas.broker.apis.groups.offset_fetch import handle_offset_fetch
from barnabas.broker.apis.groups.share_group_describe import handle_share_group_describe
from barnabas.broker.apis.groups.share_group_heartbeat import handle_share_group_heartbeat
from barnabas.broker.apis.groups.streams_group_describe import handle_streams_group_describe
from barnabas.broker.apis.groups.streams_group_heartbeat import handle_streams_group_heartbeat
from barnabas.broker.apis.groups.sync_group import handle_sync_group
from barnabas.broker.apis.topics.alter_partition_reassignments import (
    handle_alter_partition_reassignments,
)
from barnabas.broker.apis.topics.create_partitions import handle_create_partitions
from barnabas.broker.apis.topics.create_topics import handle_create_topics
from barnabas.broker.apis.topics.delete_records import handle_delete_records
from barnabas.broker.apis.topics.delete_topics import handle_delete_topics
from barnabas.broker.apis.topics.describe_topic_partitions import handle_describe_topic_partitions
from barnabas.broker.apis.topics.elect_leaders import handle_elect_leaders
from barnabas.broker.apis.topics.list_offsets import handle_list_offsets
from barnabas.broker.apis.topics.list_partition_reassignments import (
    handle_list_partition_reassignments,
)
from barnabas.broker.apis.topics.metadata import handle_metadata
from barnabas.broker.apis.topics.offset_for_leader_epoch import handle_offset_for_leader_epoch
from barnabas.broker.apis.transactions.add_offsets_to_txn import handle_add_offsets_to_txn
from barnabas.broker.apis.transactions.add_partitions_to_txn import handle_add_partitions_to_txn
from barnabas.broker.apis.transactions.describe_producers import handle_describe_producers
from barnabas.broker.apis.transactions.describe_transactions import handle_describe_transactions
from barnabas.broker.apis.transactions.end_txn import handle_end_txn
from barnabas.broker.apis.transactions.init_producer_id import handle_init_producer_id
from barnabas.broker.apis.transactions.list_transactions import handle_list_transactions
from barnabas.broker.apis.transactions.txn_offset_commit import handle_txn_offset_commit
from barnabas.broker.apis.transactions.write_txn_markers import handle_write_txn_markers
from barnabas.broker.fetch.handler import handle_fetch
from barnabas.broker.produce.handler import handle_produce
from barnabas.broker.share.acknowledge import handle_share_acknowledge
from barnabas.broker.share.delete_share_group_state import handle_delete_share_group_state
from barnabas.broker.share.fetch import handle_share_fetch
from barnabas.broker.share.initialize_share_group_state import handle_initialize_share_group_state
from barnabas.broker.share.read_share_group_state import handle_read_share_group_state
from barnabas.broker.share.read_share_group_state_summary import (
    handle_read_share_group_state_summary,
)
from barnabas.broker.share.write_share_group_state import handle_write_share_group_state
from barnabas.protocol.apis import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.dispatch import Handler, RawHandler

RAW_HANDLERS: "dict[ApiKey, RawHandler]" = {
    ApiKey.PRODUCE: handle_produce,
    ApiKey.FETCH: handle_fetch,
    ApiKey.OFFSET_COMMIT: handle_offset_commit,
    ApiKey.SHARE_FETCH: handle_share_fetch,
}
"""Handlers that read the frame themselves."""

HANDLERS: "dict[ApiKey, Handler]" = {
    ApiKey.ADD_OFFSETS_TO_TXN: handle_add_offsets_to_txn,
    ApiKey.ADD_PARTITIONS_TO_TXN: handle_add_partitions_to_txn,
    ApiKey.ADD_RAFT_VOTER: handle_add_raft_voter,
    ApiKey.ALTER_CONFIGS: handle_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: handle_alter_partition_reassignments,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: handle_alter_share_group_offsets,
    ApiKey.API_VERSIONS: handle_api_versions,
    ApiKey.CONSUMER_GROUP_DESCRIBE: handle_consumer_group_describe,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: handle_consumer_group_heartbeat,
    ApiKey.CREATE_PARTITIONS: handle_create_partitions,
    ApiKey.CREATE_TOPICS: handle_create_topics,
    ApiKey.DELETE_GROUPS: handle_delete_groups,
    ApiKey.DELETE_RECORDS: handle_delete_records,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: handle_delete_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_STATE: handle_delete_share_group_state,
    ApiKey.DELETE_TOPICS: handle_delete_topics,
    ApiKey.DESCRIBE_CLUSTER: handle_describe_cluster,
    ApiKey.DESCRIBE_CONFIGS: handle_describe_configs,
    ApiKey.DESCRIBE_GROUPS: handle_describe_groups,
    ApiKey.DESCRIBE_LOG_DIRS: handle_describe_log_dirs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: handle_alter_replica_log_dirs,
    ApiKey.DESCRIBE_PRODUCERS: handle_describe_producers,
    ApiKey.DESCRIBE_QUORUM: handle_describe_quorum,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: handle_describe_share_group_offsets,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: handle_describe_topic_partitions,
    ApiKey.DESCRIBE_TRANSACTIONS: handle_describe_transactions,
    ApiKey.ELECT_LEADERS: handle_elect_leaders,
    ApiKey.END_TXN: handle_end_txn,
    ApiKey.FIND_COORDINATOR: handle_find_coordinator,
    ApiKey.HEARTBEAT: handle_heartbeat,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: handle_incremental_alter_configs,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: handle_initialize_share_group_state,
    ApiKey.INIT_PRODUCER_ID: handle_init_producer_id,
    ApiKey.JOIN_GROUP: handle_join_group,
    ApiKey.LEAVE_GROUP: handle_leave_group,
    ApiKey.LIST_CONFIG_RESOURCES: handle_list_config_resources,
    ApiKey.LIST_GROUPS: handle_list_groups,
    ApiKey.LIST_OFFSETS: handle_list_offsets,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: handle_list_partition_reassignments,
    ApiKey.LIST_TRANSACTIONS: handle_list_transactions,
    ApiKey.METADATA: handle_metadata,
    ApiKey.OFFSET_DELETE: handle_offset_delete,
    ApiKey.OFFSET_FETCH: handle_offset_fetch,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: handle_offset_for_leader_epoch,
    ApiKey.READ_SHARE_GROUP_STATE: handle_read_share_group_state,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: handle_read_share_group_state_summary,
    ApiKey.REMOVE_RAFT_VOTER: handle_remove_raft_voter,
    ApiKey.SHARE_ACKNOWLEDGE: handle_share_acknowledge,
    ApiKey.SHARE_GROUP_DESCRIBE: handle_share_group_describe,
    ApiKey.SHARE_GROUP_HEARTBEAT: handle_share_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: handle_streams_group_describe,
    ApiKey.STREAMS_GROUP_HEARTBEAT: handle_streams_group_heartbeat,
    ApiKey.SYNC_GROUP: handle_sync_group,
    ApiKey.TXN_OFFSET_COMMIT: handle_txn_offset_commit,
    ApiKey.UNREGISTER_BROKER: handle_unregister_broker,
    ApiKey.UPDATE_FEATURES: handle_update_features,
    ApiKey.WRITE_SHARE_GROUP_STATE: handle_write_share_group_state,
    ApiKey.WRITE_TXN_MARKERS: handle_write_txn_markers,
}
"""Handlers that get a decoded message and return one, at once or later."""
