"""Looks for every planted defect and writes the table in docs/simulation.md.

`python -m tests.sim.mutation_table` (some minutes).
"""

import multiprocessing
import os
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sim.mutations import BY_NAME, MUTATIONS, find

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
BEGIN, END = "<!-- planted defects -->", "<!-- end of planted defects -->"


def search(name: str) -> tuple[str, int | None, str]:
    """(name, the first seed that finds it, what it looks like)."""
    mutation = BY_NAME[name]
    found = find(mutation)
    if found is None:
        return name, None, ""
    seed, outcome = found
    kinds = Counter(anomaly.name for anomaly in outcome.anomalies)
    shown = [kind for kind, _ in kinds.most_common(3)]
    if mutation.seen_as and mutation.seen_as not in shown:
        shown[-1] = mutation.seen_as
    return name, seed, ", ".join(shown)


def main() -> int:
    """0 if every defect was found."""
    context = multiprocessing.get_context("spawn")
    lines = [
        "| Defect | Rule that it breaks | Found with seed | Within | Seen as |",
        "|---|---|---|---|---|",
    ]
    missed = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        for name, seed, seen in pool.map(search, [mutation.name for mutation in MUTATIONS]):
            mutation = BY_NAME[name]
            missed += seed is None
            print(f"{name}: {'not found' if seed is None else f'seed {seed}: {seen}'}", flush=True)
            lines.append(
                f"| {name} | {mutation.breaks} | {'not found' if seed is None else seed} "
                f"| {mutation.seeds_max} | {seen} |"
            )
    if DOCUMENT.exists():
        table = "\n".join((BEGIN, "", *lines, "", END))
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.DOTALL))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
