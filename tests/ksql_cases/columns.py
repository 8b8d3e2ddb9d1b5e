"""Runs cases through hosted plans: each record is a batch, which runs as columns where it can."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan, Placed
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import Parcel, Raw, Results
from barnabas.sql.spark.state import PartitionState
from barnabas.sql.testing.world import World
from support.sql_hosted import DictionaryPages


class ColumnDriver(Driver):
    """The same of hosts."""

    def __init__(self, plans: Sequence[QueryPlan], world: World) -> None:
        super().__init__((), PlanCompiler(world.functions))
        self._ends: Counter[str] = Counter()
        self._hosts = [_Host(plan, world) for plan in plans]

    def pipe(self, topic: str, record: TopicRecord) -> None:
        """Append a record to a topic and run all that follows from it."""
        record.partition = record.partition or 0
        record.offset = self._ends[topic]
        self._ends[topic] += 1
        self.topics[topic].append(record)
        headers = [record.headers] if record.headers else None
        stamps, keys, values = [record.timestamp_ms], [record.key], [record.value]
        # All queries get the same records, as in a shared stream.
        columns = RawColumns.of_lists(0, [record.offset], stamps, keys, values, headers)
        for host in self._hosts:
            for made in host.batch(topic, columns):
                self.pipe(host.plan.sink.topic, made)


class _Host:
    def __init__(self, plan: QueryPlan, world: World) -> None:
        properties = tuple(world.properties.items())
        hosting = Hosting(plan.query_id, encode_plan(plan), 1, 1, properties, columns_from=1)
        self.plan = HostedPlan(hosting, world.schemas, plan, world.functions)
        self._pages: dict[int, DictionaryPages] = defaultdict(DictionaryPages)
        self._states: dict[int, PartitionState] = defaultdict(PartitionState)
        self._waiting: dict[int, list[Parcel]] = defaultdict(list)

    def batch(self, topic: str, columns: RawColumns) -> list[TopicRecord]:
        """The results of one record."""
        results: list[Results] = []
        for (stage, place), read in self.plan.topology.topics.items():
            if read == topic:
                self._sort(list(self.plan.from_source(Raw(stage, place, columns))), results)
        for number in range(len(self.plan.topology.operators)):
            parcels = self._waiting.pop(number, [])
            if parcels:
                state = self._states[number]
                state.attach(self._pages[number])
                self._sort(list(self.plan.run_operator(number, 0, parcels, state.open)), results)
                state.flush()
        return [record for made in results for record in _records(made)]

    def _sort(self, made: Sequence[Placed], results: list[Results]) -> None:
        for _, operator, parcel in made:
            if operator is not None:
                self._waiting[operator].append(parcel)
            else:
                assert isinstance(parcel, Results)
                results.append(parcel)


def _records(made: Results) -> list[TopicRecord]:
    headers = made.headers or ((),) * len(made.keys)
    columns = zip(*made.lists(), headers, strict=True)
    return [TopicRecord(key, value, at, tuple(given)) for key, value, at, given in columns]
