"""The end of a run of the demo: its outcome, exit codes, and reasons to end early.

An outcome holds what the dashboard shows against the truth of the generators, figure by figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.demo.contract import Figures
from barnabas.demo.processes import Child

EXIT_RIGHT, EXIT_FAILED, EXIT_WRONG = 0, 1, 5


class DemoFailedError(Exception):
    """A part failed for good; `child` is the one whose log says why."""

    def __init__(self, message: str, child: Child | None = None) -> None:
        super().__init__(message)
        self.child = child


class DemoEndedError(Exception):
    """Somebody asked to end at once."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@dataclass(slots=True)
class Outcome:
    """The outcome of a run. `failure` is empty unless the run failed or was ended."""

    exit_code: int
    url: str
    directory: str
    events: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    late: int = 0
    restarts: dict[str, int] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    failure: str = ""


@dataclass(slots=True, frozen=True)
class Check:
    """One line of the summary: a figure as shown and as it truly is, both as text."""

    name: str
    shown: str
    truth: str
    right: bool


def compare(shown: Figures, truth: Figures) -> list[Check]:
    """Return a check per figure; series and lists count as one figure each."""
    checks = _numbers("stations ", shown["stations_by_state"], truth["stations_by_state"])
    shown_cities, true_cities = shown["availability_by_city"], truth["availability_by_city"]
    checks += [
        Check(
            f"availability in {city}",
            _share(shown_cities.get(city)),
            _share(true_cities.get(city)),
            shown_cities.get(city) == true_cities.get(city),
        )
        for city in _keys(shown_cities, true_cities)
    ]
    checks += _numbers("", shown["charging"], truth["charging"])
    checks += _numbers("energy_wh in ", shown["energy_wh_by_city"], truth["energy_wh_by_city"])
    checks.append(
        _series(
            "energy_wh of each minute", shown["energy_wh_per_minute"], truth["energy_wh_per_minute"]
        )
    )
    checks += _numbers("activity: ", shown["activity"], truth["activity"])
    checks.append(
        _series(
            "activity of each minute", shown["activity_per_minute"], truth["activity_per_minute"]
        )
    )
    checks += _numbers("", shown["conversion"], truth["conversion"])
    checks.append(
        Check("conversion", _rate(shown), _rate(truth), shown["conversion"] == truth["conversion"])
    )
    checks.append(
        _series(
            "top searches",
            {str(place): entry for place, entry in enumerate(shown["top_searches"])},
            {str(place): entry for place, entry in enumerate(truth["top_searches"])},
        )
    )
    checks.append(_series("bought together", shown["recommendations"], truth["recommendations"]))
    return checks


def compare_lags(*readers: list[dict[str, Any]]) -> list[Check]:
    """Return a check per consumer group and statement: nothing published is left unread."""
    return [_number(f"lag of {one['name']}", one["lag"], 0) for some in readers for one in some]


def all_right(checks: list[Check]) -> bool:
    """Return whether every figure is right, and there is one at all."""
    return bool(checks) and all(check.right for check in checks)


def _keys(shown: Any, truth: Any) -> list[str]:
    return sorted({*shown, *truth})


def _numbers(prefix: str, shown: Any, truth: Any) -> list[Check]:
    names = [*truth, *(name for name in shown if name not in truth)]
    return [_number(f"{prefix}{name}", shown.get(name), truth.get(name)) for name in names]


def _number(name: str, shown: int | None, truth: int | None) -> Check:
    return Check(name.replace("_", " "), _text(shown), _text(truth), shown == truth)


def _series(name: str, shown: Any, truth: Any) -> Check:
    """Compare entry by entry; the text says how many there are and how many differ."""
    keys = _keys(shown, truth)
    wrong = [key for key in keys if shown.get(key) != truth.get(key)]
    text = f"{len(shown)} entries" if not wrong else f"{len(shown)} entries, {len(wrong)} wrong"
    return Check(name.replace("_", " "), text, f"{len(truth)} entries", not wrong)


def _text(number: int | None) -> str:
    return "nothing" if number is None else f"{number:,}"


def _share(city: Any) -> str:
    return "nothing" if city is None else f"{city['available_reports']:,} of {city['reports']:,}"


def _rate(figures: Figures) -> str:
    conversion = figures["conversion"]
    if not conversion["sessions"]:
        return "no session"
    return f"{100 * conversion['purchases'] / conversion['sessions']:.2f} %"
