"""Values that providers give for a time only: what runs with them starts again when it is over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from barnabas.connect.config.providers import ConfigProvider, Provided
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker import reloads
from barnabas.schemas.data.errors import ConfigError
from support.connect.herder_world import HerderWorld, Source
from support.node_process import wait_until

TASK = TaskId("c", 0)


class Vault(ConfigProvider):
    """Gives what tests say, for a moment."""

    values: ClassVar[dict[str, str]] = {}
    ttl_ms: ClassVar[int | None] = 1
    is_down: ClassVar[bool] = False
    asked: ClassVar[int] = 0

    def get(self, path: str, keys: Collection[str]) -> Provided:
        type(self).asked += 1
        if self.is_down:
            raise ConfigError("the vault is closed")
        return Provided({key: self.values[key] for key in keys}, self.ttl_ms)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HerderWorld]:
    monkeypatch.setattr(reloads, "_TTL_MS_MIN", 1)
    monkeypatch.setattr(reloads, "_RETRY_MS", 1)
    for name, value in (("ttl_ms", 1), ("is_down", False), ("asked", 0), ("values", {"k": "old"})):
        monkeypatch.setattr(Vault, name, value)
    class_name = f"{__name__}.Vault"
    made = HerderWorld(tmp_path, {"config.providers": "v", "config.providers.v.class": class_name})
    yield made
    made.herder.close()


def secret(world: HerderWorld) -> str:
    """Return the secret of the current or the last task."""
    return world.engine.tasks[TASK].plan.task_settings["secret"]


def starts(world: HerderWorld) -> int:
    return world.herder.worker.starts["connector", True]


def test_a_connector_starts_again_and_tasks_whose_values_are_others(world: HerderWorld) -> None:
    world.create("c", secret="${v:k}")
    first = Source.contexts["c"]
    wait_until(lambda: starts(world) > 2, "the connector's restarts")
    assert Source.contexts["c"] is not first
    assert world.engine.started == [TASK], "the same value is no reason"
    Vault.values = {"k": "new"}
    wait_until(lambda: secret(world) == "new", "the task's restart")
    Vault.ttl_ms = None
    wait_until(lambda: world.states("c") == ("RUNNING", ["RUNNING"]), "the last restart")


def test_what_runs_goes_on_while_the_provider_fails(world: HerderWorld) -> None:
    expiring = world.herder.worker.reloads
    expiring.wake = lambda: None  # it is this test that wakes it
    world.create("c", secret="${v:k}")

    def look(until: Callable[[], bool], what: str) -> None:
        def woken() -> bool:
            expiring.run_due()
            return until()

        wait_until(woken, what)

    Vault.is_down = True
    asked = Vault.asked
    look(lambda: Vault.asked > asked + 3, "more attempts")
    assert world.states("c") == ("RUNNING", ["RUNNING"])
    assert starts(world) == 1
    Vault.values, Vault.is_down = {"k": "new"}, False
    look(lambda: secret(world) == "new", "the task's restart")


@pytest.mark.parametrize("why", ["the action is none", "no time is given", "it is gone"])
def test_what_is_not_started_again(world: HerderWorld, why: str) -> None:
    settings = {"config.action.reload": "none"} if why == "the action is none" else {}
    if why == "no time is given":
        Vault.ttl_ms = None
    world.create("c", secret="${v:k}", **settings)
    if why == "it is gone":
        world.herder.delete("c")
    count, Vault.ttl_ms = starts(world), 1
    world.create("other", secret="${v:k}")
    wait_until(lambda: starts(world) > count + 3, "restarts of another")
    world.herder.delete("other")
    assert world.engine.started.count(TASK) == 1
    assert Source.contexts["other"] is not Source.contexts["c"]
