"""The picture of the rooms in ARCHITECTURE.md is that of the import rules and of the folders."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
ROOM_LINE = re.compile(r"^(?:│ | )([a-z_]+(?: \| [a-z_]+)*) {2,}\S", re.MULTILINE)
PICTURES = [
    ("barnabas", "The map"),
    ("barnabas.node", "The node"),
    ("barnabas.sql", "SQL over streams"),
]
HOSTS_OF_SQL = ("engine", "server", "shell", "spark", "testing", "udf")
CODE_PATH = re.compile(r"`((?:[a-z0-9_]+/)*[a-z0-9_]+\.py)`")
"""A module, or the end of its path where the text has named its folder."""


def pictured_layers(heading: str = "The map") -> list[list[str]]:
    """The rooms of a section's picture, from top to bottom, those of one line together."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    picture = text.split(f"## {heading}\n")[1].split("```")[1]
    return [sorted(line.split(" | ")) for line in ROOM_LINE.findall(picture)]


def rooms(package: str = "barnabas") -> set[str]:
    """Packages in a package that hold something."""
    source = ROOT / "src" / package.replace(".", "/")
    return {
        path.name
        for path in source.iterdir()
        if path.is_dir() and any(module.stat().st_size for module in path.rglob("*.py"))
    }


def contracts() -> list[dict[str, Any]]:
    """The import rules."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


@pytest.mark.parametrize(("package", "heading"), PICTURES)
def test_the_picture_is_that_of_the_import_rules(package: str, heading: str) -> None:
    (ruled,) = [
        contract["layers"] for contract in contracts() if contract.get("containers") == [package]
    ]
    there = rooms(package)
    layers = [
        sorted(room.strip("() ") for room in layer.split("|") if room.strip("() ") in there)
        for layer in ruled
    ]
    assert pictured_layers(heading) == [layer for layer in layers if layer]


@pytest.mark.parametrize(("package", "heading"), PICTURES)
def test_every_room_is_in_the_picture(package: str, heading: str) -> None:
    assert {room for layer in pictured_layers(heading) for room in layer} == rooms(package)


def test_modules_that_are_named_exist() -> None:
    named = {
        name
        for document in ("ARCHITECTURE.md", "docs/testing.md")
        for name in CODE_PATH.findall((ROOT / document).read_text())
    }
    modules = [
        str(path)
        for room in ("src", "tests", "bench", "tools")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert named
    assert {
        name for name in named if not any(module.endswith(f"/{name}") for module in modules)
    } == set()


def test_all_of_sql_is_pure_but_its_hosts() -> None:
    (pure,) = [
        contract["source_modules"]
        for contract in contracts()
        if contract["name"].startswith("Pure cores")
    ]
    found = {
        f"barnabas.sql.{path.stem}"
        for path in (ROOT / "src/barnabas/sql").iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    hosts = {f"barnabas.sql.{name}" for name in HOSTS_OF_SQL}
    assert found - hosts - {"barnabas.sql.__init__"} - set(pure) == set()
