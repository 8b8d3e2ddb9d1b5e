"""The console before Apache Kafka's own Connect worker, whose login is basic authentication.

`make test-slow`: Kafka's worker takes its time to start.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from barnabas.app.cluster import Cluster
from support.connect.kafka_connect import KafkaWorker, needs_kafka_connect
from support.connect.side_by_side import FILE_SINK, FILE_SOURCE
from support.connect.worker import PATIENCE_S
from support.console_world import Console, console
from support.node_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs_kafka_connect]
USER, PASSWORD = "console", "the worker's own"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"
QUEUE = "errors.deadletterqueue"


@dataclass
class World:
    """A worker, and what the console needs to know of it."""

    worker: KafkaWorker
    bootstrap_servers: str

    @contextmanager
    def page(self, user: str = f"{USER}:{PASSWORD}") -> Iterator[Console]:
        values = {
            "bootstrap.servers": self.bootstrap_servers,
            "connect.url": self.worker.url,
            "connect.basic.auth.user.info": user,
        }
        with console(values) as found:
            found.http.timeout = httpx.Timeout(PATIENCE_S)
            yield found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("connect")
    (folder / "users").write_text(f"{USER}={PASSWORD}\n")
    login = folder / "jaas.conf"
    module = f'{EXTENSION}.PropertyFileLoginModule required file="{folder / "users"}";'
    login.write_text(f"KafkaConnect {{\n  {module}\n}};\n")
    settings = {"rest.extension.classes": f"{EXTENSION}.BasicAuthSecurityRestExtension"}
    options = [f"-Djava.security.auth.login.config={login}"]
    with Cluster() as cluster:
        made = KafkaWorker(
            folder / "worker", cluster.bootstrap_servers, "one", "workers", settings, jvm=options
        )
        made.client.auth = httpx.BasicAuth(USER, PASSWORD)
        with closing(made):
            made.start()
            yield World(made, cluster.bootstrap_servers)


def create(page: Console, name: str, plugin: str, **more: Any) -> None:
    config = {"connector.class": plugin, "tasks.max": "1", **more}
    page.done("POST", f"connectors/{name}/config", {"config": config, "is_new": True})


def states(page: Console, name: str) -> tuple[str, list[str]]:
    found = page.get(f"connectors/{name}")
    return found["state"], [task["state"] for task in found["tasks"]]


def wait_for(page: Console, name: str, state: str, *tasks: str) -> None:
    def is_there() -> bool:
        return states(page, name) == (state, list(tasks))

    wait_until(is_there, f"{name}: {state} {tasks}", PATIENCE_S, lambda: states(page, name))


def test_a_connector_from_its_form_to_its_end(world: World, tmp_path: Path) -> None:
    read = tmp_path / "in.txt"
    read.write_text("one\ntwo\n")
    with world.page() as page:
        plugins = {one["name"]: one["type"] for one in page.get("connector-plugins")}
        assert (plugins[FILE_SOURCE], plugins[FILE_SINK]) == ("source", "sink")

        # What the form shows of the plugin's definition, and what is wrong with it.
        wrong = {"connector.class": FILE_SOURCE, "tasks.max": "many"}
        body = {"config": wrong, "is_new": True}
        fields = {one["name"]: one for one in page.done("POST", "connectors/lines/check", body)}
        assert {name for name, one in fields.items() if one["errors"]} == {"topic", "tasks.max"}
        assert fields["topic"]["is_required"]
        assert "file" in fields
        assert "Not a number" in fields["tasks.max"]["errors"][0]
        answer = page.send("POST", "connectors/lines/config", body)
        assert (answer.status_code, "many" in answer.text) == (409, True)
        body = {"config": {"connector.class": "No.Such"}, "is_new": True}
        answer = page.send("POST", "connectors/lines/check", body)
        assert (answer.status_code, "No.Such" in answer.text) == (409, True)

        # Its page is there at once, before the worker has a state of it.
        create(page, "lines", FILE_SOURCE, topic="lines", file=str(read))
        assert page.get("connectors/lines")["config"]["topic"] == "lines"
        wait_for(page, "lines", "RUNNING", "RUNNING")
        body = {"config": {"connector.class": FILE_SOURCE, "topic": "x"}, "is_new": True}
        answer = page.send("POST", "connectors/lines/config", body)
        assert (answer.status_code, "already exists" in answer.text) == (409, True)

        for what, state, tasks in (
            ("pause", "PAUSED", ["PAUSED"]),
            ("resume", "RUNNING", ["RUNNING"]),
            ("stop", "STOPPED", []),
            ("resume", "RUNNING", ["RUNNING"]),
        ):
            page.done("POST", "connectors/lines/state", {"what": what})
            wait_for(page, "lines", state, *tasks)
        page.done("POST", "connectors/lines/restart", {})
        page.done("POST", "connectors/lines/restart", {"tasks": True})
        page.done("POST", "connectors/lines/tasks/0/restart")
        wait_for(page, "lines", "RUNNING", "RUNNING")
        assert page.send("POST", "connectors/lines/tasks/7/restart").status_code == 404
        assert page.get("connectors/lines/dead-letters") == {"kind": "source"}

        page.done("DELETE", "connectors/lines", {"confirm": "lines"})
        assert page.http.get("/api/connectors/lines").status_code == 404
        assert "lines" not in {row["name"] for row in page.get("connectors")["rows"]}


def test_a_failed_task_says_why_and_its_records_are_dead_letters(
    world: World, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap_servers})
    producer.produce("orders", b"nonsense")
    assert producer.flush(PATIENCE_S) == 0
    queue = {
        f"{QUEUE}.topic.name": "orders-dead",
        f"{QUEUE}.topic.replication.factor": "1",
        f"{QUEUE}.context.headers.enable": "true",
    }
    written = {"topics": "orders", "file": str(tmp_path / "out.txt")}
    with world.page() as page:
        create(page, "orders", FILE_SINK, **written, **queue)
        wait_for(page, "orders", "RUNNING", "FAILED")
        (task,) = page.get("connectors/orders")["tasks"]
        assert "Tolerance exceeded in error handler" in task["trace"]

        def listed() -> Any:
            (row,) = page.get("connectors", search="orders")["rows"]
            return row

        wait_until(lambda: listed()["tasks"] == {"FAILED": 1}, "the list", PATIENCE_S)
        assert "nonsense" in listed()["reason"]
        page.done("POST", "connectors/orders/restart", {"tasks": True, "only_failed": True})

        config = {"connector.class": FILE_SINK, **written, **queue, "errors.tolerance": "all"}
        page.done("POST", "connectors/orders/config", {"config": config})
        wait_for(page, "orders", "RUNNING", "RUNNING")

        def letters() -> Any:
            return page.get("topics/orders-dead/dead-letters", connector="orders")["letters"]

        assert page.get("connectors/orders/dead-letters")["topic"] == "orders-dead"
        wait_until(lambda: bool(letters()), "a dead letter", PATIENCE_S)
        reason = letters()[0]["reason"]
        assert (reason["topic"], reason["partition"], reason["offset"]) == ("orders", 0, 0)
        assert reason["stage"] == "VALUE_CONVERTER"
        assert "Unrecognized token" in reason["trace"]


@pytest.mark.parametrize("user", ["", f"{USER}:wrong"], ids=["no login", "a wrong password"])
def test_a_login_that_the_worker_refuses_is_said(world: World, user: str) -> None:
    with world.page(user) as page:
        answer = page.http.get("/api/connectors")
        assert answer.status_code == 409
        assert "the Connect worker refuses the console's login: 401" in answer.json()["error"]
        assert "wrong" not in answer.text


def test_a_worker_that_goes_away_is_said(world: World) -> None:
    """The last test: the worker does not come back."""
    with world.page() as page:
        page.get("connectors")
        world.worker.kill(signal.SIGKILL)

        def answer() -> Any:
            return page.http.get("/api/connectors").json()

        wait_until(lambda: answer().get("kind") == "away", "the card", PATIENCE_S)
        assert world.worker.url in answer()["error"]
        assert page.http.get("/api/connectors/orders").status_code == 503
