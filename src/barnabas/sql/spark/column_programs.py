"""Decides which parts of a plan run as columns, and builds their programs.

A program takes whole batches; there is one for a stage without stores that reads a topic, and one
for an operator. Where one operator has all stages, the stage that gives records a new key and the
one that takes them are one program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.aggregates.programs import (
    AggregateProgram,
    JoinedAggregateProgram,
    aggregate_program,
    joined_aggregate_program,
)
from barnabas.sql.columns.channels import (
    ChannelProgram,
    ChannelSource,
    TopicProgram,
    channel_program,
)
from barnabas.sql.columns.joins import JoinProgram, join_parts, join_program
from barnabas.sql.columns.merging import Source
from barnabas.sql.columns.sources import ColumnSource, column_source
from barnabas.sql.columns.stream_joins.programs import (
    StreamJoinProgram,
    stream_join_parts,
    stream_join_program,
)
from barnabas.sql.columns.streams import StreamProgram, stream_program
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import StreamSource
from barnabas.sql.runtime.forms import SourceForm
from barnabas.sql.runtime.stage import Channel, Stage
from barnabas.sql.runtime.topics import TopicReader, TopicWriter
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.topology import Place, Topology

Program = AggregateProgram | JoinProgram | JoinedAggregateProgram | StreamJoinProgram


@dataclass(frozen=True)
class OperatorProgram:
    """The program of an operator. `inputs`: where its batches come from, in their order."""

    program: Program
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
        members = [self._stages[at] for at in sorted(self._topology.operators[number])]
        line = self._line(members)
        if line is None:
            return None
        feeder, stage, follower = line
        inputs = [(stage.index, place) for place in range(len(stage.inputs))]
        if feeder is not None:
            inputs = [
                (feeder.index, 0) if isinstance(stage.inputs[place], Channel) else (at, place)
                for at, place in inputs
            ]
        sources = [self._source(number, *at) for at in inputs]
        program = self._join(stage, sources, feeder, follower)
        if program is None and follower is None:
            program = self._stream_join(stage, sources, feeder)
        if program is None and follower is None and not self._hosting.emits_every_change:
            program = aggregate_program(stage, self._functions, sources[0], self._writer, feeder)
        return None if program is None else OperatorProgram(program, tuple(inputs))

    def _join(
        self,
        stage: Stage,
        sources: Sequence[Source | None],
        feeder: Stage | None,
        follower: Stage | None,
    ) -> Program | None:
        functions = self._functions
        parts = join_parts(stage, functions, sources, feeder)
        if parts is None:
            return None
        program: Program | None = None
        if follower is None:
            output, partitions = stage.outputs[0], self._topology.partitions
            program = join_program(
                parts, output, functions, self._schemas, self._writer, partitions
            )
        if program is None and not self._hosting.emits_every_change:
            program = joined_aggregate_program(parts, stage, functions, self._writer, follower)
        return program

    def _stream_join(
        self, stage: Stage, sources: Sequence[Source | None], feeder: Stage | None
    ) -> Program | None:
        functions, partitions = self._functions, self._topology.partitions
        parts = stream_join_parts(stage, functions, sources, feeder)
        if parts is None:
            return None
        output = stage.outputs[0]
        return stream_join_program(
            parts, output, functions, self._schemas, self._writer, partitions
        )

    def _line(self, members: Sequence[Stage]) -> tuple[Stage | None, Stage, Stage | None] | None:
        """The stages of an operator where each has its records from the one before: one without
        stores first or none, the one in the middle, and one that takes its records or none."""
        if len(members) == 1:
            return None, members[0], None
        first, *others = members
        if self._feeds(first, others[0]) and not first.stores and not first.takes_batches:
            is_plain = len(first.inputs) == 1 and isinstance(first.inputs[0], StreamSource)
            if not is_plain:
                return None
            if len(others) == 1:
                return first, others[0], None
            is_line = len(others) == 2 and self._feeds(others[0], others[1])
            return (first, others[0], others[1]) if is_line else None
        is_line = len(others) == 1 and self._feeds(first, others[0])
        return (None, first, others[0]) if is_line else None

    @staticmethod
    def _feeds(stage: Stage, other: Stage) -> bool:
        """Return whether a stage sends its records to another, which has no others' but topics'."""
        channels = [given.index for given in other.inputs if isinstance(given, Channel)]
        sent = [given.index for given in stage.outputs if isinstance(given, Channel)]
        return len(stage.outputs) == 1 and len(channels) == 1 and sent == channels

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
