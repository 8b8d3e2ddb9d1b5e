"""What metrics cost a node: `python -m bench.metrics_cost`; `make bench` has it as `metrics`.

Three nodes, two without metrics and one that is scraped every five seconds, take the same produce
requests in turns. The two show how far equal nodes differ on this machine: a smaller difference
says nothing of metrics. Another node, in this process, has 10,000 partitions: how long a scrape
takes over HTTP, and the longest step that collecting makes on the node's event loop, in processor
time of the loop's thread.
"""

import argparse
import asyncio
import gc
import random
import shutil
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from barnabas.app.broker_role import BrokerRole
from barnabas.app.local_nodes import CLIENT_LISTENER, format_standalone, standalone_properties
from barnabas.app.metrics.collecting import NodeFigures
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.records import Record, encode_batch
from bench.barnabas_server import BarnabasServer
from bench.measure import cpu_seconds
from bench.server import free_ports
from bench.settings import Settings
from bench.wire import PRODUCE_VERSION, WireClient, produce_first, pump

TOPIC = "cost"
METRICS = "metrics"
"""The name of this measurement in `make bench`."""
OFF, OFF_AGAIN, ON = "metrics-off", "metrics-off-again", "barnabas"
TURNS = 6
LOADS = {"single": (1, 60_000), "batches": (1000, 2500)}
"""Records of 100 bytes in a request, and requests in a turn."""
SCRAPES = 10
SCRAPE_INTERVAL_S = 5.0
PARTITION_COUNT = "kafka_server_replicamanager_partitioncount"
Noting = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str, dict[str, float]], None]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.metrics_cost")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--partitions", type=int, default=10_000)
    options = parser.parse_args()
    settings = Settings(metrics_turns=options.turns, metrics_partitions=options.partitions)

    def note(name: str, figures: dict[str, float]) -> None:
        for key, value in figures.items():
            print(f"{name:18} {key:32} {value:12,.3f}", flush=True)

    @contextmanager
    def noting(_: str) -> Iterator[None]:
        yield

    metrics_round(settings, noting, note)


def metrics_round(settings: Settings, noting: Noting, note: Note) -> None:
    """Measure once. `noting` reports a failure and goes on, `note` takes figures by the node."""
    directory = settings.directory / "metrics-cost"
    with noting("produce with and without metrics"):
        for name, figures in produce_costs(directory, settings.metrics_turns).items():
            note(name, figures)
    with noting("a scrape of many partitions"):
        note(ON, scrape_cost(directory / "many", settings.metrics_partitions))


def produce_costs(directory: Path, turns: int) -> dict[str, dict[str, float]]:
    """Requests a second and processor time of a request, twice without metrics and with."""
    names = (OFF, OFF_AGAIN, ON)
    with ExitStack() as stack:
        servers = {name: stack.enter_context(BarnabasServer(directory / name)) for name in names}
        (port,) = free_ports(1)
        with servers[ON].properties.open("a") as file:
            file.write(f"barnabas.metrics.listener=http://127.0.0.1:{port}\n")
        for server in servers.values():
            server.format()
            server.start()
            produce_first(server.port, TOPIC)
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        scraper = _Scraper(port)
        for load, (records, requests) in LOADS.items():
            frame = _frame(records)
            for server in servers.values():
                pump(server.port, frame, requests // 10)
            rates: dict[str, list[float]] = {name: [] for name in names}
            costs: dict[str, list[float]] = {name: [] for name in names}
            for turn in range(turns):
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    server = servers[name]
                    with scraper if name == ON else nullcontext():
                        before, began = cpu_seconds(server.pid), time.perf_counter()
                        pump(server.port, frame, requests)
                        rates[name].append(requests / (time.perf_counter() - began))
                        costs[name].append((cpu_seconds(server.pid) - before) / requests * 1e6)
            for name in names:
                found[name][f"metrics_{load}_requests_s"] = statistics.median(rates[name])
                found[name][f"metrics_{load}_cpu_us"] = statistics.mean(costs[name])
        for server in servers.values():
            server.stop()
    return found


class _Scraper:
    """Scrapes a port every SCRAPE_INTERVAL_S of the time in which it is entered."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._left_s = SCRAPE_INTERVAL_S / 2
        self._began = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def _run(self) -> None:
        while not self._stopping.wait(self._left_s):
            _scrape(self._port)
            self._left_s, self._began = SCRAPE_INTERVAL_S, time.monotonic()

    def __enter__(self) -> None:
        self._began = time.monotonic()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._stopping.set()
        self._thread.join()
        self._left_s = max(0.0, self._left_s - (time.monotonic() - self._began))


def _scrape(port: int) -> int:
    """Returns the size of the answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return len(answer.read())


def _frame(records: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch([Record(timestamp=now_ms, value=bytes(100)) for _ in range(records)])
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    frame = encode_request(0, PRODUCE_VERSION, 1, "bench", request)
    return len(frame).to_bytes(4, "big") + frame


def scrape_cost(directory: Path, partitions: int) -> dict[str, float]:
    """A scrape of a node that leads so many partitions, and its longest step, in milliseconds."""
    with BarnabasServer(directory) as server:
        (port,) = free_ports(1)
        with server.properties.open("a") as file:
            file.write(f"barnabas.metrics.listener=http://127.0.0.1:{port}\n")
        server.format()
        server.start()
        produce_first(server.port, TOPIC)
        with WireClient(server.port, timeout_seconds=300) as client:
            _create(client, partitions)
        while _partition_count(port) < partitions:  # a node opens its partitions in the background
            time.sleep(0.5)
        durations = []
        for _ in range(SCRAPES):
            began = time.perf_counter()
            size = _scrape(port)
            durations.append((time.perf_counter() - began) * 1000)
        server.stop()
    steps = asyncio.run(_steps(directory / "in-process", partitions))
    return {
        "metrics_scrape_ms": statistics.median(durations),
        "metrics_scrape_max_ms": max(durations),
        "metrics_scrape_mb": size / 1e6,
        "metrics_step_ms": statistics.median(steps),
        "metrics_step_max_ms": max(steps),
    }


def _partition_count(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{PARTITION_COUNT} "))
    return float(line.rpartition(" ")[2])


def _create(client: WireClient, partitions: int) -> None:
    topics = [f"many-{number}" for number in range(10)]
    for topic in topics:
        assert client.create_topic(topic, partitions // len(topics)) == ErrorCode.NONE
    while sum(map(client.partitions_with_leader, topics)) < partitions // 10 * 10:
        time.sleep(0.1)


def _wait_opened(broker: BrokerRole, partitions: int) -> None:
    while sum(1 for _ in broker.replicas) < partitions:
        time.sleep(0.5)


async def _steps(directory: Path, partitions: int) -> list[float]:
    """The longest step of each scrape, in milliseconds of the loop's processor time."""
    controller_port = free_ports(1)[0]
    shutil.rmtree(directory, ignore_errors=True)
    config = NodeConfig.from_properties(
        standalone_properties(str(directory), controller_port=controller_port)
    )
    format_standalone(LocalDisk(), config, random=random.Random(), clock=SystemClock())
    node = await Node.open(config)
    await node.start()
    with WireClient(node.bound_port(CLIENT_LISTENER), timeout_seconds=300) as client:
        await asyncio.to_thread(_create, client, partitions)
    broker = node.played_broker
    assert broker is not None
    await asyncio.to_thread(_wait_opened, broker, partitions)
    gc.collect()
    gc.freeze()  # as the command does when a node has started
    figures = NodeFigures(node)
    figures.start()
    try:
        longest = []
        for _ in range(SCRAPES):
            collecting = _Stepped(figures.collect())
            await collecting
            longest.append(max(collecting.steps) * 1000)
        return longest
    finally:
        figures.close()
        await node.stop()


class _Stepped:
    """Awaits `work`, and notes the processor time of each of its steps, in seconds."""

    def __init__(self, work: Coroutine[Any, Any, object]) -> None:
        self._work = work
        self.steps: list[float] = []

    def __await__(self) -> Generator[Any, None, None]:
        while True:
            began = time.thread_time()
            try:
                awaited = self._work.send(None)
            except StopIteration:
                return
            finally:
                self.steps.append(time.thread_time() - began)
            yield awaited


if __name__ == "__main__":
    main()
