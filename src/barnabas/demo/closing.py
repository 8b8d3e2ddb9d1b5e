"""The end of a run: wait until everything is processed and shown, and hold it against the truth.

Result topics are read as any consumer would: they hold every written part whole and once. With the
exactly-once option the headers of each result record name its part: a micro-batch of a pipeline in
Python, or what one task of a statement's micro-batch wrote. They also say how many records the part
has. The figures cannot show a record that came twice, since the last value of a key counts. These
counts can.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from barnabas.demo import catchup
from barnabas.demo.access import client_config
from barnabas.demo.catchup import TopicEnds
from barnabas.demo.contract import Truth
from barnabas.demo.outcome import (
    EXIT_RIGHT,
    EXIT_WRONG,
    Check,
    DemoFailedError,
    Outcome,
    all_right,
    compare,
    compare_lags,
)
from barnabas.demo.parts.part import Part, Stage
from barnabas.demo.parts.stations import Stations
from barnabas.demo.parts.warehouse import Warehouse
from barnabas.demo.reading import records_of
from barnabas.demo.statements import SERVER
from barnabas.demo.topics import OUTPUT_TOPICS
from barnabas.spark.exactly_once import BATCH_HEADER, QUERY_HEADER, RECORDS_HEADER

STILL_SECONDS_MAX: Final = 120.0
"""So long nothing moves where the rest is given up."""
_STILL_SECONDS_MAX = 30

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]
"""As the client's types have them; what is read is a list."""
Batch = tuple[str | bytes | None, str | bytes | None]
"""The query, and the part of its results."""


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


class ResultTally:
    """Counts result records by the part that their headers name."""

    def __init__(self) -> None:
        self.records = 0
        self._read: Counter[Batch] = Counter()
        self._promised: dict[Batch, int] = {}

    def add(self, headers: Headers) -> None:
        """Count one record; one without headers is nobody's, and makes the sum too large."""
        self.records += 1
        by_name = dict(headers)
        if BATCH_HEADER in by_name:
            batch = by_name[QUERY_HEADER], by_name[BATCH_HEADER]
            self._read[batch] += 1
            self._promised[batch] = int(by_name[RECORDS_HEADER] or 0)

    def checks(self) -> list[Check]:
        """Return the counts of read records beside those that the headers promise."""
        promised = sum(self._promised.values())
        batches = len(self._promised)
        whole = sum(self._read[batch] == count for batch, count in self._promised.items())
        return [
            Check("result records", f"{self.records:,}", f"{promised:,}", self.records == promised),
            Check("parts whole and once", f"{whole:,}", f"{batches:,}", whole == batches > 0),
        ]


def check_results(bootstrap: str) -> list[Check]:
    """Read all result topics to their ends, committed records only.

    Raises KafkaException where the cluster does not answer.
    """
    tally = ResultTally()
    for record in records_of(OUTPUT_TOPICS, bootstrap, "result-tally", _STILL_SECONDS_MAX):
        tally.add(record.headers() or [])
    return tally.checks()
