"""The picture of the rooms in ARCHITECTURE.md is that of the import rules and of the folders."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOM_LINE = re.compile(r"^(?:│ | )([a-z]+(?: \| [a-z]+)*) {2,}\S", re.MULTILINE)
CODE_PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")


def pictured_layers() -> list[list[str]]:
    """The rooms of the first picture, from top to bottom, those of one line together."""
    picture = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    return [sorted(line.split(" | ")) for line in ROOM_LINE.findall(picture)]


def rooms() -> set[str]:
    """Packages under src/barnabas that hold something."""
    source = ROOT / "src" / "barnabas"
    return {
        path.name
        for path in source.iterdir()
        if path.is_dir() and any(module.stat().st_size for module in path.rglob("*.py"))
    }


def test_the_picture_is_that_of_the_import_rules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (ruled,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    layers = [
        sorted(room.strip("() ") for room in layer.split("|") if room.strip("() ") in rooms())
        for layer in ruled
    ]
    assert pictured_layers() == [layer for layer in layers if layer]


def test_every_room_is_in_the_picture() -> None:
    assert {room for layer in pictured_layers() for room in layer} == rooms()


def test_modules_that_are_named_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(CODE_PATH.findall(text))
    places = (ROOT / "src" / "barnabas", ROOT / "src", ROOT)
    assert named
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()


def test_all_of_sql_is_pure_but_its_hosts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (pure,) = [
        contract["source_modules"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("Pure cores")
    ]
    found = {
        f"barnabas.pipeline.sql.{path.stem}"
        for path in (ROOT / "src/barnabas/pipeline/sql").iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    hosts = {f"barnabas.pipeline.sql.{name}" for name in ("engine", "server", "shell", "spark")}
    assert found - hosts - {"barnabas.pipeline.sql.__init__"} - set(pure) == set()
