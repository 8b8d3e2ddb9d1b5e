"""Which server of a service runs which query: slots, leases, and queries that move."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.engine.command_log import LogEntry
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.local_runner import LocalQueryRunner
from barnabas.sql.engine.ownership import (
    ALL_SLOTS,
    SLOTS,
    Lease,
    Slots,
    slot_of,
    slot_of_name,
)
from barnabas.sql.engine.session import Session
from barnabas.sql.functions.built_in import functions
from support.effort import examples
from support.memory_cluster import MemoryCluster
from support.memory_command_log import MemoryCommandLog
from support.sql_server_world import SETTINGS, SqlWorld

gaps_s = st.integers(0, 30 << 10).map(lambda number: number / 1024)
"""Their sums are exact, so that a gap of 10 seconds is one for a clock too."""
slot_sets = st.frozensets(st.integers(0, SLOTS - 1))


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(1, SLOTS), st.integers(0, 200))
def test_servers_with_neighbouring_slots_share_queries_evenly(servers: int, first: int) -> None:
    bounds = [SLOTS * server // servers for server in range(servers + 1)]
    for count in range(1, 2 * SLOTS):
        slots = [slot_of(number) for number in range(first, first + count)]
        shares = [sum(low <= slot < high for slot in slots) for low, high in pairwise(bounds)]
        assert sum(shares) == count
        # No server has more than a few more than its part.
        assert max(shares) <= count / servers * 2 + 2


def test_names_have_slots_that_all_servers_know_alike() -> None:
    assert slot_of_name("ranking") == 16
    assert {slot_of_name(f"query-{number}") for number in range(1000)} == ALL_SLOTS


def test_two_servers_take_turns_and_four_too() -> None:
    for servers in (2, 4):
        owners = [slot_of(number) * servers // SLOTS for number in range(64)]
        for begin in range(0, 64, servers):
            assert sorted(owners[begin : begin + servers]) == list(range(servers))


@given(st.lists(slot_sets, max_size=20))
def test_what_is_won_and_lost_adds_up(moves: list[frozenset[int]]) -> None:
    slots, running = Slots(), set[int]()
    for owned in moves:
        change = slots.change_to(owned)
        assert change.lost <= running
        assert not change.won & running
        running -= change.lost
        running |= change.won
        assert running == owned == slots.owned


@given(st.lists(st.tuples(gaps_s, st.booleans()), max_size=50))
def test_a_lease_ends_with_a_gap_and_only_joining_begins_it_again(
    steps: list[tuple[float, bool]],
) -> None:
    now = 0.0
    lease = Lease(10, now)
    is_held = True
    for gap, joins in steps:
        now += gap
        if gap >= 10:
            is_held = False
        assert lease.renew(now) == is_held
        assert lease.is_held(now) == is_held
        if joins and not is_held:
            lease.begin(now)
            is_held = True


class Service:
    """Servers of one service over one cluster, whose slots a test deals out."""

    def __init__(self, count: int) -> None:
        self.cluster = MemoryCluster()
        self.entries: list[LogEntry] = []
        self.engines = [self._engine() for _ in range(count)]

    def _engine(self) -> KsqlEngine:
        catalog = functions()
        runner = LocalQueryRunner(self.cluster, catalog, None)
        log = MemoryCommandLog(self.entries)
        engine = KsqlEngine(self.cluster, log, runner, catalog, None, SETTINGS)
        engine.own(())
        engine.start()
        return engine

    def run(self, engine: int, text: str) -> None:
        session = Session(self.engines[engine].settings)
        for parsed, own in self.engines[engine].parse(text, session):
            self.engines[engine].execute(parsed, own)
        for other in self.engines:
            other.read_log()

    def deal(self, owners: Mapping[int, int]) -> None:
        """Give each slot to one engine; engines that lose slots give them up first."""
        wanted = [
            frozenset(slot for slot in ALL_SLOTS if owners.get(slot, 0) == number)
            for number in range(len(self.engines))
        ]
        for engine, slots in zip(self.engines, wanted, strict=True):
            engine.own(slots & engine_slots(engine))
        for engine, slots in zip(self.engines, wanted, strict=True):
            engine.own(slots)

    def runners(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {query: [] for query in self.engines[0].queries}
        for number, engine in enumerate(self.engines):
            for query_id, running in engine.queries.items():
                assert running.is_here == (running.hosted is not None)
                if running.hosted is not None:
                    found[query_id].append(number)
        return found

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def engine_slots(engine: KsqlEngine) -> frozenset[int]:
    return engine._running._slots.owned


BASE = (
    "CREATE STREAM s (k STRING KEY, v INT) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.integers(0, 2)),
        st.tuples(st.just("terminate"), st.integers(0, 2)),
        st.tuples(st.just("pause"), st.integers(0, 2)),
        st.tuples(st.just("deal"), st.dictionaries(st.integers(0, SLOTS - 1), st.integers(0, 2))),
    ),
    max_size=12,
)


@settings(max_examples=examples(8), deadline=None)
@given(operations)
def test_each_query_runs_on_exactly_one_server(steps: list[tuple[str, Any]]) -> None:
    service = Service(3)
    try:
        service.run(0, BASE)
        service.deal({})
        made = 0
        for kind, value in steps:
            if kind == "deal":
                service.deal(value)
            elif kind == "create":
                made += 1
                service.run(value, f"CREATE STREAM c{made} AS SELECT * FROM s EMIT CHANGES;")
            elif service.engines[0].queries:
                query_id = next(iter(service.engines[0].queries))
                service.run(value, f"{kind.upper()} {query_id};")
            found = service.runners()
            assert [len(runners) for runners in found.values()] == [1] * len(found)
    finally:
        service.close()


async def test_a_replaced_query_stays_where_it_is() -> None:
    world = SqlWorld()
    await world.ksql(BASE)
    await world.ksql("CREATE STREAM a AS SELECT k, v FROM s; CREATE STREAM b AS SELECT * FROM s;")
    before = [running.slot for running in world.engine.queries.values()]
    assert before == [slot_of(0), slot_of(1)]
    await world.ksql("CREATE OR REPLACE STREAM a AS SELECT k, v FROM s WHERE v > 1;")
    assert sorted(running.slot for running in world.engine.queries.values()) == sorted(before)
    await world.close()
