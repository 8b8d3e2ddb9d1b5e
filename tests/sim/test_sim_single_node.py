"""One node under faults of its process, disk, clock and network, from many seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.simulation import run

ROOT = Path(__file__).parents[2]
SEEDS = 80
CHUNK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_node_keeps_what_it_acknowledged(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = run(seed, "one")
        assert outcome.is_good, str(outcome)


def test_a_seed_replays_the_same_run_in_every_process() -> None:
    traces = []
    for hash_seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-m", "tests.sim.run", "--seeds", "3..6", "--topology", "one"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        traces.append(result.stdout.rpartition("trace ")[2])
    assert traces[0] == traces[1]
