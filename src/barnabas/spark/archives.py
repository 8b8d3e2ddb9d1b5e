"""Keeps Spark's Python workers from reading PySpark's archives."""

from __future__ import annotations

import os
import sys
import zipimport
from typing import Final

_PLACE: Final = os.path.join("pyspark", "python", "lib")
"""The archives' place in an installed PySpark."""


def import_installed() -> None:
    """Let this process import PySpark and Py4J as installed, where Spark's archives come first.

    Spark's path for its workers begins with pyspark.zip, which has source code alone: compiling it
    takes a second of CPU at each start. An installation that has these archives has the same
    modules beside them, compiled. Archives of another installation stay.
    """
    importable = {os.path.realpath(entry or os.curdir) for entry in sys.path}
    for entry in list(sys.path):
        directory, name = os.path.split(entry)
        package = name.removesuffix(".zip").partition("-")[0]
        if not name.endswith(".zip") or not directory.endswith(os.sep + _PLACE):
            continue
        site = os.path.realpath(directory.removesuffix(_PLACE))
        if site in importable and os.path.isfile(os.path.join(site, package, "__init__.py")):
            sys.path.remove(entry)


def keep_archives() -> None:
    """Let this process not read the directory of pyspark.zip again for each task.

    PySpark's worker calls `importlib.invalidate_caches` at the start of each task, and since
    Python 3.10 every zipimporter (one for each package of PySpark's) then reads its archive's
    directory again: 0.2 to 0.4 s of CPU, most of a small micro-batch. The archive never changes.
    """
    setattr(zipimport.zipimporter, "invalidate_caches", _nothing)  # noqa: B010  # mypy forbids more


def _nothing(_importer: zipimport.zipimporter) -> None:
    pass
