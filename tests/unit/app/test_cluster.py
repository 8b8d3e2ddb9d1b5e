"""`barnabas.Cluster`: ready, used, gone, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

import barnabas
from barnabas.app.testing import Kafka
from barnabas.base.errors import ConfigError
from support.node_process import wait_until
from support.patience import PATIENCE_S

PROCESS = psutil.Process()


def threads() -> list[str]:
    """Names of all threads; the session's cluster may have some of the same."""
    return sorted(thread.name for thread in threading.enumerate())


def answers(bootstrap_servers: str) -> bool:
    host, _, port = bootstrap_servers.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_cluster_serves_and_goes() -> None:
    with barnabas.Cluster() as cluster:
        address, directory = cluster.bootstrap_servers, cluster.directory
        with Kafka(address, "test") as kafka:
            topic = kafka.topic(partitions=2)
            kafka.produce(topic, ["a", ("key", b"b")])
            assert sorted(kafka.consume(topic, 2), key=str) == [b"a", b"b"]
        assert os.path.isdir(directory)
    assert not answers(address)
    assert not os.path.exists(directory)


def test_nothing_is_left_behind() -> None:
    with barnabas.Cluster():
        pass  # what is loaded once stays
    files, names = PROCESS.num_fds(), threads()
    for _ in range(5):
        with barnabas.Cluster():
            assert len(threads()) > len(names)
        wait_until(
            lambda: PROCESS.num_fds() <= files and threads() == names,
            "the end of the cluster's threads and sockets",
        )


async def test_a_cluster_on_the_running_loop() -> None:
    before = threads().count("barnabas-cluster")
    async with barnabas.Cluster() as cluster:
        assert threads().count("barnabas-cluster") == before
        assert answers(cluster.bootstrap_servers)
        directory = cluster.directory
    assert not is_there(directory)


def is_there(directory: str) -> bool:
    return os.path.exists(directory)


async def test_clusters_beside_each_other() -> None:
    async with barnabas.Cluster() as one, barnabas.Cluster() as two:
        assert one.bootstrap_servers != two.bootstrap_servers
        assert one.directory != two.directory


def test_a_cluster_starts_again_where_it_was(tmp_path: Path) -> None:
    cluster = barnabas.Cluster(directory=tmp_path)
    with cluster, Kafka(cluster.bootstrap_servers) as kafka:
        kafka.produce("kept", [b"a"])
    with cluster, Kafka(cluster.bootstrap_servers) as kafka:
        assert kafka.consume("kept", 1) == [b"a"]
    assert (tmp_path / "data" / "meta.properties").exists()


@pytest.mark.parametrize("is_kept", [False, True])
def test_only_data_that_is_kept_is_forced_to_the_disk(
    is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: set[str] = set()
    fsync = os.fsync

    def note(descriptor: int) -> None:
        forced.add(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    cluster = barnabas.Cluster(3, directory=tmp_path if is_kept else None)
    with cluster, Kafka(cluster.bootstrap_servers) as kafka:
        kafka.produce("some", [b"a"])
        cluster.stop_node(1)
        cluster.start_node(1)
        assert kafka.consume("some", 1) == [b"a"]
    of_nodes = {name for name in forced if not name.startswith("server.properties.")}
    assert bool(of_nodes) is is_kept, forced


def test_configuration_is_the_brokers() -> None:
    config = {"num.partitions": "3"}
    with barnabas.Cluster(config=config) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        kafka.produce("topic", [b"a"])
        assert len(kafka.admin.list_topics(timeout=PATIENCE_S).topics["topic"].partitions) == 3


def test_a_failing_start_is_raised_and_leaves_nothing() -> None:
    with barnabas.Cluster():
        pass
    files, names = PROCESS.num_fds(), threads()
    for config, error in (
        ({"num.partitions": "none"}, ConfigError),
        ({"listeners": "PLAINTEXT://192.0.2.1:1,CONTROLLER://127.0.0.1:0"}, OSError),
    ):
        cluster = barnabas.Cluster(config=config)
        with pytest.raises(error):
            cluster.start()
        cluster.stop()
        assert threads() == names
    assert PROCESS.num_fds() <= files + 1, "a node that failed half-way may hold one file a while"


async def test_a_failing_start_on_the_running_loop() -> None:
    with pytest.raises(ConfigError):
        async with barnabas.Cluster(config={"num.partitions": "none"}):
            pytest.fail("it started")


def test_what_runs_cannot_be_started_and_what_does_not_has_no_address() -> None:
    cluster = barnabas.Cluster()
    with pytest.raises(RuntimeError):
        _ = cluster.bootstrap_servers
    with pytest.raises(RuntimeError):
        _ = cluster.directory
    cluster.stop()
    with cluster, pytest.raises(RuntimeError):
        cluster.start()
    with pytest.raises(RuntimeError):
        _ = cluster.bootstrap_servers


def test_there_is_at_least_one_node() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        barnabas.Cluster(nodes=0)


def test_a_program_may_end_without_stopping_it() -> None:
    program = "import barnabas; print(barnabas.Cluster().start().bootstrap_servers)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("127.0.0.1:")
    assert done.stderr == ""


async def test_cancelled_while_it_runs() -> None:
    entered = asyncio.Event()
    directories: list[str] = []

    async def use() -> None:
        async with barnabas.Cluster() as cluster:
            directories.append(cluster.directory)
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_there(directories[0])


def test_a_key_without_effect_is_told() -> None:
    with pytest.warns(UserWarning, match=r"log.retention.hour is not a key .* did you mean"):
        barnabas.Cluster(config={"log.retention.hour": "1"})
