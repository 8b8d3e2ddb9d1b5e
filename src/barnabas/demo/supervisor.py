"""Supervision of a run's processes: starting them, waiting for them, and starting them again.

All waiting happens here, since each poll also finds processes that died and requests to end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.demo.outcome import DemoEndedError, DemoFailedError
from barnabas.demo.outside import SignalsTo
from barnabas.demo.processes import Child, Children, ChildSpec, describe_exit
from barnabas.demo.terminal import Screen

READY_SECONDS_MAX: Final = 90.0
RESTARTS_MAX: Final = 3
_LOOK_SECONDS: Final = 0.2
_SILENCE_SECONDS_MAX: Final = 180.0


class Owner(Protocol):
    """The supervisor's view of the part that a process belongs to."""

    @property
    def name(self) -> str:
        """The part's name, as the terminal shows it."""

    def does_without(self, child: Child) -> bool:
        """Go on without a process that died before it was ready; False where that cannot be."""

    def recover(self) -> None:
        """Note that a process that had been ready died and was started again."""


@dataclass(slots=True)
class _Ward:
    """A process, and what is to happen when it ends."""

    owner: Owner
    ends_itself: bool
    is_ready: bool = False
    is_ending: bool = False
    restarts: int = 0


class Supervisor:
    """The processes of one run. `rest` is called at each look."""

    def __init__(self, children: Children, screen: Screen, rest: Callable[[], None]) -> None:
        self._children = children
        self._screen = screen
        self._rest = rest
        self._wards: dict[str, _Ward] = {}
        self._end_code: int | None = None

    @property
    def restarts(self) -> dict[str, int]:
        """The number of restarts of each process."""
        return {name: ward.restarts for name, ward in self._wards.items() if ward.restarts}

    def start(self, spec: ChildSpec, owner: Owner, *, ends_itself: bool = False) -> Child:
        """Start a process. One that `ends_itself` may end well at any time."""
        self._wards[spec.name] = _Ward(owner, ends_itself)
        return self._children.start(spec)

    def get(self, name: str) -> Child | None:
        """Return a process, running or ended; None for an unknown name."""
        return self._children.get(name)

    def is_ready(self, name: str) -> bool:
        """Return whether a process has once done its work: if it dies, it is started again."""
        ward = self._wards.get(name)
        return ward is not None and ward.is_ready

    def set_ready(self, *names: str) -> None:
        """Note that processes do their work."""
        for name in names:
            self._wards[name].is_ready = True

    def owner_of(self, child: Child) -> Owner:
        """Return the part that a process belongs to."""
        return self._wards[child.spec.name].owner

    def end(self, name: str) -> None:
        """End a process and forget it."""
        self._children.end(name)

    def end_well(self, name: str) -> None:
        """Ask a process to end by itself, wait, and forget it. Raises DemoFailedError."""
        child = self._children.get(name)
        assert child is not None
        self._wards[name].is_ending = True
        child.interrupt()
        self.wait(lambda: child.exit_code() is not None, READY_SECONDS_MAX, name)
        if child.exit_code() != 0:
            raise DemoFailedError(f"the {name} did not end well", child)
        self._children.end(name)

    def end_all(self) -> None:
        """End all processes, even if further signals arrive."""
        with SignalsTo(lambda number: None):
            self._children.end_all()

    def ask_to_end(self, exit_code: int) -> None:
        """Let the next look raise DemoEndedError."""
        self._end_code = exit_code

    def look(self) -> None:
        """Rest a moment, then restart what died or end what was asked to.

        Raises DemoEndedError, DemoFailedError.
        """
        time.sleep(_LOOK_SECONDS)
        if self._end_code is not None:
            raise DemoEndedError(self._end_code)
        for child in self._children.ended():
            if not (self._wards[child.spec.name].ends_itself and child.exit_code() == 0):
                self._revive(child)
        self._rest()

    def _revive(self, child: Child) -> None:
        """Start a process again that died although it had been ready; at most three times each."""
        name = child.spec.name
        ward = self._wards[name]
        how = describe_exit(child.exit_code() or 0)
        if not ward.is_ready and ward.owner.does_without(child):
            self._children.end(name)
            return
        if not ward.is_ready or ward.is_ending or ward.restarts == RESTARTS_MAX:
            raise DemoFailedError(f"the {name} process ended by itself ({how})", child)
        ward.restarts += 1
        self._screen.say(
            f"The {name} process ended ({how}); it goes on where it was "
            f"(restart {ward.restarts} of {RESTARTS_MAX})."
        )
        child.end()  # what is left of its process group
        self._children.start(child.spec)
        ward.owner.recover()

    def wait(self, condition: Callable[[], bool], seconds_max: float, name: str) -> None:
        """Look until a condition about a process is met. Raises DemoFailedError."""
        deadline = time.monotonic() + seconds_max
        while not condition():
            self.look()
            if time.monotonic() > deadline:
                raise DemoFailedError(
                    f"{name}: not ready after {seconds_max:.0f} s", self._children.get(name)
                )

    def wait_while_told(
        self, child: Child, condition: Callable[[], bool], give_up: Callable[[], object]
    ) -> None:
        """Wait as long as its log says something new: a download may take minutes."""
        last_words = ""
        silent_since = time.monotonic()

        def is_met() -> bool:
            nonlocal last_words, silent_since
            words = child.log_tail(1)
            if words != last_words:
                last_words, silent_since = words, time.monotonic()
                if words.startswith("download"):
                    self._screen.part(self.owner_of(child).name, "working", words)
            if time.monotonic() - silent_since > _SILENCE_SECONDS_MAX:
                give_up()
            return condition()

        self.wait(is_met, math.inf, child.spec.name)
