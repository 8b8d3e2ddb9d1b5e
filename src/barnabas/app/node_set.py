"""Nodes that share one event loop: started, stopped and added one by one."""

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from barnabas.app.local_nodes import (
    NODE_ID,
    LocalNode,
    PortReservation,
    format_nodes,
    format_standalone,
    found_nodes,
    joining_node,
    new_nodes,
    standalone_properties,
    write_properties,
)
from barnabas.app.node import Node
from barnabas.app.secured import Secured
from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig

HOST = "127.0.0.1"


class NodeSet:
    """The nodes of one cluster below one directory. All methods belong to one event loop.

    With `is_durable` false nothing is forced to the disk (`LocalDisk`).
    """

    def __init__(
        self,
        directory: str,
        count: int,
        overrides: Mapping[str, str],
        racks: Sequence[str] = (),
        secured: Secured | None = None,
        *,
        is_durable: bool = True,
    ) -> None:
        self.directory = directory
        self._count = count
        self._overrides = overrides
        self._racks = racks
        self.secured = secured
        self._is_durable = is_durable
        self._reservation = PortReservation(HOST)
        self._known: dict[int, LocalNode] = {}
        self._running: dict[int, Node] = {}

    @property
    def known(self) -> Mapping[int, LocalNode]:
        """Every node, running or not, by id."""
        return self._known

    def is_running(self, node_id: int) -> bool:
        return node_id in self._running

    def address(self, node_id: int) -> str:
        """host:port for clients, which a node keeps while it is stopped."""
        known = self._known[node_id]
        node = self._running.get(node_id)
        if node is not None:
            return f"{HOST}:{node.bound_port(known.client_listener)}"
        return known.client_address

    # -- all nodes

    async def start(self) -> None:
        """Prepare the directory and start every node in it. Raises what keeps one from starting.

        Nothing runs any more when it raises.
        """
        try:
            self._prepare()
            async with asyncio.TaskGroup() as group:
                for node_id in self._known:
                    group.create_task(self.start_node(node_id))
        except BaseExceptionGroup as failures:
            await self.stop()
            raise failures.exceptions[0] from None
        except BaseException:
            await self.stop()
            raise

    def _prepare(self) -> None:
        """Find or make the nodes, and format their directories."""
        nodes = found_nodes(self.directory, self._overrides)
        for node in nodes:
            for port in _ports(node):
                self._reservation.hold(port)
        data = os.path.join(self.directory, "data")
        if os.path.exists(data) or (self._count == 1 and not nodes):
            nodes = [self._single(), *nodes]
            nodes[1:] = [self._beside_single(nodes[0], node) for node in nodes[1:]]
        if nodes and len(nodes) < self._count:
            raise ValueError(
                f"{self.directory} holds a cluster of {len(nodes)} nodes, not {self._count}: "
                "start it as it is, and add nodes then"
            )
        if not nodes:
            ports = self._reservation.take(2 * self._count)
            nodes = new_nodes(
                self.directory,
                ports[: self._count],
                ports[self._count :],
                host=HOST,
                racks=self._racks,
                overrides=self._overrides,
                secured=self.secured,
            )
            for node in nodes:
                write_properties(node)
        self._known = {node.node_id: node for node in nodes}
        self._make_certificates()
        self._format()

    def _single(self) -> LocalNode:
        """A cluster's only voter: its address is configuration, so its ports may change."""
        port, controller_port = self._reservation.take(2)
        properties = standalone_properties(
            self.directory,
            host=HOST,
            port=port,
            controller_port=controller_port,
            overrides={**self._rack_of_first(), **self._overrides},
            secured=self.secured,
        )
        config = NodeConfig.from_properties(properties)
        disk = LocalDisk(is_durable=self._is_durable)
        try:
            format_standalone(
                disk,
                config,
                random=random.SystemRandom(),
                clock=SystemClock(),
                secured=self.secured,
            )
        finally:
            disk.close()
        return LocalNode(NODE_ID, self.directory, properties)

    def _beside_single(self, first: LocalNode, node: LocalNode) -> LocalNode:
        """A node that was added to a single one, told where that is now."""
        voters = first.properties["controller.quorum.voters"]
        moved = replace(node, properties={**node.properties, "controller.quorum.voters": voters})
        write_properties(moved)
        return moved

    def _rack_of_first(self) -> dict[str, str]:
        return {"broker.rack": self._racks[0]} if self._racks else {}

    def _make_certificates(self) -> None:
        """For the nodes that have none."""
        if self.secured is not None:
            for node_id in self._known:
                self.secured.make_certificate(node_id, [HOST])

    def _format(self) -> None:
        disk = LocalDisk(is_durable=self._is_durable)
        try:
            nodes = list(self._known.values())
            format_nodes(
                disk,
                nodes,
                random=random.SystemRandom(),
                clock=SystemClock(),
                secured=self.secured,
            )
        finally:
            disk.close()

    async def stop(self) -> None:
        """Stop every node that runs and let go of the ports."""
        running = list(self._running.values())
        try:
            # All brokers leave while the quorum is complete: the last would find no majority.
            await asyncio.gather(
                *(node.metadata.controlled_shutdown() for node in running), return_exceptions=True
            )
            outcomes = await asyncio.gather(
                *(self.stop_node(node_id) for node_id in list(self._running)),
                return_exceptions=True,
            )
        finally:
            self._reservation.close()
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    # -- one node

    async def start_node(self, node_id: int) -> None:
        """Start a node that does not run. Raises KeyError, RuntimeError, what keeps it from it."""
        if node_id in self._running:
            raise RuntimeError(f"node {node_id} runs already")
        config = NodeConfig.from_properties(dict(self._known[node_id].properties))
        node = await Node.open(config, is_durable=self._is_durable)
        await node.start()
        self._running[node_id] = node

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down cleanly. Raises KeyError for one that does not exist."""
        if node_id not in self._known:
            raise KeyError(node_id)
        node = self._running.pop(node_id, None)
        if node is not None:
            await node.stop()

    async def add_node(self, rack: str | None = None) -> int:
        """Add a broker, start it, and return its id. It holds nothing before a rebalance."""
        (port,) = self._reservation.take(1)
        node = joining_node(
            self.directory, list(self._known.values()), port, rack=rack, secured=self.secured
        )
        write_properties(node)
        self._known[node.node_id] = node
        self._make_certificates()
        self._format()
        await self.start_node(node.node_id)
        return node.node_id


def _ports(node: LocalNode) -> list[int]:
    return [int(entry.rpartition(":")[2]) for entry in node.properties["listeners"].split(",")]
