"""No wrong figure passes, and nothing left to do goes unseen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

from barnabas.demo.catchup import Backlog, pipeline_backlog
from barnabas.demo.contract import Figures, PipelineProgress
from barnabas.demo.dashboard.committer import reported_offsets
from barnabas.demo.verdict import all_right, compare, compare_lags

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
def test_a_group_that_lags_is_not_right(lag: int | None, right: bool) -> None:
    group = {"group": "warehouse", "topic": "user-activity", "lag": lag}
    assert all_right(compare_lags([group])) is right


def progress(offsets: dict[str, dict[str, int]]) -> PipelineProgress:
    queries = {
        name: {"group": "g", "topic": "t", "offsets": of, "batches": 1, "rows": 1}
        for name, of in offsets.items()
    }
    return cast("PipelineProgress", {"state": "running", "updated_ms": 0, "queries": queries})


@pytest.mark.parametrize(
    ("offsets", "left"),
    [
        ({"q": {"0": 10, "1": 5}}, 0),
        ({"q": {"0": 10}}, 5),
        ({"q": {}}, 15),
        ({"q": {"0": 10, "1": 5}, "slower": {"0": 4, "1": 5}}, 6),
        ({}, 0),
    ],
)
def test_the_slowest_query_of_a_topic_counts(offsets: dict[str, dict[str, int]], left: int) -> None:
    assert pipeline_backlog({("t", 0): 10, ("t", 1): 5}, progress(offsets)) == left


@pytest.mark.parametrize(
    ("backlog", "nothing"),
    [
        (Backlog(0, 0, 0, known=True), True),
        (Backlog(1, 0, 0, known=True), False),
        (Backlog(0, 1, 0, known=True), False),
        (Backlog(0, 0, 1, known=True), False),
        (Backlog(0, 0, 0, known=False), False),
    ],
)
def test_nothing_is_left_only_when_all_is_known_and_done(backlog: Backlog, nothing: bool) -> None:
    assert backlog.nothing is nothing


def test_offsets_are_committed_per_query(tmp_path: Any) -> None:
    path = tmp_path / "progress.json"
    assert reported_offsets(str(path)) == {}
    path.write_text(
        '{"state": "running", "updated_ms": 1, "queries": {'
        '"interest-totals": {"topic": "user-activity", "offsets": {"0": 3, "1": 4}},'
        '"activity-minutes": {"topic": "user-activity", "offsets": {"0": 9}},'
        '"energy-per-minute": {"topic": "charging-events", "offsets": {"0": 1}}}}'
    )
    assert reported_offsets(str(path)) == {
        "recommendations": ("user-activity", {0: 3, 1: 4}),
        "warehouse": ("user-activity", {0: 9}),
    }


def test_every_committed_query_exists_in_the_pipeline() -> None:
    pytest.importorskip("pyspark")
    from barnabas.demo.dashboard.committer import GROUP_OF_QUERY
    from barnabas.demo.spark.queries import STORY_QUERIES

    topics = {query.name: query.topic for query in STORY_QUERIES}
    assert {topics[name] for name in GROUP_OF_QUERY} == {"user-activity"}
