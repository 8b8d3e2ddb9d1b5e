"""Whole clusters from many seeds; `make soak` runs them for a given time."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from itertools import count, cycle
from pathlib import Path

import pytest

from sim.campaign import Verdict, run_campaign
from sim.workloads import run
from support.effort import EFFORT, examples, first_of

ROOT = Path(__file__).parents[2]
REGRESSIONS = {
    7: "what a deposed controller had appended was counted twice",
    87: "a node that had lost its last writes was believed because it had led last",
    172: "the same, with a flipped bit",
    232: "nobody was remembered to have been in sync last",
    294: "a segment that was cut short took its records out of the middle of a log",
    306: "a node could not register with its own controller after a restart",
    699: "the same, with a majority just come back",
    200_124: "a late fetch of a dead follower's stood for its living one's",
    4_242_765_087: "followers took a batch whose offset had lost a bit",
}
"""Seeds that found something once, and what."""


@pytest.mark.timeout(600 * EFFORT)
@pytest.mark.parametrize(
    ("topology", "seeds"),
    [
        ("one", range(examples(5))),
        ("", range(examples(4))),
        ("", first_of(REGRESSIONS, 2)),
    ],
    ids=["single nodes", "clusters", "what was wrong once"],
)
def test_seeds_come_to_a_good_end(topology: str, seeds: Iterable[int]) -> None:
    campaign = run_campaign((seed, topology) for seed in seeds)
    assert not campaign.bad, "\n".join(verdict.text for verdict in campaign.bad)
    assert campaign.runs > 0


def test_a_seed_replays_the_same_run_in_every_process() -> None:
    traces = []
    for hash_seed in ("1", "2"):
        for arguments in (("--seed", "5", "--topology", "one"), ("--seed", "8")):
            result = subprocess.run(
                [sys.executable, "-m", "tests.sim.run", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                capture_output=True,
                text=True,
                check=False,
            )
            traces.append(result.stdout.rpartition("trace ")[2])
    assert traces[:2] == traces[2:]
    assert len(set(traces)) == 2


def test_a_seed_replays_the_same_run_after_others() -> None:
    first = run(11, "one").trace_hash
    run(12, "one")
    assert run(11, "one").trace_hash == first


@pytest.mark.soak(weight=8)
def test_clusters_for_a_long_time(capsys: pytest.CaptureFixture[str], soak_minutes: float) -> None:
    first = random.SystemRandom().randrange(1 << 32)

    def tell(verdict: Verdict) -> None:
        if not verdict.is_good:
            with capsys.disabled():
                print(verdict.text)

    workloads = cycle(
        ("", "changes", "shares", "", "transactions", "groups", "chains", "shares", "exchange")
    )
    campaign = run_campaign(
        ((seed, "", workload) for seed, workload in zip(count(first), workloads, strict=False)),
        minutes=soak_minutes,
        on_verdict=tell,
    )
    with capsys.disabled():
        print(f"\nsimulated clusters from seed {first}: {campaign}")
    assert not campaign.bad
