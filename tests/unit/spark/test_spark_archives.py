"""From where the daemon of Spark's Python workers imports PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import py4j  # type: ignore[import-untyped]  # it has no types
import pyspark
import pytest

PLACE = Path(pyspark.__file__).parent / "python" / "lib"
ARCHIVES = sorted(PLACE.glob("*.zip"))
PRINT = """\
import barnabas.spark.worker_daemon  # imports neither package
from barnabas.spark.archives import import_installed
import_installed()
import py4j, pyspark
print(py4j.__file__, pyspark.__file__)
"""


def imported_from(archives: list[Path], *rest: str) -> list[str]:
    """The files of Py4J and PySpark in a process whose path begins with archives, as a daemon's."""
    path = os.pathsep.join((*map(str, archives), *rest))
    command = [sys.executable, "-c", PRINT]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_installed_modules_are_imported_in_place_of_their_archives() -> None:
    assert {path.name.partition("-")[0] for path in ARCHIVES} == {"py4j", "pyspark.zip"}
    assert imported_from(ARCHIVES, *sys.path) == [py4j.__file__, pyspark.__file__]


@pytest.mark.parametrize("place", ["", os.path.join("pyspark", "python", "lib")])
def test_archives_of_another_installation_stay(place: str, tmp_path: Path) -> None:
    own = tmp_path / place
    own.mkdir(parents=True, exist_ok=True)
    for path in ARCHIVES:
        shutil.copy(path, own)
    found = imported_from([own / path.name for path in ARCHIVES], *sys.path)
    assert all(file.startswith(f"{own}{os.sep}") for file in found)
    # Its directory can be imported from, but the packages are not there.
    found = imported_from([own / path.name for path in ARCHIVES], str(tmp_path), *sys.path)
    assert all(file.startswith(f"{own}{os.sep}") for file in found)
