"""Jobs of Spark's Python workers: a split or a range, with a flow that they keep between jobs.

Failures come back as values: Spark would run the task again, and tell the driver a stack trace
only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

from barnabas.connect.connectors.base import SinkRange, SinkWriter, SourceReader
from barnabas.connect.tasks.flow import FlowSpec, SinkFlow, SourceFlow
from barnabas.connect.tasks.jobs import SplitDone, run_range, run_split, settle
from barnabas.connect.tasks.kafka_ranges import trim_readers
from barnabas.connect.tasks.kafka_transport import KafkaTransport, trim_outputs
from barnabas.connect.tasks.spark_exactly_once import (
    TransactionPlace,
    split_transaction,
)
from barnabas.schemas.data import errors as kinds
from barnabas.schemas.data.errors import ConnectError

FLOWS_MAX: Final = 16
_KINDS: Final = {
    one.__name__: one
    for one in vars(kinds).values()
    if isinstance(one, type) and issubclass(one, ConnectError)
}


@dataclass(slots=True)
class Failed:
    """A failure on an executor: each error's kind and text, the outermost first."""

    errors: list[tuple[str, str]] = field(default_factory=list)

    @staticmethod
    def of(error: BaseException) -> Failed:
        """Return an error and its causes."""
        errors = []
        one: BaseException | None = error
        while one is not None:
            kind = type(one)
            own = kinds.kind_of(one)
            text = f"{kind.__module__}.{kind.__name__}: {one}" if own is None else str(one)
            errors.append(("" if own is None else own.__name__, text))
            one = one.__cause__
        return Failed(errors)

    def as_error(self) -> ConnectError:
        """Return the error again."""
        made: ConnectError | None = None
        for kind, text in reversed(self.errors):
            inner, made = made, _KINDS.get(kind, ConnectError)(text)
            made.__cause__ = inner
        assert made is not None
        return made


@dataclass(slots=True)
class SplitJob:
    """Reads splits of one reader; picklable."""

    spec: FlowSpec
    transport: KafkaTransport
    reader: SourceReader
    splits: list[Any]
    place: TransactionPlace | None

    def __call__(self, number: int) -> SplitDone | Failed:
        """Run one."""
        try:
            return self._run(number)
        except Exception as error:  # noqa: BLE001  # it is raised again on the driver
            return Failed.of(error)

    def _run(self, number: int) -> SplitDone:
        flow = _kept(self.transport.run, lambda: SourceFlow(self.spec))
        if self.place is not None:
            return self._run_transaction(number, flow, self.place)
        output = self.transport.output()
        trim_outputs()
        done = run_split(self.reader, self.splits[number], flow, output)
        failed = settle(output, flow, Event())
        done.written -= failed
        done.counts.skipped += failed
        return done

    def _run_transaction(self, number: int, flow: SourceFlow, place: TransactionPlace) -> SplitDone:
        output = split_transaction(place, self.transport)
        try:
            done = run_split(self.reader, self.splits[number], flow, output)
            done.prepared = output.prepare(number)
        except BaseException:
            output.abort()
            raise
        return done


@dataclass(slots=True)
class RangeJob:
    """Writes ranges with one writer; picklable."""

    spec: FlowSpec
    transport: KafkaTransport
    writer: SinkWriter
    ranges: list[SinkRange]

    def __call__(self, number: int) -> Any:
        """Run one."""
        try:
            flow = _kept(self.transport.run, self._flow)
            done = run_range(self.writer, self.ranges[number], self.transport, flow, Event())
            trim_outputs()
            return done
        except Exception as error:  # noqa: BLE001  # it is raised again on the driver
            return Failed.of(error)
        finally:
            trim_readers()

    def _flow(self) -> SinkFlow:
        def send(raw: Any) -> None:
            self.transport.dead_letters().send(raw)

        return SinkFlow(self.spec, send)


_FLOWS: OrderedDict[str, Any] = OrderedDict()
"""Of this process, by run of a task; the one used last is last."""


def _kept(run: str, make: Callable[[], Any]) -> Any:
    flow = _FLOWS.pop(run, None) or make()
    _FLOWS[run] = flow
    while len(_FLOWS) > FLOWS_MAX:
        _FLOWS.popitem(last=False)[1].close()
    return flow


def in_arrow(job: Callable[[int], Any]) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return a job for `mapInArrow`, which takes numbers and gives its results as bytes."""

    def run(batches: Iterable[Any]) -> Iterable[Any]:
        import pyarrow
        from pyspark.serializers import CPickleSerializer

        to_bytes: Callable[[Any], bytes] = CPickleSerializer().dumps
        for batch in batches:
            done = [to_bytes(job(number)) for number in batch.column(0).to_pylist()]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(done, pyarrow.binary())], ["done"])

    return run
