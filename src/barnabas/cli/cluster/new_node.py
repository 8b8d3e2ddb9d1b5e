"""Preparation of a node that joins a cluster: an id, a configuration, a formatted disk."""

import os
import socket
from dataclasses import dataclass

from barnabas.app.local_nodes import free_ports, properties_text
from barnabas.base.addresses import is_loopback
from barnabas.base.errors import ConfigError
from barnabas.base.private_files import write_private
from barnabas.cli.admin import Admin, read_features, static_config
from barnabas.cli.cluster.quorum_state import Quorum, is_dynamic, read_quorum
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.node_options import format_node, read_properties
from barnabas.kafka.wire_admin import ClusterInfo
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.storage_format import FormatOptions
from barnabas.protocol.features import METADATA_VERSION, metadata_version_from_level

OWN_KEYS = frozenset(
    {"node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dirs"}
    | {"log.dir", "metadata.log.dir", "broker.rack", "controller.quorum.voters"}
    | {"controller.quorum.bootstrap.servers", "controller.listener.names"}
)
"""Settings that differ between nodes or are generated."""
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093


@dataclass(frozen=True, slots=True)
class NodeWishes:
    """What was said about the new node; None where it was not."""

    directory: str
    node_id: int | None
    host: str | None
    port: int | None
    controller_port: int | None
    rack: str | None
    is_voter: bool
    is_replacement: bool
    like_path: str | None = None
    """A node's server.properties, for the secrets."""


@dataclass(frozen=True, slots=True)
class MadeNode:
    """A node that can be started."""

    node_id: int
    path: str
    listener: str
    lines: list[str]


def prepare(admin: Admin, wishes: NodeWishes) -> MadeNode:
    """Write server.properties and format the directory. Raises CliError and FormatError."""
    cluster, quorum = admin.cluster(), read_quorum(admin)
    node_id = _node_id(cluster, quorum, wishes)
    dynamic = is_dynamic(admin)
    if wishes.is_voter and not dynamic:
        raise CliError(
            "the voters of this quorum are fixed by controller.quorum.voters (kraft.version 0)",
            hint="leave out --voter, or upgrade kraft.version to 1 first",
        )
    like = static_config(admin, _any_live(cluster))
    if wishes.like_path is not None:
        like |= read_properties(wishes.like_path)
    values = _properties(cluster, quorum, wishes, node_id, like, dynamic=dynamic)
    try:
        config = NodeConfig.from_properties(values)
    except ConfigError as error:
        if wishes.like_path is not None:
            raise
        hint = "a cluster does not tell its secrets: give a node's server.properties with --like"
        raise CliError(str(error), ExitCode.USAGE, hint) from error
    directory = os.path.abspath(wishes.directory)
    path = os.path.join(directory, "server.properties")
    if os.path.exists(path):
        raise CliError(f"{path} exists already", hint="choose another --directory")
    level = read_features(admin).get(METADATA_VERSION)
    options = FormatOptions(
        cluster_id=cluster.cluster_id,
        release_version=None if level is None else metadata_version_from_level(level).text,
        no_initial_controllers=dynamic,
    )
    lines = format_node(config, options)
    write_private(path, properties_text(values))
    return MadeNode(node_id, path, values["listeners"].partition(",")[0], lines)


def _node_id(cluster: ClusterInfo, quorum: Quorum, wishes: NodeWishes) -> int:
    taken = {*cluster.brokers, *(item.id for item in (*quorum.voters, *quorum.observers))}
    if wishes.node_id is None:
        if wishes.is_replacement:
            raise CliError("--replace needs --node-id", ExitCode.USAGE)
        return max(taken, default=0) + 1
    if wishes.node_id not in taken:
        if wishes.is_replacement:
            raise CliError(
                f"there is no node {wishes.node_id} to replace",
                ExitCode.NOT_FOUND,
                f"leave out --replace to add a node {wishes.node_id}",
            )
        return wishes.node_id
    broker = cluster.brokers.get(wishes.node_id)
    if not wishes.is_replacement:
        raise CliError(
            f"there is a node {wishes.node_id} already",
            hint="choose another --node-id, or give --replace if that node is lost",
        )
    if broker is not None and not broker.is_fenced:
        raise CliError(f"node {wishes.node_id} runs at {broker.host}:{broker.port}: stop it first")
    voter = quorum.voter(wishes.node_id)
    if voter is not None and wishes.is_voter:
        raise CliError(
            f"node {wishes.node_id} still votes with the directory it has lost",
            hint=f"run barnabas quorum remove-voter {wishes.node_id} first",
        )
    return wishes.node_id


def _any_live(cluster: ClusterInfo) -> int:
    if not cluster.live:
        raise CliError("no broker of the cluster runs", ExitCode.UNREACHABLE)
    return cluster.live[0]


def _properties(
    cluster: ClusterInfo,
    quorum: Quorum,
    wishes: NodeWishes,
    node_id: int,
    like: dict[str, str],
    *,
    dynamic: bool,
) -> dict[str, str]:
    local = all(is_loopback(broker.host) for broker in cluster.brokers.values())
    host = wishes.host or ("127.0.0.1" if local else socket.getfqdn())
    spare = free_ports(2, "127.0.0.1") if local else [CLIENT_PORT, CONTROLLER_PORT]
    port = spare[0] if wishes.port is None else wishes.port
    controller_port = spare[1] if wishes.controller_port is None else wishes.controller_port
    client_listener, controller_listener = _listener_names(like, quorum)
    shown = f"[{host}]" if ":" in host else host
    listeners = [f"{client_listener}://{shown}:{port}"]
    if wishes.is_voter:
        listeners.append(f"{controller_listener}://{shown}:{controller_port}")
    values = {
        "process.roles": "broker,controller" if wishes.is_voter else "broker",
        "node.id": str(node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": controller_listener,
        "log.dirs": os.path.join(os.path.abspath(wishes.directory), "data"),
    }
    ends = [
        (voter.id, f"{host}:{port}" if ":" not in host else f"[{host}]:{port}")
        for voter in quorum.voters
        for _, host, port in quorum.endpoints.get(voter.id, ())[:1]
    ]
    if not ends:
        raise CliError("the quorum does not report the addresses of its controllers")
    if dynamic:
        values["controller.quorum.bootstrap.servers"] = ",".join(end for _, end in ends)
    else:
        values["controller.quorum.voters"] = ",".join(f"{item}@{end}" for item, end in ends)
    if wishes.rack is not None:
        values["broker.rack"] = wishes.rack
    return {**values, **{key: value for key, value in like.items() if key not in OWN_KEYS}}


def _listener_names(like: dict[str, str], quorum: Quorum) -> tuple[str, str]:
    controllers = like.get("controller.listener.names", "CONTROLLER").split(",")
    names = [name for ends in quorum.endpoints.values() for name, _, _ in ends]
    controller = names[0] if names else controllers[0].strip()
    clients = [
        item.partition("://")[0].strip()
        for item in like.get("listeners", "PLAINTEXT://:9092").split(",")
    ]
    client = like.get("inter.broker.listener.name") or next(
        (name for name in clients if name not in controllers), "PLAINTEXT"
    )
    return client, controller


def wait_until_joined(admin: Admin, node_id: int, timeout_s: float, *, as_observer: bool) -> None:
    """Wait until a node serves, and follows the quorum. Raises CliError when time is up."""

    def has_joined() -> bool:
        broker = admin.cluster().brokers.get(node_id)
        if broker is None or broker.is_fenced:
            return False
        return not as_observer or read_quorum(admin).observer(node_id) is not None

    if not admin.wait_until(has_joined, timeout_s):
        raise CliError(
            f"node {node_id} has not joined within {timeout_s:g} s",
            ExitCode.UNREACHABLE,
            "is it started? What it prints says why it cannot join",
        )
