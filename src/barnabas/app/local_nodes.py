"""The nodes of a cluster on this machine: ids, ports, directories, configuration, formatting.

For `barnabas.Cluster` and the pytest fixture, in one process, and `barnabas dev`, with `--nodes` a
process per node. Every node has its own directory with `server.properties` and data, so that each
can also be started alone. A standalone node is a cluster by itself. Of several, the first nodes are
brokers and voters of a dynamic quorum (KIP-853); nodes that are added later are brokers. The voters
know each other's addresses from the metadata log, so a directory that is used again keeps its
ports.
"""

import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.app.secured import Secured
from barnabas.base.clock import Clock
from barnabas.base.config.properties import format_properties, parse_properties
from barnabas.base.disk import Disk
from barnabas.base.ids import uuid_to_text
from barnabas.base.private_files import write_private
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.ids import RandomSource, random_uuid
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.metadata.storage_format import (
    FormatOptions,
    format_directories,
    log_directories,
    random_cluster_id,
)

REPLICAS_MAX = 3
"""Of the internal topics, and of topics made without saying how many."""
NODE_DIRECTORY = re.compile(r"node-([0-9]+)")
FILE_NAME = "server.properties"
SAFE_VALUE = re.compile(r"[!-~]*")
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


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One node: where it is and how it is configured."""

    node_id: int
    directory: str
    properties: Mapping[str, str]

    @property
    def path(self) -> str:
        """Its server.properties."""
        return os.path.join(self.directory, FILE_NAME)

    @property
    def rack(self) -> str | None:
        return self.properties.get("broker.rack")

    def address(self, listener: str) -> str | None:
        """host:port of a listener, or None where it has none of that name."""
        for entry in self._listeners:
            name, _, address = entry.partition("://")
            if name.strip() == listener:
                return address.strip()
        return None

    @property
    def client_listener(self) -> str:
        """The name of the listener for clients."""
        names = (entry.partition("://")[0].strip() for entry in self._listeners)
        return next(name for name in names if name != CONTROLLER_LISTENER)

    @property
    def client_address(self) -> str:
        address = self.address(self.client_listener)
        assert address is not None, "every local node is a broker"
        return address

    @property
    def _listeners(self) -> list[str]:
        return self.properties["listeners"].split(",")


def new_nodes(
    directory: str,
    ports: Sequence[int],
    controller_ports: Sequence[int],
    *,
    host: str = "127.0.0.1",
    racks: Sequence[str] = (),
    overrides: Mapping[str, str] | None = None,
    secured: Secured | None = None,
) -> list[LocalNode]:
    """The first nodes of a cluster: as many as there are ports, all brokers and voters."""
    count = len(ports)
    quorum = ",".join(f"127.0.0.1:{port}" for port in controller_ports)
    name = CLIENT_LISTENER if secured is None else secured.listener
    nodes = []
    for index, (port, controller_port) in enumerate(zip(ports, controller_ports, strict=True)):
        listeners = [
            _listener(name, host, port),
            _listener(CONTROLLER_LISTENER, "127.0.0.1", controller_port),
        ]
        properties = {
            "process.roles": "broker,controller",
            "listeners": ",".join(listeners),
            **_common(quorum, count),
            **_security(secured, index + 1),
            **(overrides or {}),
        }
        nodes.append(_node(directory, index + 1, properties, racks))
    return nodes


def joining_node(
    directory: str,
    nodes: Sequence[LocalNode],
    port: int,
    *,
    rack: str | None = None,
    secured: Secured | None = None,
) -> LocalNode:
    """One more node, a broker configured like the first of `nodes`."""
    first = nodes[0]
    host = first.client_address.rpartition(":")[0].strip("[]")
    properties = {
        key: value
        for key, value in first.properties.items()
        if key not in ("node.id", "log.dirs", "broker.rack")
    }
    properties["process.roles"] = "broker"
    properties["listeners"] = _listener(first.client_listener, host, port)
    node_id = max(node.node_id for node in nodes) + 1
    properties |= _security(secured, node_id)
    return _node(directory, node_id, properties, (), rack)


def _security(secured: Secured | None, node_id: int) -> dict[str, str]:
    return {} if secured is None else secured.node_properties(node_id, CONTROLLER_LISTENER)


def _common(quorum: str, count: int) -> dict[str, str]:
    replicas = min(REPLICAS_MAX, count)
    return {
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": quorum,
        "default.replication.factor": str(replicas),
        "min.insync.replicas": "2" if replicas > 2 else "1",
        "offsets.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": "2" if replicas > 2 else "1",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": "2" if replicas > 2 else "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def _node(
    directory: str,
    node_id: int,
    properties: Mapping[str, str],
    racks: Sequence[str],
    rack: str | None = None,
) -> LocalNode:
    place = os.path.join(os.path.abspath(directory), f"node-{node_id}")
    values = {"node.id": str(node_id), "log.dirs": os.path.join(place, "data"), **properties}
    if racks:
        rack = racks[(node_id - 1) % len(racks)]
    if rack is not None:
        values["broker.rack"] = rack
    return LocalNode(node_id, place, values)


def _listener(name: str, host: str, port: int) -> str:
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


# -- directories


def found_nodes(directory: str, overrides: Mapping[str, str] | None = None) -> list[LocalNode]:
    """The nodes that an earlier run left in `directory`, by id. Raises OSError, ValueError."""
    nodes = []
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        match = NODE_DIRECTORY.fullmatch(name)
        path = os.path.join(os.path.abspath(directory), name, FILE_NAME)
        if match is not None and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                properties = {**parse_properties(file.read()), **(overrides or {})}
            nodes.append(LocalNode(int(match[1]), os.path.dirname(path), properties))
    return sorted(nodes, key=lambda node: node.node_id)


def write_properties(node: LocalNode) -> None:
    """Write its server.properties, which may hold passwords. Raises OSError."""
    os.makedirs(node.directory, exist_ok=True)
    write_private(node.path, properties_text(node.properties))


def properties_text(values: Mapping[str, str]) -> str:
    """A properties file for people: escaped only where that is needed."""
    lines = []
    for key, value in values.items():
        if SAFE_VALUE.fullmatch(value) and "\\" not in value:
            lines.append(f"{key}={value}\n")
        else:
            lines.append(format_properties({key: value}))
    return "".join(lines)


def format_nodes(
    disk: Disk,
    nodes: Sequence[LocalNode],
    *,
    random: RandomSource,
    clock: Clock,
    secured: Secured | None = None,
) -> None:
    """Format what is not formatted yet; all of it belongs to one cluster.

    Raises FormatError, MetaPropertiesError and OSError.
    """
    configs = [NodeConfig.from_properties(dict(node.properties)) for node in nodes]
    known = [read_meta_properties(disk, config.metadata_log_dir) for config in configs]
    cluster_id = next(
        (info.cluster_id for info in known if info is not None and info.cluster_id), None
    )
    is_new = cluster_id is None
    is_static = bool(configs[0].get_list("controller.quorum.voters"))
    cluster_id = cluster_id or random_cluster_id(random)
    voters = ",".join(
        f"{node.node_id}@{node.address(CONTROLLER_LISTENER)}:{uuid_to_text(random_uuid(random))}"
        for node in nodes
        if node.address(CONTROLLER_LISTENER) is not None
    )
    for config, info in zip(configs, known, strict=True):
        if info is None:
            options = FormatOptions(
                cluster_id=cluster_id,
                initial_controllers=voters if is_new else None,
                no_initial_controllers=not is_new and not is_static,
                scram=secured.scram if secured is not None and is_new else (),
                records=secured.acls(random) if secured is not None and is_new else (),
            )
            format_directories(disk, config, options, random=random, now_ms=clock.now_ms())


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


class PortReservation:
    """Free ports that stay ours until `close`, for nodes of this and of other processes.

    A socket that is bound and never listens keeps a port from everybody who does not ask for
    SO_REUSEADDR, as nobody who takes any free port does, and from being chosen for outgoing
    connections; connecting to it is refused. A node that listens there does ask. On systems
    other than Linux the second bind would fail, so there the port is only free when chosen.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._sockets: list[socket.socket] = []

    def take(self, count: int) -> list[int]:
        """`count` free ports. Raises OSError."""
        taken = [self._bind(0) for _ in range(count)]
        ports: list[int] = [bound.getsockname()[1] for bound in taken]
        self._keep(taken)
        return ports

    def hold(self, port: int) -> None:
        """Hold this port. Raises OSError where another holds it."""
        self._keep([self._bind(port)])

    def _bind(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self._host, port))
        except OSError:
            bound.close()
            raise
        return bound

    def _keep(self, taken: list[socket.socket]) -> None:
        if sys.platform == "linux":
            self._sockets += taken
        else:
            for bound in taken:
                bound.close()

    def close(self) -> None:
        """Let go of all ports."""
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


def free_ports(count: int, host: str) -> list[int]:
    """Ports that are free at this moment."""
    reservation = PortReservation(host)
    try:
        return reservation.take(count)
    finally:
        reservation.close()
