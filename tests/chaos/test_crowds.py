"""A group of two hundred members, while nodes are restarted and members come and go."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from support.chain_member import Silence
from support.cluster_processes import EAGER, ClusterProcesses
from support.node_process import wait_until

MEMBERS_EACH = 50
TOPIC = "crowded"
GROUP = "crowd"
STABLE_S = 180
SETTINGS = {
    # So that a group of the consumer protocol goes through its rounds in seconds.
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}
TESTS = pathlib.Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Crowd:
    """A process with some of the members."""

    def __init__(self, bootstrap: str, protocol: str, members: int = MEMBERS_EACH) -> None:
        program = str(TESTS / "support" / "crowd.py")
        self._process = subprocess.Popen(
            [sys.executable, program, bootstrap, protocol, GROUP, TOPIC, str(members)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(TESTS)},
        )

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def owned(self) -> list[list[int]]:
        """By member, the partitions that it owns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        owned: list[list[int]] = answer["owned"]
        return owned

    def kill(self) -> None:
        """SIGKILL: none of its members leaves the group."""
        self._process.kill()
        self._process.communicate()


def await_stable(crowds: list[Crowd], partitions: int) -> None:
    """Every partition has one owner, and every member has its share."""

    def is_stable() -> bool:
        owned = [each for crowd in crowds for each in crowd.owned()]
        share = partitions // len(owned)
        together = sorted(partition for each in owned for partition in each)
        return together == list(range(partitions)) and all(len(each) >= share for each in owned)

    wait_until(is_stable, "a stable group", STABLE_S)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_hundred_members_outlive_a_rolling_restart(
    tmp_path: pathlib.Path, protocol: str
) -> None:
    partitions = 4 * MEMBERS_EACH
    with ClusterProcesses(tmp_path, 3, EAGER | SETTINGS) as cluster:
        servers = cluster.bootstrap_servers
        cluster.create_topic(TOPIC, partitions)
        with (
            Crowd(servers, protocol) as first,
            Crowd(servers, protocol) as second,
            Crowd(servers, protocol) as third,
        ):
            await_stable([first, second, third], partitions)
            # The fourth quarter joins while the nodes go down and come back one after another.
            with Crowd(servers, protocol) as fourth:
                for node_id in cluster.nodes:
                    cluster.restart(node_id)
                await_stable([first, second, third, fourth], partitions)
                fourth.kill()
                for node_id in cluster.nodes:
                    cluster.restart(node_id)
                await_stable([first, second, third], partitions)
            settings: dict[str, Any] = {"bootstrap.servers": servers, "logger": Silence()}
            admin = AdminClient(settings)
            (described,) = admin.describe_consumer_groups([GROUP]).values()
            assert len(described.result(30).members) == 3 * MEMBERS_EACH
        cluster.wait_until_healthy()
