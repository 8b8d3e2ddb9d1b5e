"""Work grows with a request no faster than the request does, whichever of its lists is long.

Counted are lines of Python that the node runs, which does not depend on the machine. The slow
test measures the node's processor time, which also sees what C code does.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from struct import pack
from types import FrameType
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.protocol.apis import ApiKey
from support.long_requests import CASES, KNOWN, Case, Known, frame_of
from support.raw_client import RawClient

FEW, MANY = 40, 240
GROWTH_MAX = 1.6
"""Times as much work for each element of many as of few: a logarithm is allowed, a square is 4."""
NOISE = 5000
"""Lines that a node runs for itself at the same time."""
ATTEMPTS = 3
"""The node may do more for itself at one of them, such as create an internal topic."""
SIZES = (1000, 4000, 16_000)
TIME_GROWTH_MAX = 4
"""As GROWTH_MAX from the smallest to the largest of SIZES, where a square is 16."""
NOISE_NS = 10_000_000
ANSWER_TIMEOUT_S = 600.0
"""Metadata in version 0 creates the 16,000 topics that it asks for."""
TOO_MANY_NAMES = {(ApiKey.STREAMS_GROUP_HEARTBEAT, ("topology", "subtopologies"))}
"""With the longest list they have more names than a request may have."""


class World:
    """A node in a thread of this process, and clients of it."""

    def __init__(self, cluster: Cluster) -> None:
        loop = cluster._loop
        assert loop is not None
        self._loop: asyncio.AbstractEventLoop = loop
        _, _, controller = cluster.nodes[1].properties["controller.quorum.voters"].partition("@")
        self._addresses = {False: cluster.bootstrap_servers, True: controller}
        self.lines = 0
        with RawClient(cluster.bootstrap_servers) as client:
            client.create_topic(KNOWN)
            self._known = Known(client.topic_id(KNOWN), 1000)

    def measure(self, case: Case, count: int, meter: Callable[[], int]) -> int:
        """Measure what the node spends on a request with so many elements."""
        frame = frame_of(case, count, self._known)
        with RawClient(self._addresses[case.is_for_controller], ANSWER_TIMEOUT_S) as client:
            before = self.in_loop(meter)
            client.send_bytes(pack(">i", len(frame)) + frame)
            client.receive_frame()
            return self.in_loop(meter) - before

    def in_loop(self, function: Callable[[], int]) -> int:
        """Call it in the node's thread."""
        done = threading.Event()
        results: list[int] = []

        def call() -> None:
            results.append(function())
            done.set()

        self._loop.call_soon_threadsafe(call)
        assert done.wait(ANSWER_TIMEOUT_S)
        return results[0]

    def trace(self, function: Callable[[FrameType, str, object], Any] | None) -> None:
        """Have the node's thread traced by a function from now on."""

        def begin() -> int:
            sys.settrace(function)
            return 0

        self.in_loop(begin)

    def count_line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count lines, as a function that traces."""
        self.lines += event == "line"
        return self.count_line


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    # A node in a process of its own leaves its modules to no collection either. Here the objects of
    # all tests would be looked through, for half a second at any request.
    gc.collect()
    gc.freeze()
    try:
        with Cluster() as cluster:
            yield World(cluster)
    finally:
        gc.unfreeze()


@pytest.fixture(scope="module")
def traced(world: World) -> Iterator[World]:
    world.trace(world.count_line)
    yield world
    world.trace(None)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_work_grows_no_faster_than_the_request(traced: World, case: Case) -> None:
    def meter() -> int:
        return traced.lines

    traced.measure(case, FEW, meter)  # what is made at the first use
    seen = []
    for _ in range(ATTEMPTS):
        few, many = (traced.measure(case, count, meter) for count in (FEW, MANY))
        if many <= few * MANY / FEW * GROWTH_MAX + NOISE:
            return
        seen.append((few, many))
    pytest.fail(f"lines for {FEW} and {MANY} elements: {seen}")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_time_grows_no_faster_than_the_request(world: World, case: Case) -> None:
    sizes = SIZES[:2] if (case.key, case.path[:2]) in TOO_MANY_NAMES else SIZES
    spent_ns = [world.measure(case, count, time.thread_time_ns) for count in sizes]
    allowed_ns = max(spent_ns[0], NOISE_NS) * sizes[-1] / sizes[0] * TIME_GROWTH_MAX
    assert spent_ns[-1] <= allowed_ns, f"{spent_ns} ns"
