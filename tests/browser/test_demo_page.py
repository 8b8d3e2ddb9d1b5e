"""The page by itself: changes arrive live, and it says when nobody sends them any more."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from barnabas.demo.dashboard.state import GroupStatus, SqlServerStatus, StatementStatus
from barnabas.demo.topics import ACTIVITY_PER_MINUTE, RECOMMENDATIONS, TOP_SEARCHES
from support.dashboard_page import Dashboard, cluster, schemas

HOSTILE = "<img src=x onerror=document.title='owned'>"


def test_a_station_changes_before_ones_eyes(page: Page, dashboard: Dashboard) -> None:
    dashboard.put_station("s1", "available", 1)
    tile = page.locator("[data-station=s1]")
    expect(tile).to_have_attribute("data-state", "available")
    dashboard.put_station("s1", "faulted", 2)
    expect(tile).to_have_attribute("data-state", "faulted")
    expect(tile).to_have_attribute("aria-label", "Station s1: faulted")
    expect(page.locator("#state-faulted b")).to_have_text("1")
    expect(page.locator("#state-available b")).to_have_text("0")


def test_figures_follow(page: Page, dashboard: Dashboard) -> None:
    window = {"window_start_ms": 60_000, "window_end_ms": 120_000}
    for clicks in (1, 1234):
        dashboard.put(
            ACTIVITY_PER_MINUTE,
            "click@60000",
            kind="click",
            events=clicks,
            sessions=8,
            revenue_cents=0,
            **window,
        )
        expect(page.locator("#activity-click b")).to_have_text(f"{clicks:,}")
    bought = {"kind": "purchase", "events": 2, "sessions": 0, "revenue_cents": 12345}
    dashboard.put(ACTIVITY_PER_MINUTE, "purchase@60000", **bought, **window)
    expect(page.locator("#conversion-rate")).to_have_text("25.00 %")
    expect(page.locator("#conversion-revenue b")).to_have_text("€123.45")


def test_what_users_type_is_text(page: Page, dashboard: Dashboard) -> None:
    dashboard.put(TOP_SEARCHES, "all", searches=[{"query": HOSTILE, "count": 3}])
    dashboard.put(RECOMMENDATIONS, "a", item_id="a", together=[{"item_id": HOSTILE, "count": 1}])
    expect(page.locator("#searches span")).to_have_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert page.title() == "Barnabas · live demo"


def test_a_group_shows_its_lag(page: Page, dashboard: Dashboard) -> None:
    behind = GroupStatus("warehouse", ["user-activity"], position=900, end=2100, lag=1200)
    behind.lag_history = [0, 600, 1200]
    new = GroupStatus("recommendations", ["user-activity"], end=2100)
    dashboard.state.set_groups([behind, new])
    expect(page.locator("#group-warehouse .lag b")).to_have_text("1,200")
    expect(page.locator("#group-warehouse .position")).to_contain_text("900 of 2,100")
    expect(page.locator("#group-recommendations .lag b")).to_have_text("–")


def test_a_schema_evolves_before_ones_eyes(page: Page, dashboard: Dashboard) -> None:
    expect(page.locator("#schemas")).to_be_hidden()
    dashboard.state.set_registry(schemas(evolved=False))
    schema = page.locator(".schema[data-topic='station-status']")
    expect(schema).to_have_text("station-status v1")
    dashboard.state.set_registry(schemas())
    evolved = re.compile(r"station-status v2 evolved at Mon,? 3 Mar 06:00: \+ temperature_c$")
    expect(schema).to_have_text(evolved)
    expect(page.locator("#schemas")).to_have_attribute("data-state", "up")
    dashboard.state.set_registry_down()
    expect(page.locator("#schemas")).to_have_attribute("data-state", "down")
    expect(page.locator(".schema")).to_have_count(4)


def test_nodes_are_seen_and_that_nothing_is_lost(page: Page, dashboard: Dashboard) -> None:
    dashboard.state.set_cluster(cluster(True, True, True))
    expect(page.locator("#brokers li[data-state=up]")).to_have_count(3)
    expect(page.locator("#broker-2")).to_contain_text("127.0.0.1:19093")
    expect(page.locator("#broker-2")).to_contain_text("leads 4 · in sync 13/13")
    expect(page.locator("#lost")).to_have_text("nothing")
    expect(page.locator("#partitions")).to_contain_text("13 partitions, each with a leader")
    dashboard.state.set_cluster(cluster(True, False, True, under_replicated=13))
    expect(page.locator("#broker-2")).to_have_attribute("data-state", "down")
    expect(page.locator("#partitions")).to_contain_text("13 partitions without all replicas")
    expect(page.locator("#lost")).to_have_text("nothing")
    dashboard.state.set_cluster(cluster(True, True, True, without_leader=1))
    dashboard.state.set_records(1232, lost=2)
    expect(page.locator("#lost")).to_have_text("2 records")
    expect(page.locator("#partitions")).to_contain_text("1 without a leader")


def statement(
    lag: int | None, seconds: float, state: str = "RUNNING", text: str = ""
) -> SqlServerStatus:
    status = StatementStatus("energy", ["user-activity"], position=900, end=2100, lag=lag)
    status.behind_seconds, status.state, status.text = seconds, state, text
    return SqlServerStatus("http://127.0.0.1:18088", up=True, statements=[status])


def test_statements_show_their_state_and_lag(page: Page, dashboard: Dashboard) -> None:
    row = page.locator("#statement-energy")
    dashboard.state.set_statements(statement(None, 0.0, text=f"SELECT '{HOSTILE}'"))
    expect(row).to_have_attribute("data-state", "running")
    expect(row).to_have_attribute("title", re.compile(re.escape(HOSTILE)))
    expect(row.locator(".lag")).to_have_text("–")
    dashboard.state.set_statements(statement(1200, 2.0))
    expect(row.locator(".lag")).to_have_text("1,200 behind")
    dashboard.state.set_statements(statement(1200, 2.0, "ERROR"))
    expect(row.locator(".state")).to_have_text("error")
    expect(page.locator("#try")).to_have_text("barnabas sql --server http://127.0.0.1:18088")
    dashboard.state.set_sql_server_down()
    expect(row).to_have_attribute("data-state", "down")


def test_figures_say_how_late_they_are(page: Page, dashboard: Dashboard) -> None:
    behind, figures = page.locator("#behind"), page.locator("#figures")
    dashboard.state.set_statements(statement(None, 0.0))
    expect(behind).to_have_text("waiting for Spark")
    dashboard.state.set_statements(statement(500, 2.0))
    expect(behind).to_have_text("2 s behind")
    expect(figures).to_have_attribute("data-state", "current")
    dashboard.state.set_statements(statement(5000, 17.4))
    expect(behind).to_have_text("catching up, 17 s")
    expect(figures).to_have_attribute("data-state", "late")
    dashboard.state.set_statements(statement(0, 0.0))
    expect(behind).to_have_text("up to date")


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
