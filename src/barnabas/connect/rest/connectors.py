"""The REST interface's resources: what each path does with the herder.

Source: org.apache.kafka.connect.runtime.rest.resources (Kafka 4.3).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import quote

from barnabas import __version__
from barnabas.connect import plugins
from barnabas.connect.config.plugin_classes import listed, version_of
from barnabas.connect.config.validation import plugin_settings
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.requests import (
    BadRequestError,
    NotFoundError,
    RequestError,
)
from barnabas.connect.rest import bodies
from barnabas.connect.rest.bodies import Answer, Request, Route
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.herder import VERSION, Herder
from barnabas.connect.worker.loggers import is_level
from barnabas.connect.worker.metrics import worker_metrics
from barnabas.connect.worker.state import RestartRequest
from barnabas.web.crowd import Crowd
from barnabas.web.watch import Watch

_log = logging.getLogger(__name__)
_KINDS: tuple[plugins.Kind, ...] = (
    "sink", "source", "transformation", "predicate", "converter", "header_converter",
)  # fmt: skip
WATCHING_THREADS = 2
"""Threads that read figures and health, which a herder that hangs may keep."""
TRACKING = "topic.tracking.enable"
TRACKING_RESET = "topic.tracking.allow.reset"


class Resources:
    """`settings` are the worker's."""

    def __init__(self, herder: Herder, settings: dict[str, str]) -> None:
        self._herder = herder
        self._tracks = settings.get(TRACKING, "true").strip().lower() == "true"
        self._resets = settings.get(TRACKING_RESET, "true").strip().lower() == "true"

    def regular(self) -> list[Route]:
        """Return all but those of loggers."""
        one = "/connectors/{}"
        table = (
            ("GET", "/", self._root),
            ("GET", "/health", self._health),
            ("GET", "/connectors", self._list),
            ("POST", "/connectors", self._create),
            ("GET", one, lambda r: Answer(body=self._herder.info(r.names[0]))),
            ("DELETE", one, self._delete),
            (
                "GET",
                f"{one}/config",
                self._config,
            ),
            ("PUT", f"{one}/config", self._put),
            ("PATCH", f"{one}/config", self._patch),
            ("GET", f"{one}/status", lambda r: Answer(body=self._herder.status(r.names[0]))),
            ("POST", f"{one}/restart", self._restart),
            ("PUT", f"{one}/pause", self._pause),
            ("PUT", f"{one}/resume", self._resume),
            ("PUT", f"{one}/stop", self._stop),
            ("GET", f"{one}/tasks", lambda r: Answer(body=self._herder.task_infos(r.names[0]))),
            ("POST", f"{one}/tasks", self._put_tasks),
            ("PUT", f"{one}/fence", self._fence),
            ("GET", f"{one}/tasks/{{#}}/status", self._task_status),
            ("POST", f"{one}/tasks/{{#}}/restart", self._restart_task),
            ("GET", f"{one}/offsets", lambda r: Answer(body=self._herder.offsets(r.names[0]))),
            ("PATCH", f"{one}/offsets", self._alter_offsets),
            ("DELETE", f"{one}/offsets", self._reset_offsets),
            ("GET", f"{one}/topics", self._topics),
            ("PUT", f"{one}/topics/reset", self._reset_topics),
            ("GET", "/connector-plugins", self._plugins),
            ("GET", "/connector-plugins/{}/config", self._plugin),
            ("PUT", "/connector-plugins/{}/config/validate", self._validate),
        )
        return [Route(*row) for row in table]

    def admin(self) -> list[Route]:
        """Return those of loggers, which may have listeners of their own."""
        loggers = self._herder.loggers
        return [
            Route("GET", "/admin/loggers", lambda _: Answer(body=loggers.levels())),
            Route("GET", "/admin/loggers/{}", self._logger),
            Route("PUT", "/admin/loggers/{}", self._set_logger),
        ]

    def _root(self, request: Request) -> Answer:
        return Answer(
            body={
                "version": VERSION,
                "commit": f"barnabas-{__version__}",
                "kafka_cluster_id": self._herder.cluster_id,
            }
        )

    def watch(self, crowd: Crowd | None = None) -> Watch:
        """Return what shows the worker's metrics and health."""
        threads = DaemonThreads(WATCHING_THREADS, "connect-watch")

        async def metrics() -> bytes:
            return await asyncio.wrap_future(threads.submit(worker_metrics, self._herder))

        async def ready() -> str | None:
            if not self._herder.is_ready:
                return "the worker is still starting up"
            await asyncio.wrap_future(threads.submit(self._herder.health))
            return None

        return Watch(metrics, ready, crowd)

    def _health(self, request: Request) -> Answer:
        try:
            if self._herder.is_ready:
                self._herder.health()
        except TimeoutError:
            text = "Worker was unable to handle this request and may be unable to handle other "
            return Answer(500, {"status": "unhealthy", "message": f"{text}requests."})
        if not self._herder.is_ready:
            return Answer(503, {"status": "starting", "message": "Worker is still starting up."})
        text = "Worker has completed startup and is ready to handle requests."
        return Answer(body={"status": "healthy", "message": text})

    def _list(self, request: Request) -> Answer:
        names = self._herder.connectors()
        if "expand" not in request.query:
            return Answer(body=names)
        connectors: dict[str, dict[str, Any]] = {}
        for name in names:
            try:
                connectors[name] = {
                    what: ask(name)
                    for what, ask in (("status", self._herder.status), ("info", self._herder.info))
                    if what in request.query["expand"]
                }
            except NotFoundError:
                _log.debug("connector %s was deleted in the meantime", name)
        return Answer(body=connectors)

    def _config(self, request: Request) -> Answer:
        return Answer(body=self._herder.info(request.names[0])["config"])

    def _create(self, request: Request) -> Answer:
        name, config, target = bodies.parse_creation(request.body)
        _, info = self._herder.put(name, bodies.named(name, config), target, may_replace=False)
        return Answer(201, info, _location(name))

    def _put(self, request: Request) -> Answer:
        (name,) = request.names
        config = bodies.named(name, bodies.parse_config(request.body))
        is_new, info = self._herder.put(name, config, None, may_replace=True)
        return Answer(201, info, _location(name)) if is_new else Answer(body=info)

    def _patch(self, request: Request) -> Answer:
        (name,) = request.names
        changes = bodies.parse_config(request.body)
        if "name" in changes:
            self._herder.info(name)  # a connector that is not there comes first
            changes = bodies.named(name, changes)
        return Answer(body=self._herder.patch(name, changes)[1])

    def _delete(self, request: Request) -> Answer:
        self._herder.delete(request.names[0])
        return Answer(204)

    def _restart(self, request: Request) -> Answer:
        (name,) = request.names
        wish = RestartRequest(name, request.flag("onlyFailed"), request.flag("includeTasks"))
        if not wish.only_failed and not wish.include_tasks:
            self._herder.restart_connector(name)
            return Answer(204)
        return Answer(202, self._herder.restart(wish))

    def _pause(self, request: Request) -> Answer:
        self._herder.pause(request.names[0])
        return Answer(202)

    def _resume(self, request: Request) -> Answer:
        self._herder.resume(request.names[0])
        return Answer(202)

    def _stop(self, request: Request) -> Answer:
        self._herder.stop(request.names[0])
        return Answer(204)

    def _put_tasks(self, request: Request) -> Answer:
        self._herder.put_tasks(
            request.names[0], request.body, request.headers, may_forward=request.may_forward
        )
        return Answer(204)

    def _fence(self, request: Request) -> Answer:
        self._herder.fence(request.names[0], request.body, request.headers)
        return Answer(204)

    def _task_status(self, request: Request) -> Answer:
        return Answer(body=self._herder.task_status(_task(request)))

    def _restart_task(self, request: Request) -> Answer:
        self._herder.restart_task(_task(request))
        return Answer(204)

    def _alter_offsets(self, request: Request) -> Answer:
        offsets = bodies.parse_offsets(request.body)
        text = self._herder.modify_offsets(request.names[0], offsets)
        return Answer(body={"message": text})

    def _reset_offsets(self, request: Request) -> Answer:
        return Answer(body={"message": self._herder.modify_offsets(request.names[0], None)})

    def _topics(self, request: Request) -> Answer:
        if not self._tracks:
            raise RequestError("Topic tracking is disabled.", 403)
        return Answer(body=self._herder.topics(request.names[0]))

    def _reset_topics(self, request: Request) -> Answer:
        if not self._tracks:
            raise RequestError("Topic tracking is disabled.", 403)
        if not self._resets:
            raise RequestError("Topic tracking reset is disabled.", 403)
        self._herder.reset_topics(request.names[0])
        return Answer(202)

    def _plugins(self, request: Request) -> Answer:
        only = "connectorsOnly" not in request.query or request.flag("connectorsOnly")
        kinds = _KINDS[:2] if only else _KINDS
        return Answer(
            body=[
                {"class": name, "type": kind, "version": version_of(name, kind) or __version__}
                for kind in kinds
                for name in listed(kind)
            ]
        )

    def _plugin(self, request: Request) -> Answer:
        return Answer(body=plugin_settings(request.names[0]))

    def _validate(self, request: Request) -> Answer:
        (plugin,) = request.names
        config = bodies.parse_config(request.body)
        given = config.get("connector.class")
        if given is not None and not _short(given).endswith(_short(plugin)):
            raise BadRequestError(
                f"Included connector type {given} does not match request type {plugin}"
            )
        return Answer(body=self._herder.validate(config))

    def _logger(self, request: Request) -> Answer:
        (name,) = request.names
        level = self._herder.loggers.level(name)
        if level is None:
            raise NotFoundError(f"Logger {name} not found.")
        return Answer(body=level)

    def _set_logger(self, request: Request) -> Answer:
        level = bodies.parse_config(request.body).get("level")
        if level is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        level = level.strip()
        if not is_level(level):
            raise NotFoundError(f"invalid log level '{level}'.")
        (name,) = request.names
        if request.query.get("scope", [""])[0].lower() == "cluster":
            self._herder.set_cluster_logger(name, level)
            return Answer(204)
        return Answer(body=self._herder.loggers.set_level(name, level))


def _location(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _task(request: Request) -> TaskId:
    return TaskId(request.names[0], int(request.names[1]))


def _short(name: str) -> str:
    return name.removesuffix("Connector") or name
