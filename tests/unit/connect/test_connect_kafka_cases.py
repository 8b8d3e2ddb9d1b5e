"""Transforms, predicates and converters beside Kafka's and Debezium's own, case by case.

The cases and what Java makes of them are in tests/golden/connect. The slow tests ask the jars
again; with UPDATE_GOLDEN=1 they write the files, after tables of cases have changed.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.connect import debezium_case_tables, kafka_case_tables
from support.connect.debezium import jars
from support.connect.kafka_cases import comparable, ours
from support.java_host import AVAILABLE, JAVA, LIBS, MISSING, compiled_tools

PLACE = Path(__file__).parents[2] / "golden" / "connect"
KAFKA = PLACE / "kafka-4.3.1-cases.json.gz"
DEBEZIUM = PLACE / "debezium-3.3.1-cases.json.gz"


def golden(file: Path) -> list[tuple[Any, Any]]:
    if not file.exists():
        return []
    return [tuple(pair) for pair in json.loads(gzip.decompress(file.read_bytes()))]


def name_of(pair: Any) -> str:
    case = pair[0]
    return f"{case['class'].rpartition('.')[2]}-{case['kind']}-{json.dumps(case['settings'])}"


@pytest.mark.parametrize("pair", [*golden(KAFKA), *golden(DEBEZIUM)], ids=name_of)
def test_a_case_ends_as_in_java(pair: Any) -> None:
    case, expected = pair
    steps = case.get("steps") or case.get("records") or [None]
    found = ours(case)
    if isinstance(expected, dict) or isinstance(found, dict):
        assert _seen(found) == _seen(expected)
        return
    for step, ours_is, theirs in zip(steps, found, expected, strict=True):
        assert _seen(ours_is) == _seen(theirs) or _is_beyond_python(ours_is), step


def _seen(result: Any) -> Any:
    """The part of a result that counts: not texts about Java's code or a position in a pattern."""
    if isinstance(result, dict):
        text = result.get("text") or ""
        if any(part in text for part in _JAVAS_OWN) or "NullPointer" in result.get("error", ""):
            return {"error": result["error"]}
    return comparable(result)


_JAVAS_OWN = (
    "Timestamp missing on record",
    "Invalid regex",
    "specified for static field",
    "Unprocessable message",  # Debezium's prints the whole record
    "logical decoding message content",  # and the whole message
)


def _is_beyond_python(result: Any) -> bool:
    """Java's dates have years of nine digits."""
    return isinstance(result, dict) and "of the years 1 to 9999" in (result.get("text") or "")


TABLES = [(KAFKA, kafka_case_tables.cases), (DEBEZIUM, debezium_case_tables.cases)]


@pytest.mark.parametrize(("file", "cases"), TABLES, ids=["kafka", "debezium"])
def test_the_cases_are_those_of_the_tables(file: Path, cases: Callable[[], list[Any]]) -> None:
    assert [case for case, _ in golden(file)] == json.loads(json.dumps(cases()))


@pytest.mark.slow
@pytest.mark.skipif(not AVAILABLE, reason=MISSING)
@pytest.mark.parametrize(("file", "cases"), TABLES, ids=["kafka", "debezium"])
def test_java_still_says_the_same(
    file: Path, cases: Callable[[], list[Any]], tmp_path: Path
) -> None:
    asked, given, results = cases(), tmp_path / "cases.json", tmp_path / "results.json"
    given.write_text(json.dumps(asked))
    folders = [LIBS[-1]] if file == KAFKA else [jars(), LIBS[-1]]
    places = ":".join([str(compiled_tools()), *(f"{folder}/*" for folder in folders)])
    subprocess.run([str(JAVA), "-cp", places, "ConnectCases", str(given), str(results)], check=True)
    told = json.loads(results.read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        text = json.dumps(list(zip(asked, told, strict=True)))
        file.write_bytes(gzip.compress(text.encode(), mtime=0))
    for (_, expected), result in zip(golden(file), told, strict=True):
        assert comparable(result) == comparable(expected)
