"""The end of a run: wait until everything is processed and shown, and hold it against the truth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from barnabas.demo import catchup
from barnabas.demo.access import client_config
from barnabas.demo.catchup import TopicEnds
from barnabas.demo.contract import Truth
from barnabas.demo.exactness import check_results
from barnabas.demo.outcome import EXIT_RIGHT, EXIT_WRONG, DemoFailedError, Outcome
from barnabas.demo.parts.part import Part, Stage
from barnabas.demo.parts.stations import Stations
from barnabas.demo.parts.warehouse import Warehouse
from barnabas.demo.statements import SERVER
from barnabas.demo.verdict import Check, all_right, compare, compare_lags

STILL_SECONDS_MAX: Final = 120.0
"""So long nothing moves where the rest is given up."""


class Closing:
    """Of a run whose generators have ended."""

    def __init__(
        self, stage: Stage, stations: Stations, warehouse: Warehouse, others: Sequence[Part]
    ) -> None:
        self._stage = stage
        self._stations = stations
        self._warehouse = warehouse
        self._others = others

    def close(self, outcome: Outcome) -> None:
        """Catch up, compare and print the summary. Raises DemoFailedError, DemoEndedError."""
        stage = self._stage
        captured = self._stations.checks()
        caught_up = self._catch_up()
        page, truth = stage.reports.page(), stage.reports.truth()
        if page is None or truth is None:
            raise DemoFailedError("there is no truth to compare with, or no page")
        outcome.checks = compare(page["figures"], truth["figures"])
        outcome.checks += compare_lags(page["groups"], page["statements"])
        outcome.checks += captured
        outcome.checks += self._warehouse.checks(truth)
        if stage.settings.exactly_once:
            outcome.checks += self._check_results()
        stage.screen.headline("Barnabas demo: done")
        stage.screen.freeze()
        outcome.events, outcome.duplicates = truth["events"], truth["duplicates"]
        outcome.late = truth["late"]
        stage.screen.summary(outcome.checks)
        right = all_right(outcome.checks) and caught_up and truth["pending"] == 0
        self._say_outcome(truth, right, caught_up)
        if right and truth["done"]:
            stage.settings.bounded_from_seconds = None
            stage.workspace.save_settings(stage.settings)
        outcome.exit_code = EXIT_RIGHT if right else EXIT_WRONG

    def _catch_up(self) -> bool:
        """Wait until everything is processed and shown; False once nothing moves any more."""
        stage = self._stage
        screen, reports = stage.screen, stage.reports
        ends = TopicEnds({**client_config(stage.bootstrap), "log_level": 0})
        last = catchup.UNKNOWN
        moved_at = time.monotonic()
        while True:
            stage.supervisor.look()
            backlog = catchup.measure(ends, reports.page())
            for part in (self._warehouse, *self._others):
                part.show()
            if backlog.nothing:
                screen.part(SERVER, "done", "everything processed")
                screen.part("dashboard", "done", "everything shown")
                return True
            if backlog != last:
                last, moved_at = backlog, time.monotonic()
            left = [*reports.failed_statements(), f"{backlog.pipeline:,} records to process"]
            state = "failed" if reports.statements()[0] == "failed" else "working"
            screen.part(SERVER, state, "; ".join(left))
            screen.part("dashboard", "working", f"{backlog.dashboard:,} results to read")
            if time.monotonic() - moved_at > STILL_SECONDS_MAX:
                return False

    def _check_results(self) -> list[Check]:
        try:
            return check_results(self._stage.bootstrap)
        except KafkaException as error:
            raise DemoFailedError(
                f"the results could not be read again: {error.args[0].str()}"
            ) from error

    def _say_outcome(self, truth: Truth, right: bool, caught_up: bool) -> None:
        events = sum(truth["events"].values())
        workspace, say = self._stage.workspace, self._stage.screen.say
        say(
            f"{events:,} events, {truth['duplicates']:,} of them sent twice and {truth['late']:,} "
            f"late; warehouse: {self._warehouse.where}"
        )
        if right:
            say("[bold green]Every figure is right.[/]")
            return
        if not caught_up:
            say(
                f"[bold red]Not everything was processed: nothing moved for "
                f"{STILL_SECONDS_MAX:.0f} s.[/] See {workspace.path('logs')}"
            )
        for failed in self._stage.reports.failed_statements():
            say(f"{failed}; see {workspace.path('logs', f'{SERVER}.log')}")
        say("[bold red]Not every figure is right.[/]")
