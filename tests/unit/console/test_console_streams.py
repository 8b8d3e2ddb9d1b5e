"""Answers that go on: they end with the session, and with the rights, of the user who gets them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.console.access import BUILT_IN, Role
from barnabas.console.pages import application
from barnabas.console.pages.application import Application
from barnabas.console.services.cluster import ClusterService
from barnabas.console.services.messages import MessageService, Tail
from support.console_world import Console, console

CHECK_S = 0.05
STEP_S = 0.02
LINES_MAX = 1_000
"""After so many lines, 20 seconds of them, an answer that should have ended has not."""
STREAM = "/api/topics/t/tail"


def _tail(_: Any, topic: str, stopping: threading.Event, **more: Any) -> Iterator[Tail]:
    while not stopping.wait(STEP_S):
        yield Tail((), 0)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(application, "STREAM_CHECK_S", CHECK_S)
    monkeypatch.setattr(ClusterService, "topic", lambda *_: None)
    monkeypatch.setattr(MessageService, "tail", _tail)
    users = tmp_path / "users"
    users.write_text("ann: pw,admin\n")
    given = {
        "bootstrap.servers": "127.0.0.1:1",
        "console.users.file": str(users),
        "console.masked.fields": "email",
    }
    with console(given) as page:
        page.log_in("ann", "pw")
        yield page


def _log_out(page: Console, _: Path) -> None:
    page.send("POST", "logout")


def _remove(_: Console, users: Path) -> None:
    users.write_text("bob: pw,viewer\n")


def _change_role(_: Console, users: Path) -> None:
    users.write_text("ann: pw,editor\n")


def _last_line(page: Console, end: Callable[[], object]) -> Any:
    """The last line of an answer that ends after something happened."""
    with page.http.stream("GET", STREAM) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        for _ in range(int(4 * CHECK_S / STEP_S)):  # it passes several checks
            assert json.loads(next(lines)) == {"records": [], "skipped": 0}
        end()
        found = [json.loads(line) for _, line in zip(range(LINES_MAX), lines, strict=False)]
    assert len(found) < LINES_MAX, "the answer does not end"
    return found[-1]


@pytest.mark.parametrize("end", [_log_out, _remove, _change_role])
def test_an_answer_that_goes_on_ends_with_its_session(
    page: Console, tmp_path: Path, end: Callable[[Console, Path], None]
) -> None:
    assert _last_line(page, lambda: end(page, tmp_path / "users"))["kind"] == "login"


@pytest.mark.parametrize(
    ("role", "right"),
    [(Role("seer", frozenset({"view"})), "read"), (BUILT_IN["viewer"], "unmasked")],
)
def test_an_answer_that_goes_on_ends_with_its_rights(
    page: Console, monkeypatch: pytest.MonkeyPatch, role: Role, right: str
) -> None:
    """As when an identity provider renews a session with fewer roles."""

    def end() -> None:
        monkeypatch.setattr(Application, "_of_names", lambda *_: (role,))

    last = _last_line(page, end)
    assert (last["kind"], last["right"]) == ("forbidden", right)
