"""No wrong figure passes, and nothing left to do goes unseen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

from barnabas.demo.catchup import Backlog, backlog_of
from barnabas.demo.contract import Figures
from barnabas.demo.outcome import all_right, compare, compare_lags
from barnabas.demo.topics import OUTPUT_TOPICS, STATIONS, USER_ACTIVITY

TRUTH: dict[str, Any] = {
    "stations_by_state": {"available": 3, "charging": 2, "faulted": 1, "offline": 0},
    "availability_by_city": {"Ghent": {"reports": 10, "available_reports": 4}},
    "charging": {
        "energy_wh": 1000,
        "readings": 5,
        "charges_started": 2,
        "charges_stopped": 1,
        "faults": 1,
    },
    "energy_wh_by_city": {"Ghent": 1000},
    "energy_wh_per_minute": {"60000": 400, "120000": 600},
    "activity": {"click": 7, "search": 2, "purchase": 1},
    "activity_per_minute": {"60000": 10},
    "conversion": {"sessions": 4, "purchases": 1, "revenue_cents": 995},
    "top_searches": [{"query": "tent", "count": 2}],
    "recommendations": {"tent": [{"item_id": "stove", "count": 1}]},
}

MUTATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a station in another state": lambda f: f["stations_by_state"].update(available=2, charging=3),
    "a state too many": lambda f: f["stations_by_state"].update(unknown=1),
    "a report too few": lambda f: f["availability_by_city"]["Ghent"].update(reports=9),
    "a city too many": lambda f: f["availability_by_city"].update(
        Lyon={"reports": 1, "available_reports": 1}
    ),
    "no city": lambda f: f["availability_by_city"].clear(),
    "energy counted twice": lambda f: f["charging"].update(energy_wh=2000),
    "a fault lost": lambda f: f["charging"].update(faults=0),
    "energy elsewhere": lambda f: f["energy_wh_by_city"].update(Lyon=1),
    "a minute missing": lambda f: f["energy_wh_per_minute"].pop("60000"),
    "a minute wrong": lambda f: f["energy_wh_per_minute"].update({"60000": 401}),
    "a click lost": lambda f: f["activity"].update(click=6),
    "another kind": lambda f: f["activity"].update(swipe=1),
    "activity in another minute": lambda f: f["activity_per_minute"].update({"120000": 1}),
    "a session lost": lambda f: f["conversion"].update(sessions=3),
    "a cent off": lambda f: f["conversion"].update(revenue_cents=994),
    "a search counted once": lambda f: f["top_searches"][0].update(count=1),
    "no searches": lambda f: f["top_searches"].clear(),
    "a wrong neighbour": lambda f: f["recommendations"].update(tent=[]),
}


def test_the_truth_is_right() -> None:
    checks = compare(cast("Figures", copy.deepcopy(TRUTH)), cast("Figures", TRUTH))
    assert all_right(checks)
    assert {check.name for check in checks} >= {"energy wh", "conversion", "stations offline"}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_wrong_figure_is_found(name: str) -> None:
    shown = copy.deepcopy(TRUTH)
    MUTATIONS[name](shown)
    assert not all_right(compare(cast("Figures", shown), cast("Figures", TRUTH)))


def test_no_figures_are_not_right() -> None:
    assert not all_right([])


@pytest.mark.parametrize(("lag", "right"), [(0, True), (1, False), (None, False)])
def test_a_reader_that_lags_is_not_right(lag: int | None, right: bool) -> None:
    warehouse = {"name": "warehouse", "lag": 0}
    assert all_right(compare_lags([warehouse], [{"name": "energy", "lag": lag}])) is right


def page(position: int, *, read: int = 3, lag: int | None = 0) -> dict[str, Any]:
    """A page that has read so much of the results, of a statement and a group on one topic."""
    statement = {"name": "s", "topics": [USER_ACTIVITY, STATIONS], "position": position, "lag": lag}
    group = {"name": "g", "topics": [USER_ACTIVITY], "position": 10, "lag": 0}
    return {
        "statements": [statement],
        "groups": [group],
        "outputs_read": {**dict.fromkeys(OUTPUT_TOPICS, 3), OUTPUT_TOPICS[0]: read},
    }


@pytest.mark.parametrize(
    ("shown", "backlog"),
    [
        (page(12), Backlog(0, 0, known=True)),
        (page(7), Backlog(5, 0, known=True)),
        (page(12, read=1), Backlog(0, 2, known=True)),
        (page(0, lag=None), Backlog(12, 0, known=False)),
        ({**page(12), "statements": []}, Backlog(0, 0, known=False)),
        ({**page(12), "groups": []}, Backlog(0, 0, known=False)),
    ],
)
def test_what_is_left_to_do(shown: dict[str, Any], backlog: Backlog) -> None:
    ends = {USER_ACTIVITY: 10, STATIONS: 2, **dict.fromkeys(OUTPUT_TOPICS, 3)}
    assert backlog_of(shown, ends) == backlog


@pytest.mark.parametrize(
    ("backlog", "nothing"),
    [
        (Backlog(0, 0, known=True), True),
        (Backlog(1, 0, known=True), False),
        (Backlog(0, 1, known=True), False),
        (Backlog(0, 0, known=False), False),
    ],
)
def test_nothing_is_left_only_when_all_is_known_and_done(backlog: Backlog, nothing: bool) -> None:
    assert backlog.nothing is nothing
