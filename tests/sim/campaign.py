"""Many seeds, on as many processes as there are cores, and what came of them together.

Where tests run in several processes, these have the cores: seeds run in the one that asks.
"""

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field

from sim.workloads import run
from support.processes import ONE_OF_SEVERAL

QUEUED_PER_JOB = 3

Run = tuple[int, str] | tuple[int, str, str]
"""Seed, topology and, unless it is the plain one, workload."""


@dataclass(slots=True)
class Verdict:
    """One run, small enough to travel between processes."""

    seed: int
    topology: str
    workload: str
    is_good: bool
    text: str
    """Plan, faults and anomalies, unless the run was good."""
    trace_hash: str
    operations: int
    virtual_s: float
    injected: Counter[str]


@dataclass(slots=True)
class Campaign:
    """The sum of many runs."""

    runs: int = 0
    bad: list[Verdict] = field(default_factory=list)
    operations: int = 0
    virtual_s: float = 0.0
    injected: Counter[str] = field(default_factory=Counter)
    took_s: float = 0.0

    def add(self, verdict: Verdict) -> None:
        self.runs += 1
        self.operations += verdict.operations
        self.virtual_s += verdict.virtual_s
        self.injected += verdict.injected
        if not verdict.is_good:
            self.bad.append(verdict)

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(self.injected.items()))
        return (
            f"{self.runs} seeds, {len(self.bad)} bad; {self.operations} operations checked, "
            f"{self.virtual_s / 3600:.1f} virtual hours in {self.took_s:.0f} s; "
            f"faults injected: {faults or 'none'}"
        )


def run_one(seed: int, topology: str, workload: str = "") -> Verdict:
    """Run a seed and say what came of it."""
    outcome = run(seed, topology, workload)
    return Verdict(
        seed,
        topology,
        workload,
        outcome.is_good,
        "" if outcome.is_good else f"{workload} {outcome}",
        outcome.trace_hash,
        outcome.operations,
        outcome.virtual_s,
        outcome.injected,
    )


def run_campaign(
    seeds: Iterable[Run],
    *,
    minutes: float | None = None,
    jobs: int | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> Campaign:
    """Run one (seed, topology, workload) after the other, until none is left or time is over."""
    jobs = jobs or (1 if ONE_OF_SEVERAL in os.environ else os.cpu_count() or 1)
    campaign = Campaign()
    began_s = time.monotonic()
    left = _until(seeds, None if minutes is None else began_s + minutes * 60)
    for verdict in _run_here(left) if jobs == 1 else _run_beside_each_other(left, jobs):
        campaign.add(verdict)
        if on_verdict is not None:
            on_verdict(verdict)
    campaign.took_s = time.monotonic() - began_s
    return campaign


def _run_here(left: Iterator[Run]) -> Iterator[Verdict]:
    for each in left:
        yield run_one(*each)


def _run_beside_each_other(left: Iterator[Run], jobs: int) -> Iterator[Verdict]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running: set[Future[Verdict]] = set()
        is_over = False
        while running or not is_over:
            while not is_over and len(running) < jobs * QUEUED_PER_JOB:
                following = next(left, None)
                is_over = following is None
                if following is not None:
                    running.add(pool.submit(run_one, *following))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _until(seeds: Iterable[Run], end_s: float | None) -> Iterator[Run]:
    for each in seeds:
        if end_s is not None and time.monotonic() >= end_s:
            return
        yield each
