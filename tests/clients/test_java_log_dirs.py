"""Kafka's tools move replicas between the directories of a node that is written and read.

`kafka-reassign-partitions` with `log_dirs` requests the moves and watches them, `kafka-log-dirs`
shows their progress. At the same time confluent-kafka's clients write, read and commit, and their
results are compared with the content of the logs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.cluster_load import Load
from support.java_host import JavaHost
from support.node_process import NodeProcess, wait_until
from support.patience import PATIENCE_S

pytestmark = pytest.mark.timeout(180)
TOPIC = "moved"
PARTITIONS = 4
RECORDS = 300
RATE = 200_000
SEGMENT_BYTES = 1 << 20


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node with two directories, and a topic with partitions in both."""
    directories = [str(tmp_path / name) for name in ("one", "two")]
    node = NodeProcess(
        tmp_path,
        {
            "log.dirs": ",".join(directories),
            "metadata.log.dir": str(tmp_path / "metadata"),
            "log.segment.bytes": str(SEGMENT_BYTES),
        },
    )
    node.start()
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(PATIENCE_S)
    yield node
    node.stop()


class Tools:
    """Kafka's tools against one node."""

    def __init__(self, java: JavaHost, node: NodeProcess, directory: Path) -> None:
        self._java = java
        self._node = node
        self._plan = directory / "plan.json"

    def _run(self, name: str, *arguments: str, exit_code: int | None = 0) -> list[str]:
        server = ("--bootstrap-server", self._node.bootstrap_servers)
        return self._java.run(name, *server, *arguments, exit_code=exit_code).lines

    def directories(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the topic's replicas, by directory and then by partition."""
        described = self._run("kafka-log-dirs", "--describe", "--topic-list", TOPIC)
        (broker,) = json.loads(described[-1])["brokers"]
        return {
            entry["logDir"]: {each["partition"]: each for each in entry["partitions"]}
            for entry in broker["logDirs"]
        }

    def where(self) -> dict[str, str]:
        """The directory of each partition that is not a copy on its way."""
        return {
            name: path
            for path, partitions in self.directories().items()
            for name, entry in partitions.items()
            if not entry["isFuture"]
        }

    def copies(self) -> dict[str, dict[str, Any]]:
        """The copies on their way, by partition."""
        return {
            name: entry
            for partitions in self.directories().values()
            for name, entry in partitions.items()
            if entry["isFuture"]
        }

    def write_plan(self, targets: dict[str, str]) -> None:
        """Have each partition named go to a directory."""
        partitions = [
            {"topic": TOPIC, "partition": int(name[-1]), "replicas": [1], "log_dirs": [path]}
            for name, path in targets.items()
        ]
        self._plan.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def execute(self, *more: str, exit_code: int | None = 0) -> str:
        """Ask for the moves of the plan."""
        plan = ("--reassignment-json-file", str(self._plan))
        options = ("--execute", *plan, *more)
        return "\n".join(self._run("kafka-reassign-partitions", *options, exit_code=exit_code))

    def verify(self, *more: str) -> str:
        """Return the progress of the plan's moves."""
        plan = ("--reassignment-json-file", str(self._plan))
        return "\n".join(self._run("kafka-reassign-partitions", "--verify", *plan, *more))


@pytest.fixture
def tools(java: JavaHost, node: NodeProcess, tmp_path: Path) -> Tools:
    return Tools(java, node, tmp_path)


def swapped(where: dict[str, str], *paths: str) -> dict[str, str]:
    one, two = paths
    return {name: two if path == one else one for name, path in where.items()}


def test_replicas_move_back_and_forth_under_load(node: NodeProcess, tools: Tools) -> None:
    paths = sorted(tools.directories())
    with Load(node.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_acknowledged(RECORDS)
        for _ in range(3):
            targets = swapped(tools.where(), *paths)
            assert set(targets.values()) == set(paths)
            tools.write_plan(targets)
            assert "Successfully started moving log directory" in tools.execute()
            wait_until(lambda t=targets: tools.where() == t, "the moves' end")
            verified = tools.verify()
            for name in targets:
                replica = f"{TOPIC}-{name[-1]}-1"
                assert f"Reassignment of replica {replica} completed successfully." in verified
            load.await_acknowledged(RECORDS)
        final = load.settle()
    load.history.check(final)
    assert not load.history.failed
    names = [entry.name for path in paths for entry in Path(path).iterdir()]
    assert not [name for name in names if name.endswith("-future")]
    assert sorted(name for name in names if name.startswith(f"{TOPIC}-") and "." not in name) == [
        f"{TOPIC}-{index}" for index in range(PARTITIONS)
    ]


@pytest.mark.slow
def test_a_throttled_move_is_seen_survives_kills_and_is_called_off(
    node: NodeProcess, tools: Tools
) -> None:
    paths = sorted(tools.directories())
    with Load(node.bootstrap_servers, TOPIC, PARTITIONS) as load:
        load.await_acknowledged(10 * RECORDS)
        before = tools.where()
        targets = swapped(before, *paths)
        tools.write_plan(targets)
        tools.execute("--replica-alter-log-dirs-throttle", "1000")
        wait_until(lambda: bool(tools.copies()), "a copy")
        copies = tools.copies()
        assert all(entry["offsetLag"] > 0 for entry in copies.values()), copies
        assert "is still in progress" in tools.verify("--preserve-throttles")
        node.kill()
        node.start()
        load.await_acknowledged(RECORDS)
        assert tools.where() == before
        assert set(tools.copies()) == set(before)
        # Called off: each is to stay where it is.
        tools.write_plan(before)
        tools.execute()
        assert tools.copies() == {}
        tools.write_plan(targets)
        tools.execute("--replica-alter-log-dirs-throttle", "100000000")
        node.kill()
        node.start()
        wait_until(lambda: tools.where() == targets, "the moves' end")
        load.await_acknowledged(RECORDS)
        final = load.settle()
    load.history.check(final)
    assert not load.history.failed
    assert node.stop() == 0


def test_a_directory_that_is_not_there_or_cordoned_is_refused(
    node: NodeProcess, tools: Tools
) -> None:
    where = tools.where()
    tools.write_plan(dict.fromkeys(where, "/nowhere"))
    assert "LogDirNotFoundException" in tools.execute(exit_code=None)
    paths = sorted(tools.directories())
    node.cli(
        *("config", "set", "broker", "1", f"cordoned.log.dirs={paths[1]}"),
        *("-b", node.bootstrap_servers),
    )
    configs = ("config", "describe", "broker", "1", "-b", node.bootstrap_servers)
    wait_until(lambda: paths[1] in node.cli(*configs), "the broker's own knowledge of it")
    to_cordoned = {name: paths[1] for name, path in where.items() if path == paths[0]}
    tools.write_plan(to_cordoned)
    assert "InvalidReplicaAssignmentException" in tools.execute(exit_code=None)
    assert tools.where() == where
