"""Reports of the parts of a run: the page, progress files, a log, the truth."""

from __future__ import annotations

import json
import time
from collections.abc import Set
from typing import Any

from barnabas.demo import catchup
from barnabas.demo.contract import TRUTH_FILE, Truth
from barnabas.demo.outside import fetch_json
from barnabas.demo.processes import tail
from barnabas.demo.workspace import Workspace

_PAGE_SECONDS = 1.0
_UNKNOWN = "not known while the page does not answer"


class Reports:
    """Queried each time, except for the page, whose last answer is kept."""

    def __init__(self, workspace: Workspace, url: str) -> None:
        self._workspace = workspace
        self._url = url
        self._page: dict[str, Any] | None = None
        self._page_at = 0.0

    def page(self) -> dict[str, Any] | None:
        """Return all that the page shows, None where the dashboard does not answer."""
        self._page_at = time.monotonic()
        self._page = fetch_json(f"{self._url.rstrip('/')}/api/state")
        return self._page

    def refresh_page(self) -> None:
        """Ask for the page where the last is older than a second."""
        if time.monotonic() - self._page_at > _PAGE_SECONDS:
            self.page()

    def statements(self) -> tuple[str, str]:
        """Return how the statements are doing, and their lags, as the page had them last."""
        if self._page is None:
            return "working", _UNKNOWN
        readers = [*self._page["statements"], *self._page["groups"]]
        lags = [f"{one['name']} {one['lag']:,}" for one in readers if one["lag"] is not None]
        text = f"lag: {', '.join(lags)}" if lags else "statements running"
        states = {one["state"] for one in self._page["statements"]} or {"RUNNING"}
        return _shown(states), "; ".join([*self.failed_statements(), text])

    def connector(self, name: str) -> tuple[str, str]:
        """Return how a connector is doing, as the page had it last."""
        if self._page is None:
            return "working", f"{name}: {_UNKNOWN}"
        state = self._page["connectors"].get(name, "STARTING")
        return _shown({state}), f"{name} {state.lower()}"

    def failed_statements(self) -> list[str]:
        """Return the statements that do not run, each with its state, as the page had them last."""
        statements = self._page["statements"] if self._page else []
        return [f"{s['name']}: {s['state'].lower()}" for s in statements if s["state"] != "RUNNING"]

    def generators(self) -> dict[str, Any]:
        """Return the generators' last line of progress, empty before the first."""
        for line in reversed(tail(self._workspace.path("logs", "generators.log"), 3).splitlines()):
            if line.startswith("{") and line.endswith("}"):
                progress: dict[str, Any] = json.loads(line)
                return progress
        return {}

    def truth(self) -> Truth | None:
        """Return what the generators have published, None before the first."""
        truth: Truth | None = catchup.read_json(self._workspace.path("generators", TRUTH_FILE))
        return truth


def _shown(states: Set[str]) -> str:
    """Return what the terminal shows for states of a server's: the worst of them."""
    if states & {"FAILED", "ERROR"}:
        return "failed"
    if states == {"RUNNING"}:
        return "ready"
    return "waiting" if states <= {"RUNNING", "PAUSED", "STOPPED"} else "working"
