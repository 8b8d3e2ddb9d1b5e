"""Rights required by the APIs of configurations, brokers and the quorum."""

from __future__ import annotations

import logging

from barnabas.base.ids import Uuid
from barnabas.protocol import apis
from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs, connections, metadata, nodes, partitions, voters
from barnabas.protocol.schema import Message
from support.required_rights.needs import Case, cluster, group, topic
from support.required_rights.rights_world import World

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
LOGGER = "barnabas.rights"
LOGGERS = "of loggers"
ABSENT_BROKER = 99


def _describe(resource_type: int, name: str) -> Message:
    asked = configs.DescribeConfigsResource(resource_type=resource_type, resource_name=name)
    return configs.DescribeConfigsRequest(resources=[asked])


def _describe_topic(world: World) -> Message:
    world.make_topic()
    set_ = configs.AlterableConfig(name="retention.ms", value="77777777")
    changed = configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=world.topic, configs=[set_]
    )
    world.call(configs.IncrementalAlterConfigsRequest(resources=[changed]))
    return _describe(TOPIC, world.topic)


def _describe_group(world: World) -> Message:
    return _describe(GROUP, world.group)


def _describe_broker(world: World) -> Message:
    return _describe(BROKER, str(world.admin.node_id()))


def _describe_loggers(world: World) -> Message:
    return _describe(BROKER_LOGGER, str(world.admin.node_id()))


def _describe_metrics(world: World) -> Message:
    return _describe(CLIENT_METRICS, "metrics")


def _alter(resource_type: int, name: str, key: str, value: str) -> Message:
    set_ = configs.AlterableConfig(name=key, value=value)
    changed = configs.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[set_]
    )
    return configs.IncrementalAlterConfigsRequest(resources=[changed])


def _alter_topic(world: World) -> Message:
    world.make_topic()
    return _alter(TOPIC, world.topic, "retention.ms", "77777777")


def _alter_group(world: World) -> Message:
    return _alter(GROUP, world.group, "consumer.session.timeout.ms", "50000")


def _alter_broker(world: World) -> Message:
    return _alter(BROKER, str(world.admin.node_id()), "log.cleaner.threads", "2")


def alter_loggers(world: World) -> Message:
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    return _alter(BROKER_LOGGER, str(world.admin.node_id()), LOGGER, "ERROR")


def _alter_metrics(world: World) -> Message:
    return _alter(CLIENT_METRICS, f"metrics-of-{world.group}", "interval.ms", "1000")


def _replace_topic(world: World) -> Message:
    world.make_topic()
    set_ = configs.AlterConfigsAlterableConfig(name="retention.ms", value="77777777")
    changed = configs.AlterConfigsAlterConfigsResource(
        resource_type=TOPIC, resource_name=world.topic, configs=[set_]
    )
    return configs.AlterConfigsRequest(resources=[changed])


def _list_resources(world: World) -> Message:
    world.make_topic()
    return configs.ListConfigResourcesRequest()


def _describe_log_dirs(world: World) -> Message:
    world.make_topic()
    return partitions.DescribeLogDirsRequest(topics=None)


def _alter_log_dirs(world: World) -> Message:
    world.make_topic()
    moved = partitions.AlterReplicaLogDirTopic(name=world.topic, partitions=[0])
    asked = partitions.AlterReplicaLogDir(path="/nowhere", topics=[moved])
    return partitions.AlterReplicaLogDirsRequest(dirs=[asked])


def _describe_quorum(world: World) -> Message:
    wanted = voters.DescribeQuorumRequestPartitionData(partition_index=0)
    named = voters.DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata", partitions=[wanted]
    )
    return voters.DescribeQuorumRequest(topics=[named])


def _update_features(world: World) -> Message:
    update = nodes.FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1)
    return nodes.UpdateFeaturesRequest(
        timeout_ms=5000, feature_updates=[update], validate_only=True
    )


def _describe_cluster(world: World) -> Message:
    return metadata.DescribeClusterRequest()


def _unregister(world: World) -> Message:
    return nodes.UnregisterBrokerRequest(broker_id=ABSENT_BROKER)


def _add_voter(world: World) -> Message:
    return voters.AddRaftVoterRequest(
        timeout_ms=1000,
        voter_id=ABSENT_BROKER,
        voter_directory_id=Uuid(bytes(15) + b"\x01"),
        listeners=[voters.Listener(name="CONTROLLER", host="127.0.0.1", port=9)],
    )


def _remove_voter(world: World) -> Message:
    return voters.RemoveRaftVoterRequest(
        voter_id=ABSENT_BROKER, voter_directory_id=Uuid(bytes(15) + b"\x01")
    )


def _api_versions(world: World) -> Message:
    return connections.ApiVersionsRequest(
        client_software_name="rights", client_software_version="1"
    )


ALTER = cluster(Operation.ALTER)
DESCRIBE_CONFIGS = cluster(Operation.DESCRIBE_CONFIGS)
ALTER_CONFIGS = cluster(Operation.ALTER_CONFIGS)
VOTER_ERRORS = frozenset(
    {
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REQUEST,
    }
)

CASES = (
    Case(apis.API_VERSIONS, "", [], _api_versions),
    Case(apis.DESCRIBE_CONFIGS, "", [topic(Operation.DESCRIBE_CONFIGS)], _describe_topic),
    Case(
        apis.DESCRIBE_CONFIGS,
        "of a group",
        [group(Operation.DESCRIBE_CONFIGS)],
        _describe_group,
    ),
    Case(apis.DESCRIBE_CONFIGS, "of a broker", [DESCRIBE_CONFIGS], _describe_broker),
    Case(apis.DESCRIBE_CONFIGS, "of loggers", [DESCRIBE_CONFIGS], _describe_loggers),
    Case(apis.DESCRIBE_CONFIGS, "of client metrics", [DESCRIBE_CONFIGS], _describe_metrics),
    Case(apis.ALTER_CONFIGS, "", [topic(Operation.ALTER_CONFIGS)], _replace_topic),
    Case(apis.INCREMENTAL_ALTER_CONFIGS, "", [topic(Operation.ALTER_CONFIGS)], _alter_topic),
    Case(
        apis.INCREMENTAL_ALTER_CONFIGS,
        "of a group",
        [group(Operation.ALTER_CONFIGS)],
        _alter_group,
    ),
    Case(apis.INCREMENTAL_ALTER_CONFIGS, "of a broker", [ALTER_CONFIGS], _alter_broker),
    Case(
        apis.INCREMENTAL_ALTER_CONFIGS,
        LOGGERS,
        [ALTER_CONFIGS],
        alter_loggers,
        succeeds_with=frozenset({ErrorCode.INVALID_CONFIG}),  # of a logger of another process
    ),
    Case(apis.INCREMENTAL_ALTER_CONFIGS, "of client metrics", [ALTER_CONFIGS], _alter_metrics),
    Case(apis.LIST_CONFIG_RESOURCES, "", [DESCRIBE_CONFIGS], _list_resources),
    Case(
        apis.ALTER_REPLICA_LOG_DIRS,
        "",
        [ALTER],
        _alter_log_dirs,
        succeeds_with=frozenset({ErrorCode.LOG_DIR_NOT_FOUND}),
    ),
    Case(apis.DESCRIBE_LOG_DIRS, "", [cluster(Operation.DESCRIBE)], _describe_log_dirs),
    Case(apis.DESCRIBE_QUORUM, "", [cluster(Operation.DESCRIBE)], _describe_quorum),
    Case(apis.UPDATE_FEATURES, "", [ALTER], _update_features),
    Case(apis.DESCRIBE_CLUSTER, "", [], _describe_cluster),
    Case(
        apis.UNREGISTER_BROKER,
        "",
        [ALTER],
        _unregister,
        succeeds_with=frozenset({ErrorCode.BROKER_ID_NOT_REGISTERED}),
    ),
    Case(apis.ADD_RAFT_VOTER, "", [ALTER], _add_voter, succeeds_with=VOTER_ERRORS),
    Case(apis.REMOVE_RAFT_VOTER, "", [ALTER], _remove_voter, succeeds_with=VOTER_ERRORS),
)
