"""`__cluster_metadata-0` on disk, and who this node is in its quorum."""

from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.base.ids import METADATA_TOPIC_ID, TopicPartition, Uuid
from barnabas.node.config.listeners import SECURITY_PROTOCOLS
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import Endpoint
from barnabas.node.raft.snapshot_files import list_snapshots
from barnabas.node.raft.voters import (
    ReplicaKey,
    Voter,
    VoterEndpoint,
    VoterSet,
    parse_static_voters,
)
from barnabas.protocol.well_known import CLUSTER_METADATA

METADATA_DIRECTORY: Final = f"{CLUSTER_METADATA}-0"
METADATA_BATCH_SIZE_BYTES_MAX: Final = 8 << 20
"""As Kafka's raft client bounds its batches."""
PROTOCOL_NUMBERS: Final = {name: number for number, name in enumerate(SECURITY_PROTOCOLS)}


def controller_endpoints(config: NodeConfig) -> dict[str, Endpoint]:
    """The endpoints of this node's controller, by listener name."""
    return {
        listener.name: Endpoint(
            reachable_host(listener.host),
            max(listener.port, 0),
            PROTOCOL_NUMBERS[listener.security_protocol],
        )
        for listener in config.advertised_controller_listeners
    }


def reachable_host(host: str) -> str:
    """The host to report for a listener on every interface: this machine's own name."""
    return host if host not in ("", "0.0.0.0", "::") else "localhost"


def local_voter(config: NodeConfig, directory_id: Uuid) -> Voter:
    """This node as a voter."""
    return Voter(
        ReplicaKey(config.node_id, directory_id),
        tuple(
            VoterEndpoint(name, end.host, end.port)
            for name, end in controller_endpoints(config).items()
        ),
    )


def static_voters(config: NodeConfig) -> VoterSet | None:
    """The voters of `controller.quorum.voters`, or None where it is not set."""
    entries = config.get_list("controller.quorum.voters")
    if not entries:
        return None
    return parse_static_voters(entries, config.controller_listener_names[0])


def bootstrap_servers(config: NodeConfig) -> list[tuple[str, int]]:
    """The addresses to ask for an unknown leader: `controller.quorum.bootstrap.servers`."""
    servers = []
    for entry in config.get_list("controller.quorum.bootstrap.servers"):
        host, _, port = entry.strip().rpartition(":")
        servers.append((host.strip("[]"), int(port)))
    return servers


def known_controllers(config: NodeConfig) -> list[tuple[str, int]]:
    """The other controllers that the configuration names."""
    own = {(end.host, end.port) for end in controller_endpoints(config).values()}
    voters = static_voters(config)
    named = bootstrap_servers(config)
    if voters is not None:
        named += [
            (end.host, end.port)
            for node_id, voter in voters.by_id.items()
            if node_id != config.node_id
            for end in voter.endpoints
        ]
    return [end for end in named if end not in own]


def open_metadata_log(disk: Disk, clock: Clock, config: NodeConfig, directory: str) -> PartitionLog:
    """Open `__cluster_metadata-0` below `directory`, or begin it.

    How the node ended is not asked: from the newest snapshot on every batch is checked, and the
    log is cut at the first that is damaged. Raises LogDirFailure.
    """
    log_directory = LogDirectory(directory, disk, clock)
    topic_partition = TopicPartition(CLUSTER_METADATA, 0)
    log_config = LogConfig(
        segment_bytes=config.get_int("metadata.log.segment.bytes"),
        segment_ms=config.get_int("metadata.log.segment.ms"),
        retention_bytes=-1,
        retention_ms=-1,
        max_message_bytes=METADATA_BATCH_SIZE_BYTES_MAX,
    )
    path = f"{directory}/{METADATA_DIRECTORY}"
    if not disk.is_dir(path):
        log = create_log(log_directory, topic_partition, METADATA_TOPIC_ID, log_config)
        # The first vote goes into this directory, and must not be lost with it.
        disk.sync_dir(directory)
        return log
    snapshots = list_snapshots(disk, path)
    log, _ = open_log(
        log_directory,
        topic_partition,
        log_config,
        is_clean=False,
        recovery_point=snapshots[-1].end_offset if snapshots else 0,
        may_have_gaps=False,
    )
    if log.topic_id != METADATA_TOPIC_ID:
        log.assign_topic_id(METADATA_TOPIC_ID)
    return log
