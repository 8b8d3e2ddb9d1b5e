"""A database is captured to topics and copied to another, while all of them are killed.

The topics, replayed by key, equal the tables, and so do the tables of the sink; exactly once, each
change is in its topic once.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from suffering import let_it_last

import barnabas
from support.cluster_processes import EAGER, ClusterProcesses
from support.connect.copying import Copying
from support.connect.database_story import DATABASE, Story
from support.connect.postgres import postgres
from support.process_tree import children
from support.spark import needs_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROUNDS = 3
BETWEEN_S = 2.0


@contextlib.contextmanager
def copying(
    servers: str, folder: Path, seed: int, *, is_exactly_once: bool, **more: Any
) -> Iterator[Copying]:
    with contextlib.ExitStack() as stack:
        story = Story(stack.enter_context(postgres()), seed)
        stack.callback(story.close)
        made = Copying(servers, folder, story, is_exactly_once=is_exactly_once, **more)
        stack.callback(made.close)
        yield made


class Kills:
    """Random kills of workers, the database and nodes."""

    def __init__(self, copying: Copying, seed: int, cluster: ClusterProcesses | None) -> None:
        self._copying, self._cluster = copying, cluster
        self._random = random.Random(seed)

    def run(self) -> None:
        """Kill and start, all some times; in the end all run."""
        actions = [self.worker, self.worker, self.start_worker, self.start_worker, self.database]
        if self._cluster is not None:
            actions += [self.node, self.node]
        for _ in range(ROUNDS):
            self._random.shuffle(actions)
            for act in actions:
                act()
                let_it_last(self._random.random() * BETWEEN_S)
        for _ in self._copying.workers:
            self.start_worker()

    def worker(self) -> None:
        if running := self._copying.running():
            self._random.choice(running).kill(self._random.choice([SIGKILL, SIGKILL, SIGTERM]))

    def start_worker(self) -> None:
        for worker in self._copying.workers:
            if worker.process is None:
                worker.start()
                return

    def database(self) -> None:
        server = self._copying.story.server
        server.crash()
        let_it_last(self._random.random())
        server.start()

    def node(self) -> None:
        assert self._cluster is not None
        number = self._random.choice(list(self._cluster.nodes))
        self._cluster.kill(number)
        let_it_last(self._random.random() * 4)
        self._cluster.start(number)


@pytest.mark.parametrize(
    ("seed", "is_exactly_once"),
    [
        pytest.param(1, False, id="at-least-once-1"),
        pytest.param(2, False, id="at-least-once-2"),
        pytest.param(3, True, id="exactly-once-3"),
    ],
)
def test_workers_and_the_database_are_killed(
    tmp_path: Path, seed: int, is_exactly_once: bool
) -> None:
    with (
        barnabas.Cluster() as cluster,
        copying(
            cluster.bootstrap_servers, tmp_path, seed, is_exactly_once=is_exactly_once
        ) as copied,
    ):
        live_through(copied, Kills(copied, seed, None))


@pytest.mark.parametrize(
    ("seed", "is_exactly_once"),
    [
        pytest.param(1, False, id="at-least-once-1"),
        pytest.param(2, True, id="exactly-once-2"),
    ],
)
def test_nodes_are_killed_too(tmp_path: Path, seed: int, is_exactly_once: bool) -> None:
    with (
        ClusterProcesses(tmp_path / "nodes", 3, EAGER) as cluster,
        copying(
            cluster.bootstrap_servers, tmp_path, seed, is_exactly_once=is_exactly_once
        ) as copied,
    ):
        live_through(copied, Kills(copied, seed, cluster))


class ReadAgain(Copying):
    """Signals ask for the tables again and again."""

    _signals = 0

    def capture(self) -> dict[str, str]:
        return {
            **super().capture(),
            "signal.data.collection": "public.signals",
            "incremental.snapshot.chunk.size": "10",
        }

    def signal(self) -> None:
        self._signals += 1
        self.story.server.run(
            "CREATE TABLE IF NOT EXISTS signals (id varchar(42) PRIMARY KEY, type text, data text)",
            f"INSERT INTO signals VALUES ('s{self._signals}', 'execute-snapshot',"
            """ '{"data-collections": ["public.items", "public.parts"]}')""",
            database=DATABASE,
        )

    def marks(self) -> int:
        """Return the number of chunks that were read."""
        counted = "SELECT count(*) FROM signals WHERE type = 'snapshot-window-close'"
        return int(self.story.server.run(counted, database=DATABASE)[0][0])

    def read_again(self) -> None:
        """Ask for the tables again, and wait until some chunks have been read."""
        count = self.marks() + 3
        self.signal()
        self.wait(lambda: self.marks() >= count, self.marks)


@pytest.mark.parametrize(
    ("seed", "is_exactly_once"),
    [
        pytest.param(1, False, id="at-least-once-1"),
        pytest.param(2, True, id="exactly-once-2"),
    ],
)
def test_workers_are_killed_while_tables_are_read_again(
    tmp_path: Path, seed: int, is_exactly_once: bool
) -> None:
    with (
        barnabas.Cluster() as cluster,
        contextlib.ExitStack() as stack,
    ):
        story = Story(stack.enter_context(postgres()), seed)
        stack.callback(story.close)
        copied = ReadAgain(
            cluster.bootstrap_servers, tmp_path, story, is_exactly_once=is_exactly_once
        )
        stack.callback(copied.close)
        copied.signal()
        story.start()
        copied.start()
        kills = Kills(copied, seed, None)
        copied.wait(lambda: bool(copied.records("items")), str)
        for round_ in range(4):
            copied.read_again()
            (kills.database if round_ == 2 else kills.worker)()
            copied.read_again()  # the snapshot before may have ended with the worker
            kills.start_worker()
        story.stop()
        copied.check()
        again = [
            value for _key, value in copied.records("items") if b'"incremental"' in (value or b"")
        ]
        assert again


class SparkKills(Kills):
    """The one worker and its JVM are killed."""

    def run(self) -> None:
        for act in (self.jvm, self.worker, self.database, self.jvm):
            self.start_worker()
            self.await_more()
            act()

    def await_more(self) -> None:
        """Wait until tasks run, and write more."""
        count = len(self._copying.records("items"))
        self._copying.wait(lambda: len(self._copying.records("items")) > count, str)

    def jvm(self) -> None:
        for worker in self._copying.running():
            assert worker.process is not None
            for pid in children(worker.process.pid):
                if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                    os.kill(pid, SIGKILL)


@needs_spark
@pytest.mark.timeout(1800)  # JVMs start one after the other
def test_spark_is_killed(tmp_path: Path) -> None:
    with (
        barnabas.Cluster() as cluster,
        copying(
            cluster.bootstrap_servers, tmp_path, 1, is_exactly_once=True, engine="spark", count=1
        ) as copied,
    ):
        live_through(copied, SparkKills(copied, 1, None))


def live_through(copied: Copying, kills: Kills) -> None:
    copied.story.start()
    copied.start()
    if copied.is_exactly_once:
        # An interrupted snapshot begins again: rows come twice.
        copied.wait(
            lambda: any(b'"u"' in (value or b"") for _key, value in copied.records("items")), str
        )
    kills.run()
    copied.story.stop()
    copied.check()
    assert all(copied.story.counts.values()), copied.story.counts
