"""Nodes of a cluster that are killed, paused or restarted under load lose nothing."""

from __future__ import annotations

import pathlib
import random
import time

import pytest
from suffering import BETWEEN_RECORDS, PARTITIONS, TELEMETRY, TOPIC, let_it_last, suffering

from support.cluster_load import Load
from support.cluster_processes import ClusterProcesses

PAUSE_S = 6.0
"""Twice the session time-out: a paused node is fenced, and wakes up to find that."""

pytestmark = pytest.mark.timeout(300)


@pytest.mark.slow
def test_a_killed_leader(tmp_path: pathlib.Path) -> None:
    with suffering(tmp_path) as (cluster, load):
        leader = cluster.leader_of(TOPIC)
        cluster.kill(leader)
        cluster.wait_for_leader(TOPIC, other_than=leader)
        load.await_acknowledged(BETWEEN_RECORDS)
        cluster.start(leader)


@pytest.mark.slow
def test_a_killed_controller(tmp_path: pathlib.Path) -> None:
    with suffering(tmp_path) as (cluster, load):
        controller = cluster.controller()
        cluster.kill(controller)
        cluster.wait_for_controller(other_than=controller)
        load.await_acknowledged(BETWEEN_RECORDS)
        cluster.start(controller)


@pytest.mark.slow
def test_a_paused_leader(tmp_path: pathlib.Path) -> None:
    """It wakes up believing that it leads, with requests of clients in its sockets."""
    with suffering(tmp_path) as (cluster, load):
        leader = cluster.leader_of(TOPIC)
        cluster.pause(leader)
        cluster.wait_for_leader(TOPIC, other_than=leader)
        # Its session has ended: a client that hears of the new leader gives this one up, with all
        # requests that it has not answered.
        assert leader not in cluster.named_brokers()
        load.await_acknowledged(BETWEEN_RECORDS)
        cluster.resume(leader)
        cluster.wait_until_healthy()


@pytest.mark.slow
def test_a_paused_controller(tmp_path: pathlib.Path) -> None:
    with suffering(tmp_path) as (cluster, load):
        controller = cluster.controller()
        cluster.pause(controller)
        cluster.wait_for_controller(other_than=controller)
        load.await_acknowledged(BETWEEN_RECORDS)
        cluster.resume(controller)
        cluster.wait_until_healthy()


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_all_nodes_killed_at_once(tmp_path: pathlib.Path, times: int) -> None:
    with suffering(tmp_path) as (cluster, load):
        for _ in range(times):
            cluster.kill(*cluster.nodes)
            cluster.start()
            load.await_acknowledged(BETWEEN_RECORDS)


def test_a_rolling_restart(tmp_path: pathlib.Path) -> None:
    with suffering(tmp_path) as (cluster, load):
        for node_id in cluster.nodes:
            cluster.restart(node_id)
            load.await_acknowledged(BETWEEN_RECORDS)


@pytest.mark.timeout(0)  # its duration is an option
@pytest.mark.soak(weight=2)
@pytest.mark.parametrize("nodes", [3, 5])
def test_whatever_comes(tmp_path: pathlib.Path, nodes: int, soak_minutes: float) -> None:
    """Kills, pauses, clean and full restarts, drawn at random, for minutes."""
    choose = random.Random(nodes)
    deadline = time.monotonic() + soak_minutes * 60
    with suffering(tmp_path, nodes=nodes) as (cluster, load):
        while time.monotonic() < deadline:
            _suffer(cluster, load, choose)
            cluster.wait_until_healthy()
            load.await_acknowledged(BETWEEN_RECORDS)


def _suffer(cluster: ClusterProcesses, load: Load, choose: random.Random) -> None:
    victims = {
        "any": choose.choice(list(cluster.nodes)),
        "leader": cluster.leader_of(TOPIC, choose.randrange(PARTITIONS)),
        "controller": cluster.controller(),
    }
    victim = victims[choose.choice(list(victims))]
    fate = choose.choice(["kill", "pause", "short pause", "restart", "kill all", "kill twice"])
    TELEMETRY.info("%s %d, %d acknowledged", fate, victim, load.history.count_acknowledged())
    if fate == "pause":
        cluster.pause(victim)
        let_it_last(choose.uniform(0, PAUSE_S))
        cluster.resume(victim)
    elif fate == "short pause":
        cluster.pause(victim)
        let_it_last(choose.uniform(0, 1))
        cluster.resume(victim)
    elif fate == "restart":
        cluster.restart(victim)
    elif fate == "kill all":
        cluster.kill(*cluster.nodes)
        cluster.start()
    else:
        cluster.kill(victim)
        if fate == "kill twice":
            cluster.nodes[victim].start()
            let_it_last(choose.uniform(0, 2))
            cluster.kill(victim)
        let_it_last(choose.uniform(0, PAUSE_S))
        cluster.start(victim)
