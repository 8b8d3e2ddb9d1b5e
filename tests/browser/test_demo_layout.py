"""The page's layout with the figures of a long run: all of it seen, nothing over anything else."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from support.dashboard_page import Dashboard, fill
from support.effort import others_slow

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "dashboard.png"
PANELS = "header, .card, footer"
SCROLLS_INSIDE = "#recommendations"
WHOLE_TEXTS = (
    "h1, h2, h3, dt, dd, p, b, .group .lag, #brokers li, #statements li, .legend li, .funnel span"
)

Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


@pytest.fixture(params=others_slow([5, 3, 1]))
def nodes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def show(page: Page, dashboard: Dashboard, nodes: int, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    fill(dashboard, nodes)
    expect(page.locator("#brokers li")).to_have_count(nodes)
    expect(page.locator(".group")).to_have_count(3)
    expect(page.locator("#statements li")).to_have_count(3)
    expect(page.locator(".tile")).to_have_count(46)
    expect(page.locator("#searches li")).to_have_count(10)
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


def boxes(elements: Locator) -> dict[str, Box]:
    """Return the boxes of elements, by their visible text or id."""
    rows = elements.evaluate_all(
        """elements => elements.map((element, place) => {
          const box = element.getBoundingClientRect();
          const name = element.getAttribute("aria-labelledby") || element.id ||
            element.className || element.textContent;
          return [`${place} ${name}`, box.left, box.top, box.right, box.bottom];
        })"""
    )
    return {name: (left, top, right, bottom) for name, left, top, right, bottom in rows}


def collisions(found: dict[str, Box]) -> list[tuple[str, str]]:
    return [
        (one, other)
        for (one, a), (other, b) in combinations(found.items(), 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1440, 900)])
def test_everything_is_above_the_fold(
    page: Page, dashboard: Dashboard, nodes: int, width: int, height: int
) -> None:
    show(page, dashboard, nodes, width, height)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollHeight") <= height
    assert page.evaluate(f"{root}.scrollWidth") <= width
    for name, (left, top, right, bottom) in boxes(page.locator(PANELS)).items():
        assert left >= 0, name
        assert top >= 0, name
        assert right <= width, name
        assert bottom <= height, name


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (390, 844),
        (1280, 800),
        pytest.param(800, 600, marks=pytest.mark.slow),
        pytest.param(1180, 800, marks=pytest.mark.slow),
        pytest.param(1440, 900, marks=pytest.mark.slow),
    ],
)
def test_nothing_collides_or_runs_out_of_its_box(
    page: Page, dashboard: Dashboard, width: int, height: int
) -> None:
    show(page, dashboard, 3, width, height)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert collisions(boxes(page.locator(PANELS))) == []
    for card in page.locator(".card").all():
        assert collisions(boxes(card.locator(":scope > *"))) == []
        outer = card.bounding_box()
        assert outer is not None
        for name, box in boxes(card.locator(f":scope *:not({SCROLLS_INSIDE} *)")).items():
            assert box[2] <= outer["x"] + outer["width"], name
            assert box[3] <= outer["y"] + outer["height"], name
    assert collisions(boxes(page.locator(".group"))) == []
    cut = page.locator(WHOLE_TEXTS).evaluate_all(
        """texts => texts.filter(text => text.scrollWidth > text.clientWidth + 1 &&
          getComputedStyle(text).display != "inline").map(text => text.textContent)"""
    )
    assert cut == []


def test_charts_fill_their_boxes(page: Page, dashboard: Dashboard) -> None:
    show(page, dashboard, 3, 1280, 800)
    for chart in page.locator(".chart").all():
        size = chart.evaluate("chart => `0 0 ${chart.clientWidth} ${chart.clientHeight}`")
        expect(chart.locator("svg")).to_have_attribute("viewBox", size)


def test_the_picture_in_the_readme_is_of_this_page(page: Page, dashboard: Dashboard) -> None:
    """`UPDATE_SCREENSHOTS=1` takes it again."""
    show(page, dashboard, 3, 1280, 800)
    if os.environ.get("UPDATE_SCREENSHOTS"):
        PICTURE.parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURE)
    width, height = (int.from_bytes(PICTURE.read_bytes()[at : at + 4]) for at in (16, 20))
    assert (width, height) == (1280, 800)
