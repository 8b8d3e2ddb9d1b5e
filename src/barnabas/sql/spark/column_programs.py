"""Which parts of a plan run as columns, and where records go on their way to them.

A program takes whole batches; there is one for a stage without stores that reads a topic, and one
for an operator. Where one operator has all stages, the stage that gives records a new key and the
one that takes them are one program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.aggregates import AggregateProgram, aggregate_program
from barnabas.sql.columns.channels import (
    ChannelProgram,
    ChannelSource,
    TopicProgram,
    channel_program,
)
from barnabas.sql.columns.joins import JoinProgram, join_program
from barnabas.sql.columns.merging import Source
from barnabas.sql.columns.sources import ColumnSource, column_source
from barnabas.sql.columns.streams import StreamProgram, stream_program
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import StreamSource
from barnabas.sql.runtime.forms import SourceForm
from barnabas.sql.runtime.stage import Channel, Stage
from barnabas.sql.runtime.topics import TopicReader, TopicWriter
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.topology import Place, Topology


@dataclass(frozen=True)
class OperatorProgram:
    """The program of an operator. `inputs`: where its batches come from, in their order."""

    program: AggregateProgram | JoinProgram
    inputs: tuple[Place, ...]


class ColumnPrograms:
    """The programs of a plan's stages, made when they are asked for."""

    def __init__(
        self,
        stages: Sequence[Stage],
        topology: Topology,
        hosting: Hosting,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None,
        reader: Callable[[int, int], TopicReader],
        writer: Callable[[], TopicWriter],
    ) -> None:
        """`reader`: of a stage's input."""
        self._stages, self._topology, self._hosting = stages, topology, hosting
        self._functions, self._schemas = functions, schemas
        self._reader, self._writer = reader, writer
        self._of_streams: dict[Place, StreamProgram | ChannelProgram | None] = {}
        self._of_topics: dict[Place, TopicProgram | None] = {}
        self._of_operators: dict[int, OperatorProgram | None] = {}
        self._sources: dict[Place, ChannelSource] = {}

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that run batches as columns."""
        topology = self._topology
        found = {
            stage
            for number, members in enumerate(topology.operators)
            if self.operator(number) is not None
            for stage in members
        }
        for stage, place in topology.topics:
            alone = len(topology.entries.get(stage, ())) == 1
            if alone and self.stream(stage, place) is not None:
                found.add(stage)
        return tuple(sorted(found))

    def is_partitioned_as_topics(self, operator: int) -> bool:
        """Return whether an operator has a partition for each of its topics' partitions."""
        topology = self._topology
        if topology.partitions == 1:
            return True
        alone = topology.takes_topics_only(operator, self._stages)
        return alone and self._hosting.is_copartitioned

    def stream(self, stage: int, place: int) -> StreamProgram | ChannelProgram | None:
        """Return what runs records of a topic to the sink or a channel."""
        at = stage, place
        if at not in self._of_streams:
            of, functions, schemas = self._stages[stage], self._functions, self._schemas
            self._of_streams[at] = stream_program(
                of, place, functions, schemas, lambda: self._reader(*at), self._writer
            ) or channel_program(of, place, functions, schemas, lambda: self._reader(*at))
        return self._of_streams[at]

    def topic(self, stage: int, place: int, operator: int) -> TopicProgram | None:
        """Return what reads a topic for an operator that is not partitioned as it is."""
        at = stage, place
        if at not in self._of_topics:
            takes = self.operator(operator)
            source = None if takes is None else self._topic_source(stage, place)
            self._of_topics[at] = None if source is None else TopicProgram(source)
        return self._of_topics[at]

    def operator(self, number: int) -> OperatorProgram | None:
        """Return what runs an operator's records to the sink."""
        if number not in self._of_operators:
            self._of_operators[number] = self._operator(number)
        return self._of_operators[number]

    def channel_source(self, stage: int, place: int) -> ChannelSource:
        """The source of records that come as columns."""
        at = stage, place
        source = self._sources.get(at)
        if source is None:
            given = self._stages[stage].inputs[place]
            if isinstance(given, Channel):
                source = ChannelSource(given.columns, given.keys, len(given.columns))
            else:
                form = self._stages[stage].chain(place)[0].form
                assert isinstance(form, SourceForm)
                schema = given.schema
                source = ChannelSource(form.layout.columns, schema.key, len(schema.value))
            self._sources[at] = source
        return source

    def _operator(self, number: int) -> OperatorProgram | None:
        members = sorted(self._topology.operators[number])
        stage = self._stages[members[-1]]
        inputs = [(stage.index, place) for place in range(len(stage.inputs))]
        feeder = None
        if len(members) > 1:
            feeder = self._feeder(stage, members)
            if feeder is None:
                return None
            inputs = [
                (feeder.index, 0) if isinstance(stage.inputs[place], Channel) else (at, place)
                for at, place in inputs
            ]
        sources = [self._source(number, *at) for at in inputs]
        program: AggregateProgram | JoinProgram | None = join_program(
            stage, self._functions, self._schemas, sources, self._writer, feeder
        )
        if program is None and not self._hosting.emits_every_change:
            program = aggregate_program(stage, self._functions, sources[0], feeder)
        return None if program is None else OperatorProgram(program, tuple(inputs))

    def _feeder(self, stage: Stage, members: Sequence[int]) -> Stage | None:
        """The stage from which a stage of the same operator has its records, if that is all."""
        channels = [given.index for given in stage.inputs if isinstance(given, Channel)]
        first = self._stages[members[0]]
        if len(members) != 2 or len(channels) != 1 or first.stores or first.takes_batches:
            return None
        if [o.index for o in first.outputs if isinstance(o, Channel)] != channels:
            return None
        is_plain = len(first.inputs) == len(first.outputs) == 1
        return first if is_plain and isinstance(first.inputs[0], StreamSource) else None

    def _source(self, operator: int, stage: int, place: int) -> Source | None:
        """The source of an operator's input, whose records come from a topic or as columns."""
        if isinstance(self._stages[stage].inputs[place], Channel):
            return self.channel_source(stage, place)
        source = self._topic_source(stage, place)
        if source is None or self.is_partitioned_as_topics(operator):
            return source
        return self.channel_source(stage, place)

    def _topic_source(self, stage: int, place: int) -> ColumnSource | None:
        form = self._stages[stage].chain(place)[0].form
        if not isinstance(form, SourceForm):
            return None
        return column_source(form, self._schemas, lambda: self._reader(stage, place))
