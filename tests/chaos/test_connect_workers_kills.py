"""Three workers of one group are killed and started while connectors come, pause and go.

Each connector reads lines of a file that grows. However workers end, nothing is lost, a task runs
at one worker (but for a moment), and reading goes on where it was.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families
from suffering import let_it_last

from barnabas.app.testing import Kafka
from barnabas.connect.worker.distributed.group_messages import decode_member
from barnabas.kafka.wire import Access, Brokers
from barnabas.protocol.apis import DESCRIBE_GROUPS, FIND_COORDINATOR
from barnabas.protocol.messages.groups import DescribeGroupsRequest, FindCoordinatorRequest
from support.connect.worker import OurWorker
from support.node_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SESSION_S = 6
CHAOS_S = 90.0
SETTLE_S = 180.0
TWICE_S_MAX = 12.0
"""A session, and the time to stop: how long two workers may believe that a task is theirs."""
SEEDS = (1,)
Task = tuple[str, str]
"""A connector's name, and the number of one of its tasks."""


class Lines:
    """A file that grows, and the connector that reads it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / f"{name}.txt"
        self.count = 0
        self.append(1)

    def append(self, count: int) -> None:
        with self.path.open("a") as file:
            for _ in range(count):
                file.write(f"{self.name} {self.count}\n")
                self.count += 1

    def config(self) -> dict[str, str]:
        return {
            "connector.class": SOURCE,
            "file": str(self.path),
            "topic": f"{self.name}-lines",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }


class Watch:
    """Looks at who runs what, all the time."""

    def __init__(self, workers: list[OurWorker]) -> None:
        self._workers = workers
        self._client = httpx.Client(trust_env=False, timeout=2)
        self._since: dict[Task, float] = {}
        self._stop = threading.Event()
        self.longest: dict[Task, float] = {}
        self.seen: dict[Task, set[str]] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.3):
            self.look()

    def look(self) -> dict[Task, set[str]]:
        """Return the workers that run each task, as far as workers answer."""
        found: dict[Task, set[str]] = {}
        for worker in self._workers:
            if worker.process is None or not worker.url:
                continue
            try:
                text = self._client.get(f"{worker.url}/metrics").text
            except httpx.HTTPError:
                continue
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if sample.name == "kafka_connect_connector_task_status":
                        task = sample.labels["connector"], sample.labels["task"]
                        found.setdefault(task, set()).add(worker.url)
        now = time.monotonic()
        twice = {task for task, where in found.items() if len(where) > 1}
        for task in twice:
            since = self._since.setdefault(task, now)
            self.longest[task] = max(self.longest.get(task, 0.0), now - since)
        for task in set(self._since) - twice:
            del self._since[task]
        self.seen = found
        return found

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


class Chaos:
    """The workers, and what is done to them."""

    def __init__(self, kafka: Kafka, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.kafka, self.folder = kafka, folder
        self.prefix = kafka.name("c")
        settings = {
            "session.timeout.ms": str(SESSION_S * 1000),
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "2000",
            "offset.storage.replication.factor": "-1",
            "config.storage.replication.factor": "-1",
            "status.storage.replication.factor": "-1",
        }
        self.group = kafka.name("group")
        self.workers = [
            OurWorker(folder / f"w{n}", kafka.bootstrap_servers, f"w{n}", self.group, settings)
            for n in range(3)
        ]
        self.lines: dict[str, Lines] = {}
        self.deleted: set[str] = set()
        self.number = 0
        self.kills = 0
        self.told: list[str] = []

    def ask(self, method: str, path: str, body: object = None) -> bool:
        """Ask any worker until one answers; whether it did it."""
        done: list[bool] = []

        def is_answered() -> bool:
            worker = self.random.choice([one for one in self.workers if one.process is not None])
            try:
                status, answer = worker.ask(method, path, body)
            except httpx.HTTPError:
                status, answer = 0, "no answer"
            if status in (200, 201, 202, 204):
                done.append(True)
            elif status == 404:
                done.append(method == "DELETE")
            else:
                self.told.append(f"{method} {path} at {worker.url}: {status} {answer}")
            return bool(done)

        wait_until(is_answered, f"{method} {path}", shown=lambda: self.told[-5:])
        return done[0]

    def create(self) -> None:
        name = f"{self.prefix}-{self.number}"
        self.number += 1
        lines = self.lines[name] = Lines(self.folder, name)
        assert self.ask("PUT", f"/connectors/{name}/config", lines.config()), self.told[-5:]

    def delete(self) -> None:
        if len(self.lines) > 3:
            name = self.random.choice(sorted(self.lines))
            assert self.ask("DELETE", f"/connectors/{name}"), self.told[-5:]
            del self.lines[name]
            self.deleted.add(name)

    def pause(self) -> None:
        name = self.random.choice(sorted(self.lines))
        self.ask("PUT", f"/connectors/{name}/pause")
        self.let_them_work()
        assert self.ask("PUT", f"/connectors/{name}/resume"), self.told[-5:]

    def let_them_work(self) -> None:
        """Do nothing for a while: the times between what is done differ too."""
        let_it_last(self.random.random())

    def append(self) -> None:
        for lines in self.lines.values():
            lines.append(self.random.randrange(1, 50))

    def end_one(self) -> None:
        alive = [one for one in self.workers if one.process is not None]
        if len(alive) > 1:
            worker = self.random.choice(alive)
            worker.kill(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            self.kills += 1

    def start_one(self) -> None:
        for worker in self.workers:
            if worker.process is None:
                worker.start()
                return

    def hold_one(self) -> None:
        """Hold a worker still until its group goes on without it: it must give up what it has."""
        alive = [one for one in self.workers if one.process is not None]
        if len(alive) > 1:
            worker = self.random.choice(alive)
            assert worker.process is not None
            self.wait(lambda: self.goes_on(worker, is_in=True), "its membership")
            worker.process.send_signal(signal.SIGSTOP)
            try:
                self.wait(lambda: self.goes_on(worker, is_in=False), "the end of its session")
                self.let_them_work()
                self.append()
            finally:
                worker.process.send_signal(signal.SIGCONT)
            self.kills += 1

    def goes_on(self, worker: OurWorker, *, is_in: bool) -> bool:
        """Return whether the group is at rest, with a worker in it or without."""
        brokers = Brokers(Access(self.kafka.bootstrap_servers))
        with closing(brokers):
            wanted = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
            (at,) = brokers.any().call(FIND_COORDINATOR, wanted).coordinators
            asked = DescribeGroupsRequest(groups=[self.group])
            (group,) = brokers.at(at.host, at.port).call(DESCRIBE_GROUPS, asked).groups
        if group.group_state != "Stable":
            return False
        # Not anywhere in the metadata: it also tells what a member was dealt before, and by whom.
        members = [decode_member(member.member_metadata) for member in group.members]
        return (worker.url in {member.url.rstrip("/") for member in members}) == is_in

    def wait(self, until: Callable[[], bool], what: str) -> None:
        wait_until(until, what, SETTLE_S, lambda: (self.told[-5:], self.statuses()))

    def statuses(self) -> object:
        return self.workers[0].ask("GET", "/connectors?expand=status")[1]

    def written(self, name: str) -> list[str]:
        """The lines that are in a connector's topic, in their order."""
        consumer = Consumer(
            {
                **self.kafka.client_config,
                "group.id": self.kafka.name("reader"),
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.subscribe([f"{name}-lines"])
        found: list[str] = []
        try:
            while True:
                message = consumer.poll(30)
                assert message is not None, name
                if message.error() is not None:
                    return found
                found.append((message.value() or b"").decode())
        finally:
            consumer.close()

    def close(self) -> None:
        for worker in self.workers:
            if worker.process is not None:
                worker.process.send_signal(signal.SIGCONT)
            worker.close()


@pytest.fixture(params=SEEDS)
def chaos(request: pytest.FixtureRequest, kafka: Kafka, tmp_path: Path) -> Iterator[Chaos]:
    made = Chaos(kafka, tmp_path, request.param)
    yield made
    made.close()


def test_nothing_is_lost_and_nothing_runs_twice(chaos: Chaos) -> None:
    for worker in chaos.workers:
        worker.start()
    for _ in range(5):
        chaos.create()
    watch = Watch(chaos.workers)
    actions = [chaos.create, chaos.delete, chaos.pause, chaos.append, chaos.append]
    actions += [chaos.end_one, chaos.end_one, chaos.start_one, chaos.start_one, chaos.hold_one]
    try:
        deadline = time.monotonic() + CHAOS_S
        while time.monotonic() < deadline:
            chaos.random.choice(actions)()
            chaos.let_them_work()
        for _ in chaos.workers:
            chaos.start_one()
        chaos.append()

        def is_whole() -> bool:
            wanted = {(name, "0") for name in chaos.lines}
            seen = watch.look()
            return seen.keys() == wanted and all(len(where) == 1 for where in seen.values())

        chaos.wait(is_whole, "each task at one worker")

        def all_run() -> bool:
            for name in chaos.lines:
                status, answer = chaos.workers[0].ask("GET", f"/connectors/{name}/status")
                if status != 200:
                    return False
                states = [answer["connector"]["state"], *(t["state"] for t in answer["tasks"])]
                if states != ["RUNNING", "RUNNING"]:
                    return False
            return True

        chaos.wait(all_run, "all are running, and told so")
    finally:
        watch.close()
    assert chaos.kills > 2
    assert max(watch.longest.values(), default=0.0) < TWICE_S_MAX, watch.longest
    status, names = chaos.workers[1].ask("GET", "/connectors")
    assert status == 200
    assert sorted(names) == sorted(chaos.lines)
    for name, lines in chaos.lines.items():
        wanted = [f"{name} {number}" for number in range(lines.count)]
        chaos.wait(lambda: set(wanted) <= set(chaos.written(name)), f"all lines of {name}")  # noqa: B023
        written = chaos.written(name)
        assert list(dict.fromkeys(written)) == wanted
        # Only records whose offsets were not stored when a worker was killed are read again.
        assert len(written) - len(wanted) <= chaos.kills * 200
