"""`barnabas start`, `dev` and `storage` as processes: readiness, signals, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.cli import ClusterCli, run_cli
from support.effort import others_slow
from support.node_process import NodeProcess
from support.patience import PATIENCE_S
from support.ports import free_neighbours, free_port

BARNABAS = [sys.executable, "-m", "barnabas"]
EXIT_TIMEOUT_S = PATIENCE_S
UUID = "MkU3OEVBNTcwNTJENDM2Qg"


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs; killed if the test leaves it running."""
    process = subprocess.Popen(
        [*BARNABAS, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    """Signal a process; its exit code and what it said on standard error."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=EXIT_TIMEOUT_S)
    return process.returncode, errors


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return line


FIELDS = {"timestamp", "level", "logger", "message"}


def events(errors: str) -> list[dict[str, object]]:
    """The lines of standard error, each of which is an object."""
    found: list[dict[str, object]] = [json.loads(line) for line in errors.splitlines()]
    assert all(FIELDS <= set(each) <= FIELDS | {"exception", "node"} for each in found), found
    return found


@pytest.mark.parametrize("count", others_slow([1, 3]))
def test_logs_of_dev_as_json(count: int) -> None:
    flags = ["--nodes", str(count), "--log-format", "json", "--log-level", "debug"]
    with running("dev", *flags, "--port", "0", "--json") as process:
        ready = json.loads(first_line(process))
        run_cli("topic", "create", "t", "-b", ready["bootstrap_servers"])
        code, errors = end(process)
    assert code == 0
    found = events(errors)
    assert {"INFO"} <= {each["level"] for each in found}
    if count > 1:
        assert {each["node"] for each in found if "node" in each} == set(range(1, count + 1))


def test_logs_of_a_node_as_json_by_its_configuration(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    settings = {
        "barnabas.log.format": "json",
        "authorizer.class.name": "StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "barnabas.audit.file": str(audit),
    }
    node = NodeProcess(tmp_path, settings)
    node.start()
    ClusterCli(node.bootstrap_servers).run("topic", "create", "t")
    assert node.stop() == 0
    messages = [each["message"] for each in events(node.output.read_text())]
    assert "node 1 has stopped" in messages
    assert all("node 1" not in str(each["message"]) for each in events(audit.read_text()))


SQL_FLAGS = ["-o", "listeners=http://127.0.0.1:0", "-o", "barnabas.sql.runner=local"]
SERVICES: dict[str, tuple[list[str], dict[str, str]]] = {
    "registry": (["registry", "start", "-b", "SERVERS", "--listeners", "http://127.0.0.1:0"], {}),
    "connect": (
        ["connect", "start", "FILE"],
        {
            "bootstrap.servers": "SERVERS",
            "listeners": "http://127.0.0.1:0",
            "group.id": "workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "barnabas.connect.engine": "local",
            **{f"{kind}.storage.topic": kind for kind in ("offset", "status", "config")},
            **{
                f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")
            },
        },
    ),
    "mirror": (
        ["connect", "mirror", "FILE"],
        {
            "clusters": "west,east",
            "west.bootstrap.servers": "SERVERS",
            "east.bootstrap.servers": "SERVERS",
            "west->east.enabled": "true",
            "west->east.topics": "none",
            "barnabas.connect.engine": "local",
            **{
                f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")
            },
        },
    ),
    "sql": (["sql", "server", "-b", "SERVERS", *SQL_FLAGS], {}),
}
"""Commands of services and their files."""
SLOW = {"mirror", "sql"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node that the services share."""
    node = NodeProcess(tmp_path_factory.mktemp("node"))
    node.start()
    yield node.bootstrap_servers
    assert node.stop() == 0


@pytest.mark.parametrize(
    "service",
    [pytest.param(each, marks=[pytest.mark.slow] if each in SLOW else []) for each in SERVICES],
)
def test_logs_of_a_service_as_json(service: str, servers: str, tmp_path: Path) -> None:
    command, settings = SERVICES[service]
    file = tmp_path / "service.properties"
    lines = [f"{key}={value}\n" for key, value in settings.items()]
    file.write_text("".join(lines).replace("SERVERS", servers))
    known = {"SERVERS": servers, "FILE": str(file)}
    arguments = [known.get(each, each) for each in command]
    with running(*arguments, "--log-format", "json", "--log-level", "debug", "--json") as process:
        assert json.loads(first_line(process))["ready"]
        code, errors = end(process)
    assert code == 0
    assert events(errors)


def test_logs_of_a_console_as_json(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: secret, admin\n")
    flags = ["--listeners", "http://127.0.0.1:0", "--log-format", "json", "--json"]
    flags += ["-o", f"console.users.file={users}"]
    with running("console", "-b", "127.0.0.1:1", *flags) as process:
        (url,) = json.loads(first_line(process))["listeners"]
        users.unlink()
        given = {"x-console": "1"}
        body = {"name": "ann", "password": "secret"}
        httpx.post(f"{url}/api/login", json=body, headers=given, timeout=PATIENCE_S)
        code, errors = end(process)
    assert code == 0
    assert "nobody can log in" in str([each["message"] for each in events(errors)])


@pytest.mark.parametrize("number", others_slow([signal.SIGTERM, signal.SIGINT]))
def test_dev_serves_and_leaves_nothing(number: signal.Signals) -> None:
    with running("dev", "--port", "0", "--json") as process:
        ready = json.loads(first_line(process))
        cli = ClusterCli(ready["bootstrap_servers"])
        cli.ok("produce", "greetings", "-v", "hello")
        assert cli.ok("consume", "greetings").text == "hello\n"
        assert os.path.isdir(ready["directory"])
        code, errors = end(process, number)
    assert (code, errors) == (0, "")
    assert not os.path.exists(ready["directory"])


def test_dev_tells_people_what_to_do(tmp_path: Path) -> None:
    port = free_neighbours()
    with running("dev", "--port", str(port), "-d", str(tmp_path / "data")) as process:
        assert first_line(process) == f"Ready: bootstrap.servers=127.0.0.1:{port}\n"
        assert str(tmp_path / "data") in first_line(process)
        assert end(process)[0] == 0


def test_dev_on_a_port_in_use_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "barnabas", "dev", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "choose others with --port, or take free ones with --port 0" in done.stderr


def test_dev_keeps_a_given_directory(tmp_path: Path) -> None:
    arguments = ("dev", "--port", "0", "--json", "--directory", str(tmp_path))
    with running(*arguments) as process:
        cli = ClusterCli(json.loads(first_line(process))["bootstrap_servers"])
        cli.ok("produce", "kept", "-v", "value")
        assert end(process)[0] == 0
    with running(*arguments) as process:
        cli = ClusterCli(json.loads(first_line(process))["bootstrap_servers"])
        assert cli.ok("consume", "kept").text == "value\n"
        assert end(process)[0] == 0


def test_flags_win_over_the_environment(tmp_path: Path) -> None:
    environment = {"BARNABAS_NUM_PARTITIONS": "5", "BARNABAS_LOG_RETENTION_HOURS": "9"}
    arguments = ("dev", "--port", "0", "--json", "--override", "num.partitions=3")
    with running(*arguments, **environment) as process:
        cli = ClusterCli(json.loads(first_line(process))["bootstrap_servers"])
        cli.ok("topic", "create", "topic")
        (topic,) = cli.json("topic", "describe", "topic")
        rows = {row["key"]: row["value"] for row in cli.json("config", "describe", "broker", "1")}
        assert end(process)[0] == 0
    assert len(topic["partitions"]) == 3
    assert rows["log.retention.hours"] == "9"


def test_start_from_a_kafka_file_and_stop(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    node.start()
    cli = ClusterCli(node.bootstrap_servers)
    cli.ok("produce", "topic", "-v", "value")
    assert node.stop() == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    node.start()
    assert cli.ok("consume", "topic").text == "value\n"
    assert node.stop() == 0
    assert "Traceback" not in node.output.read_text()
    assert "not shut down cleanly" not in node.output.read_text().partition("has stopped")[2]


def test_start_tells_scripts_when_it_is_ready(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    with running("start", str(node.properties), "--json") as process:
        ready = json.loads(first_line(process))
        assert ready == {
            "ready": True,
            "node_id": 1,
            "listeners": {"PLAINTEXT": node.bootstrap_servers},
        }
        assert end(process)[0] == 0


def test_start_names_each_key_without_effect_once(tmp_path: Path) -> None:
    node = NodeProcess(
        tmp_path, {"follower.fetch.last.tiered.offset.enable": "true", "num.partitons": "3"}
    )
    with running("start", str(node.properties), "--json") as process:
        first_line(process)
        code, errors = end(process)
    assert code == 0
    for key in ("follower.fetch.last.tiered.offset.enable", "num.partitons"):
        assert errors.count(key) == 1
    assert "did you mean num.partitions?" in errors


def test_start_says_when_clients_cannot_reach_what_they_are_told(tmp_path: Path) -> None:
    port = free_port()
    node = NodeProcess(tmp_path, {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    with running("start", str(node.properties)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "cannot reach" in line:
                break
        else:
            pytest.fail("nothing was said")
        assert f"PLAINTEXT://127.0.0.1:{port}" in line
        assert "advertised.listeners" in line
        assert end(process)[0] == 0


@pytest.mark.parametrize(
    ("overrides", "code", "words"),
    [
        (["zookeeper.connect=localhost:2181"], 2, "ZooKeeper"),
        (["process.roles=nothing"], 2, "process.roles"),
        (["advertised.listeners=PLAINTEXT://0.0.0.0:1"], 2, "0.0.0.0"),
        (["nonsense"], 2, "key=value"),
        (["log.dirs={tmp}/other"], 1, "other"),
    ],
)
def test_start_says_in_one_line_why_not(
    tmp_path: Path, overrides: list[str], code: int, words: str
) -> None:
    node = NodeProcess(tmp_path)
    flags = [flag for text in overrides for flag in ("-o", text.format(tmp=tmp_path))]
    done = subprocess.run(
        [*BARNABAS, "start", str(node.properties), *flags, "--log-level", "error"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("barnabas: "), done.stderr
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    with socket.create_server(("127.0.0.1", node.port)):
        done = subprocess.run(
            [*BARNABAS, "start", str(node.properties), "--log-level", "error"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"cannot listen on PLAINTEXT://127.0.0.1:{node.port}: Address already" in done.stderr


def test_storage(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
    )
    before = run_cli("storage", "info", "-c", str(path), "--json")
    assert before.code == 5
    assert len(before.json["problems"]) == 2
    arguments = ["storage", "format", "-c", str(path), "-t", UUID, "--standalone"]
    done = run_cli(*arguments, "--json")
    assert done.code == 0, done.err
    assert done.json["cluster_id"] == UUID
    after = run_cli("storage", "info", "-c", str(path), "--json")
    assert (after.code, after.json["problems"]) == (0, [])
    assert after.json["metadata"]["cluster.id"] == UUID
    assert after.json["metadata"]["node.id"] == "7"
    again = run_cli(*arguments)
    assert again.code == 1
    assert "already formatted" in again.err
    assert run_cli(*arguments, "--ignore-formatted").code == 0
    assert run_cli(*arguments, "-f", "nonsense").code == 2


def test_random_uuids_differ() -> None:
    uuids = {run_cli("storage", "random-uuid").text for _ in range(5)}
    assert len(uuids) == 5
    assert {len(text) for text in uuids} == {23}
