"""Fixtures of the modules of clients, and the cluster that they run against.

`BARNABAS_TEST_NODES=3` (`make test-cluster`) runs every test of the session's cluster against three
nodes instead of one; without it `test_three_nodes.py` alone does, with a selection.
`BARNABAS_TEST_SECURITY=scram` runs them, without the modules that `secured_matrix.py` leaves out,
against a cluster where clients log in by SCRAM over TLS and need rights. Tests that start their own
clusters are the same in every run, so only `make test` runs them.
"""

from collections.abc import Iterator

import pytest
from client_cluster import NODES, SECURITY, Settle, SettledKafka, processes
from secured_matrix import left_out

from barnabas.app.testing import Kafka
from barnabas.connect.tasks.local import LocalEngine
from support import java_host
from support.cluster_processes import ClusterProcesses
from support.connect.postgres import database_server

__all__ = ["database_server"]

CLUSTER_TIMEOUT_S = 300
"""The limit of a test against three nodes, where the first one waits for their start as well."""
CLUSTERS = frozenset({"kafka_bootstrap_servers", "three_nodes", "secured_node", "node_ids"})
"""The fixtures that differ with the session's cluster; every other one of that kind asks these."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of runs with another cluster what takes no part in them; give others time."""
    if NODES == 1 and not SECURITY:
        return
    taking_part = [item for item in items if _takes_part(item)]
    apart = [item for item in items if not _takes_part(item)]
    items[:] = taking_part
    config.hook.pytest_deselected(items=apart)
    if NODES > 1 and config.getoption("timeout") is None:
        for item in taking_part:
            if not any(map(item.get_closest_marker, ("timeout", "hypothesis"))):
                item.add_marker(pytest.mark.timeout(CLUSTER_TIMEOUT_S))


def _takes_part(item: pytest.Item) -> bool:
    """Return whether a test uses the session's cluster, by a fixture or its number of nodes."""
    assert isinstance(item, pytest.Function)
    counts_nodes = getattr(item.module, "NODES", None) == NODES
    depends = counts_nodes or not CLUSTERS.isdisjoint(item.fixturenames)
    return depends and not (SECURITY and left_out(item.path))


@pytest.fixture(scope="session")
def java() -> Iterator[java_host.JavaHost]:
    """A JVM with Kafka's tools; tests are skipped if it is not available."""
    if not java_host.AVAILABLE:
        pytest.skip(java_host.MISSING)
    with java_host.JavaHost() as host:
        yield host


@pytest.fixture(scope="session")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """A cluster of three processes; topics have three replicas unless asked otherwise."""
    with processes(tmp_path_factory.mktemp("three-nodes"), max(NODES, 3)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """One node where clients log in."""
    with processes(tmp_path_factory.mktemp("secured-node"), 1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """The session's cluster: the plugin's single node, the three, or a secured one."""
    if NODES > 1 or SECURITY:
        name = "three_nodes" if NODES > 1 else "secured_node"
        cluster: ClusterProcesses = request.getfixturevalue(name)
        return cluster.bootstrap_servers
    single: str = request.getfixturevalue("kafka_bootstrap_servers")
    return single


@pytest.fixture
def settle(request: pytest.FixtureRequest) -> Settle:
    """Wait until every node knows what the controller has decided; nothing to wait for on one."""
    if NODES > 1:
        cluster: ClusterProcesses = request.getfixturevalue("three_nodes")
        return cluster.wait_until_healthy
    return lambda: None


@pytest.fixture
def kafka(
    kafka_bootstrap_servers: str, settle: Settle, request: pytest.FixtureRequest
) -> Iterator[Kafka]:
    """As the plugin's."""
    with SettledKafka(kafka_bootstrap_servers, request.node.name, settle) as handle:
        yield handle


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    """What runs tasks of connectors here; modules of Spark's have their own."""
    engine = LocalEngine()
    yield engine
    engine.close()


@pytest.fixture
def node_ids() -> list[int]:
    """Of the nodes that there are; the first is the first of the bootstrap servers."""
    return list(range(1, NODES + 1))


@pytest.fixture
def copies(node_ids: list[int]) -> int:
    """The default number of a topic's replicas."""
    return min(len(node_ids), 3)
