"""The shop's users: a pure simulation, one event minute per step.

Sessions open as the daily curve says; when one opens, what its user will do in the next minutes is
drawn at once and waits until its time comes. People who search for coffee buy filters too: items
belong to bundles, which is what the recommendations should find.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Any, Final

from barnabas.demo.generators.curves import RETAIL_CURVE
from barnabas.demo.generators.events import Event
from barnabas.demo.topics import MINUTE_MS, USER_ACTIVITY, UserActivity

BUNDLES: Final[tuple[tuple[str, ...], ...]] = (
    ("coffee-beans", "coffee-grinder", "filter-papers", "milk-frother"),
    ("tent", "sleeping-bag", "camp-stove", "headlamp"),
    ("keyboard", "mouse", "monitor-arm", "usb-hub"),
    ("running-shoes", "running-socks", "water-bottle", "sports-watch"),
    ("paint", "paint-brush", "masking-tape", "dust-sheet"),
    ("flour", "proofing-basket", "dough-scraper", "baking-stone"),
)
_PRICES_CENTS: Final = {
    item: 490 + 1_370 * ((bundle * 5 + position * 3) % 11)
    for bundle, items in enumerate(BUNDLES)
    for position, item in enumerate(items)
}
_QUERIES: Final[tuple[tuple[str, ...], ...]] = (
    ("espresso", "coffee grinder", "filter coffee"),
    ("two person tent", "camping", "warm sleeping bag"),
    ("quiet keyboard", "ergonomic mouse", "desk setup"),
    ("trail running", "marathon shoes", "gps watch"),
    ("white wall paint", "paint roller"),
    ("sourdough", "bread flour"),
)
# The popularity of bundles; a Zipf-like tail.
_BUNDLE_WEIGHTS: Final = (30, 22, 18, 14, 9, 7)
_BUNDLE_CUMULATIVE: Final = tuple(accumulate(_BUNDLE_WEIGHTS))

_STEPS_MAX: Final = 11
_PURCHASE_SHARE: Final = 0.22
_STRAY_ITEM_SHARE: Final = 0.08
_SEARCH_SHARE: Final = 0.3
_PAUSE_MS: Final = (4_000, 95_000)

EVENTS_PER_SESSION: Final = 5.7
"""Measured mean; the plan derives the sessions per minute from it."""


class RetailSimulation:
    """All users. `step` yields the events of one minute, in order of event time."""

    __slots__ = ("_seed", "_sessions_per_minute", "_users", "opened", "waiting")

    def __init__(self, seed: int, sessions_per_minute: float) -> None:
        self._seed = seed
        self._sessions_per_minute = sessions_per_minute
        self._users = max(50, round(sessions_per_minute * 60))
        self.opened = 0
        self.waiting: list[UserActivity] = []
        """The pending actions of open sessions, unordered."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        return {"opened": self.opened, "waiting": [dict(event) for event in self.waiting]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.opened = snapshot["opened"]
        self.waiting = list(snapshot["waiting"])

    def step(self, minute_ms: int) -> list[Event]:
        """Simulate the minute that starts at `minute_ms` (epoch milliseconds, a whole minute)."""
        rng = Random(f"{self._seed}:retail:{minute_ms}")
        expected = self._sessions_per_minute * RETAIL_CURVE.at(minute_ms)
        for _ in range(_around(expected, rng)):
            self.opened += 1
            self.waiting.extend(self._session(minute_ms + rng.randrange(MINUTE_MS), rng))
        end_ms = minute_ms + MINUTE_MS
        due = [event for event in self.waiting if event["event_time_ms"] < end_ms]
        self.waiting = [event for event in self.waiting if event["event_time_ms"] >= end_ms]
        due.sort(key=lambda event: (event["event_time_ms"], event["event_id"]))
        return [
            Event(USER_ACTIVITY, event["user_id"], event["event_time_ms"], dict(event))
            for event in due
        ]

    def _session(self, opens_ms: int, rng: Random) -> list[UserActivity]:
        bundle = rng.choices(range(len(BUNDLES)), cum_weights=_BUNDLE_CUMULATIVE)[0]
        user_id = f"u-{rng.randrange(self._users):05d}"
        session_id = f"se-{self.opened}"
        steps = rng.randrange(1, _STEPS_MAX)
        buys = rng.random() < _PURCHASE_SHARE
        at_ms = opens_ms
        events: list[UserActivity] = []
        for sequence in range(steps + buys):
            event: UserActivity = {
                "event_id": f"{session_id}-{sequence}",
                "user_id": user_id,
                "session_id": session_id,
                "sequence": sequence,
                "event_time_ms": at_ms,
                "kind": "click",
                "item_id": None,
                "query": None,
                "items": [],
                "amount_cents": 0,
            }
            if sequence == steps:
                basket = _basket(bundle, rng)
                event["kind"] = "purchase"
                event["items"] = basket
                event["amount_cents"] = sum(_PRICES_CENTS[item] for item in basket)
            elif rng.random() < _SEARCH_SHARE:
                queries = _QUERIES[bundle]
                event["kind"] = "search"
                event["query"] = queries[min(rng.randrange(4), len(queries) - 1)]
            else:
                event["item_id"] = rng.choice(BUNDLES[bundle])
            events.append(event)
            at_ms += rng.randrange(*_PAUSE_MS)
        return events


def _basket(bundle: int, rng: Random) -> list[str]:
    # The first items of a bundle are the more wanted ones, so that rankings have a clear order.
    basket = {BUNDLES[bundle][min(rng.randrange(6), 3)] for _ in range(rng.randrange(1, 5))}
    if rng.random() < _STRAY_ITEM_SHARE:
        basket.add(rng.choice(rng.choice(BUNDLES)))
    return sorted(basket)


def _around(expected: float, rng: Random) -> int:
    """Draw a whole number near `expected`: its mean, with a spread of a Poisson's order."""
    spread = expected**0.5
    drawn = max(0.0, expected + spread * (rng.random() + rng.random() - 1.0) * 1.7)
    whole = int(drawn)
    return whole + int(rng.random() < drawn - whole)
