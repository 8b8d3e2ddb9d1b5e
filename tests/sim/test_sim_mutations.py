"""Planted defects are found; docs/simulation.md shows all of them and with which seeds."""

import re
from pathlib import Path

import pytest

from sim.mutations import BY_NAME, MUTATIONS, find

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
QUICK = (
    "high watermark without followers",
    "vote for a shorter log",
    "flush.messages ignored",
    "append without writing",
)
"""Some with a seed that ends within a second; `make test-slow` has the others."""
ROW = re.compile(r"^\| (?P<name>[^|]+) \| [^|]+ \| (?P<seed>\d+) \|", re.MULTILINE)


def seeds_of_the_document() -> dict[str, int]:
    """By defect the seed that found it when the table was written."""
    return {row["name"]: int(row["seed"]) for row in ROW.finditer(DOCUMENT.read_text())}


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found(name: str) -> None:
    assert find(BY_NAME[name], seeds_of_the_document()[name]) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in QUICK])
def test_a_planted_defect_is_found_in_the_end(name: str) -> None:
    assert find(BY_NAME[name]) is not None


def test_the_document_shows_every_defect() -> None:
    text = DOCUMENT.read_text()
    for mutation in MUTATIONS:
        assert f"| {mutation.name} | {mutation.breaks} |" in text, mutation.name
    assert "| not found |" not in text
