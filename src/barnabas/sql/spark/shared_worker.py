"""What a Spark worker runs of a shared stream: one label of one of its queries.

A query that fails must not stop the others. What it fails of is caught and reported, as long as
it has put nothing into Spark's state: the micro-batch ends without it, and its records are read
again. Its results up to there may be written twice, as `at_least_once` allows.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from barnabas.sql.runtime.rows_encoding import pack, unpack
from barnabas.sql.spark.hosted import HostedPlan, Placed, forgotten_on_failure
from barnabas.sql.spark.hosting import Hosting, RangeReading
from barnabas.sql.spark.parcels import (
    Incoming,
    Left,
    Member,
    Notes,
    Parcel,
    Range,
    Raw,
    Report,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import read_range
from barnabas.sql.spark.state import MapStatePages, PartitionState, partition_state
from barnabas.sql.spark.topology import member_of
from barnabas.sql.spark.worker import sent

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
    common: Hosting, reading: RangeReading, state: Any, label: int, rows: Iterator[pd.DataFrame]
) -> pd.DataFrame:
    """Run the parcels of one label; `state` is Spark's map of its pages."""
    import pandas as pd  # here, as the module is read where pandas is not

    parcels = [decode_parcel(bytes(data)) for frame in rows for data in frame["parcel"].to_numpy()]
    if any(isinstance(one, Left) for one in parcels):
        state.clear()
    member = next((one for one in parcels if isinstance(one, Member)), None)
    if member is None:
        return pd.DataFrame({"label": pd.Series([], dtype="int32"), "parcel": []})
    report = _run(_hosting_of(member, common), reading, MapStatePages(state), label, parcels)
    return pd.DataFrame(
        {"label": pd.Series([label], dtype="int32"), "parcel": [encode_parcel(report)]}
    )


def _run(
    hosting: Hosting,
    reading: RangeReading,
    pages: MapStatePages,
    label: int,
    parcels: Sequence[Parcel],
) -> Report:
    began = time.perf_counter()
    _, partition = member_of(label)
    state: PartitionState | None = None
    try:
        with forgotten_on_failure(hosting) as plan:
            if plan.topology.operators:
                state = partition_state(f"{hosting.state_name}/0", partition, PartitionState)
                state.attach(pages)
            written = _processed(plan, reading, state, partition, parcels)
            notes = plan.take_notes()
    except (Exception, SystemExit):  # noqa: BLE001  it is reported, and the query stops of it
        return Report(label, Notes(), traceback.format_exc())
    if state is not None:
        state.flush()
    notes.written = written
    notes.calls = pages.calls
    notes.seconds = time.perf_counter() - began
    return Report(label, notes, None)


def _processed(
    plan: HostedPlan,
    reading: RangeReading,
    state: PartitionState | None,
    partition: int,
    parcels: Sequence[Parcel],
) -> int:
    """Run all stages, write the results, and return how many; puts nothing into Spark's state."""
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
    rows, written = sent(plan, made)
    assert not rows, "all results are written here"
    return written
