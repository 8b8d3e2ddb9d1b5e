"""The demo's brokers: nodes, each a separate process, with their data in the demo's directory.

With several of them every topic has as many replicas, three at most, and an acknowledged record is
on two at least: any one node can be killed, and no figure changes.
"""

from __future__ import annotations

import os
import subprocess
import sys

from confluent_kafka import KafkaException

from barnabas.app.secured import format_secured
from barnabas.base.config.properties import format_properties, parse_properties
from barnabas.base.private_files import write_private
from barnabas.demo.access import Access, client_config
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace
from barnabas.kafka.admin import Admin

BARNABAS = [sys.executable, "-m", "barnabas"]
COPIES_MAX = 3
_FORMAT_SECONDS = 60

PROPERTIES = """\
# Written by `barnabas demo`; ports change where others took them.
process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={voters}
listeners={listener}://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners={listener}://127.0.0.1:{broker_port}
controller.listener.names=CONTROLLER
log.dirs={log_directory}
offsets.topic.num.partitions=4
offsets.topic.replication.factor={copies}
default.replication.factor={copies}
min.insync.replicas={copies_min}
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={copies_min}
group.initial.rebalance.delay.ms=0
# The figures are sums over everything ever published: nothing may age away.
log.retention.ms=-1
offsets.retention.minutes=525600
"""
PLAIN_PROPERTIES = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"


class BrokerError(Exception):
    """The broker could not be set up; the message says why and what to do."""


def prepare(
    workspace: Workspace, settings: Settings, access: Access | None = None
) -> list[ChildSpec]:
    """Return how to start each node, in a directory that is ready for it.

    Raises BrokerError with the tool's own words where formatting fails.
    """
    return [
        _broker_spec(_name(node_id, settings), _prepare(workspace, settings, access, node_id))
        for node_id in range(1, settings.nodes + 1)
    ]


def _name(node_id: int, settings: Settings) -> str:
    return "broker" if settings.nodes == 1 else f"broker-{node_id}"


def _prepare(workspace: Workspace, settings: Settings, access: Access | None, node_id: int) -> str:
    """Write server.properties, format the directory where it is new; returns the file's path."""
    directory = workspace.path(_name(node_id, settings))
    copies = min(settings.nodes, COPIES_MAX)
    voters = [
        f"{voter}@127.0.0.1:{port}" for voter, port in enumerate(settings.controller_ports, start=1)
    ]
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "server.properties")
    text = PROPERTIES.format(
        node_id=node_id,
        voters=",".join(voters),
        listener="PLAINTEXT" if access is None else access.secured.listener,
        broker_port=settings.broker_ports[node_id - 1],
        controller_port=settings.controller_ports[node_id - 1],
        copies=copies,
        copies_min=min(copies, 2),
        log_directory=os.path.join(directory, "data"),
    )
    if access is not None:
        access.secured.make_certificate(node_id, ())
        text += format_properties(access.secured.node_properties(node_id, "CONTROLLER"))
    else:
        text += PLAIN_PROPERTIES
    write_private(path, text)
    is_new = not os.path.exists(os.path.join(directory, "data", "meta.properties"))
    if is_new and access is not None:
        try:
            format_secured(parse_properties(text), settings.cluster_id, access.secured)
        except (ValueError, OSError) as error:
            raise BrokerError(f"formatting {directory} failed: {error}") from error
    elif not os.path.exists(os.path.join(directory, "data", "meta.properties")):
        command = [*BARNABAS, "storage", "format", "--cluster-id", settings.cluster_id]
        command += ["--config", path, "--ignore-formatted"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_FORMAT_SECONDS, check=False
        )
        if done.returncode != 0:
            raise BrokerError(
                f"formatting {directory} failed: {(done.stderr or done.stdout)[-800:]}"
            )
    return path


def _broker_spec(name: str, properties_path: str) -> ChildSpec:
    return ChildSpec(
        name,
        [*BARNABAS, "start", properties_path],
        grace_seconds=15.0,
        advice="See the log; a port that another program took is replaced at the next start.",
    )


def answers(bootstrap: str, nodes: int = 1) -> bool:
    """Return whether so many brokers are known at `bootstrap`, asked once with a short timeout."""
    admin = Admin({**client_config(bootstrap), "log_level": 0}, timeout_s=1.0)
    try:
        return len(admin.metadata().brokers) >= nodes
    except KafkaException:
        return False
