"""Requests that ask for much: a client that asks for little is served, and the node lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack

import pytest

from barnabas.protocol.apis import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from support.cluster_processes import ClusterProcesses
from support.long_requests import CASES, KNOWN, Case, Known, frame_of
from support.raw_client import RawClient

COUNT = 16_000
ROUNDS = 8
CALM_S = 3.0
PAUSE_S = 0.002
STALL_S = 1.0
"""Reading and writing one request of so many elements keeps the loop for a tenth of a second or
two. A machine that does much else at the same time takes several times as long."""
ATTACKS = {
    (ApiKey.DESCRIBE_GROUPS, ("groups",)),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ("group_ids",)),
    (ApiKey.SHARE_GROUP_DESCRIBE, ("group_ids",)),
    (ApiKey.STREAMS_GROUP_DESCRIBE, ("group_ids",)),
    (ApiKey.OFFSET_FETCH, ("groups",)),
    (ApiKey.DESCRIBE_CONFIGS, ("resources",)),
    (ApiKey.DESCRIBE_TRANSACTIONS, ("transactional_ids",)),
    (ApiKey.DESCRIBE_PRODUCERS, ("topics",)),
    (ApiKey.FIND_COORDINATOR, ("coordinator_keys",)),
    (ApiKey.METADATA, ("topics",)),
    (ApiKey.TXN_OFFSET_COMMIT, ("topics",)),
    (ApiKey.OFFSET_COMMIT, ("topics",)),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


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

    def p99_s(self, work: Callable[[], None]) -> float:
        """How long all but a hundredth of the requests took, at most, while `work` went on."""
        begin = len(self.waits_s)
        work()
        waits_s = sorted(self.waits_s[begin:])
        assert waits_s, "nothing was answered"
        return waits_s[len(waits_s) * 99 // 100]


def memory_bytes(pid: int) -> int:
    """The greatest resident memory of a process so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.fixture(scope="module", params=[1, 3])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path_factory.mktemp("long"), request.param) as running:
        yield running


@pytest.mark.parametrize(
    "case", [case for case in CASES if (case.key, case.path) in ATTACKS], ids=str
)
def test_another_client_is_served(cluster: ClusterProcesses, case: Case) -> None:
    node = cluster.nodes[1]
    with (
        RawClient(node.bootstrap_servers, 120) as client,
        Watcher(node.bootstrap_servers) as watcher,
    ):
        known = Known(client.topic_id(KNOWN), 1000)
        frame = frame_of(case, COUNT, known)
        client.send_bytes(pack(">i", len(frame)) + frame)
        client.receive_frame()  # what is made at the first use

        def attack() -> None:
            for _ in range(ROUNDS):
                client.send_bytes(pack(">i", len(frame)) + frame)
                client.receive_frame()

        calm_s = watcher.p99_s(lambda: time.sleep(CALM_S))
        before = memory_bytes(node.pid)
        attacked_s = watcher.p99_s(attack)
        grown = memory_bytes(node.pid) - before
        assert attacked_s <= max(2 * calm_s, STALL_S), f"{attacked_s:.3f} s, {calm_s:.3f} s before"
        assert grown <= 1.5 * ROUNDS * len(frame) + (16 << 20), f"{grown} bytes more"
        assert node.is_running, node.tail()
