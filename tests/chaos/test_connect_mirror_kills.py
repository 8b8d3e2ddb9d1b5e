"""Two secured clusters are mirrored while the mirror and the source's nodes are killed.

Each record must be in the target, in its order, at least once (and once where that is promised);
no group's offset may be translated past what was copied; settings and rights must follow.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from suffering import let_it_last

from barnabas.connect.connectors.mirror.records import Checkpoint
from support.cluster_processes import EAGER, ClusterProcesses
from support.connect.mirror import QUICK
from support.connect.mirror_side import Side
from support.connect.secured_cluster import SecureListener, secured_cluster
from support.connect.tasks import read_messages
from support.node_process import wait_until
from support.spark import needs_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TOPIC, COPY, GROUP = "orders", "west.orders", "shop"
PARTITIONS = 3
ROUNDS = 4
STEP = 400
"""Records that must have come to the target between two kills."""
SETTLE_S = 240.0
CALL_S = 30.0


class _Silence:
    """Takes what librdkafka says of lost connections; they are lost on purpose."""

    def log(self, *_: object) -> None:
        """Nothing."""


_SILENT = _Silence()


class Mirror:
    """`barnabas connect mirror` as a process."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._properties = folder / "mm2.properties"
        self._properties.write_text("".join(f"{key}={one}\n" for key, one in settings.items()))
        self._log = folder / "mirror.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until its connectors are configured."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "barnabas", "connect", "mirror"),
                    *(str(self._properties), "--json"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log()
        assert json.loads(line)["flows"] == ["west->east"]

    def end(self, number: signal.Signals) -> int:
        """End it; returns its exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(number)
        try:
            code = self._process.wait(CALL_S * 2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    def log(self) -> str:
        """Return the end of what it has said."""
        return self._log.read_text(errors="replace")[-6000:]


class Life:
    """Activity in the source during a run: records are written, and a group reads them."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._ending = threading.Event()
        self._reading = threading.Event()
        self.written = 0
        self.read: set[bytes] = set()
        self._threads = [threading.Thread(target=work) for work in (self._write, self._read)]

    def start(self) -> None:
        for one in self._threads:
            one.start()

    def end(self) -> int:
        """Stop writing, and let the group read to the end; returns how many records there are."""
        self._ending.set()
        self._threads[0].join()
        wait_until(
            lambda: len(self.read) >= self.written,
            "the group's reading to the end",
            SETTLE_S,
            lambda: f"{len(self.read)} of {self.written}",
        )
        self.close()
        assert len(self.read) == self.written
        return self.written

    def close(self) -> None:
        self._ending.set()
        self._reading.set()
        for one in self._threads:
            if one.is_alive():
                one.join()

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "logger": _SILENT,
            }
        )
        while not self._ending.is_set():
            for _ in range(10):
                producer.produce(
                    TOPIC, b"%d" % self.written, b"k", partition=self.written % PARTITIONS
                )
                self.written += 1
            producer.poll(0)
            self._ending.wait(0.03)
        assert producer.flush(SETTLE_S) == 0

    def _read(self) -> None:
        while not self._reading.is_set():
            consumer = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": GROUP,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "logger": _SILENT,
                }
            )
            with contextlib.suppress(KafkaException):
                consumer.subscribe([TOPIC])
                self._read_on(consumer)
            with contextlib.suppress(KafkaException):
                consumer.close()

    def _read_on(self, consumer: Consumer) -> None:
        while not self._reading.is_set():
            messages = [one for one in consumer.consume(100, 0.2) if one.error() is None]
            if messages:
                consumer.commit(
                    offsets=consumer.position(consumer.assignment()), asynchronous=False
                )
                self.read.update(one.value() or b"" for one in messages)


@dataclass(slots=True)
class World:
    """The clusters and what runs between them."""

    random: random.Random
    west_nodes: ClusterProcesses
    west: Side
    east: Side
    mirror: Mirror
    life: Life

    def copied(self) -> int:
        """Return the number of records in the target's partitions."""
        if COPY not in self.east.topics():
            return 0
        consumer = Consumer({"bootstrap.servers": self.east.servers, "group.id": "looks"})
        try:
            return sum(
                consumer.get_watermark_offsets(TopicPartition(COPY, number), CALL_S)[1]
                for number in range(PARTITIONS)
            )
        finally:
            consumer.close()

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        def shown() -> str:
            self.mirror.end(signal.SIGABRT)  # it tells what its threads do
            return self.mirror.log()

        wait_until(is_so, what, SETTLE_S, shown)

    def await_more(self) -> None:
        """Wait until the copy has grown."""
        wanted = self.copied() + STEP
        self.wait(lambda: self.copied() >= wanted, "the copy of more")

    def kill_mirror(self) -> None:
        self.mirror.end(signal.SIGKILL)
        if self.random.random() < 0.5:
            let_it_last(self.random.random() * 2)
        self.mirror.start()

    def kill_node(self) -> None:
        node_id = self.random.choice(sorted(self.west_nodes.nodes))
        self.west_nodes.kill(node_id)
        self.await_more()
        self.west_nodes.start(node_id)

    def kill_both(self) -> None:
        node_id = self.random.choice(sorted(self.west_nodes.nodes))
        self.west_nodes.kill(node_id)
        self.mirror.end(signal.SIGKILL)
        self.mirror.start()
        self.await_more()
        self.west_nodes.start(node_id)


def flow(
    west: SecureListener, east: SecureListener, engine: str, is_exactly_once: bool
) -> dict[str, str]:
    """Return the mirror's file: the clusters' own client files, and one flow."""
    settings = {
        "clusters": "west, east",
        **{f"west.{name}": value for name, value in west.admin_file().items()},
        **{f"east.{name}": value for name, value in east.admin_file().items()},
        "west->east.enabled": "true",
        "west->east.topics": TOPIC,
        "west->east.groups": GROUP,
        "east->west.emit.heartbeats.enabled": "false",
        "tasks.max": "2",
        "barnabas.connect.engine": engine,
        "barnabas.connect.restart.backoff.ms": "1000",
        "east.session.timeout.ms": "6000",
        "east.heartbeat.interval.ms": "500",
        **QUICK,
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
        "offset.storage.partitions": "3",
        "status.storage.partitions": "1",
    }
    if is_exactly_once:
        settings["east.exactly.once.source.support"] = "enabled"
        settings["west.consumer.isolation.level"] = "read_committed"
    return settings


@pytest.fixture(
    params=[
        pytest.param(("local", False, 1), id="local"),
        pytest.param(("local", True, 2), id="local-once"),
        pytest.param(("spark", False, 3), id="spark", marks=needs_spark),
        pytest.param(("spark", True, 4), id="spark-once", marks=needs_spark),
    ]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, bool]]:
    engine, is_exactly_once, seed = request.param
    west_nodes, west = secured_cluster(tmp_path / "west", 3, EAGER)
    east_nodes, east = secured_cluster(tmp_path / "east", 1)
    with west_nodes, east_nodes:
        made = World(
            random.Random(seed),
            west_nodes,
            Side(west_nodes.bootstrap_servers),
            Side(east_nodes.bootstrap_servers),
            Mirror(tmp_path, flow(west, east, engine, is_exactly_once)),
            Life(west_nodes.bootstrap_servers),
        )
        west_nodes.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "1234567890123"})
        try:
            yield made, is_exactly_once
        finally:
            made.life.close()
            made.mirror.end(signal.SIGKILL)
            made.west.close()
            made.east.close()


def test_nothing_is_lost_and_no_offset_is_too_far(world: tuple[World, bool]) -> None:
    made, is_exactly_once = world
    made.life.start()
    made.mirror.start()
    made.await_more()
    made.west.give_right(TOPIC, principal="User:early")
    kills = [made.kill_mirror, made.kill_node, made.kill_both]
    made.random.shuffle(kills)
    for kill in (kills * ROUNDS)[:ROUNDS]:
        kill()
        made.await_more()
    made.west.set_config(TOPIC, "retention.ms", "76543210987")
    made.west.give_right(TOPIC, principal="User:late")
    count = made.life.end()
    source = made.west.records(TOPIC)
    assert len(source) == count

    wanted = {number: values_of(source, number) for number in range(PARTITIONS)}
    made.wait(
        lambda: all(
            set(wanted[number]) <= set(values_of(made.east.records(COPY), number))
            for number in range(PARTITIONS)
        ),
        "the copy of all records",
    )
    upstream = {number: len(values) for number, values in wanted.items()}
    for number, end in upstream.items():
        assert made.west.committed(GROUP, TOPIC, number)[0] == end
    # At rest a group's offset is translated to the very end.
    made.wait(
        lambda: all(
            made.east.committed(GROUP, COPY, number)[0] == last_offset(made.east, number) + 1
            for number in range(PARTITIONS)
        ),
        "the translation of offsets to the end",
    )
    made.wait(
        lambda: made.east.config(COPY, "retention.ms").value == "76543210987",
        "the copy of settings",
    )
    made.wait(
        lambda: {who for who, _ in made.east.rights(COPY)} == {"User:early", "User:late"},
        "the copy of rights",
    )
    assert made.mirror.end(signal.SIGTERM) == 0, made.mirror.log()

    copies = read_messages(made.east.servers, COPY)
    for number, values in wanted.items():
        copied = [one.value() for one in copies if one.partition() == number]
        if is_exactly_once:
            assert copied == values
        assert list(dict.fromkeys(copied)) == values
    check_checkpoints(made.east, copies, wanted)


def values_of(records: list[tuple[Any, ...]], number: int) -> list[bytes]:
    return [one[2] for one in records if one[0] == number]


def last_offset(side: Side, number: int) -> int:
    found = read_messages(side.servers, COPY)
    return max((one.offset() for one in found if one.partition() == number), default=-1)


def check_checkpoints(east: Side, copies: list[Message], wanted: dict[int, list[bytes]]) -> None:
    """Check that a group continuing at a translated offset misses no unread record.

    In the source an offset is an index into `wanted`: there are no transactions.
    """
    where: dict[tuple[int, bytes], int] = {}
    for one in copies:
        where[one.partition() or 0, one.value() or b""] = one.offset() or 0  # its last copy
    found = [
        Checkpoint.read(one.key() or b"", one.value() or b"")
        for one in read_messages(east.servers, "west.checkpoints.internal")
    ]
    assert {checkpoint.place[1] for checkpoint in found} == set(wanted)
    for checkpoint in found:
        assert checkpoint.group == GROUP
        number = checkpoint.place[1]
        unread = wanted[number][checkpoint.upstream :]
        missed = [value for value in unread if where[number, value] < checkpoint.downstream]
        assert not missed, checkpoint
