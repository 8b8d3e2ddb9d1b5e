"""A simulated machine: power, disk, clock, and the node that runs there, again and again."""

import asyncio
from collections.abc import Mapping
from random import Random

from barnabas.app.node import Node
from barnabas.base.ids import TopicPartition
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from sim.clock import SimClock
from sim.disk import SimDisk
from sim.loop import Process, SimLoop
from sim.sim_history import History
from sim.wire import SimNetwork, Wire

CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
RESTART_AFTER_FAILURE_S = 1.0
"""A supervisor starts a node again that ended by itself."""


class Machine:
    """See the module. `node` is None while none runs."""

    def __init__(
        self,
        node_id: int,
        properties: Mapping[str, str],
        wire: Wire,
        seed: str,
        history: History,
        skew_ms: int = 0,
    ) -> None:
        self.node_id = node_id
        self.name = host_name(node_id)
        self.config = NodeConfig.from_properties(dict(properties))
        self.loop: SimLoop = wire.loop
        self.wire = wire
        self.host = wire.host(self.name)
        self.clock = SimClock(wire.loop, skew_ms)
        self.random = Random(f"{seed}/{self.name}")
        self.disk = SimDisk(wire.loop, self.clock, self.random)
        self.history = history
        self.process: Process | None = None
        self.node: Node | None = None
        self.is_serving = False
        """True if `start` of the node has returned."""
        self.is_wanted = True
        """True if a supervisor is to start the node again when it ends by itself."""
        self.has_disk = True
        self.disk_number = 0
        """Rises when the disk is replaced by an empty one."""
        self.excuses = 0
        """Faults at present that explain that its node ends."""
        self._network: SimNetwork | None = None
        self._incarnation = 0
        self._seed = seed

    def __repr__(self) -> str:
        return self.name

    @property
    def roles(self) -> frozenset[str]:
        return self.config.process_roles

    @property
    def is_running(self) -> bool:
        """True if a process exists, even if it does not serve."""
        return self.process is not None

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.stop_count > 0

    @property
    def leads_quorum(self) -> bool:
        """True if the node believes that it leads the metadata quorum."""
        raft = None if self.node is None else self.node.metadata.raft
        return raft is not None and raft.is_leader

    @property
    def leads_partitions(self) -> bool:
        """True if the node believes that it leads some partition."""
        replicas = self.replicas
        return replicas is not None and any(partition.is_leader for partition in replicas)

    @property
    def replicas(self) -> ReplicaManager | None:
        """The partitions of the broker that runs, if one does."""
        if self.node is None or "broker" not in self.roles:
            return None
        return self.node.broker.replicas

    def leads(self, topic_partition: TopicPartition) -> bool:
        """Return whether the node believes that it leads this partition."""
        replicas = self.replicas
        found = None if replicas is None else replicas.find(*topic_partition)
        return isinstance(found, Partition) and found.is_leader

    # Life

    def start(self) -> None:
        """Start the node, if the machine has power and a disk, and none runs."""
        if self.process is not None or not self.host.is_powered or not self.has_disk:
            return
        self._incarnation += 1
        process = Process(self.name, self._incarnation)
        network = SimNetwork(self.wire, self.name, process)
        self.process, self._network = process, network
        self.disk.process = process
        self.is_serving = False
        self.loop.create_task(self._live(process, network), context=process.context)

    async def _live(self, process: Process, network: SimNetwork) -> None:
        """The process: it ends when the node failed."""
        random = Random(f"{self._seed}/{self.name}/{self._incarnation}")
        try:
            node = await Node.open(self.config, self.disk, self.clock, network, random)
        except Exception as error:  # noqa: BLE001  # a supervisor would see it end, and so do we
            self._complain("failed-start", f"{process}: {error!r}")
            self._ended(process)
            return
        self.node = node
        starting = asyncio.ensure_future(node.start())
        failing = asyncio.ensure_future(node.failed.wait())
        await asyncio.wait((starting, failing), return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and starting.exception() is not None:
            # A supervisor would see it end, and so do we.
            self._complain("failed-start", f"{process}: {starting.exception()!r}")
        else:
            self.is_serving = starting.done()
            await failing
            self._complain("failed-node", f"{process}: its metadata log failed")
        self._ended(process)

    def _complain(self, name: str, text: str) -> None:
        if not self.excuses:
            self.history.saw(name, f"{self._now()}: {text}")

    def _now(self) -> str:
        return f"{self.loop.time():.3f} s"

    def _ended(self, process: Process) -> None:
        """The process ended by itself; it is started again as long as it is wanted."""
        if self.process is process:
            self.kill()
            self.loop.call_later(RESTART_AFTER_FAILURE_S, self._restart, context=_OUTSIDE.context)

    def _restart(self) -> None:
        if self.is_wanted:
            self.start()

    def kill(self) -> None:
        """Kill the process with SIGKILL. Written data stays."""
        process = self.process
        if process is None:
            return
        self.loop.kill(process)
        assert self._network is not None
        self._network.process_ended()
        self._forget()

    def cut_power(self) -> None:
        """Take the power away: what was not forced to the disk may be lost."""
        self.host.is_powered = False
        self.kill()
        self.disk.cut_power(self.random)

    def give_power(self) -> None:
        self.host.is_powered = True

    def lose_disk(self, *, keep: str | None) -> None:
        """Have an empty disk but for the directory `keep`; no node runs."""
        for directory in dict.fromkeys((*self.config.log_dirs, self.config.metadata_log_dir)):
            if directory != keep and self.disk.exists(directory):
                self.disk.remove_tree(directory)
        self.disk.sync_dir("/data")
        self.has_disk = False

    def get_disk(self) -> None:
        """Somebody has formatted the new disk."""
        self.has_disk = True
        self.disk_number += 1

    def _forget(self) -> None:
        self.process = self.node = self._network = None
        self.is_serving = False
        self.disk.process = None

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None:
            self.loop.stop_process(self.process)

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None and self.process.stop_count:
            self.loop.continue_process(self.process)

    async def stop(self, within_s: float = 30.0) -> None:
        """SIGTERM: a controlled shutdown, and SIGKILL when it takes too long."""
        process, node = self.process, self.node
        if process is None or node is None or not self.is_serving:
            self.kill()
            return
        stopping = self.loop.create_task(node.stop(), context=process.context)
        await asyncio.wait([stopping], timeout=within_s)
        error = stopping.exception() if stopping.done() else None
        if self.process is not process:
            return  # it has been killed
        if not stopping.done():
            self.history.saw("slow-stop", f"{process} had not stopped by {self._now()}")
        elif error is not None:
            self._complain("failed-stop", f"{process}: {error!r}")
        self.kill()
        if self.is_wanted:
            self.start()  # a start was requested while it stopped


def host_name(node_id: int) -> str:
    return f"node{node_id}"


_OUTSIDE = Process("supervisor", 0)
