"""A plan in a Spark worker process: it is built once per process, and runs every micro-batch.

Nothing here depends on Spark: parcels come in, parcels go out, and stores are passed in.
"""

from __future__ import annotations

import heapq
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow.compute as pc

from barnabas.schemas.registry_client import RegistryClient, SchemaStore
from barnabas.sql.columns.channels import ChannelColumns, ChannelProgram, Sent
from barnabas.sql.columns.merging import ByRows
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.columns.streams import Made
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.encoding import decode_plan, encode_plan
from barnabas.sql.plan.steps import QueryPlan, StreamSink, TableSink
from barnabas.sql.processing_log import entry_of, includes_rows
from barnabas.sql.runtime.build import build
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.node import OpenStore
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.rows_encoding import encode_key, partition_of
from barnabas.sql.runtime.stage import Channel, Emitted
from barnabas.sql.runtime.topics import TopicReader, TopicWriter
from barnabas.sql.spark.column_programs import ColumnPrograms
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import (
    NOTES_CHARS_MAX,
    NOTES_MAX,
    Columns,
    Header,
    Incoming,
    Notes,
    Origin,
    Parcel,
    Raw,
    Records,
    Results,
)
from barnabas.sql.spark.topology import Place, labels, topology
from barnabas.sql.syntax.tree import WindowKind
from barnabas.sql.udf import load_extensions

_TIME_WINDOW_BYTES = 8
_SESSION_WINDOW_BYTES = 16
_HOSTED_MAX = 200
"""So many plans stay built in a process."""

Placed = tuple[int, int | None, Parcel]
"""A partition, the operator that takes the parcel (None: the sink), the parcel."""


_hosted: OrderedDict[Hosting, HostedPlan] = OrderedDict()


def hosted(hosting: Hosting) -> HostedPlan:
    """The plan, built in this process now or before."""
    plan = _hosted.get(hosting)
    if plan is None:
        plan = _hosted[hosting] = HostedPlan(hosting)
        while len(_hosted) > _HOSTED_MAX:
            _hosted.popitem(last=False)
    return plan


@contextmanager
def forgotten_on_failure(hosting: Hosting) -> Iterator[HostedPlan]:
    """The plan, which a failure may leave in the middle of a record: then it is rebuilt."""
    try:
        yield hosted(hosting)
    except BaseException:
        _hosted.pop(hosting, None)
        raise


class HostedPlan:
    """A plan whose stages are built, for one operator after the other of each micro-batch."""

    def __init__(
        self,
        hosting: Hosting,
        schemas: SchemaStore | None = None,
        plan: QueryPlan | None = None,
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        """`plan`: the one that `hosting` has encoded, if it is at hand. `functions`: in place of
        the catalog with those of users."""
        self.plan = decode_plan(hosting.plan) if plan is None else plan
        self._notes = Notes()
        self._note_chars = 0
        self._shows_rows = includes_rows(dict(hosting.properties))
        catalog = load_extensions(hosting.extension_directory) if functions is None else functions
        compiler = PlanCompiler(catalog, dict(hosting.properties), self._log)
        self.stages = build(self.plan, compiler, self._log).stages
        self._schemas = schemas
        if schemas is None and hosting.registry_urls:
            tls = hosting.registry_tls
            self._schemas = RegistryClient(
                hosting.registry_urls,
                user_info=hosting.registry_user_info,
                tls=None if tls is None else tls.context(),
            )
        self._readers: dict[Place, TopicReader] = {}
        self._functions = catalog
        self._place(hosting)

    def _place(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.topology = topology(self.stages, hosting.partitions)
        self.labels = labels(self.topology.partitions, hosting.tasks)
        self._programs = ColumnPrograms(
            self.stages,
            self.topology,
            hosting,
            self._functions,
            self._schemas,
            self._reader,
            lambda: self._writer,
        )

    def spread(self, hosting: Hosting) -> HostedPlan:
        """The same stages over other partitions and tasks, for Spark's driver: it runs nothing."""
        other = copy(self)
        other._place(hosting)
        return other

    @classmethod
    def draft(cls, plan: QueryPlan, extension_directory: str | None = None) -> HostedPlan:
        """A plan in one partition, as long as it is not known how many there are."""
        hosting = Hosting(
            plan.query_id, encode_plan(plan), 1, 1, extension_directory=extension_directory
        )
        return cls(hosting, plan=plan)

    def _log(self, message: str, row: Row | None, cause: BaseException | None) -> None:
        self._notes.count += 1
        if len(self._notes.notes) < NOTES_MAX and self._note_chars < NOTES_CHARS_MAX:
            entry = entry_of(message, row, cause, rows=self._shows_rows)
            text = json.dumps(entry.message)
            self._note_chars += len(text)
            self._notes.notes.append((message, entry.step, text))

    def take_notes(self) -> Notes:
        """Return what was noted since the last call."""
        notes = Notes(self._notes.read, self._notes.count, self._notes.notes)
        notes.latest_ms = self._notes.latest_ms
        notes.by_columns = self._notes.by_columns
        # The compiled plan keeps the object, which starts again.
        self._notes.read = self._notes.count = self._notes.by_columns = 0
        self._notes.notes = []
        self._note_chars = 0
        return notes

    # --- what the sources give ---------------------------------------------------------------

    def from_source(self, raw: Raw) -> Iterator[Placed]:
        """The processing of a topic's records before the first operator."""
        count = self.topology.partitions
        self._notes.read += len(raw.records)
        latest = pc.max(raw.records.timestamps).as_py()
        self._notes.latest_ms = max(self._notes.latest_ms, latest)
        operator = self.topology.operator_of(raw.stage)
        came = (-1, raw.partition), raw.first_offset
        if operator is None:
            members = self.topology.entries[raw.stage]
            program = None
            if len(members) == 1 and self._is_for_columns(len(raw.records)):
                program = self._programs.stream(raw.stage, raw.place)
            if isinstance(program, ChannelProgram):
                sent = program.run(raw.records, count)
                self._notes.by_columns += len(raw.records) - sent.by_rows
                yield from self._send(sent, self._behind(raw.stage), *came)
                return
            if program is not None:
                made = program.run(raw.records)
                self._notes.by_columns += len(raw.records) - made.by_rows
                if len(made.keys):
                    yield raw.partition % count, None, results_of(made)
                return
            yield from self._run(members, [raw], -1, raw.partition, raw.first_offset)
        elif self._programs.is_partitioned_as_topics(operator):
            yield raw.partition % count, operator, raw
        else:
            reads = self._programs.topic(raw.stage, raw.place, operator)
            # A table's few changes must not send many records of the stream through the rows.
            if reads is not None and self.hosting.columns_from is not None:
                sent = reads.run(raw.records, count)
            else:
                sent = Sent([], self._read(raw), len(raw.records))
            yield from self._send(sent, (raw.stage, raw.place), *came)

    def _send(self, sent: Sent, place: Place, origin: Origin, sequence: int) -> Iterator[Placed]:
        """Parcels for an input of an operator's stage."""
        operator = self.topology.operator_of(place[0])
        assert operator is not None
        for partition, columns in sent.columns:
            yield partition, operator, Columns(*place, origin, sequence, columns)
        if sent.records:
            yield from self._spread(operator, *place, origin, sequence, sent.records)

    def _behind(self, stage: int) -> Place:
        """The input that takes what a stage with one output gives to a channel."""
        (channel,) = self.stages[stage].outputs
        assert isinstance(channel, Channel)
        return self.topology.channels[channel.index]

    def _read(self, raw: Raw) -> list[Record]:
        read = self._reader(raw.stage, raw.place).read
        return [record for record in map(read, raw.records.records()) if record is not None]

    def _reader(self, stage: int, place: int) -> TopicReader:
        reader = self._readers.get((stage, place))
        if reader is None:
            source = self.stages[stage].inputs[place]
            assert not isinstance(source, Channel)
            reader = self._readers[stage, place] = TopicReader(source, self._schemas, self._log)
        return reader

    # --- batches as columns ------------------------------------------------------------------

    def _is_for_columns(self, records: int) -> bool:
        least = self.hosting.columns_from
        return least is not None and records >= least

    @property
    def column_stages(self) -> tuple[int, ...]:
        """The stages that run batches as columns."""
        return self._programs.stages

    # --- operators ---------------------------------------------------------------------------

    def takes_ranges(self, stage: int) -> int | None:
        """The operator that reads a stage's topics itself, because it has a partition for each of
        the topics' partitions; None where other workers read them."""
        operator = self.topology.operator_of(stage)
        if operator is None or not self._programs.is_partitioned_as_topics(operator):
            return None
        return operator

    @property
    def topics_with_state(self) -> frozenset[str]:
        """The topics whose keys have their state in the partition with their records' number."""
        if self.topology.partitions == 1:
            return frozenset()
        topics = self.topology.topics.items()
        return frozenset(
            topic for (stage, _), topic in topics if self.takes_ranges(stage) is not None
        )

    def run_operator(
        self, number: int, partition: int, parcels: Sequence[Parcel], open_store: OpenStore
    ) -> Iterator[Placed]:
        """Run an operator on all that a partition has in a micro-batch."""
        members = self.topology.operators[number]
        stateful = [self.stages[stage] for stage in sorted(members) if self.stages[stage].stores]
        for stage in stateful:
            stage.bind(open_store)
        incoming = []
        for parcel in parcels:
            if isinstance(parcel, Incoming):
                if parcel.stage in members:
                    incoming.append(parcel)
                else:
                    yield partition, self.topology.operator_of(parcel.stage), parcel
        yield from self._run_columns(members, incoming, number, partition)
        for stage in stateful:
            stage.flush()

    def _run_columns(
        self,
        members: frozenset[int],
        parcels: Sequence[Incoming],
        number: int,
        partition: int,
    ) -> Iterator[Placed]:
        """Run parcels as columns if that can be done, else record by record."""
        count = sum(len(parcel.records) for parcel in parcels)
        runs = self._programs.operator(number) if self._is_for_columns(count) else None
        queues = None if runs is None else self._queues(parcels)
        if runs is None or queues is None:
            yield from self._run(members, parcels, number, partition, 0)
            return
        batches = {at: _joined(parts) for at, parts in queues.items()}
        made = runs.program.run(
            [[batch for (at, _), batch in batches.items() if at == given] for given in runs.inputs]
        )
        if isinstance(made, ByRows):
            rows = [
                Records(*at, origin, 0, records)
                for (at, origin), records in zip(batches, made.records, strict=True)
            ]
            yield from self._run(members, rows, number, partition, 0)
            return
        of_topics = [len(batch) for (at, _), batch in batches.items() if at in self.topology.topics]
        self._notes.by_columns += sum(of_topics)
        if isinstance(made, Made | Sent) and len(of_topics) == len(batches):
            self._notes.by_columns -= made.by_rows
        results = None
        if isinstance(made, list):
            results = self._written([record for _, record in made])
        elif isinstance(made, Sent):
            yield from self._send(made, self._behind(max(members)), (number, partition), 0)
        elif made is not None:
            results = results_of(made)
        if results is not None and len(results.keys):
            yield partition % self.topology.partitions, None, results

    def _queues(
        self, parcels: Sequence[Incoming]
    ) -> dict[tuple[Place, Origin], list[RawColumns | ChannelColumns]] | None:
        """Batches by input and origin, in their order; None if some must go record by record."""
        queues: dict[tuple[Place, Origin], list[RawColumns | ChannelColumns]] = {}
        for parcel in sorted(parcels, key=lambda parcel: parcel.order):
            stage, place, origin, _ = parcel.order
            records: RawColumns | ChannelColumns | None
            if isinstance(parcel, Records):
                records = None
                if isinstance(self.stages[stage].inputs[place], Channel):
                    source = self._programs.channel_source(stage, place)
                    records = source.of_records(parcel.records)
                if records is None:
                    return None
            else:
                records = parcel.records
            queues.setdefault(((stage, place), origin), []).append(records)
        return queues

    def _run(
        self,
        members: frozenset[int],
        parcels: Sequence[Incoming],
        number: int,
        partition: int,
        sequence: int,
    ) -> Iterator[Placed]:
        results: list[Record] = []
        leaving: dict[Place, list[Record]] = defaultdict(list)
        group = _Group(self, members, results, leaving)
        for (stage, place), entries in groupby(self._in_order(parcels), key=itemgetter(0, 1)):
            group.process([record for _, _, record in entries], stage, place)
        for (stage, place), records in leaving.items():
            operator = self.topology.operator_of(stage)
            assert operator is not None
            origin = number, partition
            yield from self._spread(operator, stage, place, origin, sequence, records)
        if results:
            yield partition % self.topology.partitions, None, self._written(results)

    def _in_order(self, parcels: Sequence[Incoming]) -> Iterable[tuple[int, int, Record]]:
        """All records; of the heads of the inputs' queues the earliest is next, as in Streams."""
        queues: dict[tuple[int, int, Origin], list[tuple[int, int, Record]]] = defaultdict(list)
        for parcel in sorted(parcels, key=lambda parcel: parcel.order):
            stage, place, origin, _ = parcel.order
            records = self._records(parcel)
            queues[stage, place, origin] += [(stage, place, record) for record in records]
        if len(queues) == 1:
            return next(iter(queues.values()))
        return heapq.merge(*queues.values(), key=lambda entry: entry[2].timestamp_ms)

    def _records(self, parcel: Incoming) -> Sequence[Record]:
        if isinstance(parcel, Raw):
            return self._read(parcel)
        if isinstance(parcel, Columns):
            return self._programs.channel_source(parcel.stage, parcel.place).all_records(
                parcel.records
            )
        return parcel.records

    def _spread(
        self,
        operator: int,
        stage: int,
        place: int,
        origin: Origin,
        sequence: int,
        records: Iterable[Record],
    ) -> Iterator[Placed]:
        """Records on their way to another operator, by the partition of their key."""
        count = self.topology.partitions
        spread: dict[int, list[Record]] = defaultdict(list)
        for record in records:
            if record.key is None:
                partition = record.partition % count
            else:
                key = record.key if record.window is None else (*record.key, *record.window)
                partition = partition_of(key, count)
            spread[partition].append(record)
        for partition, found in spread.items():
            yield partition, operator, Records(stage, place, origin, sequence, found)

    # --- the sink ----------------------------------------------------------------------------

    @property
    def sink(self) -> StreamSink | TableSink:
        """The sink of the results."""
        step = self.plan.step
        assert isinstance(step, StreamSink | TableSink), "a plan ends with a sink"
        return step

    @property
    def window_bytes(self) -> int:
        """The number of bytes of a result's key that are its window's bounds."""
        window = self.plan.window
        if window is None:
            return 0
        is_session = window.kind is WindowKind.SESSION
        return _SESSION_WINDOW_BYTES if is_session else _TIME_WINDOW_BYTES

    @cached_property
    def _writer(self) -> TopicWriter:
        return TopicWriter(self.sink, self.plan.window, self._schemas, self._log)

    def _written(self, records: Sequence[Record]) -> Results:
        if isinstance(self.sink, TableSink) and not self.hosting.emits_every_change:
            # Not of those that can be written: a row does not stay because the next has no bytes.
            records = _last_of_keys(records)
        made = [one for one in map(self._writer.write, records) if one is not None]
        headers: list[Sequence[Header]] = [record.headers for record in made]
        return Results(
            [record.key for record in made],
            [record.value for record in made],
            [record.timestamp_ms for record in made],
            headers if any(headers) else None,
        )


def _last_of_keys(records: Iterable[Record]) -> Sequence[Record]:
    """The last record of each key and window, in their order."""
    last: dict[tuple[bytes | None, WindowBounds | None], Record] = {}
    for record in records:
        place = None if record.key is None else encode_key(record.key), record.window
        last.pop(place, None)
        last[place] = record
    return list(last.values())


def _joined(
    parts: Sequence[RawColumns | ChannelColumns],
) -> RawColumns | ChannelColumns:
    """Batches of one origin behind each other; of one input all are of one kind."""
    first = parts[0]
    joined: Any = type(first).joined
    whole: RawColumns | ChannelColumns = joined(parts)
    return whole


def results_of(made: Made) -> Results:
    """Results of columns."""
    headers = made.headers if made.headers and any(made.headers) else None
    return Results(made.keys, made.values, made.timestamps, headers)


class _Group:
    """Stages that run together: what one emits to another goes there at once."""

    def __init__(
        self,
        plan: HostedPlan,
        members: frozenset[int],
        results: list[Record],
        leaving: dict[Place, list[Record]],
    ) -> None:
        self._stages = plan.stages
        self._targets = {
            stage: [
                plan.topology.channels[output.index] if isinstance(output, Channel) else None
                for output in plan.stages[stage].outputs
            ]
            for stage in members
        }
        self._members = members
        self._results = results
        self._leaving = leaving
        self._queues: dict[Place, deque[Record]] = defaultdict(deque)

    def process(self, records: Sequence[Record], stage: int, place: int) -> None:
        """Run records, after each all that follows from it here."""
        own = self._stages[stage]
        if own.takes_batches and not any(
            target and target[0] in self._members for target in self._targets[stage]
        ):
            self._take(stage, own.process_all(place, records))
            return
        for record in records:
            self._run(stage, place, record)
            self._run_waiting()

    def _run_waiting(self) -> None:
        while self._queues:
            at = min(self._queues, key=lambda at: (self._queues[at][0].timestamp_ms, at))
            queue = self._queues[at]
            waiting = queue.popleft()
            if not queue:
                del self._queues[at]
            self._run(*at, waiting)

    def _run(self, stage: int, place: int, record: Record) -> None:
        self._take(stage, self._stages[stage].process(place, record))

    def _take(self, stage: int, made: Emitted) -> None:
        for output, emitted in made:
            target = self._targets[stage][output]
            if target is None:
                self._results.append(emitted)
            elif target[0] in self._members:
                self._queues[target].append(emitted)
            else:
                self._leaving[target].append(emitted)
