"""Drills on three nodes: each fault is seen in metrics, as an alert and in the console.

With `CONSOLE_IMAGES=docs/images/console` the screenshots of docs/runbooks are made again.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from playwright.sync_api import Browser, Page, expect

from barnabas.protocol.errors import ErrorCode
from support.cluster_processes import CLUSTER_ID, EAGER, ClusterNode, ClusterProcesses
from support.console_world import Console, console
from support.hanging_transaction import HOUR_MS, VERIFICATION, write_hanging
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.prometheus import IS_THERE, MISSING, Prometheus, targets

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_THERE, reason=MISSING)]
IMAGES = os.environ.get("CONSOLE_IMAGES")
TIMEOUT_MS = PATIENCE_S * 1000
DISK_NODE = 3
VOLUME_BYTES = 64 << 20
BATCH_BYTES = 100_000


@dataclass
class World:
    """A cluster, and those who look at it."""

    cluster: ClusterProcesses
    prometheus: Prometheus
    console: Console

    @property
    def bootstrap(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.cluster.bootstrap_servers}


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A small file system, so that a test can fill it; None if this user may not mount one."""
    place = tmp_path_factory.mktemp("small")
    command = ["mount", "-t", "tmpfs", "-o", f"size={VOLUME_BYTES}", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def add_log_directory(node: ClusterNode, directory: Path) -> None:
    """Give a node that has not been started a second log directory."""
    with node.properties.open("a") as properties:
        properties.write(f"log.dirs={node.data},{directory}\n")
    arguments = ["--config", str(node.properties), "--cluster-id", CLUSTER_ID, "--ignore-formatted"]
    command = [sys.executable, "-m", "barnabas", "storage", "format", *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, volume: Path | None) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("drills")
    overrides = EAGER | {"barnabas.metrics.listener": "http://127.0.0.1:0", VERIFICATION: "false"}
    cluster = ClusterProcesses(directory / "cluster", overrides=overrides)
    if volume is not None:
        add_log_directory(cluster.nodes[DISK_NODE], volume / "logs")
    with cluster:
        cluster.create_topic("orders", partitions=6)
        cluster.create_topic("payments", partitions=1)
        shown = targets(cluster.nodes.values())
        with (
            contextlib.closing(Prometheus(directory / "prometheus", shown)) as prometheus,
            console({"bootstrap.servers": cluster.bootstrap_servers}) as found,
        ):
            prometheus.wait_for_values("sum(up)", [3])
            wait_until(lambda: prometheus.alerts() == {}, "a start without alerts")
            yield World(cluster, prometheus, found)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 640})
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    yield page
    context.close()


def seen(page: Page, world: World, path: str, text: str | re.Pattern[str], image: str) -> None:
    """Wait until a page of the console shows `text`; take a picture of it."""
    page.goto(f"{world.console.url}/#{path}")
    expect(page.locator("main")).to_contain_text(text)
    if IMAGES:
        page.wait_for_selector('[aria-busy="true"]', state="detached")
        page.screenshot(path=Path(IMAGES) / f"drill-{image}.png")


def advised(page: Page, title: str | re.Pattern[str]) -> None:
    """Check that a finding comes with advice."""
    card = page.locator("section.card", has_text=title).first
    expect(card.locator(".advice")).not_to_be_empty()


def test_a_group_lags(world: World, page: Page) -> None:
    hour_ago_ms = int(time.time() * 1000) - HOUR_MS
    producer = Producer(world.bootstrap)
    for number in range(100):
        producer.produce("orders", str(number), partition=0, timestamp=hour_ago_ms)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**world.bootstrap, "group.id": "late", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", 0, 10)], asynchronous=False)
    world.prometheus.wait_for("BarnabasGroupLags", "firing")
    world.prometheus.wait_for_values('kafka_consumergroup_lag{consumergroup="late"}', [90])
    seen(page, world, "/", "orders-0", "lagging-group")
    consumer.commit(offsets=[TopicPartition("orders", 0, 100)], asynchronous=False)
    wait_until(lambda: "BarnabasGroupLags" not in world.prometheus.alerts(), "the lag's end")
    consumer.close()


def test_a_transaction_hangs(world: World, page: Page) -> None:
    leader = world.cluster.nodes[world.cluster.wait_for_leader("payments")]
    error = write_hanging(leader.bootstrap_servers, "payments", "lost")
    assert error == ErrorCode.NONE
    world.prometheus.wait_for("BarnabasTransactionHangs", "firing")
    held_back = 'kafka_cluster_partition_laststableoffsetlag{topic="payments"}'
    world.prometheus.wait_for_values(held_back, [1])
    seen(page, world, "/", "payments-0 from offset", "hanging-transaction-overview")
    advised(page, "1 transaction hangs")
    seen(page, world, "/transactions/hanging?find=1", "payments", "hanging-transaction")


def test_a_node_is_dead(world: World, page: Page) -> None:
    world.cluster.kill(2)
    world.prometheus.wait_for("BarnabasBrokerFenced", "firing")
    world.prometheus.wait_for("BarnabasNodeDown", "pending", "firing")
    brokers = "max(kafka_controller_kafkacontroller_activebrokercount)"
    world.prometheus.wait_for_values(brokers, [2])
    seen(page, world, "/", "Node 2 is down", "dead-node")
    advised(page, "Node 2 is down")
    world.cluster.start(2)
    wait_until(lambda: "BarnabasBrokerFenced" not in world.prometheus.alerts(), "its return")


def test_a_disk_fills_up_and_its_log_directory_fails(
    world: World, page: Page, volume: Path | None
) -> None:
    if volume is None:
        pytest.skip("this user may not mount a small file system")
    held = [place.name for place in (volume / "logs").glob("orders-*")]
    assert held, "none of the replicas is on the small volume"
    ballast = volume / "ballast"
    free_bytes = os.statvfs(volume).f_bavail * os.statvfs(volume).f_frsize
    with ballast.open("wb") as file:
        file.write(bytes(free_bytes - VOLUME_BYTES // 50))
    world.prometheus.wait_for("BarnabasDiskFull", "firing")
    full = re.compile(f"A disk of node {DISK_NODE} is 9[5-9] % full")
    seen(page, world, "/", full, "full-disk")
    advised(page, full)

    # Nobody made room: the log directory fails.
    with ballast.open("ab", buffering=0) as raw, contextlib.suppress(OSError):
        while raw.write(bytes(BATCH_BYTES)) == BATCH_BYTES:
            pass
    producer = Producer(world.bootstrap)
    number = int(held[0].rpartition("-")[2])
    failed = "sum(kafka_log_logmanager_offlinelogdirectorycount)"

    def has_failed() -> bool:
        for _ in range(10):
            producer.produce("orders", os.urandom(BATCH_BYTES), partition=number)
        producer.flush(PATIENCE_S)
        return world.prometheus.values(failed) == [1]

    wait_until(has_failed, "the failure of the log directory", shown=world.prometheus.alerts)
    world.prometheus.wait_for("BarnabasLogDirectoryFailed", "firing")
    title = f"A log directory of node {DISK_NODE} failed"
    seen(page, world, "/", title, "failed-log-directory")
    advised(page, title)

    # Room is made, and the node started again: it fetches what it missed.
    ballast.unlink()
    world.cluster.stop(DISK_NODE)
    world.cluster.start(DISK_NODE)
    world.cluster.wait_until_healthy()
