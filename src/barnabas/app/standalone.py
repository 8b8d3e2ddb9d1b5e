"""A node that is a cluster by itself: its properties, and its directory formatted.

For `barnabas dev`, `barnabas.Cluster` and the pytest fixture.
"""

import os
from collections.abc import Mapping

from barnabas.app.secured import Secured
from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.ids import RandomSource
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.metadata.storage_format import (
    FormatOptions,
    format_directories,
    log_directories,
    random_cluster_id,
)

NODE_ID = 1
CLIENT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
SINGLE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""Kafka's internal topics want three replicas; here is one node."""


def standalone_properties(
    directory: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    controller_port: int = 0,
    overrides: Mapping[str, str] | None = None,
    secured: Secured | None = None,
) -> dict[str, str]:
    """server.properties of a node that is broker and only controller, data in `directory`.

    Port 0 takes a free one. `overrides` win over everything.
    """
    shown_host = f"[{host}]" if ":" in host else host
    listener = CLIENT_LISTENER if secured is None else secured.listener
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "listeners": f"{listener}://{shown_host}:{port},"
        f"{CONTROLLER_LISTENER}://127.0.0.1:{controller_port}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "log.dirs": os.path.join(os.path.abspath(directory), "data"),
        "group.initial.rebalance.delay.ms": "0",
        **SINGLE_REPLICA,
        **(secured.node_properties(NODE_ID, CONTROLLER_LISTENER) if secured is not None else {}),
        **(overrides or {}),
    }


def format_standalone(
    disk: Disk,
    config: NodeConfig,
    *,
    random: RandomSource,
    clock: Clock,
    secured: Secured | None = None,
) -> list[str]:
    """Format what is not formatted yet; returns the lines about it.

    Raises FormatError, MetaPropertiesError and OSError.
    """
    for directory in log_directories(config):
        properties = read_meta_properties(disk, directory)
        if properties is not None and properties.cluster_id is not None:
            cluster_id = properties.cluster_id
            break
    else:
        cluster_id = random_cluster_id(random)
    options = FormatOptions(
        cluster_id=cluster_id,
        ignore_formatted=True,
        scram=secured.scram if secured is not None else (),
        records=secured.acls(random) if secured is not None else (),
    )
    return format_directories(disk, config, options, random=random, now_ms=clock.now_ms())
