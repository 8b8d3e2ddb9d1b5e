"""How tests are shared out: among processes (`make test`), and campaigns in time (`make soak`)."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SPARK = ("browser", "clients/test_spark", "clients/test_three_nodes", "unit/pipeline")
"""Modules that start Spark: one after another, as Spark's resolver of jars wants its cache alone,
and a JVM of Spark's is reused by the next module."""
MINUTES = float(os.environ.get("MINUTES", "10"))
"""How long all campaigns last together."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each module in one process, with its fixtures, and all of Spark's modules in one."""
    for item in items:
        module = item.path.relative_to(HERE).as_posix()
        item.add_marker(pytest.mark.xdist_group("spark" if module.startswith(SPARK) else module))


@pytest.fixture
def soak_minutes(request: pytest.FixtureRequest) -> float:
    """How long this campaign may last: its share, by weight, of what `make soak` was given."""
    weights = {item.nodeid: _weight(item) for item in request.session.items}
    return MINUTES * weights[request.node.nodeid] / sum(weights.values())


def _weight(item: pytest.Item) -> float:
    mark = item.get_closest_marker("soak")
    return 0 if mark is None else mark.kwargs.get("weight", 1)
