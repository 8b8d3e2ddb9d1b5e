"""A cluster inside a Python program: for tests, notebooks and tools.

    with barnabas.Cluster() as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})

`with` runs the node on an event loop of its own, in a background thread; `async with` on the
running loop. Either way the node is ready when the block begins and gone when it ends.
"""

import asyncio
import logging
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Mapping
from types import TracebackType

from barnabas.app.event_loop import new_event_loop
from barnabas.app.node import Node
from barnabas.app.standalone import CLIENT_LISTENER, format_standalone, standalone_properties
from barnabas.base.clock import SystemClock
from barnabas.base.config.node import NodeConfig
from barnabas.base.local_disk import LocalDisk

logging.getLogger("barnabas").addHandler(logging.NullHandler())  # the program decides on handlers

HOST = "127.0.0.1"
EMBEDDED_CONFIG = {
    "offsets.topic.num.partitions": "4",
    "log.segment.delete.delay.ms": "1000",
}
"""Beside the standalone node's: what makes small clusters quick. `config` wins over it."""


class Cluster:
    """A cluster that lives as long as a `with` block.

    Ports are free ones of this machine's loopback. Data is in a temporary directory that is
    removed at the end, or in `directory`, which is kept and used again. `config` holds
    Kafka's broker properties.
    """

    def __init__(
        self,
        nodes: int = 1,
        config: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Raises ValueError unless `nodes` is 1, all that a cluster can have so far."""
        if nodes != 1:
            raise ValueError(f"a cluster has one node so far, not {nodes}")
        self._overrides = {**EMBEDDED_CONFIG, **(config or {})}
        self._kept_directory = None if directory is None else os.path.abspath(directory)
        self._directory: str | None = None
        self._node: Node | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    @property
    def bootstrap_servers(self) -> str:
        """host:port to give to clients. Raises RuntimeError while the cluster does not run."""
        return f"{HOST}:{self._running_node().bound_port(CLIENT_LISTENER)}"

    @property
    def directory(self) -> str:
        """Where the data is. Raises RuntimeError before the cluster runs."""
        if self._directory is None:
            raise RuntimeError("the cluster does not run")
        return self._directory

    def _running_node(self) -> Node:
        if self._node is None:
            raise RuntimeError("the cluster does not run")
        return self._node

    # -- on an event loop of its own, in a thread

    def start(self) -> "Cluster":
        """Start in a background thread and wait until clients are served.

        Raises what keeps the node from starting: ConfigError, OSError and others.
        """
        if self._thread is not None:
            raise RuntimeError("the cluster runs already")
        self._started.clear()
        self._failure = None
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
            await self._start_node()
            self._started.set()
            await self._stopping.wait()
        finally:
            self._loop = None
            self._stopping = None
            await self._stop_node()

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # -- on the running event loop

    async def __aenter__(self) -> "Cluster":
        try:
            await self._start_node()
        except BaseException:
            await self._stop_node()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stop_node()

    # -- the node and its directory

    async def _start_node(self) -> None:
        self._directory = self._kept_directory or tempfile.mkdtemp(prefix="barnabas-")
        config = NodeConfig.from_properties(
            standalone_properties(self._directory, host=HOST, overrides=self._overrides)
        )
        clock = SystemClock()
        disk = LocalDisk()
        try:
            format_standalone(disk, config, random=random.SystemRandom(), clock=clock)
            node = Node(config, disk, clock)
            await node.start()
        except BaseException:
            disk.close()
            raise
        self._node = node

    async def _stop_node(self) -> None:
        node, self._node = self._node, None
        try:
            if node is not None:
                await node.stop()
        finally:
            if self._directory is not None and self._kept_directory is None:
                await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
            self._directory = None
