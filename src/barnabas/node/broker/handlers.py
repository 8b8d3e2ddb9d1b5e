"""The broker's table of routes: which handler serves which API, in the order of their keys.

ApiVersions advertises exactly these APIs.
"""

from operator import attrgetter

from barnabas.node.broker.apis.acls import handle_describe_acls
from barnabas.node.broker.apis.alter_configs import (
    handle_alter_configs,
)
from barnabas.node.broker.apis.cluster import (
    EACH_QUORUM,
    handle_api_versions,
    handle_describe_cluster,
    refuse_version,
)
from barnabas.node.broker.apis.consumer_groups import (
    handle_consumer_group_describe,
    handle_consumer_group_heartbeat,
)
from barnabas.node.broker.apis.describe_configs import (
    EACH_RESOURCE,
    handle_describe_configs,
    handle_list_config_resources,
)
from barnabas.node.broker.apis.groups import (
    handle_delete_groups,
    handle_describe_groups,
    handle_find_coordinator,
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from barnabas.node.broker.apis.log_offsets import (
    EACH_EPOCH,
    handle_list_offsets,
    handle_offset_for_leader_epoch,
)
from barnabas.node.broker.apis.logins import (
    handle_describe_user_scram_credentials,
    handle_sasl_authenticate,
    handle_sasl_handshake,
)
from barnabas.node.broker.apis.metadata import (
    EACH_NAMED,
    handle_describe_topic_partitions,
    handle_metadata,
)
from barnabas.node.broker.apis.offsets import (
    EACH_GROUP,
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
)
from barnabas.node.broker.apis.partitions import (
    handle_alter_replica_log_dirs,
    handle_describe_log_dirs,
)
from barnabas.node.broker.apis.quotas import (
    handle_describe_client_quotas,
)
from barnabas.node.broker.apis.share_groups import (
    handle_alter_share_group_offsets,
    handle_delete_share_group_offsets,
    handle_describe_share_group_offsets,
    handle_share_group_describe,
    handle_share_group_heartbeat,
)
from barnabas.node.broker.apis.streams_groups import (
    handle_streams_group_describe,
    handle_streams_group_heartbeat,
)
from barnabas.node.broker.apis.telemetry import (
    handle_get_telemetry_subscriptions,
    handle_push_telemetry,
)
from barnabas.node.broker.apis.tokens import (
    handle_create_delegation_token,
    handle_describe_delegation_token,
    handle_token_expiry,
)
from barnabas.node.broker.apis.topics import handle_delete_records
from barnabas.node.broker.apis.transaction_listing import (
    EACH_TOPIC,
    handle_describe_producers,
    handle_describe_transactions,
    handle_list_transactions,
)
from barnabas.node.broker.apis.transactions import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
    handle_end_txn,
    handle_init_producer_id,
    handle_write_txn_markers,
)
from barnabas.node.broker.apis.txn_offset_commit import handle_txn_offset_commit
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.fetch.handler import handle_fetch
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.produce.handler import handle_produce
from barnabas.node.broker.route import Route, raw_route, route
from barnabas.node.broker.services import BrokerServices
from barnabas.node.broker.share.fetch import handle_share_fetch
from barnabas.node.broker.share.requests import handle_share_acknowledge
from barnabas.node.broker.share.state import state_handler
from barnabas.node.coordinator.share.operations import DELETE, INITIALIZE, READ, SUMMARY, WRITE
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
    route(apis.CREATE_TOPICS, ask_controller),
    route(apis.DELETE_TOPICS, ask_controller),
    route(apis.DELETE_RECORDS, handle_delete_records),
    route(apis.INIT_PRODUCER_ID, handle_init_producer_id),
    route(apis.OFFSET_FOR_LEADER_EPOCH, handle_offset_for_leader_epoch, each=EACH_EPOCH),
    route(apis.ADD_PARTITIONS_TO_TXN, handle_add_partitions_to_txn),
    route(apis.ADD_OFFSETS_TO_TXN, handle_add_offsets_to_txn),
    route(apis.END_TXN, handle_end_txn),
    route(apis.WRITE_TXN_MARKERS, handle_write_txn_markers),
    route(apis.TXN_OFFSET_COMMIT, handle_txn_offset_commit),
    route(apis.DESCRIBE_ACLS, handle_describe_acls),
    route(apis.CREATE_ACLS, ask_controller),
    route(apis.DELETE_ACLS, ask_controller),
    route(apis.DESCRIBE_CONFIGS, handle_describe_configs, each=EACH_RESOURCE),
    route(apis.ALTER_CONFIGS, handle_alter_configs),
    route(apis.ALTER_REPLICA_LOG_DIRS, handle_alter_replica_log_dirs),
    route(apis.DESCRIBE_LOG_DIRS, handle_describe_log_dirs),
    route(apis.SASL_AUTHENTICATE, handle_sasl_authenticate),
    route(apis.CREATE_PARTITIONS, ask_controller),
    route(apis.CREATE_DELEGATION_TOKEN, handle_create_delegation_token),
    route(apis.RENEW_DELEGATION_TOKEN, handle_token_expiry),
    route(apis.EXPIRE_DELEGATION_TOKEN, handle_token_expiry),
    route(apis.DESCRIBE_DELEGATION_TOKEN, handle_describe_delegation_token),
    route(apis.DELETE_GROUPS, handle_delete_groups),
    route(apis.ELECT_LEADERS, ask_controller),
    route(apis.INCREMENTAL_ALTER_CONFIGS, handle_alter_configs),
    route(apis.ALTER_PARTITION_REASSIGNMENTS, ask_controller),
    route(apis.LIST_PARTITION_REASSIGNMENTS, ask_controller),
    route(apis.OFFSET_DELETE, handle_offset_delete),
    route(apis.DESCRIBE_CLIENT_QUOTAS, handle_describe_client_quotas),
    route(apis.ALTER_CLIENT_QUOTAS, ask_controller),
    route(apis.DESCRIBE_USER_SCRAM_CREDENTIALS, handle_describe_user_scram_credentials),
    route(apis.ALTER_USER_SCRAM_CREDENTIALS, ask_controller),
    route(apis.DESCRIBE_QUORUM, ask_controller, each=EACH_QUORUM),
    route(apis.UPDATE_FEATURES, ask_controller),
    route(apis.DESCRIBE_CLUSTER, handle_describe_cluster),
    route(apis.DESCRIBE_PRODUCERS, handle_describe_producers, each=EACH_TOPIC),
    route(apis.UNREGISTER_BROKER, ask_controller),
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
    route(apis.ADD_RAFT_VOTER, ask_controller),
    route(apis.REMOVE_RAFT_VOTER, ask_controller),
    route(apis.INITIALIZE_SHARE_GROUP_STATE, state_handler(INITIALIZE)),
    route(apis.READ_SHARE_GROUP_STATE, state_handler(READ)),
    route(apis.WRITE_SHARE_GROUP_STATE, state_handler(WRITE)),
    route(apis.DELETE_SHARE_GROUP_STATE, state_handler(DELETE)),
    route(apis.READ_SHARE_GROUP_STATE_SUMMARY, state_handler(SUMMARY)),
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

TELEMETRY_ROUTES: tuple[Route[BrokerServices], ...] = (
    route(apis.GET_TELEMETRY_SUBSCRIPTIONS, handle_get_telemetry_subscriptions),
    route(apis.PUSH_TELEMETRY, handle_push_telemetry),
)
"""Served in addition by a node that shows metrics."""
