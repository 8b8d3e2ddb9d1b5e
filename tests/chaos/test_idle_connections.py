"""Idle connections that take every file descriptor a node may have: it serves on."""

from __future__ import annotations

import contextlib
import errno
import socket
from functools import partial
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.records.records import Record, encode_batch
from support.cluster_processes import ClusterProcesses
from support.node_process import wait_until
from support.raw_client import RawClient

DESCRIPTORS = 200
IDLE = DESCRIPTORS // 2


class FewDescriptors:
    """The place of nodes that may have few files open."""

    host = "127.0.0.1"

    def command(self, command: list[str]) -> list[str]:
        limited = f'ulimit -S -n {DESCRIPTORS // 2}; ulimit -H -n {DESCRIPTORS}; exec "$@"'
        return ["sh", "-c", limited, "sh", *command]


def flood(address: tuple[str, int], into: contextlib.ExitStack) -> None:
    """Connect so often and say nothing; what the backlog does not take is left out."""
    for _ in range(IDLE):
        idle = into.enter_context(socket.socket())
        idle.setblocking(False)
        assert idle.connect_ex(address) in (0, errno.EINPROGRESS)


def open_files(pid: int) -> int:
    """Return the number of descriptors that a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def answers(client: RawClient) -> bool:
    """Return whether a client that has connected is served."""
    return bool(client.call(MetadataRequest(topics=[]), MetadataResponse).brokers)


def produces(client: RawClient, topic: str) -> bool:
    """Return whether all replicas have stored a record."""
    batch = encode_batch([Record(timestamp=1, value=b"stored")])
    return client.produce(topic, bytes(batch)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("nodes", [1, 3])
def test_idle_connections_leave_a_node_its_files(tmp_path: Path, nodes: int) -> None:
    places = [FewDescriptors()] * nodes
    with (
        ClusterProcesses(tmp_path, nodes, places=places) as cluster,
        contextlib.ExitStack() as clients,
    ):
        known = [
            clients.enter_context(RawClient(node.bootstrap_servers))
            for node in cluster.nodes.values()
        ]
        for client in known:
            assert answers(client)
        victim = cluster.nodes[1]
        with contextlib.ExitStack() as idle:
            for node in cluster.nodes.values():
                flood((node.place.host, node.port), idle)
            wait_until(lambda: "accepting no more" in victim.tail(), "the end of accepting")
            for number in range(8):  # each has its own files
                known[0].create_topic(f"made-{number}")
                # Followers come after the idle connections that were there before them.
                wait_until(partial(produces, known[0], f"made-{number}"), "a produced record")
            for client in known:
                assert answers(client)
            for node in cluster.nodes.values():
                assert node.is_running, node.tail()
                assert open_files(node.pid) < DESCRIPTORS
        wait_until(
            lambda: "accepting connections again" in victim.output.read_text(),
            "accepting",
            shown=victim.tail,
        )
        with RawClient(victim.bootstrap_servers) as late:
            assert answers(late)
        cluster.wait_until_healthy()
        for node in cluster.nodes.values():
            lines = node.output.read_text().splitlines()
            assert sum("accepting" in line for line in lines) <= 8, node.tail()
            assert not any("must stop" in line or "offline" in line for line in lines)
        cluster.stop()
