"""Nodes that do not reach each other, while clients reach them all, lose nothing."""

from __future__ import annotations

import itertools
import pathlib
import random
import time
from collections.abc import Iterator

import pytest
from suffering import BETWEEN_RECORDS, TELEMETRY, TOPIC, let_it_last, suffering

from support.namespaces import NodeNetwork, why_unavailable

NODES = 3
LASTS_S = 4.0
"""Longer than the session time-out."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def network() -> Iterator[NodeNetwork]:
    reason = why_unavailable()
    if reason is not None:
        pytest.skip(reason)
    with NodeNetwork(NODES) as network:
        yield network


def test_a_leader_cut_off_from_the_others(tmp_path: pathlib.Path, network: NodeNetwork) -> None:
    with suffering(tmp_path, places=network.places) as (cluster, load):
        leader = cluster.leader_of(TOPIC)
        network.isolate(leader)
        (witness, *_) = [node for node in cluster.nodes.values() if node.node_id != leader]
        cluster.wait_for_leader(TOPIC, other_than=leader, asking=witness.node_id)
        load.await_acknowledged(BETWEEN_RECORDS)
        network.heal()
        cluster.wait_until_healthy()


@pytest.mark.slow
def test_a_controller_cut_off_from_the_others(tmp_path: pathlib.Path, network: NodeNetwork) -> None:
    with suffering(tmp_path, places=network.places) as (cluster, load):
        controller = cluster.controller()
        network.isolate(controller)
        (witness, *_) = [node for node in cluster.nodes.values() if node.node_id != controller]
        cluster.wait_for_controller(other_than=controller, asking=witness.node_id)
        load.await_acknowledged(BETWEEN_RECORDS)
        network.heal()
        cluster.wait_until_healthy()


@pytest.mark.slow
def test_two_nodes_that_only_a_third_reaches(tmp_path: pathlib.Path, network: NodeNetwork) -> None:
    """Neither half is a minority: the middle keeps a majority with either."""
    with suffering(tmp_path, places=network.places) as (cluster, load):
        controller = cluster.controller()
        middle, end = [node_id for node_id in cluster.nodes if node_id != controller]
        network.cut(controller, end)
        load.await_acknowledged(BETWEEN_RECORDS)
        let_it_last(LASTS_S)
        assert middle in cluster.nodes
        network.heal()
        cluster.wait_until_healthy()


@pytest.mark.slow
def test_a_node_that_is_heard_and_hears_nothing(
    tmp_path: pathlib.Path, network: NodeNetwork
) -> None:
    with suffering(tmp_path, places=network.places) as (cluster, load):
        leader = cluster.leader_of(TOPIC)
        for other in cluster.nodes:
            if other != leader:
                network.cut_one_way(other, leader)
        load.await_acknowledged(BETWEEN_RECORDS)
        let_it_last(LASTS_S)
        network.heal()
        cluster.wait_until_healthy()


@pytest.mark.timeout(0)  # its duration is an option
@pytest.mark.soak
def test_links_that_come_and_go(
    tmp_path: pathlib.Path, network: NodeNetwork, soak_minutes: float
) -> None:
    choose = random.Random(7)
    links = list(itertools.permutations(range(1, NODES + 1), 2))
    deadline = time.monotonic() + soak_minutes * 60
    with suffering(tmp_path, places=network.places) as (cluster, load):
        while time.monotonic() < deadline:
            cut = choose.sample(links, choose.randrange(1, len(links) + 1))
            for sender, receiver in cut:
                network.cut_one_way(sender, receiver)
            let_it_last(choose.uniform(0, 2 * LASTS_S))
            TELEMETRY.info(
                "%s cut, %d acknowledged", sorted(cut), load.history.count_acknowledged()
            )
            network.heal()
            cluster.wait_until_healthy()
            load.await_acknowledged(BETWEEN_RECORDS)
