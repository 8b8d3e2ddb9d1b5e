"""The broker's table of routes: which handler serves which API, in the order of their keys.

What is listed here is what ApiVersions advertises.
"""

from operator import attrgetter

from barnabas.node.broker.apis.cluster.add_raft_voter import handle_add_raft_voter
from barnabas.node.broker.apis.cluster.alter_replica_log_dirs import handle_alter_replica_log_dirs
from barnabas.node.broker.apis.cluster.api_versions import handle_api_versions, refuse_version
from barnabas.node.broker.apis.cluster.describe_cluster import handle_describe_cluster
from barnabas.node.broker.apis.cluster.describe_log_dirs import handle_describe_log_dirs
from barnabas.node.broker.apis.cluster.describe_quorum import (
    EACH_QUORUM,
    handle_describe_quorum,
)
from barnabas.node.broker.apis.cluster.remove_raft_voter import handle_remove_raft_voter
from barnabas.node.broker.apis.cluster.unregister_broker import handle_unregister_broker
from barnabas.node.broker.apis.cluster.update_features import handle_update_features
from barnabas.node.broker.apis.configs.alter_configs import handle_alter_configs
from barnabas.node.broker.apis.configs.describe_configs import (
    EACH_RESOURCE,
    handle_describe_configs,
)
from barnabas.node.broker.apis.configs.incremental_alter_configs import (
    handle_incremental_alter_configs,
)
from barnabas.node.broker.apis.configs.list_config_resources import handle_list_config_resources
from barnabas.node.broker.apis.groups.alter_share_group_offsets import (
    handle_alter_share_group_offsets,
)
from barnabas.node.broker.apis.groups.consumer_group_describe import handle_consumer_group_describe
from barnabas.node.broker.apis.groups.consumer_group_heartbeat import (
    handle_consumer_group_heartbeat,
)
from barnabas.node.broker.apis.groups.delete_groups import handle_delete_groups
from barnabas.node.broker.apis.groups.delete_share_group_offsets import (
    handle_delete_share_group_offsets,
)
from barnabas.node.broker.apis.groups.describe_groups import handle_describe_groups
from barnabas.node.broker.apis.groups.describe_share_group_offsets import (
    handle_describe_share_group_offsets,
)
from barnabas.node.broker.apis.groups.find_coordinator import handle_find_coordinator
from barnabas.node.broker.apis.groups.heartbeat import handle_heartbeat
from barnabas.node.broker.apis.groups.join_group import handle_join_group
from barnabas.node.broker.apis.groups.leave_group import handle_leave_group
from barnabas.node.broker.apis.groups.list_groups import handle_list_groups
from barnabas.node.broker.apis.groups.offset_commit import handle_offset_commit
from barnabas.node.broker.apis.groups.offset_delete import handle_offset_delete
from barnabas.node.broker.apis.groups.offset_fetch import EACH_GROUP, handle_offset_fetch
from barnabas.node.broker.apis.groups.share_group_describe import handle_share_group_describe
from barnabas.node.broker.apis.groups.share_group_heartbeat import handle_share_group_heartbeat
from barnabas.node.broker.apis.groups.streams_group_describe import handle_streams_group_describe
from barnabas.node.broker.apis.groups.streams_group_heartbeat import handle_streams_group_heartbeat
from barnabas.node.broker.apis.groups.sync_group import handle_sync_group
from barnabas.node.broker.apis.security.alter_client_quotas import handle_alter_client_quotas
from barnabas.node.broker.apis.security.alter_user_scram_credentials import (
    handle_alter_user_scram_credentials,
)
from barnabas.node.broker.apis.security.create_acls import handle_create_acls
from barnabas.node.broker.apis.security.create_delegation_token import (
    handle_create_delegation_token,
)
from barnabas.node.broker.apis.security.delete_acls import handle_delete_acls
from barnabas.node.broker.apis.security.describe_acls import handle_describe_acls
from barnabas.node.broker.apis.security.describe_client_quotas import handle_describe_client_quotas
from barnabas.node.broker.apis.security.describe_delegation_token import (
    handle_describe_delegation_token,
)
from barnabas.node.broker.apis.security.describe_user_scram_credentials import (
    handle_describe_user_scram_credentials,
)
from barnabas.node.broker.apis.security.expire_delegation_token import (
    handle_expire_delegation_token,
)
from barnabas.node.broker.apis.security.renew_delegation_token import handle_renew_delegation_token
from barnabas.node.broker.apis.security.sasl_authenticate import handle_sasl_authenticate
from barnabas.node.broker.apis.security.sasl_handshake import handle_sasl_handshake
from barnabas.node.broker.apis.topics.alter_partition_reassignments import (
    handle_alter_partition_reassignments,
)
from barnabas.node.broker.apis.topics.create_partitions import handle_create_partitions
from barnabas.node.broker.apis.topics.create_topics import handle_create_topics
from barnabas.node.broker.apis.topics.delete_records import handle_delete_records
from barnabas.node.broker.apis.topics.delete_topics import handle_delete_topics
from barnabas.node.broker.apis.topics.describe_topic_partitions import (
    handle_describe_topic_partitions,
)
from barnabas.node.broker.apis.topics.elect_leaders import handle_elect_leaders
from barnabas.node.broker.apis.topics.list_offsets import handle_list_offsets
from barnabas.node.broker.apis.topics.list_partition_reassignments import (
    handle_list_partition_reassignments,
)
from barnabas.node.broker.apis.topics.metadata import EACH_NAMED, handle_metadata
from barnabas.node.broker.apis.topics.offset_for_leader_epoch import (
    EACH_EPOCH,
    handle_offset_for_leader_epoch,
)
from barnabas.node.broker.apis.transactions.add_offsets_to_txn import handle_add_offsets_to_txn
from barnabas.node.broker.apis.transactions.add_partitions_to_txn import (
    handle_add_partitions_to_txn,
)
from barnabas.node.broker.apis.transactions.describe_producers import (
    EACH_TOPIC,
    handle_describe_producers,
)
from barnabas.node.broker.apis.transactions.describe_transactions import (
    handle_describe_transactions,
)
from barnabas.node.broker.apis.transactions.end_txn import handle_end_txn
from barnabas.node.broker.apis.transactions.init_producer_id import handle_init_producer_id
from barnabas.node.broker.apis.transactions.list_transactions import handle_list_transactions
from barnabas.node.broker.apis.transactions.txn_offset_commit import handle_txn_offset_commit
from barnabas.node.broker.apis.transactions.write_txn_markers import handle_write_txn_markers
from barnabas.node.broker.fetch.handler import handle_fetch
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.produce.handler import handle_produce
from barnabas.node.broker.route import Route, raw_route, route
from barnabas.node.broker.services import BrokerServices
from barnabas.node.broker.share.acknowledge import handle_share_acknowledge
from barnabas.node.broker.share.delete_share_group_state import handle_delete_share_group_state
from barnabas.node.broker.share.fetch import handle_share_fetch
from barnabas.node.broker.share.initialize_share_group_state import (
    handle_initialize_share_group_state,
)
from barnabas.node.broker.share.read_share_group_state import handle_read_share_group_state
from barnabas.node.broker.share.read_share_group_state_summary import (
    handle_read_share_group_state_summary,
)
from barnabas.node.broker.share.write_share_group_state import handle_write_share_group_state
from barnabas.protocol import apis

ROUTES: tuple[Route[BrokerServices], ...] = (
    raw_route(apis.PRODUCE, handle_produce),
    raw_route(apis.FETCH, handle_fetch),
    route(apis.LIST_OFFSETS, handle_list_offsets),
    route(apis.METADATA, handle_metadata, each=EACH_NAMED),
    raw_route(apis.OFFSET_COMMIT, handle_offset_commit),
    route(apis.OFFSET_FETCH, handle_offset_fetch, each=EACH_GROUP),
    route(
        apis.FIND_COORDINATOR,
        handle_find_coordinator,
        each=Each("coordinator_keys", "coordinators"),
    ),
    route(apis.JOIN_GROUP, handle_join_group),
    route(apis.HEARTBEAT, handle_heartbeat),
    route(apis.LEAVE_GROUP, handle_leave_group),
    route(apis.SYNC_GROUP, handle_sync_group),
    route(apis.DESCRIBE_GROUPS, handle_describe_groups, each=Each("groups", "groups")),
    route(apis.LIST_GROUPS, handle_list_groups),
    route(apis.SASL_HANDSHAKE, handle_sasl_handshake),
    route(apis.API_VERSIONS, handle_api_versions, refuse_version),
    route(apis.CREATE_TOPICS, handle_create_topics),
    route(apis.DELETE_TOPICS, handle_delete_topics),
    route(apis.DELETE_RECORDS, handle_delete_records),
    route(apis.INIT_PRODUCER_ID, handle_init_producer_id),
    route(apis.OFFSET_FOR_LEADER_EPOCH, handle_offset_for_leader_epoch, each=EACH_EPOCH),
    route(apis.ADD_PARTITIONS_TO_TXN, handle_add_partitions_to_txn),
    route(apis.ADD_OFFSETS_TO_TXN, handle_add_offsets_to_txn),
    route(apis.END_TXN, handle_end_txn),
    route(apis.WRITE_TXN_MARKERS, handle_write_txn_markers),
    route(apis.TXN_OFFSET_COMMIT, handle_txn_offset_commit),
    route(apis.DESCRIBE_ACLS, handle_describe_acls),
    route(apis.CREATE_ACLS, handle_create_acls),
    route(apis.DELETE_ACLS, handle_delete_acls),
    route(apis.DESCRIBE_CONFIGS, handle_describe_configs, each=EACH_RESOURCE),
    route(apis.ALTER_CONFIGS, handle_alter_configs),
    route(apis.ALTER_REPLICA_LOG_DIRS, handle_alter_replica_log_dirs),
    route(apis.DESCRIBE_LOG_DIRS, handle_describe_log_dirs),
    route(apis.SASL_AUTHENTICATE, handle_sasl_authenticate),
    route(apis.CREATE_PARTITIONS, handle_create_partitions),
    route(apis.CREATE_DELEGATION_TOKEN, handle_create_delegation_token),
    route(apis.RENEW_DELEGATION_TOKEN, handle_renew_delegation_token),
    route(apis.EXPIRE_DELEGATION_TOKEN, handle_expire_delegation_token),
    route(apis.DESCRIBE_DELEGATION_TOKEN, handle_describe_delegation_token),
    route(apis.DELETE_GROUPS, handle_delete_groups),
    route(apis.ELECT_LEADERS, handle_elect_leaders),
    route(apis.INCREMENTAL_ALTER_CONFIGS, handle_incremental_alter_configs),
    route(apis.ALTER_PARTITION_REASSIGNMENTS, handle_alter_partition_reassignments),
    route(apis.LIST_PARTITION_REASSIGNMENTS, handle_list_partition_reassignments),
    route(apis.OFFSET_DELETE, handle_offset_delete),
    route(apis.DESCRIBE_CLIENT_QUOTAS, handle_describe_client_quotas),
    route(apis.ALTER_CLIENT_QUOTAS, handle_alter_client_quotas),
    route(apis.DESCRIBE_USER_SCRAM_CREDENTIALS, handle_describe_user_scram_credentials),
    route(apis.ALTER_USER_SCRAM_CREDENTIALS, handle_alter_user_scram_credentials),
    route(apis.DESCRIBE_QUORUM, handle_describe_quorum, each=EACH_QUORUM),
    route(apis.UPDATE_FEATURES, handle_update_features),
    route(apis.DESCRIBE_CLUSTER, handle_describe_cluster),
    route(apis.DESCRIBE_PRODUCERS, handle_describe_producers, each=EACH_TOPIC),
    route(apis.UNREGISTER_BROKER, handle_unregister_broker),
    route(
        apis.DESCRIBE_TRANSACTIONS,
        handle_describe_transactions,
        each=Each("transactional_ids", "transaction_states"),
    ),
    route(apis.LIST_TRANSACTIONS, handle_list_transactions),
    route(apis.CONSUMER_GROUP_HEARTBEAT, handle_consumer_group_heartbeat),
    route(
        apis.CONSUMER_GROUP_DESCRIBE,
        handle_consumer_group_describe,
        each=Each("group_ids", "groups"),
    ),
    route(apis.LIST_CONFIG_RESOURCES, handle_list_config_resources),
    route(apis.DESCRIBE_TOPIC_PARTITIONS, handle_describe_topic_partitions),
    route(apis.SHARE_GROUP_HEARTBEAT, handle_share_group_heartbeat),
    route(apis.SHARE_GROUP_DESCRIBE, handle_share_group_describe, each=Each("group_ids", "groups")),
    raw_route(apis.SHARE_FETCH, handle_share_fetch),
    route(apis.SHARE_ACKNOWLEDGE, handle_share_acknowledge),
    route(apis.ADD_RAFT_VOTER, handle_add_raft_voter),
    route(apis.REMOVE_RAFT_VOTER, handle_remove_raft_voter),
    route(apis.INITIALIZE_SHARE_GROUP_STATE, handle_initialize_share_group_state),
    route(apis.READ_SHARE_GROUP_STATE, handle_read_share_group_state),
    route(apis.WRITE_SHARE_GROUP_STATE, handle_write_share_group_state),
    route(apis.DELETE_SHARE_GROUP_STATE, handle_delete_share_group_state),
    route(apis.READ_SHARE_GROUP_STATE_SUMMARY, handle_read_share_group_state_summary),
    route(apis.STREAMS_GROUP_HEARTBEAT, handle_streams_group_heartbeat),
    route(
        apis.STREAMS_GROUP_DESCRIBE, handle_streams_group_describe, each=Each("group_ids", "groups")
    ),
    route(
        apis.DESCRIBE_SHARE_GROUP_OFFSETS,
        handle_describe_share_group_offsets,
        each=Each("groups", "groups", attrgetter("group_id")),
    ),
    route(apis.ALTER_SHARE_GROUP_OFFSETS, handle_alter_share_group_offsets),
    route(apis.DELETE_SHARE_GROUP_OFFSETS, handle_delete_share_group_offsets),
)
