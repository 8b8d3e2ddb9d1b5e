"""What a Spark worker runs of a shared stream: one label of one of its queries.

A query that fails must not stop the others. What it fails of is caught and reported, as long as
it has put nothing into Spark's state: the micro-batch ends without it, and its records are read
again. At least once, its results up to there may be written twice. Exactly once, a label writes in
a transaction of its own: it is aborted then, and otherwise left open for the driver to commit.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from barnabas.spark.datasource.committer import task_prefix
from barnabas.spark.datasource.options import SinkOptions, options_of
from barnabas.spark.datasource.task import TaskPlace
from barnabas.sql.runtime.rows_encoding import pack, unpack
from barnabas.sql.spark.hosted import HostedPlan, Placed, forgotten_on_failure
from barnabas.sql.spark.hosting import Hosting, RangeReading, SharedResults
from barnabas.sql.spark.parcels import (
    Incoming,
    Left,
    Member,
    Notes,
    Parcel,
    Range,
    Raw,
    Report,
    Results,
    Turn,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import read_range
from barnabas.sql.spark.results import ExactlyOnce, ResultRecords, TaskResults, write_from_task
from barnabas.sql.spark.state import MapStatePages, PartitionState, partition_state
from barnabas.sql.spark.topology import member_of

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_OF_STAGES: Final = ("ksql.functions.", "ksql.timestamp.", "ksql.logging.processing.")
"""Settings that the stages of a plan read; others may be secrets."""
_TOLD: Final = (
    "query_id",
    "plan",
    "partitions",
    "tasks",
    "is_copartitioned",
    "emits_every_change",
    "state_name",
    "extension_directory",
    "sink_servers",
    "sink_partitions",
    "columns_from",
)
"""Of a query's hosting; all of a stream's queries have the rest in common."""


def member_parcel(hosting: Hosting) -> bytes:
    """The description of a member for workers, without secrets: Spark writes it to files."""
    properties = tuple(
        (name, value) for name, value in hosting.properties if name.startswith(_OF_STAGES)
    )
    return encode_parcel(Member(pack((properties, *(getattr(hosting, name) for name in _TOLD)))))


def _hosting_of(member: Member, common: Hosting) -> Hosting:
    properties, *told = unpack(member.hosting)
    return replace(
        common,
        properties=tuple((name, value) for name, value in properties),
        **dict(zip(_TOLD, told, strict=True)),
    )


def run_member(
    common: Hosting,
    reading: RangeReading,
    results: SharedResults,
    state: Any,
    label: int,
    rows: Iterator[pd.DataFrame],
) -> pd.DataFrame:
    """Run the parcels of one label; `state` is Spark's map of its pages."""
    import pandas as pd  # here, as the module is read where pandas is not

    parcels = [decode_parcel(bytes(data)) for frame in rows for data in frame["parcel"].to_numpy()]
    if any(isinstance(one, Left) for one in parcels):
        state.clear()
    member = next((one for one in parcels if isinstance(one, Member)), None)
    if member is None:
        return pd.DataFrame({"label": pd.Series([], dtype="int32"), "parcel": []})
    turn = next((one for one in parcels if isinstance(one, Turn)), Turn(0, is_repeated=False))
    hosting = _hosting_of(member, common)
    reading = replace(reading, is_committed_only=hosting.sink_servers is None)
    report = _run(hosting, reading, results, turn, MapStatePages(state), label, parcels)
    return pd.DataFrame(
        {"label": pd.Series([label], dtype="int32"), "parcel": [encode_parcel(report)]}
    )


def _run(
    hosting: Hosting,
    reading: RangeReading,
    results: SharedResults,
    turn: Turn,
    pages: MapStatePages,
    label: int,
    parcels: Sequence[Parcel],
) -> Report:
    began = time.perf_counter()
    _, partition = member_of(label)
    state: PartitionState | None = None
    with ExitStack() as undo:
        try:
            with forgotten_on_failure(hosting) as plan:
                if plan.topology.operators:
                    state = partition_state(f"{hosting.state_name}/0", partition, PartitionState)
                    state.attach(pages)
                transaction = _transaction(plan, reading, results, turn, label)
                undo.callback(transaction.abort)
                written = 0
                for parcel in _processed(plan, reading, state, partition, parcels):
                    if turn.is_repeated:
                        continue
                    if hosting.sink_servers is None:
                        transaction.write(parcel)
                    else:
                        to = ResultRecords.of_plan(plan)
                        write_from_task(hosting.sink_servers, to, parcel, hosting.clients)
                    written += len(parcel.keys)
                prepared = transaction.prepare()
                notes = plan.take_notes()
        except (Exception, SystemExit):  # noqa: BLE001  it is reported, and the query stops of it
            return Report(label, Notes(), traceback.format_exc())
        if state is not None:
            state.flush()
        undo.pop_all()
    notes.written = written
    notes.calls = pages.calls
    notes.seconds = time.perf_counter() - began
    task = TaskContext.get()
    was_retried = task is not None and task.attemptNumber() > 0
    return Report(label, notes, None, tuple(Written(one, was_retried) for one in prepared))


def _transaction(
    plan: HostedPlan, reading: RangeReading, results: SharedResults, turn: Turn, label: int
) -> TaskResults:
    """The transaction of a label, which nothing begins but a result that is written to it."""
    to = ExactlyOnce(
        _sink_options(reading.bootstrap_servers, reading.clients),
        f"{results.service_id}{plan.hosting.query_id}",
        plan.hosting.state_name,
        results.marks_all,
    )
    place = TaskPlace(task_prefix(results.sink), turn.number, label)
    return TaskResults(to, ResultRecords.of_plan(plan), place)


@lru_cache(maxsize=1)
def _sink_options(servers: str, clients: tuple[tuple[str, Any], ...]) -> SinkOptions:
    return options_of(servers, dict(clients))


def _processed(
    plan: HostedPlan,
    reading: RangeReading,
    state: PartitionState | None,
    partition: int,
    parcels: Sequence[Parcel],
) -> Iterator[Results]:
    """Run all stages, and return the results; puts nothing into Spark's state."""
    placed: list[Placed] = []
    for parcel in parcels:
        if isinstance(parcel, Range):
            of = parcel
            for records in read_range(reading, of.topic, of.partition, of.first, of.until):
                placed += plan.from_source(Raw(of.stage, of.place, records))
    made = [one for one in placed if one[1] is None]
    incoming: list[Incoming] = []
    for target, number, one in placed:
        if number is not None:
            assert (target, number) == (partition, 0), "records stay where they are"
            assert isinstance(one, Incoming)
            incoming.append(one)
    if state is not None:
        made += plan.run_operator(0, partition, incoming, state.open)
    for _, _, result in made:
        assert isinstance(result, Results), "nothing leaves but results"
        yield result
