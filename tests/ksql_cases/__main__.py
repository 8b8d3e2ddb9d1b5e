"""Runs ksqlDB's own cases: `python -m tests.ksql_cases DIRECTORY [FILE …] [-k TEXT] [-v]`.

DIRECTORY holds the JSON files of ksqlDB's query validation tests, fetched from its repository; they
are not part of this one. Prints a line for each file with what failed, and how many cases passed.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ksql_cases.cases import Case, load
from ksql_cases.world import run
from support.sql_test_functions import all_functions


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
    functions = all_functions()
    passed: Counter[str] = Counter()
    failed: dict[str, list[tuple[Case, BaseException]]] = {}
    for case in cases:
        try:
            run(case, functions)
        except Exception as error:  # noqa: BLE001  # a case may fail in any way: it is counted
            failed.setdefault(case.file, []).append((case, error))
        else:
            passed[case.file] += 1
    for name in sorted({case.file for case in cases}):
        lost = failed.get(name, [])
        print(f"{name}: {passed[name]} of {passed[name] + len(lost)}")
        for case, error in lost if arguments.verbose else ():
            print(f"    {case.name}: {type(error).__name__}: {str(error)[:300]}")
            if arguments.verbose > 1:
                traceback.print_exception(error)
    total = sum(passed.values())
    print(f"{total} of {len(cases)} cases passed ({100 * total / max(1, len(cases)):.1f} %)")
    return 0 if total == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
