"""Answers that people share: asked once for those with the same rights, and for nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.console.access import User
from barnabas.console.config import ConsoleConfig
from barnabas.console.pages import application, calls
from barnabas.console.pages.application import Application
from barnabas.console.pages.calls import Answers
from barnabas.console.services.all import open_services
from barnabas.console.services.cluster import (
    ClusterService,
    Node,
    Partition,
    Rates,
    Sizes,
    Topic,
    View,
)
from barnabas.console.services.groups import GroupService
from support.console_world import Console, console


class World:
    """Answers, and a question that a test holds back."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls = 0
        self.going = asyncio.Event()
        self.failure: Exception | None = None
        self.answers = Answers(1.0, lambda: self.now_s)

    async def ask(self) -> bytes:
        self.calls += 1
        number = self.calls
        await self.going.wait()
        if self.failure is not None:
            raise self.failure
        return str(number).encode()

    async def get(self, question: str = "topics") -> bytes:
        return await self.answers.get(question, self.ask)


async def waiting(world: World, count: int) -> list[asyncio.Task[bytes]]:
    tasks = [asyncio.ensure_future(world.get()) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_a_question_is_asked_once_for_all_who_wait_and_kept_for_a_moment() -> None:
    world = World()
    tasks = await waiting(world, 3)
    world.going.set()
    assert await asyncio.gather(*tasks) == [b"1", b"1", b"1"]
    world.now_s = 1.0
    assert await world.get() == b"1"
    assert await world.get("groups") == b"2"
    world.now_s = 1.1
    assert await world.get() == b"3"


async def test_who_goes_does_not_end_the_answer_of_others() -> None:
    world = World()
    first, second = await waiting(world, 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    world.going.set()
    assert await second == b"1"


async def test_a_failure_is_for_those_that_wait_alone() -> None:
    world = World()
    world.failure = ValueError("away")
    tasks = await waiting(world, 2)
    world.going.set()
    for task in tasks:
        with pytest.raises(ValueError, match="away"):
            await task
    world.failure = None
    assert await world.get() == b"2"


async def test_after_a_change_nobody_gets_what_was_asked_for_before() -> None:
    world = World()
    (before,) = await waiting(world, 1)
    world.answers.forget()
    (after,) = await waiting(world, 1)
    world.going.set()
    assert [await before, await after, await world.get()] == [b"1", b"2", b"2"]
    world.answers.forget()
    assert await world.get() == b"3"


async def test_few_answers_are_kept_and_none_that_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "ANSWERS_MAX", 2)
    monkeypatch.setattr(calls, "ANSWER_BYTES_MAX", 1)
    world = World()
    world.going.set()
    assert [await world.get(one) for one in "abc"] == [b"1", b"2", b"3"]
    assert [await world.get(one) for one in "cb"] == [b"3", b"2"]
    assert await world.get("a") == b"4"
    world.calls = 9
    assert [await world.get("large"), await world.get("large")] == [b"10", b"11"]


# -- at the console


TOPICS = ("secret-plan", "shop-orders")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cluster with two topics; what was asked of it."""
    asked: list[str] = []
    topics = {name: Topic(name, False, (Partition(0, 1, (1,), (1,)),)) for name in TOPICS}
    view = View("id", 1, {1: Node(1, "h", 1, None)}, topics)

    def seen(_: Any) -> View:
        asked.append("view")
        return view

    monkeypatch.setattr(ClusterService, "view", seen)
    monkeypatch.setattr(ClusterService, "sizes", lambda _: Sizes((), {}, {}, {}))
    monkeypatch.setattr(ClusterService, "rates", lambda _: Rates())  # asks in the background
    return asked


USERS = {"ann": "viewer", "bob": "viewer", "eve": "shop", "sam": "shop viewer", "kim": "nothing"}


@contextlib.contextmanager
def guarded(tmp_path: Path, **more: str) -> Any:
    users = tmp_path / "users"
    users.write_text("".join(f"{name}: pw,{','.join(USERS[name].split())}\n" for name in USERS))
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "console.users.file": str(users),
        "console.roles.shop.rights": "view",
        "console.roles.shop.topics": "shop-*",
        "console.roles.nothing.rights": "read",
        **more,
    }
    with console(values) as page:
        yield page


def names(page: Console) -> list[str]:
    return [row["name"] for row in page.get("topics")["rows"]]


def test_nobody_gets_an_answer_that_was_made_for_other_rights(
    tmp_path: Path, asked: list[str]
) -> None:
    seen = {"ann": list(TOPICS), "bob": list(TOPICS), "sam": list(TOPICS), "eve": ["shop-orders"]}
    with guarded(tmp_path) as page:
        for name in ("eve", "ann", "eve", "sam", "bob", "eve"):
            assert page.log_in(name, "pw").status_code == 200
            assert names(page) == seen[name]
            status = page.http.get("/api/topics/secret-plan").status_code
            assert status == (403 if name == "eve" else 200)
        page.log_in("kim", "pw")
        assert page.http.get("/api/topics").status_code == 403
        page.send("POST", "logout")
        assert page.http.get("/api/topics").status_code == 401


def test_those_with_the_same_rights_share_an_answer_until_something_is_changed(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "Answers", partial(Answers, 3600.0))
    with guarded(tmp_path) as page:
        for name in ("ann", "bob", "ann"):
            page.log_in(name, "pw")
            assert names(page) == list(TOPICS)
        assert len(asked) == 1
        page.get("topics", search="shop")
        assert len(asked) == 2
        page.send("DELETE", "topics/shop-orders", {"confirm": "shop-orders"})  # forbidden
        names(page)
        assert len(asked) == 2
        page.send("POST", "groups/g/plan", {"to": "nowhere"})  # may have changed something
        asked.clear()
        names(page)
        assert len(asked) == 1


def test_a_page_that_many_ask_for_at_once_is_made_once(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "Answers", partial(Answers, 3600.0))
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: names(page), range(64)))
    assert found == [list(TOPICS)] * 64
    assert len(asked) == 1


def test_what_is_shared_is_asked_without_a_name_or_address(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ConsoleConfig({"bootstrap.servers": "127.0.0.1:1"})
    services = open_services(config)
    pages = Application(config, services)
    shared = [one for one in pages.endpoints if one.is_shared]
    pages.close()
    services.close()
    assert {one.method for one in shared} == {"GET"}
    assert not [one for one in shared if one.is_stream or "messages" in one.path]
    users: list[User] = []
    may = User.may

    def seen(user: User, *given: Any, **more: Any) -> bool:
        users.append(user)
        return may(user, *given, **more)

    monkeypatch.setattr(User, "may", seen)
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        names(page)
    assert {user.name for user in users if user.name != "anonymous"} == {""}


def test_offsets_of_a_topic_are_not_planned_for_those_who_may_not_see_it(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ClusterService,
        "offsets",
        lambda _, topics, when=-1: {(topic, 0): 7 for topic in topics},
    )
    monkeypatch.setattr(GroupService, "_committed", lambda *_: {("shop-orders", 0): 3})
    with guarded(tmp_path) as page:
        for name, status in (("ann", 200), ("eve", 403)):
            page.log_in(name, "pw")
            body = {"to": "latest", "topics": ["shop-orders", "secret-plan"]}
            assert page.send("POST", "groups/g/plan", body).status_code == status
            body["topics"] = ["shop-orders"]
            assert page.done("POST", "groups/g/plan", body)["records"]["skipped"] == 4
