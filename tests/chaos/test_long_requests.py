"""Requests that ask for much: a client that asks for little is served, and the node lives.

Each API is attacked with a request for each of its lists, in its newest and its oldest version,
on a node that holds large things. The other client's waits are compared with those in calm moments
between the attacks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from struct import pack

import pytest

from barnabas.protocol.apis import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from support.cluster_processes import ClusterProcesses
from support.large_things import LargeThings
from support.long_requests import CASES, frame_of
from support.node_process import wait_until
from support.raw_client import RawClient

COUNT = 16_000
ROUNDS = 3
CALM_S = 0.15
"""Before each case."""
PAUSE_S = 0.002
SLACK_S = 0.5
"""Reading, deciding and writing one request of so many elements keeps the loop for up to a third
of a second of processor time, and two at once may meet."""
NO_NEW_TOPICS = {"auto.create.topics.enable": "false"}
"""Metadata version 0 would create each topic that it names."""
MEMORY_SLACK_BYTES = 16 << 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
APIS_ATTACKED = sorted({(case.key, case.is_for_controller) for case in CASES})

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(600)]


class Watcher:
    """Asks for the metadata of the cluster again and again, and measures how long that takes."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._client = RawClient(bootstrap_servers)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.waits_s: list[float] = []

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            started_s = time.monotonic()
            self._client.call(MetadataRequest(topics=[]), MetadataResponse)
            self.waits_s.append(time.monotonic() - started_s)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.socket.close()

    def during(self, work: Callable[[], None]) -> list[float]:
        """Return the durations of requests during `work`, or of the next one if none ended."""
        begin = len(self.waits_s)
        work()
        wait_until(lambda: len(self.waits_s) > begin, "an answer to the other client")
        return self.waits_s[begin:]


def memory_bytes(pids: Iterable[int]) -> int:
    """The greatest resident memory of processes so far, in all."""
    return sum(
        int(line.split()[1]) * 1024
        for pid in pids
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    )


def processor_s(pids: Iterable[int]) -> float:
    """The processor time that processes have had."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) * TICK_S


def p99_s(waits_s: list[float]) -> float:
    """Return the 99th percentile of the requests' durations."""
    assert waits_s, "nothing was answered"
    return sorted(waits_s)[len(waits_s) * 99 // 100]


@pytest.fixture(scope="module", params=[1, 3])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcesses]:
    directory = tmp_path_factory.mktemp("long")
    with ClusterProcesses(directory, request.param, NO_NEW_TOPICS) as running:
        yield running


@pytest.fixture(scope="module")
def large(cluster: ClusterProcesses) -> LargeThings:
    alone = len(cluster.nodes) == 1
    return LargeThings(cluster.bootstrap_servers, with_share_state=alone)


@pytest.mark.parametrize(
    ("key", "is_for_controller"),
    APIS_ATTACKED,
    ids=[f"{ApiKey(key).name}{'-controller' * at}" for key, at in APIS_ATTACKED],
)
def test_another_client_is_served(
    cluster: ClusterProcesses, large: LargeThings, key: int, is_for_controller: bool
) -> None:
    pids = [node.pid for node in cluster.nodes.values()]
    calm_s: list[float] = []
    attacked_s: list[float] = []
    sent_bytes, seconds, processor = 0, 0.0, 0.0
    before = memory_bytes(pids)
    with Watcher(large.address) as watcher:
        for case in CASES:
            if (case.key, case.is_for_controller) != (key, is_for_controller):
                continue
            frame = frame_of(case, COUNT, large.known)
            calm_s += watcher.during(lambda: time.sleep(CALM_S))
            with large.connect(is_for_controller=is_for_controller, timeout_s=120) as client:
                started_s, used_s = time.monotonic(), processor_s(pids)
                attacked_s += watcher.during(partial(attack, client, frame))
                seconds += time.monotonic() - started_s
                processor += processor_s(pids) - used_s
            sent_bytes += ROUNDS * len(frame)
    # The machine may give the nodes a part of a processor alone: then all takes longer.
    share = min(1.0, processor / seconds)
    found_s, allowed_s = p99_s(attacked_s) * share, 2 * p99_s(calm_s) + SLACK_S
    assert found_s <= allowed_s, f"{p99_s(attacked_s):.3f} s at {share:.2f} of a processor"
    grown = memory_bytes(pids) - before
    assert grown <= 1.5 * sent_bytes + MEMORY_SLACK_BYTES * len(pids), f"{grown} bytes more"
    assert all(node.is_running for node in cluster.nodes.values())


def attack(client: RawClient, frame: bytes) -> None:
    """Send the request a few times."""
    for _ in range(ROUNDS):
        client.send_bytes(pack(">i", len(frame)) + frame)
        client.receive_frame()
