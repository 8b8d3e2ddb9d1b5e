"""Replay and search: `python -m tests.sim.run --seed 17 --verbose`, `--seeds 0..100`.

`--minutes 5` goes on for so long.
A seed alone decides everything but the topology, where `--topology` names one (`one`, `three`,
`five`, `dedicated`, `one controller`, `mixed`; without it the seed decides that too), and what
clients do, where `--workload` says it (`changes`, `transactions`, `exchange`, `groups`, `chains`,
`shares`).
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sim.campaign import Verdict, run_campaign
from sim.workloads import WORKLOADS, run


def main() -> int:
    """0 if every run was good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="replay one")
    parser.add_argument("--seeds", help="first..last")
    parser.add_argument("--minutes", type=float, help="for so long, from --seed on")
    parser.add_argument("--topology", default="")
    parser.add_argument("--workload", default="", choices=list(WORKLOADS))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--verbose", action="store_true", help="with what the nodes log")
    options = parser.parse_args()
    first = options.seed or 0
    if options.minutes is None and not options.seeds:
        outcome = run(first, options.topology, options.workload, verbose=options.verbose)
        print(outcome)
        print(f"trace {outcome.trace_hash}")
        return 0 if outcome.is_good else 1
    seeds: Iterator[int] = count(first)
    if options.seeds:
        low, _, high = options.seeds.partition("..")
        seeds = iter(range(int(low), int(high or low) + 1))

    def tell(verdict: Verdict) -> None:
        if not verdict.is_good:
            print(verdict.text, flush=True)

    campaign = run_campaign(
        ((seed, options.topology, options.workload) for seed in seeds),
        minutes=options.minutes,
        jobs=options.jobs,
        on_verdict=tell,
    )
    print(campaign)
    return 1 if campaign.bad else 0


if __name__ == "__main__":
    sys.exit(main())
