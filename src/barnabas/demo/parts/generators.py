"""The generators of events: up to which second they go, and how far they are."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from barnabas.demo import commands
from barnabas.demo.contract import START_TIME_MS
from barnabas.demo.parts.part import Part


class Generators(Part):
    """Their process, which ends by itself in a bounded run."""

    name = "generators"
    _before: Mapping[str, Any] = MappingProxyType({})

    def start(self) -> None:
        """Start them."""
        stage = self.stage
        spec = commands.generator_spec(
            stage.workspace,
            stage.settings,
            stage.bootstrap,
            self._goal_seconds(),
            stage.access,
            None if stage.capture is None else stage.capture.place,
        )
        stage.supervisor.start(spec, self, ends_itself=True)
        stage.supervisor.set_ready(self.name)
        self.say("working", "starting")

    def _goal_seconds(self) -> int | None:
        """Return up to which second of the directory's whole life the generators go.

        A bounded run that was killed is resumed to the goal that it had; a finished one is
        followed by so many seconds more.
        """
        stage = self.stage
        settings, seconds = stage.settings, stage.options.seconds
        if seconds is None:
            settings.bounded_from_seconds = None
        elif settings.bounded_from_seconds is None:
            truth = stage.reports.truth()
            reached_ms = truth["event_time_ms"] - START_TIME_MS if truth else 0
            settings.bounded_from_seconds = math.ceil(reached_ms / 1000 / settings.acceleration)
        stage.workspace.save_settings(settings)
        if seconds is None:
            return None
        assert settings.bounded_from_seconds is not None
        return settings.bounded_from_seconds + seconds

    @property
    def are_done(self) -> bool:
        """True if they have ended well."""
        child = self.stage.supervisor.get(self.name)
        return child is None or child.exit_code() == 0

    @property
    def fraction(self) -> float | None:
        """The completed fraction of a bounded run; None for an unbounded one."""
        if self.stage.options.seconds is None:
            return None
        fraction: float | None = self.stage.reports.generators().get("fraction")
        return fraction

    def end(self) -> None:
        """Let them write what they have begun, and end."""
        self.stage.supervisor.end_well(self.name)
        self.show()

    @property
    def where(self) -> str:
        """The number of events, and the time of the latest."""
        progress = self.stage.reports.generators()
        when = time.strftime("%a %d %b %H:%M", time.gmtime(progress["event_time_ms"] / 1000))
        return f"{progress['published']:,} events, event time {when}"

    def recover(self) -> None:
        """Note how far they were: they answer with their next progress."""
        super().recover()
        self._before = self.stage.reports.generators()

    def answers(self) -> bool:
        """Return whether they have told of progress since they were started."""
        return self.stage.reports.generators() != self._before

    def show(self) -> None:
        """Show how many events there are."""
        super().show()
        progress = self.stage.reports.generators()
        if progress and not self._is_recovering:
            self.say("done" if progress["done"] else "ready", self.where)
