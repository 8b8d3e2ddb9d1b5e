"""Keeps Spark's Python workers from reading PySpark's archive for each task."""

from __future__ import annotations

import zipimport


def keep_archives() -> None:
    """Let this process not read the directory of pyspark.zip again for each task.

    PySpark's worker calls `importlib.invalidate_caches` at the start of each task, and since
    Python 3.10 every zipimporter (one for each package of PySpark's) then reads its archive's
    directory again: 0.2 to 0.4 s of CPU, most of a small micro-batch. The archive never changes.
    """
    setattr(zipimport.zipimporter, "invalidate_caches", _nothing)  # noqa: B010  # mypy forbids more


def _nothing(_importer: zipimport.zipimporter) -> None:
    pass
