"""The limit on file descriptors, and the reserve that connections leave free."""

import logging
import os
import subprocess
import sys

import pytest

from barnabas.base.descriptors import RESERVE_MAX, RESERVE_MIN, DescriptorReserve, open_count

RAISED = """
import resource
from barnabas.base import descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
assert descriptors.raise_limit() == descriptors.limit() == 512, descriptors.limit()
"""


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    subprocess.run([sys.executable, "-c", RAISED], check=True, timeout=60)


def test_open_descriptors_are_counted() -> None:
    before = open_count()
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    try:
        assert open_count() == before + 20
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class World:
    """A process with so many descriptors open."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self.promised = 0
        self.reserve = DescriptorReserve(
            lambda: self.promised, limit_of_process=limit, count=lambda: self.open
        )

    def accepted(self, *, is_own: bool = False) -> int:
        """Accept as long as that is allowed; how many descriptors are free then."""
        while not self.reserve.is_short(is_own=is_own):
            self.open += 1
        return self.limit - self.open


@pytest.mark.parametrize(
    ("limit", "kept"), [(64, RESERVE_MIN), (1024, 128), (4096, 512), (20_000, RESERVE_MAX)]
)
def test_accepting_stops_at_the_reserve(limit: int, kept: int) -> None:
    assert World(limit).accepted() == kept


def test_what_is_promised_to_files_is_kept_free_too() -> None:
    world = World(1024)
    world.promised = 500
    assert world.accepted() == 628
    world.promised -= 100  # files were opened
    world.open += 100
    assert world.accepted() == 528


def test_nodes_reach_each_other_when_clients_hold_the_rest() -> None:
    world = World(1024)
    world.accepted()
    assert not world.reserve.is_short(is_own=True)
    assert world.accepted(is_own=True) == 64


def test_accepting_goes_on_when_descriptors_come_back(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1024)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):  # a client that connects and disconnects at the limit
            world.accepted()
            world.open -= 10
            assert not world.reserve.is_short()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert "accepting no more connections: 128 of 1024" in lines[0]
    assert "accepting connections again: 138" in lines[1]


CROWDED = """
import resource
from barnabas.base import descriptors
from barnabas.web.crowd import Crowd

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
crowd, closed = Crowd(), []
for number in range(1024):
    assert crowd.enter(lambda: closed.append(1)) is not None
free = 1024 - descriptors.open_count() - crowd.count
assert free > descriptors.reserve_of(1024), free
assert len(closed) == 1024 - crowd.count
"""


def test_a_full_crowd_leaves_the_reserve_free() -> None:
    """Otherwise accepting would stop before the crowd sends anybody away."""
    subprocess.run([sys.executable, "-c", CROWDED], check=True, timeout=60)
