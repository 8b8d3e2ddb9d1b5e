"""Transactions of Kafka's Java producer, one right after the other, on three nodes.

With transaction.version 2 the next transaction writes to a partition while the markers of the one
before are still under way from the coordinator's node to the leaders'. None may fail for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from client_cluster import SettledKafka

from barnabas.app.testing import Kafka
from support.cluster_processes import ClusterProcesses
from support.java_host import JavaHost

PRODUCERS = 3
TIMEOUT_S = 240

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def kafka(three_nodes: ClusterProcesses, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    settle = three_nodes.wait_until_healthy
    with SettledKafka(three_nodes.bootstrap_servers, request.node.name, settle) as handle:
        yield handle


@pytest.fixture
def outcomes(java: JavaHost, kafka: Kafka) -> Callable[..., Counter[str]]:
    """Let producers do so many transactions each; returns how they ended."""

    def run(step: str, topic: str, other: str, transactions: int) -> Counter[str]:
        arguments = (step, topic, other, str(PRODUCERS), str(transactions))
        started = java.start("transaction-steps", kafka.bootstrap_servers, *arguments)
        result = started.wait(TIMEOUT_S)
        assert result.exit_code == 0, str(started)
        return Counter(outcome for _, outcome in result.table)

    return run


def test_records_of_one_transaction_after_the_other(
    kafka: Kafka, outcomes: Callable[..., Counter[str]]
) -> None:
    ended = outcomes("records", kafka.topic(partitions=3), kafka.topic("other"), 100)
    assert ended == {"committed": 100 * PRODUCERS}


def test_offsets_of_one_transaction_after_the_other(
    kafka: Kafka, outcomes: Callable[..., Counter[str]]
) -> None:
    ended = outcomes("offsets", kafka.topic(partitions=3), kafka.name("group"), 400)
    assert ended == {"committed": 400 * PRODUCERS}
