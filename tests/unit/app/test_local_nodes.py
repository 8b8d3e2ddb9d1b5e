"""Nodes of a cluster on this machine: configuration, directories, ports."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.app.local_nodes import (
    LocalNode,
    PortReservation,
    format_nodes,
    found_nodes,
    free_ports,
    joining_node,
    new_nodes,
    properties_text,
    write_properties,
)
from barnabas.base.clock import SystemClock
from barnabas.base.config.properties import parse_properties
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.raft.snapshot_files import BOOTSTRAP_SNAPSHOT, decode_snapshot

RANDOM = random.Random(1)


def nodes_of(directory: Path, count: int, **overrides: str) -> list[LocalNode]:
    ports = list(range(9092, 9092 + count))
    controllers = list(range(9192, 9192 + count))
    return new_nodes(str(directory), ports, controllers, overrides=overrides, racks=("a", "b"))


@pytest.mark.parametrize(
    ("count", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_replicas_are_as_many_as_nodes_allow(
    tmp_path: Path, count: int, replicas: str, in_sync: str
) -> None:
    for node in nodes_of(tmp_path, count):
        config = NodeConfig.from_properties(dict(node.properties))
        assert config.get_int("default.replication.factor") == int(replicas)
        assert config.get_int("offsets.topic.replication.factor") == int(replicas)
        assert config.get_int("min.insync.replicas") == int(in_sync)
        assert list(config.warnings) == []


def test_nodes_differ_where_they_must(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, 3)
    assert [node.node_id for node in nodes] == [1, 2, 3]
    assert [node.rack for node in nodes] == ["a", "b", "a"]
    assert len({node.properties["log.dirs"] for node in nodes}) == 3
    assert [node.client_address for node in nodes] == [f"127.0.0.1:{9092 + at}" for at in range(3)]
    assert [node.address("CONTROLLER") for node in nodes] == [
        f"127.0.0.1:{9192 + at}" for at in range(3)
    ]


def test_a_node_that_joins_is_a_broker_like_the_others(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, 3, **{"num.partitions": "7"})
    joined = joining_node(str(tmp_path), nodes, 9099, rack="c")
    assert (joined.node_id, joined.rack, joined.client_address) == (4, "c", "127.0.0.1:9099")
    config = NodeConfig.from_properties(dict(joined.properties))
    assert config.process_roles == {"broker"}
    assert config.get_int("num.partitions") == 7
    assert joined.address("CONTROLLER") is None


def test_formatting_makes_one_cluster_with_all_voters(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, 3)
    disk = LocalDisk()
    format_nodes(disk, nodes, random=RANDOM, clock=SystemClock())
    found = [read_meta_properties(disk, node.properties["log.dirs"]) for node in nodes]
    assert len({item.cluster_id for item in found if item}) == 1
    assert [item.node_id for item in found if item] == [1, 2, 3]
    for node, item in zip(nodes, found, strict=True):
        path = f"{node.properties['log.dirs']}/__cluster_metadata-0/{BOOTSTRAP_SNAPSHOT.file_name}"
        voters = decode_snapshot(disk.read(path)).voters
        assert voters is not None
        assert sorted(voters.by_id) == [1, 2, 3]
        assert item is not None
        assert voters.by_id[node.node_id].key.directory_id == item.directory_id
    joined = joining_node(str(tmp_path), nodes, 9099)
    format_nodes(disk, [*nodes, joined], random=RANDOM, clock=SystemClock())
    other = read_meta_properties(disk, joined.properties["log.dirs"])
    assert found[0] is not None
    assert other is not None
    assert other.cluster_id == found[0].cluster_id
    assert not (tmp_path / "node-4/data/__cluster_metadata-0").exists()
    disk.close()


def test_nodes_are_found_again(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, 2)
    for node in nodes:
        write_properties(node)
    (tmp_path / "node-x").mkdir()
    (tmp_path / "node-9").mkdir()
    assert found_nodes(str(tmp_path)) == nodes
    changed = found_nodes(str(tmp_path), {"num.partitions": "4"})
    assert [node.properties["num.partitions"] for node in changed] == ["4", "4"]
    assert found_nodes(str(tmp_path / "nowhere")) == []


def test_properties_for_people_are_properties() -> None:
    values = {"listeners": "A://h:1,B://[::1]:2", "odd": " a\\b\n", "empty": ""}
    text = properties_text(values)
    assert "listeners=A://h:1,B://[::1]:2\n" in text
    assert parse_properties(text) == values


# -- ports

LISTEN = (
    "import socket, sys; s = socket.socket();"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
    "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print('listens')"
)


def test_reserved_ports_are_ours_and_can_be_listened_on() -> None:
    reservation = PortReservation("127.0.0.1")
    ports = reservation.take(3)
    assert len(set(ports)) == 3
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        for _ in range(2):  # and again, after a node has ended
            done = subprocess.run(
                [sys.executable, "-c", LISTEN, str(port)],
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout == "listens\n"
    reservation.close()


@pytest.mark.skipif(sys.platform != "linux", reason="ports are only held on Linux")
def test_reserved_ports_are_nobody_elses() -> None:
    reservation = PortReservation("127.0.0.1")
    (port,) = reservation.take(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    reservation.close()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))


def test_a_port_that_is_taken_cannot_be_held() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(OSError, match="in use"):
            PortReservation("127.0.0.1").hold(server.getsockname()[1])
        assert server.getsockname()[1] not in free_ports(20, "127.0.0.1")
