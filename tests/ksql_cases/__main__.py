"""Runs ksqlDB's own cases: `python -m tests.ksql_cases DIRECTORY [FILE …] [-k TEXT] [-v]`.

DIRECTORY holds the JSON files of ksqlDB's query validation tests, which docs/sql/README.md says how
to fetch. Prints a line for each file with what failed, and how many cases passed.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ksql_cases.cases import load
from ksql_cases.running import run_all


def main() -> int:
    """0 if every chosen case passed."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.ksql_cases")
    parser.add_argument("directory", type=Path)
    parser.add_argument("files", nargs="*", help="names of files, without .json")
    parser.add_argument("-k", dest="text", default="", help="only cases whose title has this")
    parser.add_argument("-v", dest="verbose", action="count", default=0)
    arguments = parser.parse_args()
    cases = [
        case
        for case in load(arguments.directory)
        if (not arguments.files or case.file in arguments.files) and arguments.text in case.title
    ]
    outcomes = run_all(cases)
    for name in sorted({case.file for case in cases}):
        lost = outcomes.failed.get(name, [])
        print(f"{name}: {outcomes.passed[name]} of {outcomes.passed[name] + len(lost)}")
        for case, error in lost if arguments.verbose else ():
            print(f"    {case.name}: {type(error).__name__}: {str(error)[:300]}")
            if arguments.verbose > 1:
                traceback.print_exception(error)
    total = outcomes.passed.total()
    print(f"{total} of {len(cases)} cases passed ({outcomes.passed_percent:.1f} %)")
    return 0 if total == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
