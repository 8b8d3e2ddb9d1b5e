"""`barnabas dev --nodes`: processes that are started, watched and ended together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from barnabas.kafka.wire import Access, Connection
from barnabas.protocol.api import ApiKey
from support.child_signals import usual_signals
from support.cli import ClusterCli
from support.node_process import wait_until
from support.patience import PATIENCE_S

BARNABAS = [sys.executable, "-m", "barnabas"]
END_TIMEOUT_S = 60


@contextmanager
def dev(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, killed if the test leaves it running."""
    with usual_signals():
        process = subprocess.Popen(
            [*BARNABAS, "dev", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ready_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr and process.stderr.read()
    return dict(json.loads(line))


def wait_for_topic(cli: ClusterCli, topic: str) -> None:
    """Wait until every node knows a topic: a command may ask any of them."""
    cli.wait_until_each(lambda each: each.run("topic", "describe", topic).code == 0, topic)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=END_TIMEOUT_S)
    return process.returncode, errors


def test_three_nodes_serve_and_leave_nothing() -> None:
    with dev("--nodes", "3", "--port", "0", "--racks", "a,b,c", "--json") as process:
        ready = ready_line(process)
        nodes = ready["nodes"]
        assert [node["node"] for node in nodes] == [1, 2, 3]
        assert [node["rack"] for node in nodes] == ["a", "b", "c"]
        assert len(ready["bootstrap_servers"].split(",")) == 3
        cli = ClusterCli(ready["bootstrap_servers"])
        cli.ok("topic", "create", "t", "--partitions", "3")
        wait_for_topic(cli, "t")
        (topic,) = cli.json("topic", "describe", "t")
        assert all(len(row["replicas"]) == 3 for row in topic["partitions"])
        cli.ok("produce", "t", "-v", "hello")
        assert cli.ok("consume", "t").text == "hello\n"
        pids = [node["pid"] for node in nodes]
        assert len(set(pids)) == 3
        code, errors = end(process)
    assert (code, errors) == (0, "")
    assert not os.path.exists(ready["directory"])
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []


@pytest.mark.parametrize("nodes", ["1", pytest.param("3", marks=pytest.mark.slow)])
def test_clients_are_asked_for_no_metrics(nodes: str) -> None:
    """librdkafka prints a line on standard error where brokers offer to take them (KIP-714)."""
    with dev("--nodes", nodes, "--port", "0", "--json") as process:
        servers = ready_line(process)["bootstrap_servers"]
        access = Access(servers)
        for host, port in access.addresses():
            with contextlib.closing(Connection(access, host, port)) as connection:
                assert not connection.serves(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
        end(process)


def test_a_node_that_dies_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    arguments = ("--nodes", "3", "--port", "0", "--json", "-d", str(tmp_path))
    with dev(*arguments) as process:
        ready = ready_line(process)
        cli = ClusterCli(ready["bootstrap_servers"])
        cli.ok("topic", "create", "t")
        wait_for_topic(cli, "t")
        cli.ok("produce", "t", "-v", "before")
        os.kill(ready["nodes"][1]["pid"], signal.SIGKILL)
        assert ready_line(process) == {"node": 2, "ended": True, "exit_code": -signal.SIGKILL}
        # Some ten seconds pass before another node leads what this one did.
        patience = ("--timeout", str(PATIENCE_S))
        cli.ok("produce", "t", "-v", "after", *patience)
        assert sorted(cli.ok("consume", "t", *patience).lines) == ["after", "before"]
        with (
            subprocess.Popen([*BARNABAS, "start", f"{tmp_path}/node-2/server.properties"]) as again,
            contextlib.ExitStack() as ended,
        ):
            ended.callback(again.kill)  # also where it does not come back

            def is_back() -> bool:
                return cli.run("cluster", "status").code == 0

            wait_until(is_back, "node 2 being in sync again")
            again.send_signal(signal.SIGTERM)
            assert again.wait(END_TIMEOUT_S) == 0
        code, errors = end(process)
    assert code == 0
    assert "node 2 has ended (killed by SIGKILL); 1, 3 continue\n" in errors
    assert f"barnabas start {tmp_path}/node-2/server.properties" in errors
    with dev(*arguments) as process:
        again_ready = ready_line(process)
        assert again_ready["bootstrap_servers"] == ready["bootstrap_servers"]
        assert sorted(cli.ok("consume", "t").lines) == ["after", "before"]
        assert end(process)[0] == 0


def test_the_end_of_the_command_is_the_end_of_the_nodes() -> None:
    with dev("--nodes", "2", "--port", "0", "--json") as process:
        pids = [node["pid"] for node in ready_line(process)["nodes"]]
        process.kill()
        process.wait(END_TIMEOUT_S)
        wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the nodes' end", END_TIMEOUT_S)


def test_people_are_told_where_everything_is(tmp_path: Path) -> None:
    with dev("--nodes", "2", "--port", "0", "-d", str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Ready: bootstrap.servers=127.0.0.1:")
        headings = process.stdout.readline().split()
        assert headings == ["NODE", "CLIENTS", "CONTROLLER", "PID", "METRICS", "DIRECTORY"]
        assert str(tmp_path / "node-1") in process.stdout.readline()
        assert end(process)[0] == 0


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    def refused(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [*BARNABAS, "dev", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr.count("\n") == 1, done.stderr
        return done.returncode, done.stderr

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, error = refused("--nodes", "2", "--port", str(port))
        assert (code, f"port {port} cannot be used" in error) == (1, True)
    (tmp_path / "data").mkdir()
    code, error = refused("--nodes", "2", "--port", "0", "-d", str(tmp_path))
    assert (code, "holds a single node" in error) == (2, True)
    code, error = refused("--nodes", "2", "--port", "0", "-o", "num.partitions=none")
    assert (code, "num.partitions" in error) == (2, True)
    assert refused("--nodes", "0")[0] == 2


@pytest.mark.slow
def test_a_secure_cluster_says_how_to_log_in(tmp_path: Path) -> None:
    directory = ("--directory", str(tmp_path), "--port", "0", "--json")
    for words in (("--secure", "--nodes", "3"), ("--nodes", "3")):  # the second time it is known
        with dev(*words, *directory) as process:
            ready = ready_line(process)
            assert ready["security"] == "scram"
            config = ("--command-config", ready["command_config"])
            cli = ClusterCli(ready["bootstrap_servers"])
            status = ("cluster", "status", *config)
            wait_until(lambda c=cli, s=status: c.run(*s).code == 0, "a cluster with no finding")
            assert len(cli.json(*status)["nodes"]) == 3
            alice = ("--command-config", str(tmp_path / "security" / "alice.properties"))
            cli.ok("produce", "alice-greetings", *alice, stdin=b"hello\n")
            assert cli.run("topic", "list").code != 0
            assert end(process)[0] == 0
    for path in tmp_path.glob("node-*/server.properties"):
        assert path.stat().st_mode & 0o777 == 0o600
