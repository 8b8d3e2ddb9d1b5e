"""Rights required by the APIs between nodes that only controllers serve.

The requests do no harm where they are allowed: they name a cluster or a node that there is not.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.base.ids import Uuid
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.envelope import seal
from barnabas.protocol import apis
from barnabas.protocol.acls import Operation
from barnabas.protocol.apis import AnyApi
from barnabas.protocol.messages import (
    fetch,
    nodes,
    partitions,
    quorum,
    topics,
    transactions,
    voters,
)
from barnabas.protocol.schema import Message
from support.required_rights.needs import Case, cluster
from support.required_rights.of_cluster import LOGGERS, alter_loggers
from support.required_rights.rights_world import World

ABSENT_NODE = 99
ABSENT_CLUSTER = "a-cluster-that-there-is-not"
LOG = "__cluster_metadata"
LOG_ID = Uuid(bytes(15) + b"\x01")
SUPER_USER = Asker("User:ANONYMOUS", "127.0.0.1")


def _fetch(world: World) -> Message:
    world.make_topic()
    wanted = fetch.FetchTopic(
        topic=LOG,
        topic_id=LOG_ID,
        partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)],
    )
    return fetch.FetchRequest(
        replica_state=fetch.ReplicaState(replica_id=ABSENT_NODE),
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[wanted],
    )


def _fetch_snapshot(world: World) -> Message:
    wanted = quorum.FetchSnapshotRequestPartitionSnapshot(partition=0)
    named = quorum.FetchSnapshotRequestTopicSnapshot(name=LOG, partitions=[wanted])
    return quorum.FetchSnapshotRequest(topics=[named])


def _vote(world: World) -> Message:
    return quorum.VoteRequest(cluster_id=ABSENT_CLUSTER)


def _begin_epoch(world: World) -> Message:
    return quorum.BeginQuorumEpochRequest(cluster_id=ABSENT_CLUSTER)


def _end_epoch(world: World) -> Message:
    return quorum.EndQuorumEpochRequest(cluster_id=ABSENT_CLUSTER)


def _update_voter(world: World) -> Message:
    return voters.UpdateRaftVoterRequest(
        cluster_id=ABSENT_CLUSTER, voter_id=ABSENT_NODE, voter_directory_id=LOG_ID
    )


def _envelope(world: World) -> Message:
    """In the name of somebody who may do everything: what is inside does not count."""
    made = topics.CreatableTopic(name=world.topic, num_partitions=1, replication_factor=1)
    inner = topics.CreateTopicsRequest(topics=[made], timeout_ms=5000)
    return seal(inner, None, SUPER_USER, "broker")


def _register_broker(world: World) -> Message:
    return nodes.BrokerRegistrationRequest(
        broker_id=ABSENT_NODE, cluster_id=ABSENT_CLUSTER, incarnation_id=LOG_ID, rack=None
    )


def _heartbeat(world: World) -> Message:
    return nodes.BrokerHeartbeatRequest(broker_id=ABSENT_NODE)


def _allocate_ids(world: World) -> Message:
    return transactions.AllocateProducerIdsRequest(broker_id=ABSENT_NODE)


def _register_controller(world: World) -> Message:
    return nodes.ControllerRegistrationRequest(controller_id=ABSENT_NODE, incarnation_id=LOG_ID)


def _alter_partition(world: World) -> Message:
    world.make_topic()
    changed = partitions.AlterPartitionRequestPartitionData(partition_index=0)
    named = partitions.AlterPartitionRequestTopicData(topic_id=world.topic_id, partitions=[changed])
    return partitions.AlterPartitionRequest(broker_id=ABSENT_NODE, topics=[named])


def _assign_replicas(world: World) -> Message:
    return partitions.AssignReplicasToDirsRequest(broker_id=ABSENT_NODE)


def _of_nodes(api: AnyApi, make: Callable[[World], Message]) -> Case:
    return Case(api, "between nodes", [cluster(Operation.CLUSTER_ACTION)], make)


CASES = (
    _of_nodes(apis.FETCH, _fetch),
    _of_nodes(apis.VOTE, _vote),
    _of_nodes(apis.BEGIN_QUORUM_EPOCH, _begin_epoch),
    _of_nodes(apis.END_QUORUM_EPOCH, _end_epoch),
    _of_nodes(apis.ALTER_PARTITION, _alter_partition),
    _of_nodes(apis.ENVELOPE, _envelope),
    _of_nodes(apis.FETCH_SNAPSHOT, _fetch_snapshot),
    _of_nodes(apis.BROKER_REGISTRATION, _register_broker),
    _of_nodes(apis.BROKER_HEARTBEAT, _heartbeat),
    _of_nodes(apis.ALLOCATE_PRODUCER_IDS, _allocate_ids),
    _of_nodes(apis.CONTROLLER_REGISTRATION, _register_controller),
    _of_nodes(apis.ASSIGN_REPLICAS_TO_DIRS, _assign_replicas),
    _of_nodes(apis.UPDATE_RAFT_VOTER, _update_voter),
    Case(
        apis.INCREMENTAL_ALTER_CONFIGS,
        LOGGERS,
        [cluster(Operation.CLUSTER_ACTION)],
        alter_loggers,
    ),
)
