"""Runs a hosted plan without Spark: micro-batches of parcels, stores over a dictionary of bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from barnabas.java.hash import murmur2
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import (
    Notes,
    Parcel,
    Raw,
    Results,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.state import PartitionState


class DictionaryPages:
    """A stand-in for Spark's MapState."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.data.get(key)

    def put(self, key: bytes, data: bytes) -> None:
        self.data[key] = data

    def remove(self, key: bytes) -> None:
        del self.data[key]


class SmallHost:
    """`shuffled`: parcels of a partition arrive in any order, as they do in Spark."""

    def __init__(
        self,
        plan: QueryPlan,
        partitions: int,
        *,
        emits_every_change: bool = False,
        shuffled: Random | None = None,
        properties: tuple[tuple[str, str], ...] = (),
        columns_from: int | None = 1,
        schemas: SchemaStore | None = None,
    ) -> None:
        self.hosting = Hosting(
            plan.query_id,
            encode_plan(plan),
            partitions,
            partitions,
            properties,
            emits_every_change=emits_every_change,
            columns_from=columns_from,
        )
        self._schemas = schemas
        self.plan = HostedPlan(self.hosting, schemas)
        self.notes = Notes()
        self.results: list[TopicRecord] = []
        self._partitions = partitions
        self.pages: dict[tuple[int, int], DictionaryPages] = defaultdict(DictionaryPages)
        self._states: dict[tuple[int, int], PartitionState] = defaultdict(PartitionState)
        self._offsets: dict[tuple[str, int], int] = defaultdict(int)
        self._shuffled = shuffled

    def restart(self) -> None:
        """Go on in another process."""
        self.plan = HostedPlan(self.hosting, self._schemas)
        self._states.clear()

    def batch(self, records: Sequence[tuple[str, TopicRecord]]) -> None:
        """Run one micro-batch over records of topics."""
        waiting: dict[tuple[int, int], list[Parcel]] = defaultdict(list)
        topology, stages = self.plan.topology, self.plan.stages
        for raw in self._raws(records):
            first = topology.operator_of(raw.stage)
            if first is None:
                first = topology.next_operator(topology.entries[raw.stage], stages)
            self._send(first, list(self.plan.from_source(raw)), waiting)
        for number, members in enumerate(topology.operators):
            following = topology.next_operator(members, stages)
            for partition in range(topology.partitions):
                parcels = waiting.pop((number, partition), [])
                if parcels:
                    made = self._operator(number, partition, parcels)
                    self._send(following, made, waiting)
        assert not waiting
        self.notes.add(self.plan.take_notes())

    def _operator(
        self, number: int, partition: int, parcels: list[Parcel]
    ) -> list[tuple[int, int | None, Parcel]]:
        if self._shuffled:
            self._shuffled.shuffle(parcels)
        state = self._states[number, partition]
        state.attach(self.pages[number, partition])
        made = list(self.plan.run_operator(number, partition, parcels, state.open))
        state.flush()
        return made

    def _send(
        self,
        following: int | None,
        ends: Sequence[tuple[int, int | None, Parcel]],
        waiting: dict[tuple[int, int], list[Parcel]],
    ) -> None:
        for partition, operator, parcel in ends:
            sent = decode_parcel(encode_parcel(parcel))
            if operator is not None:
                # As in Spark: to the next operator, which passes on what is not its own.
                assert following is not None
                assert following <= operator
                waiting[following, partition].append(sent)
                continue
            assert isinstance(sent, Results)
            headers = sent.headers or ((),) * len(sent.keys)
            self.results += [
                TopicRecord(key, value, at, tuple(given))
                for key, value, at, given in zip(*sent.lists(), headers, strict=True)
            ]

    def _raws(self, records: Sequence[tuple[str, TopicRecord]]) -> list[Raw]:
        """The records as each reader of their topic gets them."""
        logs: dict[tuple[str, int], list[TopicRecord]] = defaultdict(list)
        for topic, record in records:
            hashed = (murmur2(record.key) & 0x7FFFFFFF) if record.key is not None else 0
            logs[topic, hashed % self._partitions].append(record)
        raws = []
        for (topic, partition), log in logs.items():
            first = self._offsets[topic, partition]
            self._offsets[topic, partition] += len(log)
            raws += [
                Raw(
                    stage,
                    place,
                    RawColumns.of_lists(
                        partition,
                        list(range(first, first + len(log))),
                        [record.timestamp_ms for record in log],
                        [record.key for record in log],
                        [record.value for record in log],
                        [record.headers for record in log],
                    ),
                )
                for (stage, place), read in self.plan.topology.topics.items()
                if read == topic
            ]
        return raws
