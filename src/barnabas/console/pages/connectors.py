"""Endpoints for connectors: lists, settings, changes and dead letters as JSON."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from barnabas.console.pages.calls import (
    BadRequestError,
    Call,
    Endpoint,
    destroying,
    members,
    shared,
    whole,
)
from barnabas.console.services.connectors import without_texts
from barnabas.console.services.dead_letters import QUEUE_TOPIC

SETTINGS_MAX = 1_000


def connectors(call: Call) -> Any:
    """A page of connectors."""
    found = call.services.connectors.find(
        call.asked(),
        state=call.text("state"),
        allowed=lambda name: call.user.may("view", connector=name),
    )
    rows = [without_texts(row) if _hides_texts(call, row.name) else row for row in found.rows]
    return replace(found, rows=rows)


def _hides_texts(call: Call, name: str) -> bool:
    """Return whether errors of a connector, which may quote masked fields, are hidden."""
    return bool(call.maskable) and not call.user.may("unmasked", connector=name)


def plugins(call: Call) -> Any:
    """The kinds of connectors that the worker has."""
    return call.services.connectors.plugins()


def connector(call: Call) -> Any:
    """A connector, and what the user may do with it."""
    name = call.path["connector"]
    may = {right: call.user.may(right, connector=name) for right in ("edit", "admin")}
    found = call.services.connectors.one(name)
    return {**members(without_texts(found) if _hides_texts(call, name) else found), "may": may}


def dead_letters(call: Call) -> Any:
    """A connector's dead letter queue; its records are asked for as those of the topic."""
    config = call.services.connectors.sink_config(call.path["connector"])
    if config is None:
        return {"kind": "source"}
    topic = config.get(QUEUE_TOPIC, "").strip() or None
    may = {right: call.user.may(right, topic=topic) for right in ("view", "read")}
    if not may["view"]:
        return {"kind": "sink", "topic": topic, "may": may}
    return {"kind": "sink", **members(call.services.dead_letters.queue(config)), "may": may}


def check(call: Call) -> Any:
    """Return the worker's validation of a configuration."""
    return call.services.connectors.check(
        call.path["connector"],
        _config(call),
        is_new=call.body.get("is_new") is True,
        address=str(call.body.get("address") or ""),
    )


def save(call: Call) -> Any:
    """Change a configuration, or create a connector.

    `before` is the configuration that the user changes: if it is another by now, nothing is done.
    """
    name, config = call.path["connector"], _config(call)
    connectors, settings = call.services.connectors, sorted(config)
    if call.body.get("is_new") is True:
        address = str(call.body.get("address") or "")
        work = partial(connectors.create, name, config, address)
        call.do("create connector", name, work, settings=settings)
    else:
        before = _config(call, "before") if "before" in call.body else None
        work = partial(connectors.change, name, config, before)
        call.do("change connector", name, work, settings=settings)
    return {}


def work(call: Call) -> Any:
    """Pause, resume or stop."""
    name, what = call.path["connector"], call.given("what")
    call.do(f"{what} connector"[:100], name, lambda: call.services.connectors.work(name, what))
    return {}


def restart(call: Call) -> Any:
    """Restart a connector."""
    name = call.path["connector"]
    tasks, only_failed = call.body.get("tasks") is True, call.body.get("only_failed") is True
    call.do(
        "restart connector",
        name,
        lambda: call.services.connectors.restart(name, tasks=tasks, only_failed=only_failed),
        tasks=tasks,
        only_failed=only_failed,
    )
    return {}


def restart_task(call: Call) -> Any:
    """Restart a task."""
    name, task = call.path["connector"], whole(call.path["task"], "a task")
    call.do(
        "restart task",
        f"{name} {task}",
        lambda: call.services.connectors.restart_task(name, task),
    )
    return {}


delete = destroying(
    "delete connector", "connector", lambda services, name: services.connectors.delete(name)
)


def _config(call: Call, name: str = "config") -> dict[str, str]:
    config = call.given(name, dict)
    if len(config) > SETTINGS_MAX or not all(isinstance(one, str) for one in config.values()):
        raise BadRequestError("the configuration is not an object of texts, or too large")
    return dict(config)


_ONE, _WHAT = "/api/connectors/{connector}", "this connector"

ENDPOINTS = (
    shared("/api/connectors", "the list of connectors", connectors),
    shared("/api/connector-plugins", "the list of plugins", plugins),
    shared(_ONE, _WHAT, connector),
    Endpoint("DELETE", _ONE, "admin", "deleting this connector", delete),
    Endpoint("GET", f"{_ONE}/dead-letters", "view", _WHAT, dead_letters),
    Endpoint("POST", f"{_ONE}/check", "edit", "checking configurations", check),
    Endpoint("POST", f"{_ONE}/config", "edit", "changing this connector", save),
    Endpoint("POST", f"{_ONE}/state", "edit", "pausing and stopping connectors", work),
    Endpoint("POST", f"{_ONE}/restart", "edit", "restarting connectors", restart),
    Endpoint("POST", f"{_ONE}/tasks/{{task}}/restart", "edit", "restarting tasks", restart_task),
)
