"""Several distributed workers in one process, with tasks that wait, and the way between them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import unquote

from barnabas.app.testing import Kafka
from barnabas.pipeline.connect.engine.base import TaskId
from barnabas.pipeline.connect.errors.requests import ElsewhereError, RequestError
from barnabas.pipeline.connect.worker.distributed.herder import DistributedHerder
from barnabas.pipeline.connect.worker.distributed.start import distributed_herder
from support.connect.herder_world import SOURCE, FakeEngine

T = TypeVar("T")
PATIENCE_S = 40.0


class Way:
    """The two requests that workers send each other, over HTTP."""

    def __init__(self) -> None:
        way = self
        self.herder: DistributedHerder | None = None
        self.seen: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_arguments: Any) -> None:
                pass

            def do_POST(self) -> None:
                way.seen.append(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                _, _, name, what = self.path.split("/")
                herder, headers = way.herder, dict(self.headers)
                assert herder is not None
                try:
                    if what == "tasks":
                        herder.put_tasks(unquote(name), body, headers, may_forward=None)
                    else:
                        herder.fence(unquote(name), body, headers)
                    status, answer = 204, b""
                except Exception as error:  # noqa: BLE001  the caller is told
                    status = error.status if isinstance(error, RequestError) else 500
                    answer = json.dumps({"error_code": status, "message": str(error)}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_PUT = do_POST  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class World:
    """Workers of one group on a cluster."""

    def __init__(self, kafka: Kafka, **settings: str) -> None:
        self.settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": kafka.name("group"),
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "200",
            "scheduled.rebalance.max.delay.ms": "0",
            "task.shutdown.graceful.timeout.ms": "2000",
        }
        for kind in ("config", "offset", "status"):
            self.settings[f"{kind}.storage.topic"] = kafka.name(kind)
            self.settings[f"{kind}.storage.replication.factor"] = "-1"
        self.settings |= {"offset.storage.partitions": "2", "status.storage.partitions": "1"}
        self.settings |= {name.replace("_", "."): value for name, value in settings.items()}
        self.engines: dict[str, FakeEngine] = {}
        self.ways: dict[str, Way] = {}
        self.herders: dict[str, DistributedHerder] = {}

    def add(self, **settings: str) -> DistributedHerder:
        """Start a worker."""
        way, engine = Way(), FakeEngine()
        given = {name.replace("_", "."): value for name, value in settings.items()}
        herder = distributed_herder(
            {**self.settings, **given}, engine, way.url, worker_id=way.url[7:-1]
        )
        way.herder = herder
        self.ways[way.url], self.engines[way.url] = way, engine
        self.herders[way.url] = herder
        herder.start()
        assert herder.wait_until_ready(PATIENCE_S)
        return herder

    def url_of(self, herder: DistributedHerder) -> str:
        return next(url for url, one in self.herders.items() if one is herder)

    def remove(self, herder: DistributedHerder) -> None:
        """Stop a worker as its user would."""
        url = self.url_of(herder)
        del self.herders[url]
        herder.close()
        self.ways.pop(url).close()

    def close(self) -> None:
        for herder in list(self.herders.values()):
            self.remove(herder)

    def ask(self, first: DistributedHerder, request: Callable[[DistributedHerder], T]) -> T:
        """Ask a worker, and who it names; again while the group deals anew."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            herder = first
            try:
                for _ in range(3):
                    try:
                        return request(herder)
                    except ElsewhereError as elsewhere:
                        if elsewhere.url is None:
                            raise RequestError("no leader", 409) from elsewhere
                        herder = self.herders[elsewhere.url]
                raise RequestError("nobody does it", 409)
            except RequestError as error:
                if error.status != 409 or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def create(
        self, herder: DistributedHerder, name: str, class_name: str = SOURCE, **settings: str
    ) -> dict[str, Any]:
        """Make a connector; underscores of settings are dots."""
        given: dict[str, str | None] = {
            "name": name,
            "connector.class": class_name,
            "topic": "t",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        return self.ask(herder, lambda one: one.put(name, given, None, may_replace=True))[1]

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for something that workers' own threads do."""
        deadline = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.02)

    def runs(self) -> dict[TaskId, list[str]]:
        """Where each task runs now, by its engine."""
        found: dict[TaskId, list[str]] = {}
        for url, herder in self.herders.items():
            for task in list(herder.worker.tasks):
                found.setdefault(task, []).append(url)
        return found

    def owners(self) -> dict[str, list[str]]:
        """Where each connector runs now."""
        found: dict[str, list[str]] = {}
        for url, herder in self.herders.items():
            for name in list(herder.worker.connectors):
                found.setdefault(name, []).append(url)
        return found

    def is_whole(self, **tasks: int) -> bool:
        """Whether these connectors with so many tasks run, each once and evenly."""
        wanted = {TaskId(name, n) for name, count in tasks.items() for n in range(count)}
        runs, owners = self.runs(), self.owners()
        sizes = [len(herder.worker.tasks) for herder in self.herders.values()]
        return (
            runs.keys() == wanted
            and owners.keys() == tasks.keys()
            and all(len(where) == 1 for where in (*runs.values(), *owners.values()))
            and max(sizes) - min(sizes) <= 1
        )

    def states(self, herder: DistributedHerder, name: str) -> list[str]:
        """The state of a connector and those of its tasks, as a worker knows them."""
        try:
            status = herder.status(name)
        except RequestError:
            return []
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def told(self) -> object:
        return {
            url: (herder.position.assignment, self.runs(), self.owners())
            for url, herder in self.herders.items()
        }
