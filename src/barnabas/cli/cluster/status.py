"""Content of `barnabas cluster status`."""

from dataclasses import dataclass
from typing import Any

import click

from barnabas.cli.admin import Admin, read_features
from barnabas.cli.balance.model import Load, loads
from barnabas.cli.balance.survey import Survey, survey
from barnabas.cli.cluster.quorum_state import Quorum, read_quorum
from barnabas.cli.output import Row, counted, print_table
from barnabas.cli.units import format_bytes
from barnabas.kafka.wire_admin import ClusterInfo
from barnabas.protocol.features import METADATA_VERSION, metadata_version_from_level

COLUMNS = ("node", "address", "rack", "roles", "state", "leads", "holds", "size", "free")


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The nodes, and what is not as it should be."""

    cluster_id: str
    controller_id: int
    metadata_version: str
    features: dict[str, int]
    nodes: list[Row]
    partitions: int
    moving: int
    problems: list[str]

    def to_value(self) -> dict[str, Any]:
        """As --json prints it."""
        return {
            "cluster_id": self.cluster_id,
            "controller": self.controller_id,
            "metadata_version": self.metadata_version,
            "features": self.features,
            "nodes": self.nodes,
            "partitions": self.partitions,
            "partitions_moving": self.moving,
            "problems": self.problems,
        }


def read_status(admin: Admin) -> ClusterStatus:
    """Ask the cluster. Raises CliError."""
    surveyed = survey(admin)
    quorum, features = read_quorum(admin, surveyed.cluster.fenced), read_features(admin)
    level = features.get(METADATA_VERSION)
    brokers = surveyed.brokers()
    held = {load.broker: load for load in loads(brokers, surveyed.placement())}
    led = dict.fromkeys((broker.id for broker in brokers), 0)
    for state in surveyed.partitions:
        if state.leader in led:
            led[state.leader] += 1
    return ClusterStatus(
        cluster_id=surveyed.cluster.cluster_id,
        controller_id=quorum.leader_id,
        metadata_version="-" if level is None else metadata_version_from_level(level).text,
        features=features,
        nodes=[
            _node(surveyed, quorum, broker.id, held[broker.id], led[broker.id])
            for broker in brokers
        ]
        + _controllers_alone(surveyed.cluster, quorum),
        partitions=len(surveyed.partitions),
        moving=len(surveyed.in_flight),
        problems=_problems(surveyed, quorum),
    )


def _node(found: Survey, quorum: Quorum, number: int, load: Load, led: int) -> Row:
    known = found.cluster.brokers.get(number)
    directories = found.directories.get(number, [])
    usable = [item.usable_bytes for item in directories if item.usable_bytes >= 0]
    size_bytes = sum(size for item in directories for size in item.sizes_bytes.values())
    roles = ["broker"]
    if quorum.voter(number) is not None:
        roles.append("leader" if number == quorum.leader_id else "voter")
    return {
        "node": number,
        "address": None if known is None else f"{known.host}:{known.port}",
        "rack": None if known is None else known.rack,
        "roles": roles,
        "state": _state(found, number, load),
        "leads": led,
        "holds": load.replicas,
        "size_bytes": size_bytes,
        "size": format_bytes(size_bytes) if directories else None,
        "free_bytes": min(usable, default=None),
        "free": format_bytes(min(usable)) if usable else None,
        "failed_directories": [item.path for item in directories if item.error],
    }


def _state(found: Survey, number: int, load: Load) -> str:
    known = found.cluster.brokers.get(number)
    if known is None:
        return "unregistered"
    if known.is_fenced:
        return "down"
    moving = found.in_flight.values()
    leaving = any(number in item.removing for item in moving)
    coming = any(number in item.adding for item in moving)
    if leaving and not coming:
        return "draining"
    if load.replicas == 0 and found.partitions:
        return "empty"
    return "up"


def _controllers_alone(cluster: ClusterInfo, quorum: Quorum) -> list[Row]:
    """Voters that are not brokers."""
    rows: list[Row] = []
    for voter in quorum.voters:
        if voter.id not in cluster.brokers:
            ends = quorum.endpoints.get(voter.id, ())
            rows.append(
                {
                    "node": voter.id,
                    "address": next((f"{host}:{port}" for _, host, port in ends), None),
                    "rack": None,
                    "roles": ["leader" if voter.is_leader else "voter"],
                    "state": "up" if voter.is_alive else "down",
                }
            )
    return rows


def _problems(found: Survey, quorum: Quorum) -> list[str]:
    problems = [
        f"node {broker.id} is down" for broker in found.cluster.brokers.values() if broker.is_fenced
    ]
    for number, directories in found.directories.items():
        problems += [
            f"node {number}: directory {item.path} has failed ({item.error})"
            for item in directories
            if item.error
        ]
    offline = sum(state.leader < 0 for state in found.partitions)
    lagging = sum(
        state.leader >= 0 and len(state.isr) < len(state.replicas)
        for state in found.partitions
        if state.key not in found.in_flight
    )
    if offline:
        problems.append(f"{offline} partitions have no leader")
    if lagging:
        problems.append(f"{lagging} partitions have replicas that are not in sync")
    if quorum.alive < len(quorum.voters):
        gone = ", ".join(str(voter.id) for voter in quorum.voters if not voter.is_alive)
        problems.append(f"voters do not follow: {gone}")
    return problems


def print_status(status: ClusterStatus) -> None:
    """For people."""
    click.echo(
        f"cluster {status.cluster_id}  controller {status.controller_id}  "
        f"metadata.version {status.metadata_version}  {counted(status.partitions, 'partition')}"
        + (f", {status.moving} moving" if status.moving else "")
    )
    print_table(status.nodes, COLUMNS)
    for problem in status.problems:
        click.echo(problem, err=True)
