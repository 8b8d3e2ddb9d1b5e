"""The pytest plugin: a `kafka` fixture over one cluster per session.

    def test_orders(kafka):
        topic = kafka.topic("orders", partitions=3)
        kafka.produce(topic, [b"a", b"b"])
        assert kafka.consume(topic, 2) == [b"a", b"b"]

pytest imports this module at every start, so it imports nothing but pytest; a cluster starts
when a test first asks for one. `--barnabas-bootstrap host:port` runs the same tests against a
Kafka cluster that runs already.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.app.testing import Kafka


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's option and ini value."""
    group = parser.getgroup("barnabas")
    group.addoption(
        "--barnabas-bootstrap",
        metavar="HOST:PORT",
        help="run tests that use the kafka fixture against this cluster, not an embedded one",
    )
    parser.addini(
        "barnabas_config",
        help="broker properties of the embedded cluster, one key=value per line",
        type="linelist",
    )


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of the session's cluster, which starts with the first test that asks."""
    given = request.config.getoption("--barnabas-bootstrap")
    if given:
        yield given
        return
    from barnabas.app.cluster import Cluster
    from barnabas.base.config.overrides import from_flags

    with Cluster(config=from_flags(request.config.getini("barnabas_config"))) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def kafka(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> Iterator["Kafka"]:
    """A Kafka cluster with conveniences; names made through it are unique to the test."""
    from barnabas.app.testing import Kafka

    with Kafka(kafka_bootstrap_servers, request.node.name) as handle:
        yield handle
