"""How tests are shared out when several run at a time (`make test`)."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SPARK = ("browser", "clients/test_spark", "clients/test_three_nodes", "unit/pipeline")
"""Modules that start Spark: one after another, as Spark's resolver of jars wants its cache alone,
and a JVM of Spark's is reused by the next module."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each module in one process, with its fixtures, and all of Spark's modules in one."""
    for item in items:
        module = item.path.relative_to(HERE).as_posix()
        item.add_marker(pytest.mark.xdist_group("spark" if module.startswith(SPARK) else module))
