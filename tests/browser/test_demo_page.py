"""The page by itself: changes arrive live, and it says when nobody sends them any more."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from barnabas.demo.dashboard.server import DashboardServer, create_app
from barnabas.demo.dashboard.state import DashboardState, GroupStatus
from barnabas.demo.topics import (
    ACTIVITY_COUNTS,
    CONVERSION,
    RECOMMENDATIONS,
    STATION_AVAILABILITY,
    TOP_SEARCHES,
)

HOSTILE = "<img src=x onerror=document.title='owned'>"


class Dashboard:
    """A server of a state that the test fills itself."""

    def __init__(self) -> None:
        self.state = DashboardState("broker:9092")
        config = uvicorn.Config(create_app(self.state, []), port=0, log_level="error")
        self._server = DashboardServer(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def put(self, topic: str, key: str, **row: Any) -> None:
        self.state.apply(topic, key.encode(), json.dumps(row).encode())

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    made = Dashboard()
    made.state.set_connection("connected")
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, dashboard: Dashboard) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(dashboard.url)
    page.wait_for_selector("body[data-version]")
    yield page
    page.close()


def station(dashboard: Dashboard, station_id: str, state: str, at_ms: int) -> None:
    dashboard.put(
        STATION_AVAILABILITY,
        f"{station_id}@{at_ms}",
        station_id=station_id,
        name=f"Station {station_id}",
        city="Ghent",
        window_start_ms=at_ms,
        window_end_ms=at_ms + 1,
        state=state,
        state_time_ms=at_ms,
        state_sequence=1,
        reports=1,
        available_reports=int(state == "available"),
    )


def test_a_station_changes_before_ones_eyes(page: Page, dashboard: Dashboard) -> None:
    station(dashboard, "s1", "available", 1)
    tile = page.locator("[data-station=s1]")
    expect(tile).to_have_attribute("data-state", "available")
    station(dashboard, "s1", "faulted", 2)
    expect(tile).to_have_attribute("data-state", "faulted")
    expect(tile).to_have_attribute("aria-label", "Station s1: faulted")
    expect(page.locator("#state-faulted b")).to_have_text("1")
    expect(page.locator("#state-available b")).to_have_text("0")


def test_figures_follow(page: Page, dashboard: Dashboard) -> None:
    for clicks in (1, 1234):
        dashboard.put(
            ACTIVITY_COUNTS,
            "click@60000",
            kind="click",
            window_start_ms=60_000,
            window_end_ms=120_000,
            events=clicks,
        )
        expect(page.locator("#activity-click b")).to_have_text(f"{clicks:,}")
    window = {"window_start_ms": 60_000, "window_end_ms": 120_000}
    dashboard.put(CONVERSION, "60000", sessions=8, purchases=2, revenue_cents=12345, **window)
    expect(page.locator("#conversion-rate")).to_have_text("25.00 %")
    expect(page.locator("#conversion-revenue b")).to_have_text("€123.45")


def test_what_users_type_is_text(page: Page, dashboard: Dashboard) -> None:
    dashboard.put(TOP_SEARCHES, "all", searches=[{"query": HOSTILE, "count": 3}])
    dashboard.put(RECOMMENDATIONS, "a", item_id="a", together=[{"item_id": HOSTILE, "count": 1}])
    expect(page.locator("#searches span")).to_have_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert page.title() == "Barnabas · live demo"


def test_a_group_shows_its_lag(page: Page, dashboard: Dashboard) -> None:
    behind = GroupStatus("warehouse", "user-activity", position=900, end=2100, lag=1200)
    behind.lag_history = [0, 600, 1200]
    new = GroupStatus("recommendations", "user-activity", end=2100)
    dashboard.state.set_groups([behind, new])
    expect(page.locator("#group-warehouse .lag b")).to_have_text("1,200")
    expect(page.locator("#group-warehouse .position")).to_contain_text("900 of 2,100")
    expect(page.locator("#group-recommendations .lag b")).to_have_text("–")


def test_a_lost_broker_is_seen(page: Page, dashboard: Dashboard) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    dashboard.state.set_connection("lost", "no broker answers")
    expect(page.locator("#connection-text")).to_have_text("broker lost, reconnecting")
    dashboard.state.set_connection("connected")
    expect(page.locator("#connection-text")).to_have_text("connected")


def test_a_lost_dashboard_is_seen(page: Page, dashboard: Dashboard) -> None:
    dashboard.stop()
    expect(page.locator("#connection-text")).to_have_text("dashboard lost, reconnecting")
    expect(page.locator("#connection")).to_have_attribute("data-state", "lost")


def test_light_and_dark(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    before = background()
    page.locator("#theme").click()
    changed = background()
    assert changed != before
    page.locator("#theme").click()
    assert background() == before


def test_every_section_has_a_name(page: Page) -> None:
    names = [section.get_attribute("aria-labelledby") for section in page.locator("section").all()]
    assert all(name and page.locator(f"#{name}").inner_text() for name in names)


@pytest.mark.parametrize("width", [380, 800, 1440])
def test_nothing_is_wider_than_the_window(page: Page, dashboard: Dashboard, width: int) -> None:
    station(dashboard, "s1", "charging", 1)
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator(".tile")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
