"""constraints.txt pins what every extra needs, and each dependency has tested bounds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from barnabas.spark.jars import jar_digests
from barnabas.spark.session import TESTED_PYSPARK

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]


def needed(extra: str) -> list[Requirement]:
    """The requirements of an extra, and of those that it is made of."""
    found = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == PROJECT["name"]:
            found += [one for name in requirement.extras for one in needed(name)]
        else:
            found.append(requirement)
    return found


def test_each_requirement_is_pinned_and_has_hashes() -> None:
    assert len(LINES) > 50
    for line in LINES:
        assert re.match(r"[a-z0-9._-]+==[^ ]+ ( ; [^-]+)?", line), line
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}(?= |$)", line)
        assert hashes, line
        assert len(hashes) == line.count("--"), line


def test_no_registry_is_named() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-", text.replace("    --hash=", ""), re.MULTILINE)


@pytest.mark.parametrize("extra", [None, *(name for name in EXTRAS if name != "dev")])
def test_the_pins_are_those_that_pyproject_allows(extra: str | None) -> None:
    pins = {}
    for line in LINES:
        name, version = line.split()[0].split("==")
        pins[canonicalize_name(name)] = version
    own = PROJECT["dependencies"]
    for requirement in map(Requirement, own) if extra is None else needed(extra):
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement} is not in constraints.txt: tools/constraints.py"
        assert requirement.specifier.contains(pinned), f"{requirement} is pinned to {pinned}"


def test_each_dependency_is_bounded_below_and_above() -> None:
    every = [*PROJECT["dependencies"], *(text for texts in EXTRAS.values() for text in texts)]
    for requirement in map(Requirement, every):
        if requirement.name == PROJECT["name"]:
            continue
        operators = {one.operator for one in requirement.specifier}
        assert operators in ({">=", "<"}, {"=="}), requirement


def test_the_extras_install_a_pyspark_whose_jars_are_known() -> None:
    (pinned,) = (str(one.specifier) for one in needed("spark") if one.name == "pyspark")
    assert pinned == f"=={TESTED_PYSPARK['4.0']}"
    for version in TESTED_PYSPARK.values():
        for jar in ("spark-sql-kafka-0-10", "spark-avro", "spark-token-provider-kafka-0-10"):
            assert f"org.apache.spark_{jar}_2.13-{version}.jar" in jar_digests()
