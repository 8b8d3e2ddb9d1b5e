"""The `kafka` fixture, as a project that installs us would use it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from barnabas.app.testing import Kafka
from support.patience import PATIENCE_S

CONFIGURATION = """
[pytest]
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
barnabas_config =
    num.partitions=3
"""
TESTS = """
import pytest

addresses = set()

@pytest.mark.parametrize("attempt", [1, 2])
def test_topics_are_its_own(kafka, attempt):
    topic = kafka.topic("orders", partitions=2)
    assert "orders" in topic
    kafka.produce(topic, [b"a", b"b"])
    assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
    addresses.add(kafka.bootstrap_servers)

def test_one_cluster_serves_them_all(kafka, kafka_bootstrap_servers):
    assert addresses | {kafka_bootstrap_servers} == {kafka.bootstrap_servers}
    assert [t for t in kafka.admin.list_topics(timeout=60).topics if "orders" in t] == []

def test_configuration(kafka):
    kafka.produce("automatic", [b"a"])
    assert len(kafka.admin.list_topics(timeout=60).topics["automatic"].partitions) == 3
"""
UNUSED = """
import sys

def test_nothing_was_loaded():
    loaded = {name for name in sys.modules if name.startswith("barnabas")}
    assert loaded <= {"barnabas", "barnabas.app", "barnabas.app.pytest_plugin"}
    assert "confluent_kafka" not in sys.modules
"""


NOT_REWRITTEN = """
import sys

def rewritten():
    loaders = {name: type(module.__loader__).__name__ for name, module in sys.modules.items()
               if name.partition(".")[0] == "barnabas"}
    assert len(loaders) > 100
    return {name for name, loader in loaders.items() if loader == "AssertionRewritingHook"}

def test_no_module_is_rewritten(kafka):
    topic = kafka.topic("orders")
    kafka.produce(topic, [b"a"])
    assert kafka.consume(topic, 1) == [b"a"]
    # Imported before the plugin can do anything. That they are here shows that pytest meant to.
    assert rewritten() == {"barnabas", "barnabas.app", "barnabas.app.pytest_plugin"}
    for name in ("barnabas", "barnabas.app.pytest_plugin"):
        assert "PYTEST_DONT_REWRITE" in sys.modules[name].__doc__
"""


def pytest_process(
    directory: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def run_pytest(directory: Path, *arguments: str, **environment: str) -> str:
    """What pytest says; fails where it does."""
    done = pytest_process(directory, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(directory: Path, *arguments: str, **environment: str) -> str:
    """Run pytest, which must fail; return its output."""
    done = pytest_process(directory, *arguments, **environment)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_it.py").write_text(TESTS)
    assert "4 passed" in run_pytest(tmp_path)


def test_a_cluster_that_runs_already_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_it.py").write_text(TESTS)
    with barnabas.Cluster(config={"num.partitions": "3"}) as cluster:
        run_pytest(tmp_path, "--barnabas-bootstrap", cluster.bootstrap_servers)
        with Kafka(cluster.bootstrap_servers) as kafka:
            assert "automatic" in kafka.admin.list_topics(timeout=60).topics


SEVERAL = """
def test_nodes_can_be_stopped(kafka, barnabas_cluster):
    topic = kafka.topic("orders", partitions=3)
    kafka.produce(topic, [b"a"])
    assert len(kafka.admin.list_topics(timeout=60).brokers) == 3
    assert kafka.consume(topic, 1) == [b"a"]
    barnabas_cluster.stop_node(2)
    try:
        kafka.produce(topic, [b"b"])
        assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
    finally:
        barnabas_cluster.start_node(2)
    assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
"""


def test_several_nodes(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SEVERAL)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run_pytest(tmp_path, "--barnabas-nodes", "3")
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_nodes = 3\n")
    run_pytest(tmp_path)


@pytest.mark.parametrize("count", ["0", "-1"])
def test_a_cluster_of_no_nodes_is_an_error(tmp_path: Path, count: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka):\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    said = refused(tmp_path, "--barnabas-nodes", count)
    assert said.startswith("ERROR: barnabas_nodes: a cluster has at least one node")


def test_a_cluster_that_does_not_answer_fails_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka):\n    kafka.topic()\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    said = refused(tmp_path, "--barnabas-bootstrap", "127.0.0.1:1")
    line = "--barnabas-bootstrap: no broker answers at 127.0.0.1:1 (connection refused)"
    assert line in said.splitlines()
    assert "Traceback" not in said
    assert "rdkafka" not in said


def test_a_port_that_says_nothing_fails_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka):\n    kafka.topic()\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        said = refused(tmp_path, "--barnabas-bootstrap", address)
    line = f"--barnabas-bootstrap: no broker answers at {address} (connected, but no answer)"
    assert line in said.splitlines()
    assert "Traceback" not in said
    assert "rdkafka" not in said


def test_a_secured_cluster_without_the_extra_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka):\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    # The same as where it is not installed.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['cryptography'] = None\n")
    paths = os.pathsep.join(str(one) for one in (tmp_path, Path(barnabas.__file__).parents[1]))
    said = refused(tmp_path, "--barnabas-security", "scram", PYTHONPATH=paths)
    assert said.strip() == (
        "ERROR: a secured cluster needs cryptography, which is not installed: "
        "pip install '.[security]' in the checkout of Barnabas"
    )


def test_it_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(UNUSED)
    run_pytest(tmp_path)


def test_modules_are_used_as_they_are_written(tmp_path: Path) -> None:
    package, installed = Path(barnabas.__file__).parent, tmp_path / "installed"
    information = installed / f"barnabas-{barnabas.__version__}.dist-info"
    information.mkdir(parents=True)
    (installed / "barnabas").symlink_to(package)
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: barnabas\nVersion: {barnabas.__version__}\n"
    )
    (information / "RECORD").write_text("barnabas/__init__.py,,\nbarnabas/app/__init__.py,,\n")
    (information / "entry_points.txt").write_text(
        "[pytest11]\nbarnabas = barnabas.app.pytest_plugin\n"
    )
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_it.py").write_text(NOT_REWRITTEN)
    # Bytecode would be cached beside the package's sources.
    run_pytest(tmp_path, "test_it.py", PYTHONPATH=str(installed), PYTHONDONTWRITEBYTECODE="1")


def test_conveniences(kafka: Kafka) -> None:
    assert kafka.name("x") != kafka.name("x")
    topic = kafka.topic()
    kafka.produce(topic, [("k", None), "text"])
    assert kafka.consume(topic, 2) == [None, b"text"]
    for timeout_s in (1.0, PATIENCE_S):  # in the first, a slow machine may not join the group
        with pytest.raises(AssertionError, match="of 3") as raised:
            kafka.consume(topic, 3, timeout_s=timeout_s)
        if "2 of 3" in str(raised.value):
            break
    assert "2 of 3 records came" in str(raised.value)
