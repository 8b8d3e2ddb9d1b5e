"""How tests are shared out: among processes (`make test`), and campaigns in time (`make soak`)."""

import atexit
import gc
import logging
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from barnabas.base.peer_lines import PEER_LINES, REPEATED_LINES
from support import type_check
from support.effort import EFFORT, examples
from support.ended_by_sigterm import end_by_sigterm
from support.leftovers import kill_what_outlives_us
from support.processes import Group, run

HERE = Path(__file__).parent
# No test is wrong for being slow. `make test` draws the same examples each time, so that what
# passed here passes elsewhere; `make test-slow` draws new ones, and prints how to repeat a failure.
# Drawing slowly is no fault either: 20 processes on two cores took 30 s over ten small examples.
settings.register_profile(
    "barnabas",
    max_examples=examples(15),
    deadline=None,
    print_blob=True,
    derandomize=EFFORT == 1,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("barnabas")
SPARK = (
    *("browser/test_demo_run", "clients/test_connect_spark", "clients/test_datasource_spark"),
    *("clients/test_spark", "clients/test_sql_spark", "clients/test_three_nodes"),
    *("unit/demo_spark", "unit/spark/test_", "unit/streams/"),
)
"""Modules that start Spark: one after another, as Spark's resolver of jars wants its cache alone,
and a JVM of Spark's is reused by the next module."""
TYPES = "checks/test_types.py"
"""Waits for mypy, so it runs last."""
EXPENSIVE = frozenset({"database_server", "java", "secured_node", "three_nodes"})
"""Fixtures of the session that start other programs: as few processes as possible have them."""
NODES_THREAD = "barnabas-cluster"
RECURSION_LIMIT = sys.getrecursionlimit()
SHRINKING_S = 480
"""Random examples end by themselves. One that fails is made smaller for up to five minutes, which a
test's usual limit would end with no word of what was found."""
MINUTES = float(os.environ.get("MINUTES", "10"))
"""Total time of all campaigns."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test`."""
    parser.addoption(
        "--processes", type=int, default=0, help="run tests in as many processes, forked once"
    )
    parser.addoption(
        "--begin-types", action="store_true", help="check types while tests are collected"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave no process behind when a limit of time, or a kill, ends the whole run."""
    end_by_sigterm()
    kill_what_outlives_us()
    if config.option.begin_types:
        type_check.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Share the tests out, if several processes are wanted and nothing prevents it."""
    option = session.config.option
    failed = session.testsfailed and not option.continue_on_collection_errors
    if not option.processes or option.collectonly or option.usepdb or failed:
        return None
    run(session, _groups(session.items), option.processes)
    return True


def _groups(items: list[pytest.Item]) -> list[Group]:
    """Keep each module in one process, with its fixtures, and all of Spark's modules in one."""
    groups: dict[str, Group] = {}
    for index, item in enumerate(items):
        assert isinstance(item, pytest.Function)
        module = item.nodeid.partition("::")[0].removeprefix("tests/")
        is_sparks = module.startswith(SPARK)
        group = groups.setdefault("spark" if is_sparks else module, Group(is_longest=is_sparks))
        group.indices.append(index)
        if not is_sparks:  # else other modules would wait for the end of Spark's
            group.needs |= EXPENSIVE.intersection(item.fixturenames)
    if TYPES in groups:
        groups[TYPES] = groups.pop(TYPES)
    return sorted(groups.values(), key=lambda group: not group.is_longest)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give properties the time to say what is wrong."""
    for item in items:
        if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SHRINKING_S))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is there before the tests out of garbage collections: many tests ask for one.

    Until then no collection runs, since nearly all that is imported and collected stays: to look
    through it again and again takes a third of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let the interpreter clean up at its end: libraries complain of what it then finds left.

    Not yet: pytest's own last collections would look through all of it, twice.
    """
    atexit.register(gc.unfreeze)


@pytest.fixture(autouse=True)
def usual_depth_of_calls() -> None:
    """Undo what libraries do to the interpreter's limit: tests of deep nesting rely on it."""
    sys.setrecursionlimit(RECURSION_LIMIT)


@pytest.fixture(autouse=True)
def unbounded_lines() -> None:
    """Lines that earlier tests made nodes write leave nothing out of this one's log."""
    PEER_LINES.forget()
    REPEATED_LINES.forget()


@pytest.fixture(autouse=True)
def default_levels_of_loggers() -> Generator[None, None, None]:
    """Undo what a test made of loggers' levels, for all tests of a process share them."""
    manager = logging.Logger.manager.loggerDict
    before = {
        name: logger.level for name, logger in manager.items() if isinstance(logger, logging.Logger)
    }
    yield
    for name, logger in list(manager.items()):
        if isinstance(logger, logging.Logger) and logger.level != before.get(name, logging.NOTSET):
            logger.setLevel(before.get(name, logging.NOTSET))


@pytest.fixture(autouse=True, scope="module")
def nodes_from_before() -> list[threading.Thread]:
    """The threads of nodes that ran before a module began: the session's cluster."""
    return [one for one in threading.enumerate() if one.name == NODES_THREAD]


@pytest.fixture(autouse=True)
def own_log(
    nodes_from_before: list[threading.Thread],
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> Generator[None, None, None]:
    """Leave lines of the session's cluster out of the log of a test that does not use it."""
    if not nodes_from_before or "kafka_bootstrap_servers" in request.fixturenames:
        yield
        return

    def is_own(record: logging.LogRecord) -> bool:
        return all(record.thread != one.ident for one in nodes_from_before if one.is_alive())

    caplog.handler.addFilter(is_own)
    yield
    caplog.handler.removeFilter(is_own)


@pytest.fixture
def soak_minutes(request: pytest.FixtureRequest) -> float:
    """How long this campaign may last: its share, by weight, of what `make soak` was given."""
    weights = {item.nodeid: _weight(item) for item in request.session.items}
    return MINUTES * weights[request.node.nodeid] / sum(weights.values())


def _weight(item: pytest.Item) -> float:
    mark = item.get_closest_marker("soak")
    return 0 if mark is None else mark.kwargs.get("weight", 1)
