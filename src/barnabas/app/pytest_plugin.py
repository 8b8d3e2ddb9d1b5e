"""The pytest plugin: a `kafka` fixture over one cluster per session.

    def test_orders(kafka):
        topic = kafka.topic("orders", partitions=3)
        kafka.produce(topic, [b"a", b"b"])
        assert kafka.consume(topic, 2) == [b"a", b"b"]

pytest imports this module at every start, so it imports nothing but pytest; a cluster starts
when a test first asks for one. `--barnabas-nodes 3`, or `barnabas_nodes = 3` in the ini file,
gives it several nodes, and `--barnabas-bootstrap host:port` runs the same tests against a Kafka
cluster that runs already. `--barnabas-security scram` (or plain, mtls, tls; or `barnabas_security`
in the ini file) secures the embedded cluster: `kafka.client_config` is what clients need, and
`kafka.as_user("alice")` the same cluster for a user who may little. `barnabas_cluster` is for
tests that stop and start nodes.

pytest rewrites the assertions of every module of a package that has a plugin. For ours that takes
seconds at the first use and gains nothing, so `AsWritten` finds the modules before pytest does.
This one and the package itself, which pytest imports first, say PYTEST_DONT_REWRITE.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.app.cluster import Cluster
    from barnabas.app.testing import Kafka


SECURITY = ("scram", "plain", "mtls", "tls")


class AsWritten(MetaPathFinder):
    """Finds modules of this package as Python does, ahead of pytest's import hook."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("barnabas."):
            return None
        return PathFinder.find_spec(fullname, path, target)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options and ini values. pytest calls this once it has its import hook."""
    _forget_finder()  # of an earlier run in this process
    sys.meta_path.insert(0, AsWritten())
    group = parser.getgroup("barnabas")
    group.addoption(
        "--barnabas-bootstrap",
        metavar="HOST:PORT",
        help="run tests that use the kafka fixture against this cluster, not an embedded one",
    )
    group.addoption(
        "--barnabas-nodes", metavar="COUNT", type=int, help="nodes of the embedded cluster"
    )
    group.addoption(
        "--barnabas-security",
        metavar="MODE",
        choices=SECURITY,
        help=f"secure the embedded cluster: {', '.join(SECURITY)}",
    )
    parser.addini("barnabas_security", help=f"secure the embedded cluster: {', '.join(SECURITY)}")
    parser.addini("barnabas_nodes", help="nodes of the embedded cluster; 1 by default")
    parser.addini(
        "barnabas_config",
        help="broker properties of the embedded cluster, one key=value per line",
        type="linelist",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Raise UsageError for options that no cluster can be made of."""
    _node_count(config)
    given = _security(config)
    if given is not None and find_spec("cryptography") is None:
        from barnabas.base.errors import install_hint

        raise pytest.UsageError(
            f"a secured cluster needs cryptography, which is not installed: "
            f"{install_hint('security')}"
        )


def pytest_unconfigure() -> None:
    """Leave Python's finders as they were."""
    _forget_finder()


def _forget_finder() -> None:
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, AsWritten)]


@pytest.fixture(scope="session")
def barnabas_cluster(request: pytest.FixtureRequest) -> Iterator["Cluster"]:
    """The session's embedded cluster. A test that stops a node must start it again."""
    if request.config.getoption("--barnabas-bootstrap"):
        pytest.skip("a given cluster's nodes are not ours to handle")
    from barnabas.app.cluster import Cluster
    from barnabas.base.config.properties import from_flags

    config = from_flags(request.config.getini("barnabas_config"))
    nodes, security = _node_count(request.config), _security(request.config)
    with Cluster(nodes=nodes, config=config, security=security) as cluster:
        yield cluster


def _security(config: pytest.Config) -> str | None:
    given: str | None = config.getoption("--barnabas-security")
    given = given or config.getini("barnabas_security") or None
    if given is not None and given not in SECURITY:
        raise pytest.UsageError(f"barnabas_security: {given!r} is not of {', '.join(SECURITY)}")
    return given


def _node_count(config: pytest.Config) -> int:
    given = config.getoption("--barnabas-nodes")
    if given is None:
        given = config.getini("barnabas_nodes") or 1
    try:
        count = int(given)
    except ValueError:
        raise pytest.UsageError(f"barnabas_nodes: {given!r} is not a number") from None
    if count < 1:
        raise pytest.UsageError(f"barnabas_nodes: a cluster has at least one node, not {count}")
    return count


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """Address of the session's cluster, which starts with the first test that asks."""
    given: str | None = request.config.getoption("--barnabas-bootstrap")
    if given:
        from barnabas.kafka.bootstrap import UnreachableError, first_reachable

        try:
            first_reachable(given)
        except UnreachableError as error:
            pytest.fail(f"--barnabas-bootstrap: {error}", pytrace=False)
        return given
    cluster: Cluster = request.getfixturevalue("barnabas_cluster")
    return cluster.bootstrap_servers


@pytest.fixture
def kafka(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> Iterator["Kafka"]:
    """A Kafka cluster with conveniences; names made through it are unique to the test."""
    from barnabas.app.testing import Kafka

    cluster: Cluster | None = None
    if not request.config.getoption("--barnabas-bootstrap"):
        cluster = request.getfixturevalue("barnabas_cluster")
    config_of = None if cluster is None else cluster.client_config_of
    with Kafka(kafka_bootstrap_servers, request.node.name, config_of) as handle:
        yield handle
