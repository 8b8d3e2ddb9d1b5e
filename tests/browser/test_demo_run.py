"""The whole demo, and its page in a browser: every figure is held against the truth."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from barnabas.demo.database.place import find_programs
from barnabas.demo.identity import start_time
from barnabas.demo.outside import fetch_json
from barnabas.demo.parts.servers import registry_spec
from barnabas.demo.schemas import AVRO_TOPICS
from barnabas.demo.topics import SQL_TOPICS
from barnabas.demo.workspace import Workspace
from barnabas.kafka.bootstrap import UnreachableError, first_reachable
from support.node_process import wait_until
from support.ports import free_port

pytestmark = pytest.mark.timeout(360)


def test_a_bounded_run_ends_by_itself_with_every_figure_right(finished_demo: Any) -> None:
    assert finished_demo.exit_code == 0, finished_demo.progress
    assert "Every figure is right." in finished_demo.progress
    checks = finished_demo.outcome["checks"]
    assert [check for check in checks if not check["right"]] == []
    names = {check["name"] for check in checks}
    assert {"energy wh", "conversion", "top searches", "bought together"} <= names
    assert ("stations as in PostgreSQL" in names) == (not isinstance(find_programs(), str))
    assert {"lag of dashboard", "lag of recommendations", "lag of warehouse"} <= names
    assert {f"lag of {topic.replace('-', ' ')}" for topic in SQL_TOPICS} <= names
    assert "barnabas sql --server http://127.0.0.1:" in finished_demo.progress
    assert "✓ console: http://127.0.0.1:" in finished_demo.progress


def test_the_run_published_and_counted_something(finished_demo: Any) -> None:
    truth = finished_demo.truth
    assert truth["done"]
    assert truth["pending"] == 0
    assert min(truth["events"].values()) > 100
    assert truth["duplicates"] > 0
    assert truth["late"] > 0
    assert finished_demo.outcome["events"] == truth["events"]


def test_no_process_is_left(finished_demo: Any) -> None:
    assert list((finished_demo.directory / "pids").iterdir()) == []


@pytest.fixture(scope="module")
def page_url(finished_demo: Any) -> Iterator[str]:
    """Broker and dashboard alone, started again on what the run left."""
    directory = finished_demo.directory
    properties = directory / "broker" / "server.properties"
    listeners = next(
        line for line in properties.read_text().splitlines() if line.startswith("advertised")
    )
    bootstrap = listeners.rpartition("//")[2]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    dashboard = [sys.executable, "-m", "barnabas.demo.dashboard.server", "--bootstrap", bootstrap]
    settings = Workspace(str(directory)).load_settings()
    assert settings is not None
    commands = [
        [sys.executable, "-m", "barnabas", "start", str(properties)],
        registry_spec(settings, bootstrap, is_own_cluster=True).command,
        [
            *(*dashboard, "--registry", settings.registry_url),
            *("--sql-server", settings.sql_url, "--port", str(port)),
        ],
    ]
    processes: list[subprocess.Popen[bytes]] = []

    def all_run() -> bool:
        assert all(process.poll() is None for process in processes)
        return True

    try:
        with (directory / "logs" / "again.log").open("ab") as log:
            for command in commands:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log))
                # A registry ends at once where no broker answers.
                wait_until(lambda: all_run() and _is_there(bootstrap), "the broker's listener")

        def is_complete() -> bool:
            all_run()
            return _shows_everything(fetch_json(f"{url}/api/state"), finished_demo.truth)

        wait_until(is_complete, "a page that shows everything again")
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)
            assert start_time(process.pid) is None


def _is_there(bootstrap: str) -> bool:
    try:
        first_reachable(bootstrap)
    except UnreachableError:
        return False
    return True


def _shows_everything(state: dict[str, Any] | None, truth: dict[str, Any]) -> bool:
    if state is None or state["figures"] != truth["figures"]:
        return False
    # Without new events nothing is committed again: the lags are what the brokers remember.
    return bool(state["groups"]) and all(group["lag"] == 0 for group in state["groups"])


@pytest.fixture(scope="module")
def page(browser: Browser, page_url: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_url)
    page.wait_for_selector("body[data-version]")
    page.wait_for_selector("#connection[data-state=connected]")
    page.wait_for_selector("#group-warehouse .lag b[data-value='0']")
    yield page
    page.close()
    assert problems == []
    assert all(url.startswith(page_url) for url in requests), "the page loads from elsewhere"


def value(page: Page, selector: str) -> float:
    return float(page.locator(selector).get_attribute("data-value") or "nan")


def values(page: Page, selector: str, key: str) -> dict[str, int]:
    """The exact values of the elements that match, by their attribute `key`."""
    found = page.locator(selector).all()
    return {str(e.get_attribute(key)): int(e.get_attribute("data-value") or "-1") for e in found}


def test_schemas_and_how_one_has_evolved(page: Page, finished_demo: Any) -> None:
    # The dashboard asks a registry that was started again once a second.
    expect(page.locator(".schema")).to_have_count(len(AVRO_TOPICS))
    evolved = page.locator(".schema[data-version='2']").all_inner_texts()
    assert [text.strip(" ·").replace(",", "") for text in evolved] == [
        "station-status v2 evolved at Mon 3 Mar 06:20: + temperature_c"
    ]
    said = "an incompatible change was refused: READER_FIELD_MISSING_DEFAULT_VALUE"
    assert said in finished_demo.progress


def test_stations_by_state(page: Page, finished_demo: Any) -> None:
    by_state = finished_demo.truth["figures"]["stations_by_state"]
    for state, count in by_state.items():
        assert value(page, f"#state-{state} b") == count
        assert page.locator(f".tile[data-state={state}]").count() == count
    assert page.locator(".tile").count() == sum(by_state.values())
    assert page.locator(".tile[data-state=unknown]").count() == 0


def test_availability_of_each_city(page: Page, finished_demo: Any) -> None:
    cities = finished_demo.truth["figures"]["availability_by_city"]
    assert page.locator(".site").count() == len(cities)
    for city, truth in cities.items():
        share = page.locator(f".site[data-city='{city}'] .share")
        assert share.get_attribute("data-reports") == str(truth["reports"])
        assert share.get_attribute("data-available") == str(truth["available_reports"])
        assert share.inner_text() == f"{100 * truth['available_reports'] / truth['reports']:.1f} %"


def test_energy(page: Page, finished_demo: Any) -> None:
    figures = finished_demo.truth["figures"]
    assert value(page, "#energy-total") == figures["charging"]["energy_wh"]
    assert page.locator("#energy-total").inner_text() == (
        f"{figures['charging']['energy_wh'] / 1000:,.1f}"
    )
    for name in ("readings", "charges_started", "charges_stopped", "faults"):
        assert value(page, f"#charging-{name}") == figures["charging"][name]
    for city, energy_wh in figures["energy_wh_by_city"].items():
        assert value(page, f"#energy-cities [data-city='{city}'] b") == energy_wh
    bars = values(page, "#energy-chart rect", "data-minute")
    assert bars == figures["energy_wh_per_minute"]


def test_activity(page: Page, finished_demo: Any) -> None:
    figures = finished_demo.truth["figures"]
    for kind, count in figures["activity"].items():
        assert value(page, f"#activity-{kind} b") == count
        assert page.locator(f"#activity-{kind} b").inner_text() == f"{count:,}"
    bars = values(page, "#activity-chart rect", "data-minute")
    assert bars == figures["activity_per_minute"]


def test_conversion(page: Page, finished_demo: Any) -> None:
    conversion = finished_demo.truth["figures"]["conversion"]
    rate = 100 * conversion["purchases"] / conversion["sessions"]
    assert value(page, "#conversion-rate") == pytest.approx(rate)
    assert page.locator("#conversion-rate").inner_text() == f"{rate:.2f} %"
    assert value(page, "#conversion-sessions b") == conversion["sessions"]
    assert value(page, "#conversion-purchases b") == conversion["purchases"]
    assert value(page, "#conversion-revenue b") == conversion["revenue_cents"]


def test_top_searches_in_their_order(page: Page, finished_demo: Any) -> None:
    rows = page.locator("#searches li").all()
    shown = [
        {
            "query": row.get_attribute("data-query"),
            "count": int(row.locator("b").get_attribute("data-value") or "-1"),
        }
        for row in rows
    ]
    assert shown == finished_demo.truth["figures"]["top_searches"]


def test_recommendations(page: Page, finished_demo: Any) -> None:
    shown = {}
    for row in page.locator("#recommendations > li").all():
        shown[row.get_attribute("data-item")] = [
            {
                "item_id": chip.get_attribute("data-item"),
                "count": int(chip.locator("b").get_attribute("data-value") or "-1"),
            }
            for chip in row.locator(".chip").all()
        ]
    assert shown == finished_demo.truth["figures"]["recommendations"]


def test_consumer_groups_have_read_everything(page: Page, finished_demo: Any) -> None:
    assert value(page, "#group-warehouse .lag b") == 0
    for group in ("dashboard", "recommendations"):
        card = page.locator(f"#group-{group}")
        assert card.get_attribute("data-topic") == "user-activity"
        assert value(page, f"#group-{group} .lag b") == 0
        # Each group reads every record, those sent twice included.
        assert (
            value(page, f"#group-{group} .position")
            >= (finished_demo.truth["events"]["user-activity"])
        )
