"""Who carries out the micro-batches of one task; the two engines differ in this alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event
from typing import Any, Protocol

from barnabas.connect.connectors.base import SinkRange, SinkWriter, SourceReader
from barnabas.connect.tasks.flow import FlowSpec, SinkFlow, SourceFlow
from barnabas.connect.tasks.jobs import (
    RangeDone,
    SplitDone,
    merged_offsets,
    run_range,
    run_split,
    settle,
)
from barnabas.connect.tasks.source_transactions import Boundary, SourceTransactions
from barnabas.connect.tasks.transport import Offsets, Transport
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)


class SinkFailedError(Exception):
    """A range failed; `done` are the messages of those that were written. The cause says why."""

    def __init__(self, done: Sequence[Any]) -> None:
        super().__init__("a range was not written")
        self.done = done


class BatchRunner(Protocol):
    """Carries out micro-batches."""

    def prepare_source(self) -> None:
        """Before the first one: see that no earlier run of the task writes any more.

        Raises ConfigError, ConnectError.
        """

    def prepare_sink(self) -> None:
        """Before the first one: check the settings of converters and transforms."""

    def run_source(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> tuple[Sequence[SplitDone], Offsets]:
        """Write the records of splits; returns offsets that are still to be stored.

        `more` are offsets beside the records'. Exactly once none is left to be stored. Raises
        RetriableError where the micro-batch may be done again, ConnectError.
        """

    def run_sink(self, writer: SinkWriter, ranges: Sequence[SinkRange]) -> Sequence[RangeDone]:
        """Write ranges. Raises SinkFailedError."""

    @property
    def is_open(self) -> bool:
        """True if micro-batches that were run wait for the end of their transaction."""

    def end_transaction(self, *, is_last: bool = False) -> None:
        """Nothing is new, or the task ends or pauses: commit if it is time."""

    def commit_transaction(self) -> None:
        """Commit now what waits."""

    def close(self) -> None:
        """Close what it holds open."""


class LocalBatchRunner:
    """Carries them out in this process, one after another."""

    def __init__(
        self,
        spec: FlowSpec,
        transport: Transport,
        stopping: Event,
        boundary: Boundary | None = None,
    ) -> None:
        """`boundary` is where a source's transactions end; None is at least once."""
        self._spec = spec
        self._transport = transport
        self._stopping = stopping
        self._boundary = boundary
        self._transactions: SourceTransactions | None = None
        self._source_flow: SourceFlow | None = None
        self._sink_flow: SinkFlow | None = None

    def prepare_source(self) -> None:
        """Take the transactional id, so that no earlier run of the task writes any more."""
        self._source_flow = SourceFlow(self._spec, self._stopping)
        if self._boundary is not None:
            self._transactions = SourceTransactions(
                self._spec.connector,
                self._transport.transactional_output(),
                self._source_flow,
                self._boundary,
                self._stopping,
            )

    def prepare_sink(self) -> None:
        """Check settings, and make what the flow needs."""
        if self._spec.policy.dead_letter_topic:
            self._transport.dead_letters()

        def send(raw: Any) -> None:
            self._transport.dead_letters().send(raw)

        self._sink_flow = SinkFlow(self._spec, send, self._stopping)

    def run_source(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> tuple[Sequence[SplitDone], Offsets]:
        """Write the records of splits."""
        flow = self._source_flow
        assert flow is not None
        if self._transactions is not None:
            return self._transactions.run(reader, splits, more), ()
        output = self._transport.output()
        output.heed(self._stopping)
        try:
            done = [run_split(reader, split, flow, output) for split in splits]
        except BaseException:
            # The sent records are written: reading them again means at least once.
            output.flush(self._stopping)
            raise
        self._settle(done, settle(output, flow, self._stopping))
        return done, merged_offsets(done, more)

    def _settle(self, done: Sequence[SplitDone], failed: int) -> None:
        if done and failed:
            done[-1].written -= failed
            done[-1].counts.skipped += failed

    def run_sink(self, writer: SinkWriter, ranges: Sequence[SinkRange]) -> Sequence[RangeDone]:
        """Write ranges."""
        flow = self._sink_flow
        assert flow is not None
        done: list[RangeDone] = []
        for where in ranges:
            try:
                done.append(run_range(writer, where, self._transport, flow, self._stopping))
            except Exception as error:
                raise SinkFailedError([one.message for one in done]) from error
        return done

    @property
    def is_open(self) -> bool:
        """True if micro-batches that were run wait for the end of their transaction."""
        return self._transactions is not None and self._transactions.is_open

    def end_transaction(self, *, is_last: bool = False) -> None:
        """Commit if it is time."""
        if self._transactions is not None:
            self._transactions.end(is_last=is_last)

    def commit_transaction(self) -> None:
        """Commit now what waits."""
        if self._transactions is not None:
            self._transactions.commit()

    def close(self) -> None:
        """Close what it holds open."""
        for flow in (self._source_flow, self._sink_flow):
            if flow is not None:
                flow.close()
        try:
            if self._transactions is not None:
                self._transactions.close()
        except ConnectError as error:  # the next run of the task begins by aborting it
            _log.warning("%s-%s: %s", self._spec.connector, self._spec.task, error)
        finally:
            self._transport.close()
