"""The end of a run of the demo: its outcome, exit codes, and reasons to end early."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.demo.processes import Child
from barnabas.demo.verdict import Check

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
