"""Transforms, predicates and converters beside Kafka's own, case by case.

The cases and what Kafka 4.3.1 makes of them are in tests/golden/connect. The slow test asks Kafka's
jars again; with UPDATE_GOLDEN=1 it writes the file, after `kafka_case_tables` has changed.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.connect.kafka_case_tables import cases
from support.connect.kafka_cases import comparable, ours
from support.java_host import AVAILABLE, MISSING, JavaHost

GOLDEN = Path(__file__).parents[3] / "golden" / "connect" / "kafka-4.3.1-cases.json.gz"


def golden() -> list[tuple[Any, Any]]:
    if not GOLDEN.exists():
        return []
    return [tuple(pair) for pair in json.loads(gzip.decompress(GOLDEN.read_bytes()))]


def name_of(pair: Any) -> str:
    case = pair[0]
    return f"{case['class'].rpartition('.')[2]}-{case['kind']}-{json.dumps(case['settings'])}"


@pytest.mark.parametrize("pair", golden(), ids=name_of)
def test_a_case_ends_as_in_kafka(pair: Any) -> None:
    case, expected = pair
    steps = case.get("steps") or case.get("records") or [None]
    found = ours(case)
    if isinstance(expected, dict) or isinstance(found, dict):
        assert _seen(found) == _seen(expected)
        return
    for step, ours_is, theirs in zip(steps, found, expected, strict=True):
        assert _seen(ours_is) == _seen(theirs) or _is_beyond_python(ours_is), step


def _seen(result: Any) -> Any:
    """What counts of a result: not texts that tell of Java's code or of a place in a pattern."""
    if isinstance(result, dict):
        text = result.get("text") or ""
        if any(part in text for part in _JAVAS_OWN) or "NullPointer" in result.get("error", ""):
            return {"error": result["error"]}
    return comparable(result)


_JAVAS_OWN = ("Timestamp missing on record", "Invalid regex", "specified for static field")


def _is_beyond_python(result: Any) -> bool:
    """Java's dates have years of nine digits."""
    return isinstance(result, dict) and "of the years 1 to 9999" in (result.get("text") or "")


def test_the_cases_are_those_of_the_tables() -> None:
    assert [case for case, _ in golden()] == json.loads(json.dumps(cases()))


@pytest.mark.slow
@pytest.mark.skipif(not AVAILABLE, reason=MISSING)
def test_kafka_still_says_the_same(tmp_path: Path) -> None:
    asked = cases()
    (tmp_path / "cases.json").write_text(json.dumps(asked))
    with JavaHost() as java:
        java.run("connect-cases", str(tmp_path / "cases.json"), str(tmp_path / "results.json"))
    told = json.loads((tmp_path / "results.json").read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        text = json.dumps(list(zip(asked, told, strict=True)))
        GOLDEN.write_bytes(gzip.compress(text.encode(), mtime=0))
    for (_, expected), result in zip(golden(), told, strict=True):
        assert comparable(result) == comparable(expected)
