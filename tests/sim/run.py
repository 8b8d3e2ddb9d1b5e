"""Replay seeds: `python -m tests.sim.run --seed 17 --nodes 3 --verbose`, or `--seeds 0..100`."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sim.simulation import run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="first..last")
    parser.add_argument("--topology", default="", help="one, three, five, dedicated …")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.seeds:
        first, _, last = options.seeds.partition("..")
        seeds = range(int(first), int(last) + 1)
    else:
        seeds = range(options.seed or 0, (options.seed or 0) + 1)
    bad = 0
    injected: Counter[str] = Counter()
    operations = 0
    virtual_s = 0.0
    began_s = time.monotonic()
    for seed in seeds:
        outcome = run(seed, options.topology, verbose=options.verbose)
        injected += outcome.injected
        operations += outcome.operations
        virtual_s += outcome.virtual_s
        if options.verbose or not outcome.is_good:
            print(outcome)
        bad += not outcome.is_good
    took_s = time.monotonic() - began_s
    print(
        f"{len(seeds)} seeds, {bad} bad, {operations} operations, {virtual_s / 3600:.2f} virtual "
        f"hours in {took_s:.1f} s; faults: {dict(injected)}; last trace {outcome.trace_hash}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
