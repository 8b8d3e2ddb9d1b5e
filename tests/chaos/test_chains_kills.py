"""Chains of real processes, consumers and producers in one, while members and nodes are killed.

The input must come out once, each partition in its order: no record lost, doubled, or overtaken by
a member that had lost its partition and did not know it yet.
"""

from __future__ import annotations

import pathlib
import random
import time

import pytest
from suffering import TELEMETRY, let_it_last

from support.chain import Chain, Reader, expected, fill
from support.chain_member import SESSION_TIMEOUT_MS
from support.cluster_processes import EAGER, ClusterProcesses

PARTITIONS = 6
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
LONG_S = 1.5 * SESSION_TIMEOUT_MS / 1000
"""Longer than a session: the group has gone on without a member that is paused for so long."""

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.slow), "consumer"])
def test_members_that_are_killed_and_that_wake_up_late(
    tmp_path: pathlib.Path, protocol: str
) -> None:
    count = 1_500
    with ClusterProcesses(tmp_path, 1, SETTINGS) as cluster:
        servers = cluster.bootstrap_servers
        for topic in ("source", "target"):
            cluster.create_topic(topic, PARTITIONS)
        fill(servers, "source", PARTITIONS, range(count // 3))
        with Chain(servers, protocol, ["source", "target"], 3, tmp_path) as chain:
            reader = Reader(servers, "target", PARTITIONS)
            reader.read_to(count // 6, chain)
            zombie, victim, _ = chain.members
            zombie.pause()
            fill(servers, "source", PARTITIONS, range(count // 3, 2 * count // 3))
            victim.replace()
            reader.read_to(2 * count // 3, chain)  # without either's help
            zombie.resume()
            fill(servers, "source", PARTITIONS, range(2 * count // 3, count))
            reader.read_to(count, chain)
            assert reader.read_rest() == expected(PARTITIONS, count)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_whatever_comes_to_a_chain_of_two_stages(
    tmp_path: pathlib.Path, soak_minutes: float, protocol: str
) -> None:
    choose = random.Random(protocol)
    deadline = time.monotonic() + soak_minutes * 60
    step = 300
    filled = 0
    with ClusterProcesses(tmp_path, 3, EAGER | SETTINGS) as cluster:
        servers = cluster.bootstrap_servers
        topics = ["source", "between", "target"]
        for topic in topics:
            cluster.create_topic(topic, PARTITIONS)
        with Chain(servers, protocol, topics, 3, tmp_path) as chain:
            reader = Reader(servers, "target", PARTITIONS)
            while time.monotonic() < deadline:
                fill(servers, "source", PARTITIONS, range(filled, filled + step))
                filled += step
                reader.read_to(filled - choose.randrange(step), chain)
                _suffer(cluster, chain, choose)
                cluster.wait_until_healthy()
            reader.read_to(filled, chain)
            assert reader.read_rest() == expected(PARTITIONS, filled)


def _suffer(cluster: ClusterProcesses, chain: Chain, choose: random.Random) -> None:
    node_id = choose.choice(list(cluster.nodes))
    member = choose.choice(chain.members)
    fate = choose.choice(["member", "members", "freeze", "node", "restart", "pause", "all"])
    TELEMETRY.info("%s, node %d, member %s", fate, node_id, member.arguments[3])
    if fate == "member":
        member.replace()
    elif fate == "members":
        for each in chain.members:
            each.replace()
    elif fate == "freeze":
        member.pause()
        let_it_last(choose.uniform(0, LONG_S))
        member.resume()
    elif fate == "node":
        cluster.kill(node_id)
        let_it_last(choose.uniform(0, 5))
        cluster.start(node_id)
    elif fate == "restart":
        cluster.restart(node_id)
    elif fate == "pause":
        cluster.pause(node_id)
        let_it_last(choose.uniform(0, 5))
        cluster.resume(node_id)
    else:
        cluster.kill(*cluster.nodes)
        cluster.start()
