"""The demo's world: the same seed makes the same events, wherever it is continued."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest

from barnabas.demo.contract import START_TIME_MS, Plan
from barnabas.demo.generators.curves import CHARGING_CURVE, DAY_MS, HOUR_MS, RETAIL_CURVE
from barnabas.demo.generators.delivery import LATE_MS_MAX, Delivery
from barnabas.demo.generators.run import IN_FLIGHT_MINUTES
from barnabas.demo.generators.simulation import World, events_planned
from barnabas.demo.topics import (
    CHARGING_EVENTS,
    CHARGING_KINDS,
    MINUTE_MS,
    STATION_STATES,
    STATION_STATUS,
    USER_ACTIVITY,
    WATERMARK_DELAY_MS,
)


def plan_of(seconds: int | None = 30, seed: int = 7, rate: int = 250) -> Plan:
    return {"seed": seed, "rate": rate, "acceleration": 240, "seconds": seconds}


def run_to_end(world: World) -> list[Delivery]:
    deliveries = []
    while not world.at_end:
        deliveries.extend(world.step())
    return deliveries


@pytest.fixture(scope="module")
def finished() -> tuple[World, list[Delivery]]:
    world = World(plan_of(60))
    return world, run_to_end(world)


def test_one_seed_makes_one_world(finished: tuple[World, list[Delivery]]) -> None:
    world, deliveries = finished
    again = World(plan_of(60))
    assert run_to_end(again) == deliveries
    assert again.truth() == world.truth()


def test_another_seed_makes_another_world(finished: tuple[World, list[Delivery]]) -> None:
    assert run_to_end(World(plan_of(60, seed=8))) != finished[1]


@pytest.mark.parametrize("minute", [0, 1, 17, 119])
def test_a_world_restored_from_json_goes_on_as_it_would_have(minute: int) -> None:
    world = World(plan_of(30))
    for _ in range(minute):
        world.step()
    restored = World.restore(json.loads(json.dumps(world.snapshot())))
    assert restored.truth() == world.truth()
    assert run_to_end(restored) == run_to_end(world)
    assert restored.truth() == world.truth()


def test_stations_report_their_temperature_from_the_middle_on(
    finished: tuple[World, list[Delivery]],
) -> None:
    world, deliveries = finished
    reports = [d.value for d in deliveries if d.topic == STATION_STATUS]
    assert world.evolves_ms == START_TIME_MS + 120 * MINUTE_MS
    for report in reports:
        assert ("temperature_c" in report) == (report["event_time_ms"] >= world.evolves_ms)
    assert {r["temperature_c"] for r in reports if "temperature_c" in r} <= set(range(5, 50))


def test_a_plan_that_is_changed_evolves_when_the_first_would_have() -> None:
    world = World(plan_of(30))
    world.step()
    for seconds in (10, 300, None):
        went_on = World.restore({**world.snapshot(), "plan": plan_of(seconds)})
        assert went_on.evolves_ms == world.evolves_ms == START_TIME_MS + 60 * MINUTE_MS
    assert World(plan_of(None)).evolves_ms == START_TIME_MS + 240 * MINUTE_MS


def test_a_snapshot_does_not_change_with_the_world() -> None:
    world = World(plan_of(30))
    for _ in range(20):
        world.step()
    snapshot = world.snapshot()
    before = json.dumps(snapshot)
    for _ in range(20):
        world.step()
    assert json.dumps(snapshot) == before


def test_stopping_in_between_changes_no_total() -> None:
    stopped = World(plan_of(30))
    arrived = []
    for minute in range(120):
        arrived.extend(stopped.step())
        if minute in {13, 50}:
            arrived.extend(stopped.release_held())
            assert stopped.truth()["pending"] == 0
    through = World(plan_of(30))
    expected = run_to_end(through)
    assert stopped.truth() == through.truth()
    assert distinct_ids(arrived) == distinct_ids(expected)


def test_every_event_has_an_id_of_its_own(finished: tuple[World, list[Delivery]]) -> None:
    world, deliveries = finished
    firsts = [d for d in deliveries if not d.is_duplicate]
    assert len(firsts) == world.events == events_planned(world.plan)
    assert len(distinct_ids(firsts)) == len(firsts)
    assert distinct_ids(deliveries) == distinct_ids(firsts)


def test_some_come_late_and_some_twice_but_none_too_late(
    finished: tuple[World, list[Delivery]],
) -> None:
    world, deliveries = finished
    truth = world.truth()
    assert sum(d.is_late for d in deliveries) == truth["late"] > 100
    assert sum(d.is_duplicate for d in deliveries) == truth["duplicates"] > 100
    newest: dict[str, int] = defaultdict(int)
    behind_max_ms = 0
    for delivery in deliveries:
        event_time_ms = delivery.value["event_time_ms"]
        newest[delivery.topic] = max(newest[delivery.topic], event_time_ms)
        if not delivery.is_duplicate:
            behind_max_ms = max(behind_max_ms, newest[delivery.topic] - event_time_ms)
    assert MINUTE_MS < behind_max_ms <= LATE_MS_MAX
    # What a restart or a slow partition can add still leaves it within the watermark's delay.
    assert behind_max_ms + (IN_FLIGHT_MINUTES + 1) * MINUTE_MS < WATERMARK_DELAY_MS


def test_the_truth_is_what_a_naive_count_of_the_deliveries_finds(
    finished: tuple[World, list[Delivery]],
) -> None:
    world, deliveries = finished
    truth = world.truth()
    events: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for delivery in deliveries:
        events[delivery.topic][delivery.value["event_id"]] = delivery.value
    assert truth["events"] == {topic: len(found) for topic, found in events.items()}
    assert truth["done"]
    assert truth["pending"] == 0
    figures = truth["figures"]
    cities = {station["station_id"]: station["city"] for station in world.stations}

    status = sorted(
        events[STATION_STATUS].values(), key=lambda e: (e["event_time_ms"], e["sequence"])
    )
    last = {event["station_id"]: event["state"] for event in status}
    assert figures["stations_by_state"] == {
        state: sum(s == state for s in last.values()) for state in STATION_STATES
    }
    assert set(last) == set(cities)
    for city, found in figures["availability_by_city"].items():
        own = [event["state"] for event in status if cities[event["station_id"]] == city]
        assert found == {"reports": len(own), "available_reports": own.count("available")}

    charging = list(events[CHARGING_EVENTS].values())
    kinds = Counter(event["kind"] for event in charging)
    assert set(kinds) == set(CHARGING_KINDS)
    assert figures["charging"] == {
        "energy_wh": sum(event["energy_wh"] for event in charging),
        "readings": kinds["meter"],
        "charges_started": kinds["start"],
        "charges_stopped": kinds["stop"],
        "faults": kinds["fault"],
    }
    assert sum(figures["energy_wh_by_city"].values()) == figures["charging"]["energy_wh"]
    assert sum(figures["energy_wh_per_minute"].values()) == figures["charging"]["energy_wh"]

    activity = list(events[USER_ACTIVITY].values())
    assert figures["activity"] == dict(Counter(event["kind"] for event in activity))
    assert sum(figures["activity_per_minute"].values()) == len(activity)
    purchases = [event for event in activity if event["kind"] == "purchase"]
    assert figures["conversion"] == {
        "sessions": sum(event["sequence"] == 0 for event in activity),
        "purchases": len(purchases),
        "revenue_cents": sum(event["amount_cents"] for event in purchases),
    }
    assert len({event["session_id"] for event in purchases}) == len(purchases)
    searches = Counter(event["query"] for event in activity if event["kind"] == "search")
    assert {s["query"]: s["count"] for s in figures["top_searches"]}.items() <= searches.items()
    counts = [s["count"] for s in figures["top_searches"]]
    assert counts == sorted(searches.values(), reverse=True)[:10]
    pairs: Counter[frozenset[str]] = Counter()
    for purchase in purchases:
        pairs.update(frozenset(pair) for pair in combinations(purchase["items"], 2))
    for item, together in figures["recommendations"].items():
        for entry in together:
            assert pairs[frozenset((item, entry["item_id"]))] == entry["count"]


def test_charges_follow_their_life(finished: tuple[World, list[Delivery]]) -> None:
    charges: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for delivery in finished[1]:
        if delivery.topic == CHARGING_EVENTS and not delivery.is_duplicate:
            charges[delivery.value["charge_id"]].append(delivery.value)
    assert len(charges) > 50
    for events in charges.values():
        events.sort(key=lambda event: event["event_time_ms"])
        kinds = [event["kind"] for event in events]
        assert kinds[0] == "start"
        assert set(kinds[1:-1]) <= {"meter"}
        assert kinds[-1] in {"start", "meter", "stop", "fault"}


def test_the_rate_is_the_mean_over_a_day() -> None:
    world = World(plan_of(360, rate=100))
    run_to_end(world)
    assert sum(world.truth()["events"].values()) == pytest.approx(36_000, rel=0.1)


def test_curves_have_a_mean_of_one_and_a_night() -> None:
    for curve in (CHARGING_CURVE, RETAIL_CURVE):
        samples = [curve.at(t) for t in range(0, DAY_MS, MINUTE_MS)]
        assert sum(samples) / len(samples) == pytest.approx(1.0)
        assert curve.at(3 * HOUR_MS) < 0.4 < 1.2 < curve.at(18 * HOUR_MS)
        assert curve.at(DAY_MS) == curve.at(0)


def distinct_ids(deliveries: list[Delivery]) -> set[str]:
    return {delivery.value["event_id"] for delivery in deliveries}
