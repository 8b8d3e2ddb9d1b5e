"""The demo's broker: a node of its own process, with its data in the demo's directory."""

from __future__ import annotations

import os
import subprocess
import sys

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace

BARNABAS = [sys.executable, "-m", "barnabas"]
_FORMAT_SECONDS = 60

PROPERTIES = """\
# Written by `barnabas demo`; ports change where others took them.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={log_directory}
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
# The figures are sums over everything ever published: nothing may age away.
log.retention.ms=-1
offsets.retention.minutes=525600
"""


class BrokerError(Exception):
    """The broker could not be set up; the message says why and what to do."""


def prepare(workspace: Workspace, settings: Settings) -> str:
    """Write server.properties, format the directory where it is new; returns the file's path.

    Raises BrokerError with the tool's own words where formatting fails.
    """
    directory = workspace.path("broker")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "server.properties")
    with open(f"{path}.new", "w", encoding="utf-8") as out:
        out.write(
            PROPERTIES.format(
                broker_port=settings.broker_port,
                controller_port=settings.controller_port,
                log_directory=os.path.join(directory, "data"),
            )
        )
    os.replace(f"{path}.new", path)
    if not os.path.exists(os.path.join(directory, "data", "meta.properties")):
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


def broker_spec(properties_path: str) -> ChildSpec:
    """Return how to start the broker."""
    return ChildSpec(
        "broker",
        [*BARNABAS, "start", properties_path],
        grace_seconds=15.0,
        advice="See the log; a port that another program took is chosen anew at the next start.",
    )


def answers(bootstrap: str) -> bool:
    """Whether a broker answers at `bootstrap`, asked once with a short timeout."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False
