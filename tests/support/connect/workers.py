"""Several distributed workers in one process, with tasks that wait, and the way between them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.app.testing import Kafka
from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.errors.requests import ElsewhereError, RequestError
from barnabas.connect.rest.app import RestApp
from barnabas.connect.rest.connectors import Resources
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.herder import DistributedHerder
from barnabas.connect.worker.distributed.start import distributed_herder
from barnabas.connect.worker.secrets import Secrets
from support.connect.herder_world import SOURCE, FakeEngine
from support.node_process import wait_until
from support.patience import PATIENCE_S

T = TypeVar("T")


class Way:
    """A worker's REST interface on a port; `seen` are the paths that were asked for."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._app: ASGIApp | None = None
        config = uvicorn.Config(self._call, log_level="warning", lifespan="off", interface="asgi3")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def serve(self, herder: DistributedHerder) -> None:
        """Begin to answer."""
        herder.is_ready = True
        resources = Resources(herder, {})
        self._rest = RestApp((*resources.regular(), *resources.admin()))
        self._app = self._rest
        self._thread.start()

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None
        self.seen.append(scope["path"])
        await self._app(scope, receive, send)

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._rest.close()
        self._socket.close()


class World:
    """Workers of one group on a cluster."""

    def __init__(self, kafka: Kafka, **settings: str) -> None:
        self.settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": kafka.name("group"),
            "session.timeout.ms": "60000",
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
        whole = {**self.settings, **given}
        resolve = Secrets(ConfigProviders.of_worker(whole))
        herder = distributed_herder(
            whole, engine, way.url, worker_id=way.url[7:-1], resolve=resolve
        )
        self.ways[way.url], self.engines[way.url] = way, engine
        self.herders[way.url] = herder
        herder.start()
        way.serve(herder)
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
        """Ask a worker, and who it names; again while the group rebalances."""
        answers: list[T] = []

        def is_answered() -> bool:
            herder = first
            for _ in range(3):
                try:
                    answers.append(request(herder))
                    return True
                except ElsewhereError as elsewhere:
                    if elsewhere.url is None:
                        return False  # there is no leader
                    herder = self.herders[elsewhere.url]
                except RequestError as error:
                    if error.status != 409:
                        raise
                    return False
            return False

        wait_until(is_answered, "an answer", shown=self.told)
        return answers[0]

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
        wait_until(until, "what the workers are to do", shown=self.told)

    def runs(self) -> dict[TaskId, list[str]]:
        """Return where each task runs now, by its engine."""
        found: dict[TaskId, list[str]] = {}
        for url, herder in self.herders.items():
            for task in list(herder.worker.tasks):
                found.setdefault(task, []).append(url)
        return found

    def owners(self) -> dict[str, list[str]]:
        """Return where each connector runs now."""
        found: dict[str, list[str]] = {}
        for url, herder in self.herders.items():
            for name in list(herder.worker.connectors):
                found.setdefault(name, []).append(url)
        return found

    def is_whole(self, **tasks: int) -> bool:
        """Return whether these connectors with so many tasks run, each once and evenly."""
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
