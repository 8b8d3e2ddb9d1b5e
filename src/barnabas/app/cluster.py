"""A cluster inside a Python program: for tests, notebooks and tools.

    with barnabas.Cluster(nodes=3) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.stop_node(2)  # nothing is lost

    with barnabas.Cluster(security="scram") as cluster:
        producer = confluent_kafka.Producer(cluster.client_config)  # as user admin, over TLS

`with` runs the nodes on an event loop of their own, in a background thread; `async with` on the
running loop. Either way they are ready when the block begins and gone when it ends.
"""

import asyncio
import logging
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.app.local_nodes import standalone_properties
from barnabas.app.node_set import NodeSet
from barnabas.app.secured import ADMIN, Security, open_secured
from barnabas.base.errors import ConfigError
from barnabas.base.event_loop import new_event_loop
from barnabas.node.config.node_config import NodeConfig

logging.getLogger("barnabas").addHandler(logging.NullHandler())  # the program decides on handlers

EMBEDDED_CONFIG = {
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "log.segment.delete.delay.ms": "1000",
}
"""Beside the standalone node's: what makes small clusters quick. `config` wins over it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node of a cluster, as it is at one moment."""

    node_id: int
    bootstrap_servers: str
    directory: str
    rack: str | None
    is_running: bool
    properties: Mapping[str, str]
    """Its server.properties."""


class Cluster:
    """A cluster that lives as long as a `with` block.

    Every node is broker and voter. Topics have up to three replicas, and with three nodes or more
    `min.insync.replicas` is 2. Ports are free ones of this machine's loopback, and a node that is
    stopped keeps its own. Data is in a temporary directory that is removed at the end, and is not
    forced to the disk, or in `directory`, which is kept and used again. `config` holds Kafka's
    broker properties, `racks` is dealt out to the nodes in turn.

    `security` is None (plain text, and everybody may do everything), "scram", "plain", "mtls"
    or "tls". All but "tls", where nobody logs in, have ACLs and two users: admin may do
    everything, alice what she likes with names that begin with `alice-`. It needs the package
    `cryptography`, which the extra `security` installs.
    """

    def __init__(
        self,
        nodes: int = 1,
        config: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        *,
        racks: Sequence[str] = (),
        security: str | None = None,
    ) -> None:
        """Raises ValueError unless there is at least one node, and for an unknown security.

        Warns of keys without effect.
        """
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        self._security = None if security is None else _security(security)
        self._count = nodes
        self._racks = tuple(racks)
        self._overrides = {**EMBEDDED_CONFIG, **(config or {})}
        for text in _keys_without_effect(self._overrides):
            warnings.warn(f"config: {text}", stacklevel=2)
        self._kept_directory = None if directory is None else os.path.abspath(directory)
        self._nodes: NodeSet | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    @property
    def bootstrap_servers(self) -> str:
        """host:port of every node, for clients. Raises RuntimeError while it does not run."""
        nodes = self._running()
        return ",".join(nodes.address(node_id) for node_id in nodes.known)

    @property
    def client_config(self) -> dict[str, str]:
        """For clients of librdkafka: the addresses, and how the user admin logs in."""
        return self.client_config_of(ADMIN)

    def client_config_of(self, user: str) -> dict[str, str]:
        """As `client_config`, for another user. Raises RuntimeError, KeyError."""
        secured = self._running().secured
        more = {} if secured is None else secured.librdkafka_config(user)
        return {"bootstrap.servers": self.bootstrap_servers, **more}

    @property
    def java_properties(self) -> dict[str, str]:
        """For Java's clients: the addresses, and how the user admin logs in."""
        return self.java_properties_of(ADMIN)

    def java_properties_of(self, user: str) -> dict[str, str]:
        """As `java_properties`, for another user. Raises RuntimeError, KeyError."""
        secured = self._running().secured
        more = {} if secured is None else secured.java_properties(user)
        return {"bootstrap.servers": self.bootstrap_servers, **more}

    def properties_file_of(self, user: str = ADMIN) -> str:
        """A file for Java's tools and `barnabas --command-config`, of a secured cluster.

        Raises RuntimeError.
        """
        secured = self._running().secured
        if secured is None:
            raise RuntimeError("the cluster is not secured")
        return secured.file_of(user)

    @property
    def directory(self) -> str:
        """The directory of the data. Raises RuntimeError before the cluster runs."""
        return self._running().directory

    @property
    def nodes(self) -> dict[int, ClusterNode]:
        """The nodes by id, running or not. Raises RuntimeError while the cluster does not run."""
        nodes = self._running()
        return {
            node_id: ClusterNode(
                node_id,
                nodes.address(node_id),
                node.directory,
                node.rack,
                nodes.is_running(node_id),
                node.properties,
            )
            for node_id, node in nodes.known.items()
        }

    def _running(self) -> NodeSet:
        if self._nodes is None:
            raise RuntimeError("the cluster does not run")
        return self._nodes

    # -- one node

    def stop_node(self, node_id: int) -> None:
        """Shut one node down cleanly; the others go on. Raises KeyError."""
        self._call(self._running().stop_node(node_id))

    def start_node(self, node_id: int) -> None:
        """Start a node that was stopped. Raises KeyError, RuntimeError for one that runs."""
        self._call(self._running().start_node(node_id))

    def add_node(self, *, rack: str | None = None) -> int:
        """Add a broker and return its id; `barnabas rebalance` gives it its share."""
        return self._call(self._running().add_node(rack))

    async def stop_node_async(self, node_id: int) -> None:
        """`stop_node` in an `async with` block."""
        await self._running().stop_node(node_id)

    async def start_node_async(self, node_id: int) -> None:
        """`start_node` in an `async with` block."""
        await self._running().start_node(node_id)

    async def add_node_async(self, *, rack: str | None = None) -> int:
        """`add_node` in an `async with` block."""
        return await self._running().add_node(rack)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop of the background thread."""
        if self._loop is None:
            work.close()
            raise RuntimeError("in an async with block, await the method whose name ends in _async")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # -- on a separate event loop, in a thread

    def start(self) -> "Cluster":
        """Start in a background thread and wait until clients are served.

        Raises what keeps the nodes from starting: ConfigError, OSError and others.
        """
        if self._thread is not None:
            raise RuntimeError("the cluster runs already")
        self._started.clear()
        self._failure = None
        _in_threads.add(self)
        self._thread = threading.Thread(target=self._run, name="barnabas-cluster", daemon=True)
        self._thread.start()
        self._started.wait()
        self._raise_failure()
        return self

    def stop(self) -> None:
        """Shut down and remove temporary data. Harmless when the cluster does not run.

        Raises what went wrong in the thread.
        """
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            _in_threads.discard(self)
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            self._join()
            raise failure

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001  # it crosses to the thread that waits
            self._failure = error
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self._start_nodes()
            self._started.set()
            await self._stopping.wait()
        finally:
            self._loop = None
            self._stopping = None
            await self._stop_nodes()

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- on the running event loop

    async def __aenter__(self) -> "Cluster":
        try:
            await self._start_nodes()
        except BaseException:
            await self._stop_nodes()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop_nodes()

    # -- the nodes and their directory

    async def _start_nodes(self) -> None:
        directory = self._kept_directory or tempfile.mkdtemp(prefix="barnabas-")
        secured = None
        if self._security is not None:
            secured = open_secured(directory, self._security)
        nodes = NodeSet(
            directory,
            self._count,
            self._overrides,
            self._racks,
            secured,
            is_durable=self._kept_directory is not None,
        )
        self._nodes = nodes
        await nodes.start()
        if secured is not None:
            secured.write_client_files(self.bootstrap_servers)

    async def _stop_nodes(self) -> None:
        nodes, self._nodes = self._nodes, None
        if nodes is None:
            return
        try:
            await nodes.stop()
        finally:
            if self._kept_directory is None:
                await asyncio.to_thread(shutil.rmtree, nodes.directory, ignore_errors=True)


def _security(name: str) -> Security:
    try:
        return Security(name)
    except ValueError:
        known = ", ".join(item.value for item in Security)
        raise ValueError(f"security is None or one of {known}, not {name!r}") from None


def _keys_without_effect(overrides: Mapping[str, str]) -> Sequence[str]:
    try:
        return NodeConfig.from_properties(standalone_properties(".", overrides=overrides)).warnings
    except ConfigError:
        return ()  # the start says so


_in_threads: set[Cluster] = set()
"""Those whose nodes run in a thread."""


def _stop_all() -> None:
    """Stop the clusters that a program leaves running at its end, and delete their directories."""
    for cluster in list(_in_threads):
        cluster.stop()


# `atexit` is too late: executors take no work any more then, and nodes need theirs to stop. This
# runs before, as long as it is registered after theirs, which `base.local_disk` has imported.
threading._register_atexit(_stop_all)  # type: ignore[attr-defined]  # as concurrent.futures
